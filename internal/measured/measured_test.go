package measured_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/market"
	"scrimp/internal/measured"
	"scrimp/internal/spec"
)

var begun = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// aRun is a job that ran once, for that many hours at that many steps an hour.
func aRun(name string, hours, pace float64, total int64) *core.Job {
	end := begun.Add(time.Duration(hours * float64(time.Hour)))
	step := int64(hours * pace)
	return &core.Job{
		ID: name, Terms: core.Terms{Name: name, Currency: "USD"}, State: core.Succeeded, Submitted: begun, Finished: end, Step: step, Total: total, StepRate: pace,
		Attempts: []*core.Attempt{{Offer: "o", Speed: 1, Started: begun, Over: end, Until: end, Step: step, End: "completed", Phase: core.Gone}}, Closed: 1,
	}
}

func on(kind string, n int) func(market.OfferID) (market.Offer, bool) {
	return func(id market.OfferID) (market.Offer, bool) {
		return market.Offer{ID: id, Machine: "m", Accelerator: kind, Accelerators: n}, true
	}
}

func of(t *testing.T, j *core.Job, s spec.Job) measured.Run {
	t.Helper()
	r, ok := measured.Of(j, j.Finished, on("H100-SXM-80GB", 8))
	if !ok {
		t.Fatalf("%s was not measured", j.ID)
	}
	return r.With(s)
}

func near(a, b float64) bool { return math.Abs(a/b-1) < 1e-9 }

func TestAFinishedRunSaysItsPaceItsThroughputAndItsWork(t *testing.T) {
	j := spec.Job{Name: "llama", Command: "train", Model: spec.Model{Config: "llama-3-8b", Batch: 4}, Work: spec.Work{Tokens: 2_000_000_000, Steps: 1000}}
	job := aRun("llama", 5, 200, 1000)
	job.Terms.Work = 4 * time.Hour
	job.Metrics = map[string]float64{"peak_memory_gb": 71.5}
	r := of(t, job, j)
	if !near(*r.StepsPerHour, 200) || !near(*r.WorkS, 5*3600) || !near(*r.ExpectedS, 4*3600) || *r.PeakMemory != 71.5 {
		t.Errorf("%+v", r)
	}
	if r.Unit != "tokens/s" || !near(*r.Throughput, 2e9/(5*3600)) || r.Accelerator != "H100-SXM-80GB" || r.Accelerators != 8 || r.Model.Config != "llama-3-8b" || r.Model.Batch != 4 {
		t.Errorf("%+v: 2B tokens in five hours", r)
	}
	text, err := json.Marshal(r)
	var back measured.Run
	if err != nil || json.Unmarshal(text, &back) != nil {
		t.Fatal(err)
	}
}

func TestThroughputIsOfTheMachineAndPaceOfOneWithSpeedOne(t *testing.T) {
	job := aRun("fast", 5, 200, 1000)
	job.StepRate, job.Attempts[0].Speed = 100, 2 // 200 steps an hour there
	r := of(t, job, spec.Job{Work: spec.Work{Samples: 36_000}})
	if !near(*r.Throughput, 2) || !near(*r.WorkS, 10*3600) {
		t.Errorf("%g samples/s, %g s: want 2 there, and ten hours on speed 1", *r.Throughput, *r.WorkS)
	}
}

func TestWhatRunsOrShowsNothingIsNotMeasured(t *testing.T) {
	for name, change := range map[string]func(*core.Job){
		"runs":        func(j *core.Job) { j.State = core.Running },
		"never began": func(j *core.Job) { j.Attempts = nil },
		"failed, silent": func(j *core.Job) {
			j.State, j.StepRate, j.Attempts[0].Step, j.Attempts[0].End = core.Failed, 0, 0, "failed"
		},
		"in two parts and silent": func(j *core.Job) { j.StepRate, j.Attempts[0].Step, j.Attempts[0].Restored = 0, 0, "c1" },
	} {
		j := aRun("x", 5, 200, 1000)
		change(j)
		if r, ok := measured.Of(j, j.Finished, on("", 0)); ok {
			t.Errorf("%s: %+v", name, r)
		}
	}
	j := aRun("x", 5, 200, 0)
	j.StepRate, j.Attempts[0].Step = 0, 0
	if r, ok := measured.Of(j, j.Finished, on("", 0)); !ok || !near(*r.WorkS, 5*3600) || r.StepsPerHour != nil {
		t.Errorf("a program without steps that went through takes as long again: %+v", r)
	}
}

func TestTheNextRunTakesWhatRunsAlikeTook(t *testing.T) {
	j := spec.Job{Name: "llama", Command: "train", Work: spec.Work{Steps: 1000}, Env: map[string]string{"LR": "1e-4", "STEPS": "1000"}}
	other, hot := j, j
	other.Command, hot.Env = "train --large", map[string]string{"LR": "1e-3"}
	runs := []measured.Run{
		of(t, aRun("llama", 5, 200, 1000), j),
		of(t, aRun("llama", 4, 250, 1000), hot),
		of(t, aRun("llama-profile", 1, 100, 1000), j),
		of(t, aRun("llama", 1, 5, 1000), other),   // another program
		of(t, aRun("mistral", 1, 5, 1000), other), // another job
	}
	k, ok := measured.Next(runs, j)
	if !ok || k.Runs != 3 || k.Work != 5*time.Hour || k.Source() != "by 3 measured runs of yours, the newest of 2026-11-01" {
		t.Errorf("%+v %v %s: want the median of 4, 5 and 10 hours", k, ok, k.Source())
	}
	if k.Spread != 1 {
		t.Errorf("spread %g: ten hours are twice five", k.Spread)
	}
	unstated := j
	unstated.Work.Steps = 0
	if k, ok := measured.Next(runs, unstated); !ok || k.Runs != 2 || k.Steps != 1000 {
		t.Errorf("%+v: without steps only the runs in its environment count", k)
	}
	double := j
	double.Work.Steps, double.Env = 2000, map[string]string{"LR": "1e-4", "STEPS": "2000"}
	if k, _ := measured.Next(runs[:1], double); k.Work != 10*time.Hour || k.Spread < 0.1 {
		t.Errorf("%+v: twice the steps take twice the time, and one run is no certainty", k)
	}
	filled := k.Fill(spec.Job{Work: spec.Work{Time: spec.Duration(time.Hour)}})
	if filled.Work.Time != spec.Duration(time.Hour) {
		t.Error("what the file states was changed")
	}
	if _, ok := measured.Next(nil, j); ok {
		t.Error("nothing was measured, and something is known")
	}
}

func TestALongNameIsFoundAgainByItsProfile(t *testing.T) {
	name := "a-job-whose-name-has-all-of-the-40-lette"
	if p := measured.Profile(name); len(p) > 40 || !(measured.Run{Name: p}).Measures(name) {
		t.Errorf("%s", p)
	}
}
