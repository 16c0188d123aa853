package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"scrimp/internal/receipt"
)

// taken takes every machine of its spot zone without notice, twice, so many
// seconds on the wall after it opens, and not again.
const taken = `name: taken
speed: 60
offers:
  - zone: a
    region: r
    machine: m
    cpus: 2
    memory: 4GiB
    capacity: spot
    price: 1
    available: [{from: 0m, to: %dm, notice: 0s}, {from: %dm, to: %dm, notice: 0s}, {from: %dm, to: 1000h}]
`

// The PyTorch example, killed twice without notice under scrimp, ends with the
// loss and the weights of a run that was left alone.
func TestPyTorchKilledTwiceWithoutNoticeEndsWithTheSameLoss(t *testing.T) {
	t.Parallel()
	python := "/usr/bin/python3" // Debian's own, as that is where python3-torch is
	if exec.Command(python, "-c", "import torch").Run() != nil {
		if os.Getenv("SCRIMP_CI") == "1" {
			t.Fatal("python3-torch is not installed")
		}
		t.Skip("skipped: python3-torch is not installed; .ci/run installs it")
	}
	example := filepath.Join("..", "..", "examples", "pytorch")
	train, err := os.ReadFile(filepath.Join(example, "train.py"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(example, "job.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// A slow machine needs more of the market's time and money: neither is what this is about.
	job := strings.NewReplacer("exec python3", "exec "+python, "interval: auto", "interval: 1s", "deadline: in 6h",
		"deadline: in 900h", "budget: $3.00", "budget: $900").Replace(string(file))
	if strings.Count(job, python) != 1 || !strings.Contains(job, "interval: 1s") || strings.Count(job, "900") != 2 {
		t.Fatalf("the job file has changed:\n%s", job)
	}
	// Until a life is long enough for a save, and the work for more than two lives,
	// however fast this machine is.
	for steps, life, tries := 3500, 8, 0; ; tries++ {
		if tries > 8 {
			t.Fatalf("the machine is taken too early or too late: %d steps, %d s", steps, life)
		}
		h := newHome(t)
		h.write("train.py", string(train))
		h.write("job.yaml", job)
		h.write("market.yaml", fmt.Sprintf(taken, life, life+1, 2*life+1, 2*life+2))
		n := strconv.Itoa(steps)
		h.do("run", "-y", "job.yaml", "--market", "market.yaml", "--env", "STEPS="+n)
		h.do("get", "pytorch-digits", "-o", "got")
		var r receipt.Receipt
		if err := json.Unmarshal([]byte(h.do("receipt", "--json", "pytorch-digits")), &r); err != nil {
			t.Fatal(err)
		}
		if len(r.Interruptions) < 2 {
			t.Logf("%d steps were over before the second interruption", steps)
			steps *= 2
			continue
		}
		restored := 0
		for _, i := range r.Interruptions {
			if i.Notice != 0 {
				t.Errorf("%s was taken with a notice of %v s", i.Instance, i.Notice)
			}
			if i.Restored != nil {
				restored++
			}
		}
		if restored == 0 {
			t.Log("no machine lived long enough for a save: once more")
			steps, life = 2*steps, 2*life
			continue
		}
		if r.Attempts != len(r.Interruptions)+1 || !r.Ledger.Agrees {
			t.Errorf("%d interruptions in %d attempts, ledger agrees %v", len(r.Interruptions), r.Attempts, r.Ledger.Agrees)
		}
		alone := exec.Command(python, "train.py", "--steps", n, "--out", "alone.json")
		alone.Dir = h.dir
		alone.Env = append(os.Environ(), "SCRIMP_CHECKPOINT_DIR="+filepath.Join(h.dir, "alone"))
		if out, err := alone.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		want, err := os.ReadFile(filepath.Join(h.dir, "alone.json"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(h.dir, "got", "out", "result.json"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("after %d kills without notice\n%s, left alone\n%s", len(r.Interruptions), got, want)
		}
		return
	}
}
