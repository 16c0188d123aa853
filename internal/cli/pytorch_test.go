package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"scrimp/internal/decide/receipt"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// The PyTorch example, killed twice without notice under scrimp, ends with the loss and the weights of an undisturbed
// run.
func TestPyTorch_SameLossAfterTwoKills(t *testing.T) {
	lane.Nightly(t, "trains three times, with two machines lost on the way")
	t.Parallel()
	python := hasTorch(t)
	example := filepath.Join("..", "..", "examples", "pytorch")
	train, err := os.ReadFile(filepath.Join(example, "train.py"))
	must.Do(t, err)
	file, err := os.ReadFile(filepath.Join(example, "job.yaml"))
	must.Do(t, err)
	// A slow machine needs more market time and money, which this test does not examine.
	job := strings.NewReplacer("exec python3", "exec "+python, "interval: auto", "interval: 1s", "deadline: in 6h",
		"deadline: in 900h", "budget: $3.00", "budget: $900").Replace(string(file))
	if strings.Count(job, python) != 1 || !strings.Contains(job, "interval: 1s") || strings.Count(job, "900") != 2 {
		t.Fatalf("the job file has changed:\n%s", job)
	}
	for steps := 3000; ; steps *= 2 { // until the work suffices for three machines, however fast this machine is
		h := newHome(t)
		h.write("train.py", string(train))
		h.write("job.yaml", job)
		n := strconv.Itoa(steps)
		h.do("run", "-y", "-d", "job.yaml", "--env", "STEPS="+n)
		if !h.killsTwice("pytorch-digits") {
			t.Logf("%d steps were over before the second kill", steps)
			continue
		}
		h.until("it is done", func() bool { j := h.job("pytorch-digits"); return j.State == "succeeded" && j.Closed })
		h.do("get", "pytorch-digits", "-o", "got")
		var r receipt.Receipt
		must.Do(t, json.Unmarshal([]byte(h.out("receipt", "--json", "pytorch-digits")), &r))
		if len(r.Tries) != 3 || r.Tries[1].Restored == "" || r.Tries[2].Restored == "" || !r.Ledger.Agrees {
			t.Errorf("ledger agrees %v, attempts %+v", r.Ledger.Agrees, r.Tries)
		}
		alone := exec.Command(python, "train.py", "--steps", n, "--out", "alone.json")
		alone.Dir = h.dir
		alone.Env = append(os.Environ(), "SCRIMP_CHECKPOINT_DIR="+filepath.Join(h.dir, "alone"))
		if out, err := alone.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		want, err := os.ReadFile(filepath.Join(h.dir, "alone.json"))
		must.Do(t, err)
		got, err := os.ReadFile(filepath.Join(h.dir, "got", "out", "result.json"))
		must.Do(t, err)
		if !bytes.Equal(got, want) {
			t.Errorf("after two kills without notice\n%s, left alone\n%s", got, want)
		}
		return
	}
}

// killsTwice kills a job's machine twice without notice, each time after its program has saved there. It returns false
// if the job ended before.
func (h *home) killsTwice(job string) bool {
	h.t.Helper()
	saved := int64(0)
	for n := 1; n <= 2; n++ {
		var j api.Job
		h.until("it saves anew", func() bool {
			j = h.job(job)
			return j.State == "succeeded" || j.Attempts == n && j.SavedStep > saved
		})
		if j.State == "succeeded" {
			return false
		}
		h.kills(j.Machine)
		h.until("its death is known", func() bool { j = h.job(job); return j.Attempts > n || j.State == "succeeded" })
		if j.State == "succeeded" {
			return false
		}
		saved = j.SavedStep
	}
	return true
}
