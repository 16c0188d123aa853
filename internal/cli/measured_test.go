package cli_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	api "scrimp/client"
	"scrimp/internal/cli/show/planning"
	"scrimp/internal/cli/show/sizing"
	"scrimp/internal/decide/runhistory"
	"scrimp/internal/estimate"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/testbin"
)

func lines[T any](t *testing.T, text string) (list []T) {
	t.Helper()
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatalf("%v in %s", err, s.Text())
		}
		list = append(list, v)
	}
	return list
}

// out returns the program's output without its notes.
func (h *home) out(args ...string) string {
	h.t.Helper()
	out, err := h.command(args...).Output()
	if err != nil {
		said := ""
		if exit, is := errors.AsType[*exec.ExitError](err); is {
			said = string(exit.Stderr)
		}
		h.t.Fatalf("scrimp %s: %v\n%s%s", strings.Join(args, " "), err, out, said)
	}
	return string(out)
}

// visionJob writes a job file with the given number of steps of 100 samples, and a market with a matching machine.
func (h *home) visionJob(steps string) {
	h.t.Helper()
	h.write("market.yaml", `name: lab
currency: USD
offers:
  - {zone: a, region: a, machine: g, cpus: 1, memory: 1GiB, accelerator: L4, accelerators: 1, capacity: on-demand, price: 0.80}
`)
	h.write("job.yaml", `name: vision
command: 'for i in $(seq $STEPS); do echo "step $i/$STEPS loss 1"; sleep 0.05; done'
env: {STEPS: "`+steps+`"}
progress: 'step (?P<step>\d+)/(?P<total>\d+) loss (?P<loss>\S+)'
model: {config: resnet-50}
work: {steps: `+steps+`, samples: `+steps+`00}
`)
}

// A run of some seconds on a machine declared to have an L4 calibrates the plan of the next run and the estimate of its
// model, also after the server was killed.
func TestRun_CalibratesNextPlanAndEstimate(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.visionJob("40")
	estimated := func() estimate.Answer {
		list := lines[sizing.Page](t, h.do("estimate", "--model", "resnet-50", "--rows", "20000", "--epochs", "1", "--gpu", "L4", "--json"))
		return list[0].Answer
	}
	before := estimated()
	if !strings.Contains(before.Provenance, "no measured run") || h.do("estimate", "--measured", "--json") != "" {
		t.Errorf("nothing has run: %s", before.Provenance)
	}
	h.do("run", "-y", "--market", "market.yaml", "job.yaml")

	var server api.Server
	must.Do(t, json.Unmarshal([]byte(h.out("server", "status", "--json")), &server))
	must.Do(t, syscall.Kill(server.PID, syscall.SIGKILL))
	runs := lines[runhistory.Run](t, h.do("estimate", "--measured", "--json"))
	if len(runs) != 1 || runs[0].Job != "vision" || runs[0].Accelerator != "L4" || runs[0].StepsPerHour == nil || runs[0].Throughput == nil {
		t.Fatalf("%+v", runs)
	}
	r := runs[0]
	if want := *r.StepsPerHour / 3600 * 100; r.Unit != "samples/s" || math.Abs(*r.Throughput/want-1) > 0.01 || r.Cost.Sign() <= 0 || r.Cost != h.job("vision").Spent {
		t.Errorf("%+v: want %g samples/s, and the cost of the receipt", r, want)
	}
	after := estimated()
	if math.Abs(after.Throughput.Value / *r.Throughput - 1) > 0.1 || after.Throughput.High/after.Throughput.Low > before.Throughput.High/before.Throughput.Low {
		t.Errorf("the estimate is %+v after %g was measured, before it was %+v", after.Throughput, *r.Throughput, before.Throughput)
	}
	if !strings.Contains(after.Provenance, "one measured run of yours") {
		t.Error(after.Provenance)
	}

	var p planning.Plan
	must.Do(t, json.Unmarshal([]byte(h.out("plan", "--json", "job.yaml", "--env", "STEPS=80")), &p))
	// A plan counts whole seconds.
	if p.WorkS == nil || *p.WorkS != math.Round(2**r.WorkS) || !strings.HasPrefix(p.WorkFrom, "by one measured run of yours") {
		text, _ := json.Marshal(p)
		t.Errorf("twice the steps take twice the time, which was %g s, to whole seconds: %s", *r.WorkS, text)
	}
	if out, _ := h.try("check", "job.yaml"); !strings.Contains(strings.Join(strings.Fields(out), " "), "one measured run of yours") {
		t.Errorf("the check does not know of the run:\n%s", out)
	}
}

// The receipt shows the expectation of a run beside the result, once an earlier run gives an expectation.
func TestReceipt_ShowsExpectationBesideResult(t *testing.T) {
	lane.Nightly(t, "two runs must be as fast as each other")
	t.Parallel()
	h := newHome(t)
	h.visionJob("200")
	h.do("run", "-y", "--market", "market.yaml", "job.yaml")
	h.do("profile", "job.yaml", "--for", "10s")
	found := map[string]bool{}
	for _, x := range lines[runhistory.Pair](t, h.do("estimate", "--accuracy", "--json")) {
		if x.Job == "vision-profile" && x.Expected > 0 && x.Actual > 0 && x.Error() < 0.5 {
			found[x.What] = true
		}
	}
	if !found["throughput"] {
		t.Errorf("of the second run what was expected does not stand beside what came out: %v\n%s", found, h.do("estimate", "--accuracy"))
	}
}

// The demo's trainer, unchanged, gives an estimate for its next run.
func TestRun_MeasuresDemoTrainer(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	must.Do(t, os.Symlink(testbin.Trainer.Path(t), filepath.Join(h.dir, "chargpt")))
	text, err := os.ReadFile("../../examples/chargpt/job.yaml")
	must.Do(t, err)
	job := string(text)
	for old, now := range map[string]string{"  time: 80m # 40 s of real time on the demo market's clock\n": "", "  steps: 4000\n": "  steps: 60\n", `STEPS: "4000"`: `STEPS: "60"`, "deadline: in 3h\n": ""} {
		if !strings.Contains(job, old) {
			t.Fatalf("the demo's job has no %q any more", old)
		}
		job = strings.Replace(job, old, now, 1)
	}
	h.write("job.yaml", job)
	h.do("run", "-y", "--market", "calm", "job.yaml")
	runs := lines[runhistory.Run](t, h.do("estimate", "--measured", "--json"))
	if len(runs) != 1 || runs[0].Name != "chargpt" || runs[0].WorkS == nil || runs[0].Unit != "tokens/s" || runs[0].Throughput == nil || runs[0].Cores == nil && *runs[0].WorkS > 10 {
		t.Fatalf("%+v", runs)
	}
	var p planning.Plan
	must.Do(t, json.Unmarshal([]byte(h.out("plan", "--json", "job.yaml")), &p))
	if p.WorkS == nil || math.Abs(*p.WorkS-*runs[0].WorkS) > 1 || p.WorkFrom == "" || p.CostUSD == nil {
		t.Errorf("%+v after %g s", p, *runs[0].WorkS)
	}
}
