// Package pytorch tests the PyTorch example with real processes and real kills. It contains no other Go code.
package pytorch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/proc"
)

// python returns an interpreter with PyTorch: Debian's own, or another one on the PATH.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		path, err := exec.LookPath(name)
		if err == nil && exec.Command(path, "-c", "import torch").Run() == nil {
			return path
		}
	}
	t.Skip("python3-torch is not installed")
	return ""
}

// train runs train.py in dir and sends it sig at the first line that begins with at; with an empty at it runs to its
// end. It returns the output and the exit status, -1 if a signal ended it.
func train(t *testing.T, python, dir string, env []string, sig syscall.Signal, at string, args ...string) (lines []string, code int) {
	t.Helper()
	c := exec.Command(python, append([]string{"train.py", "--log-every", "1", "--save-every", "0.02",
		"--out", filepath.Join(dir, "out", "result.json")}, args...)...)
	c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "SCRIMP_CHECKPOINT_DIR="+filepath.Join(dir, "saved"))
	c.Env = append(c.Env, env...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.StdoutPipe()
	must.Do(t, err)
	p := proc.Start(t, c)
	for s := bufio.NewScanner(out); s.Scan(); {
		lines = append(lines, s.Text())
		if at != "" && strings.HasPrefix(s.Text(), at) {
			at = ""
			if err := p.Signal(sig); err != nil {
				t.Logf("signal: %v", err)
			}
		}
	}
	_ = p.Wait() // only the status counts
	if stderr.Len() > 0 {
		t.Errorf("stderr: %s", stderr.String())
	}
	return lines, c.ProcessState.ExitCode()
}

type result struct {
	Steps    int
	Loss     float64
	Accuracy float64
	Weights  string
}

func read(t *testing.T, dir string) (r result) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "out", "result.json"))
	must.Do(t, err)
	must.Do(t, json.Unmarshal(b, &r))
	return r
}

// After a kill without notice and a request to stop, a program with the helper ends with the loss and the weights of
// an undisturbed run.
func TestTraining_EndsWithTheSameLossAfterKills(t *testing.T) {
	lane.Component(t, "pytorch")
	helper, err := filepath.Abs("../../sdk/python")
	must.Do(t, err)
	endsTheSame(t, []string{"PYTHONPATH=" + helper, "SCRIMP_JOB=job-1"}, syscall.SIGKILL, syscall.SIGTERM)
}

// The same holds without the helper, with one more kill.
func TestTrainingWithoutHelper_EndsWithTheSameLossAfterKills(t *testing.T) {
	lane.Nightly(t, "starts PyTorch five times and more")
	endsTheSame(t, nil, syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL)
}

// endsTheSame interrupts a run with each of the signals, and compares its result with that of an undisturbed run.
func endsTheSame(t *testing.T, env []string, signals ...syscall.Signal) {
	t.Helper()
	if _, err := os.ReadFile("train.py"); err != nil { // go test's cache tracks what the test itself reads
		t.Fatal(err)
	}
	py := python(t)
	for steps := 120; !killedIsTheSame(t, py, env, steps, signals); steps *= 2 {
		if steps > 10_000 {
			t.Fatal("the signals come too late")
		}
	}
}

// killedIsTheSame compares an interrupted run with an undisturbed one. It returns false if a signal came after the
// end.
func killedIsTheSame(t *testing.T, py string, env []string, steps int, signals []syscall.Signal) bool {
	t.Helper()
	n := strconv.Itoa(steps)
	whole, dir := t.TempDir(), t.TempDir()
	if lines, code := train(t, py, whole, env, 0, "", "--steps", n); code != 0 {
		t.Fatalf("the whole run ended with %d: %v", code, lines)
	}
	for i, sig := range signals {
		want := map[syscall.Signal]int{syscall.SIGKILL: -1, syscall.SIGTERM: 143}[sig]
		at := "step " + strconv.Itoa((i+1)*steps/(len(signals)+1)) + "/"
		lines, code := train(t, py, dir, env, sig, at, "--steps", n)
		if code == 0 {
			t.Logf("%v at %s came after the end", sig, at)
			return false
		}
		if code != want {
			t.Fatalf("%v at %s: exit status %d, want %d: %v", sig, at, code, want, lines)
		}
		if end := lines[len(lines)-1]; sig == syscall.SIGTERM && !strings.HasPrefix(end, "saved step ") {
			t.Fatalf("SIGTERM: the last line is %q", end)
		}
	}
	lines, code := train(t, py, dir, env, 0, "", "--steps", n)
	if code != 0 || !strings.HasPrefix(lines[0], "resumed from step ") {
		t.Fatalf("the last run ended with %d: %v", code, lines)
	}
	got, want := read(t, dir), read(t, whole)
	if got != want {
		t.Fatalf("after the signals %+v, want %+v", got, want)
	}
	if want.Steps != steps || want.Loss >= 1.8 {
		t.Fatalf("%+v: nothing was learnt", want)
	}
	t.Logf("loss %v, weights %s", got.Loss, got.Weights[:16])
	return true
}

// The job file's patterns match the lines that the program prints.
func TestJobFile_MatchesTheOutput(t *testing.T) {
	job, err := os.ReadFile("job.yaml")
	must.Do(t, err)
	program, err := os.ReadFile("train.py")
	must.Do(t, err)
	for field, form := range map[string][2]string{
		"pattern": {`"step %d/%d loss %.4f"`, "step 7/9 loss 2.5000"},
		"saved":   {`"saved step %d"`, "saved step 7"},
	} {
		line := form[1]
		if !bytes.Contains(program, []byte(form[0])) {
			t.Errorf("train.py prints no %s any more", form[0])
		}
		m := regexp.MustCompile(`(?m)^ +` + field + `: '(.*)'$`).FindSubmatch(job)
		if m == nil {
			t.Fatalf("job.yaml has no %s in single quotes", field)
		}
		p := regexp.MustCompile(string(m[1]))
		got := p.FindStringSubmatch(line)
		if got == nil || got[p.SubexpIndex("step")] != "7" {
			t.Errorf("%s does not read %q", field, line)
		}
	}
}
