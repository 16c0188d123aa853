package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// copies copies the files of an example, and takes the interpreter that has PyTorch.
func (h *home) copies(example, python string, files ...string) {
	h.t.Helper()
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join("..", "..", "examples", example, name))
		must.Do(h.t, err)
		h.write(name, strings.ReplaceAll(string(text), "exec python3", "exec "+python))
	}
}

// The example runs for real: four trials of PyTorch, of which the best is trained in full.
func TestTuneTorch_FindsATrialThatReadsDigits(t *testing.T) {
	lane.Component(t, "pytorch")
	t.Parallel()
	python := hasTorch(t)
	h := newHome(t)
	h.copies("tune-torch", python, "train.py", "job.yaml", "study.yaml")
	h.do("tune", "-y", "study.yaml")
	var best client.Trial
	must.Do(t, json.Unmarshal([]byte(h.out("tune", "best", "tune-torch", "--json")), &best))
	if best.Best == nil || *best.Best < 0.5 || *best.Best > 1 || len(best.Params) != 3 || best.Cost.Sign() <= 0 {
		t.Errorf("the best trial is %+v", best)
	}
	var trials []client.Trial
	full := 0
	for line := range strings.Lines(h.do("tune", "trials", "tune-torch", "--json")) {
		var one client.Trial
		must.Do(t, json.Unmarshal([]byte(line), &one))
		if trials = append(trials, one); one.Unit == 6 {
			full++
		}
	}
	if len(trials) != 4 || full < 1 {
		t.Errorf("%d trials began, and %d were trained in full", len(trials), full)
	}
}

// The same search as a loop of one's own finds the same trial on the user's machine and in a job.
func TestTuneTorch_LoopFindsTheSameInAJobAndElsewhere(t *testing.T) {
	lane.Component(t, "pytorch")
	t.Parallel()
	python := hasTorch(t)
	helper, err := filepath.Abs(filepath.Join("..", "..", "sdk", "python"))
	must.Do(t, err)
	last := func(text string) string {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		return lines[len(lines)-1]
	}
	h := newHome(t)
	h.copies("tune-torch", python, "train.py", "loop.py")
	h.write("job.yaml", "name: loop\ncommand: exec "+python+" loop.py\nenv: {PYTHONPATH: "+helper+"}\nbudget: $5\n")
	h.do("run", "-y", "job.yaml")
	inJob := ""
	for line := range strings.Lines(h.do("logs", "loop")) {
		if strings.HasPrefix(line, "best accuracy") {
			inJob = strings.TrimSpace(line)
		}
	}
	h.do("tune", "remove", "digits-loop")
	c := exec.Command(python, "loop.py")
	c.Dir = h.dir
	c.Env = append(os.Environ(), "PYTHONPATH="+helper, "SCRIMP_COMMAND="+h.bin, "SCRIMP_DATA="+h.data)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if alone := last(string(out)); inJob == "" || alone != inJob {
		t.Errorf("in a job it prints %q, elsewhere %q", inJob, alone)
	}
}
