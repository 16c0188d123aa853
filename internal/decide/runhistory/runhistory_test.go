package runhistory_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/runhistory"
	"scrimp/internal/decide/state"
	"scrimp/internal/estimate"
	"scrimp/internal/estimate/hardware"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

var begun = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// course describes a job that requests a machine at its submission, and its outcome.
type course struct {
	id       string
	name     string
	hours    float64 // running time of its program
	pace     float64 // steps per hour; 0: it reports none
	total    int64
	speed    float64
	rate     money.Rate
	work     time.Duration // stated
	metrics  map[string]float64
	restored string
	end      string // of the program; empty: it still runs
	as       core.State
	at       time.Time
	alone    bool // it never gets a machine
}

// aRun returns a job that runs once, for the given hours at the given steps per hour.
func aRun(name string, hours, pace float64, total int64) course {
	return course{
		id: name, name: name, hours: hours, pace: pace, total: total, speed: 1, end: "completed",
		as: core.Succeeded, at: begun,
	}
}

// job returns the job at the end of its course, as built from its log.
func (c course) job() *core.Job {
	s, seq := state.New(), uint64(0)
	at := func(t time.Time, b core.Body, facts ...core.Fact) {
		seq++
		s.Replay(seq, core.Event{At: t, Tenant: "default", Body: b}, facts, nil)
	}
	terms := core.Terms{Name: c.name, Currency: "USD", Work: c.work}
	at(c.at, core.JobSubmitted{Job: c.id, Terms: terms}, state.JobQueued{Job: c.id})
	if c.alone {
		at(c.at, core.JobEnded{Job: c.id}, state.JobOver{Job: c.id, State: c.as})
		return s.Job(c.id)
	}
	attempt, end := c.id+".1", c.at.Add(time.Duration(c.hours*float64(time.Hour)))
	machine := state.Machine{Offer: "o", Speed: c.speed, Currency: "USD"}
	at(c.at, core.Tick{}, state.AllocationRequested{Job: c.id, Nodes: 1, Machine: machine, Rate: c.rate})
	at(c.at, core.LaunchDone{Launch: attempt, Instance: "i", Offer: "o", Rate: c.rate, From: c.at},
		state.AllocationGranted{Allocation: attempt, Instance: "i"}, state.AttemptBegan{Attempt: attempt})
	at(c.at, core.AttemptStarted{Attempt: attempt, Restored: c.restored}, state.TaskStarted{Attempt: attempt})
	if c.pace > 0 {
		at(end, core.Progressed{Attempt: attempt, Step: int64(math.Round(c.hours * c.pace)), Total: c.total,
			Metrics: c.metrics})
	}
	if c.end == "" {
		return s.Job(c.id)
	}
	at(end, core.AttemptEnded{Attempt: attempt, Reason: c.end}, state.TaskEnded{Attempt: attempt})
	cost := ledger.Posting{
		Amount: s.Attempt(attempt).Cost(end), Phase: ledger.Accrued, Owner: ledger.Owner{Tenant: "default", Attempt: attempt, Task: attempt + "/0"},
		To: ledger.Cost(ledger.Compute, ledger.Useful),
	}
	seq++
	s.Replay(seq, core.Event{At: end, Tenant: "default",
		Body: core.InstanceEnded{Instance: "i", Until: end, Cause: "terminated"}},
		[]core.Fact{state.InstanceClosed{Instance: "i", Until: end, Cause: "terminated"},
			state.JobOver{Job: c.id, State: c.as}},
		[]ledger.Posting{cost})
	return s.Job(c.id)
}

func on(kind string, n int) func(market.OfferID) (market.Offer, bool) {
	return func(id market.OfferID) (market.Offer, bool) {
		return market.Offer{ID: id, Machine: "m", Accelerator: kind, Accelerators: n}, true
	}
}

func of(t *testing.T, c course, s spec.Job) runhistory.Run {
	t.Helper()
	j := c.job()
	r, ok := runhistory.Of(j, j.Finished(), on("H100-SXM-80GB", 8))
	if !ok {
		t.Fatalf("%s was not measured", j.ID())
	}
	return r.With(s)
}

func near(a, b float64) bool { return math.Abs(a/b-1) < 1e-9 }

func TestOf_MeasuresPaceThroughputAndWork(t *testing.T) {
	j := spec.Job{Name: "llama", Command: "train", Model: spec.Model{Config: "llama-3-8b", Batch: 4},
		Work: spec.Work{Tokens: 2_000_000_000, Steps: 1000}}
	job := aRun("llama", 5, 200, 1000)
	job.work = 4 * time.Hour
	job.metrics = map[string]float64{"peak_memory_gb": 71.5}
	r := of(t, job, j)
	if !near(*r.StepsPerHour, 200) || !near(*r.WorkS, 5*3600) || !near(*r.ExpectedS, 4*3600) || *r.PeakMemory != 71.5 {
		t.Errorf("%+v", r)
	}
	if r.Unit != "tokens/s" || !near(*r.Throughput, 2e9/(5*3600)) || r.Accelerator != "H100-SXM-80GB" ||
		r.Accelerators != 8 || r.Model.Config != "llama-3-8b" || r.Model.Batch != 4 {
		t.Errorf("%+v: 2B tokens in five hours", r)
	}
	text, err := json.Marshal(r)
	var back runhistory.Run
	if err != nil || json.Unmarshal(text, &back) != nil {
		t.Fatal(err)
	}
}

// A step of boosted trees adds one tree, which reads all rows: 200 per hour over 36,000 rows.
func TestWith_MeasuresBoostedTreesInRowTrees(t *testing.T) {
	r := of(t, aRun("grown", 5, 200, 1000), spec.Job{Name: "grown", Model: spec.Model{Shape: "trees features=28"},
		Work: spec.Work{Steps: 1000, Samples: 36_000}})
	if r.Unit != "row-trees/s" || !near(*r.Throughput, 2000) {
		t.Errorf("%g %s", *r.Throughput, r.Unit)
	}
	if row, ok := r.Row(hardware.Catalogued()); !ok || row.TreeN != 1000 || row.Features != 28 || row.Unit != "row-trees/s" {
		t.Errorf("%v %+v", ok, row)
	}
}

func TestOf_NormalizesPaceButNotThroughput(t *testing.T) {
	job := aRun("fast", 5, 200, 1000)
	job.speed = 2
	r := of(t, job, spec.Job{Work: spec.Work{Samples: 36_000}})
	if !near(*r.Throughput, 2) || !near(*r.WorkS, 10*3600) {
		t.Errorf("%g samples/s, %g s: want 2 there, and ten hours on speed 1", *r.Throughput, *r.WorkS)
	}
}

func TestOf_RefusesUnfinishedAndUnmeasuredRuns(t *testing.T) {
	for name, change := range map[string]func(*course){
		"runs":                    func(c *course) { c.end = "" },
		"never began":             func(c *course) { c.alone = true },
		"failed, silent":          func(c *course) { c.as, c.pace, c.end = core.Failed, 0, "failed" },
		"in two parts and silent": func(c *course) { c.pace, c.restored = 0, "c1" },
	} {
		c := aRun("x", 5, 200, 1000)
		change(&c)
		j := c.job()
		if r, ok := runhistory.Of(j, j.Finished(), on("", 0)); ok {
			t.Errorf("%s: %+v", name, r)
		}
	}
	j := aRun("x", 5, 0, 0).job()
	if r, ok := runhistory.Of(j, j.Finished(), on("", 0)); !ok || !near(*r.WorkS, 5*3600) || r.StepsPerHour != nil {
		t.Errorf("a program without steps that went through takes as long again: %+v", r)
	}
}

// A run that resumed from a given checkpoint did not do the steps before it, so they do not count. A run restored
// from a checkpoint of scrimp's own counts its own steps.
func TestWith_IgnoresStepsBeforeAGivenCheckpoint(t *testing.T) {
	j := spec.Job{Name: "lm", Command: "train", Work: spec.Work{Steps: 300}, Checkpoint: spec.Checkpoint{Dir: "c"}}
	given := j
	given.Checkpoint.Given = true
	for name, c := range map[string]struct {
		pace float64
		file spec.Job
		want bool
	}{
		"with steps": {300, j, true}, "silent": {0, j, true},
		"with steps, from the middle": {300, given, false}, "silent, from the middle": {0, given, false},
	} {
		run := of(t, aRun("lm", 1, c.pace, 300), c.file)
		file := j
		if c.pace == 0 {
			file.Work.Steps, run.Work.Steps = 0, 0
		}
		if k, ok := runhistory.Next([]runhistory.Run{run}, file); ok != c.want || ok && k.Work != time.Hour {
			t.Errorf("%s: the next run is known %v, to take %v", name, ok, k.Work)
		}
	}
}

func TestNext_IsTheMedianOfLikeRuns(t *testing.T) {
	j := spec.Job{Name: "llama", Command: "train", Work: spec.Work{Steps: 1000},
		Env: map[string]string{"LR": "1e-4", "STEPS": "1000"}}
	other, hot := j, j
	other.Command, hot.Env = "train --large", map[string]string{"LR": "1e-3"}
	runs := []runhistory.Run{
		of(t, aRun("llama", 5, 200, 1000), j),
		of(t, aRun("llama", 4, 250, 1000), hot),
		of(t, aRun("llama-profile", 1, 100, 1000), j),
		of(t, aRun("llama", 1, 5, 1000), other),   // another program
		of(t, aRun("mistral", 1, 5, 1000), other), // another job
	}
	k, ok := runhistory.Next(runs, j)
	if !ok || k.Runs != 3 || k.Work != 5*time.Hour ||
		k.Source() != "by 3 measured runs of yours, the newest of 2026-11-01" {
		t.Errorf("%+v %v %s: want the median of 4, 5 and 10 hours", k, ok, k.Source())
	}
	if k.Spread != 1 {
		t.Errorf("spread %g: ten hours are twice five", k.Spread)
	}
	unstated := j
	unstated.Work.Steps = 0
	if k, ok := runhistory.Next(runs, unstated); !ok || k.Runs != 2 || k.Steps != 1000 {
		t.Errorf("%+v: without steps only the runs in its environment count", k)
	}
	double := j
	double.Work.Steps, double.Env = 2000, map[string]string{"LR": "1e-4", "STEPS": "2000"}
	if k, _ := runhistory.Next(runs[:1], double); k.Work != 10*time.Hour || k.Spread < 0.1 {
		t.Errorf("%+v: twice the steps take twice the time, and one run is no certainty", k)
	}
	filled := k.Fill(spec.Job{Work: spec.Work{Time: spec.Duration(time.Hour)}})
	if filled.Work.Time != spec.Duration(time.Hour) {
		t.Error("what the file states was changed")
	}
	if _, ok := runhistory.Next(nil, j); ok {
		t.Error("nothing was measured, and something is known")
	}
}

func TestProfile_MatchesALongName(t *testing.T) {
	name := "a-job-whose-name-has-all-of-the-40-lette"
	if p := runhistory.Profile(name); len(p) > 40 || !(runhistory.Run{Name: p}).Measures(name) {
		t.Errorf("%s", p)
	}
}

func TestRow_TeachesTheEstimator(t *testing.T) {
	chips := hardware.Catalogued()
	j := spec.Job{Name: "llama", Command: "train",
		Model: spec.Model{Config: "llama-3-8b", Batch: 4, Sequence: 4096, Tuning: "lora"},
		Work:  spec.Work{Tokens: 2_000_000_000, Steps: 1000}}
	m, _ := runhistory.Shape(j.Name, j.Model)
	ask := runhistory.Request(j, m)
	ask.Chip, ask.Count = "H100-SXM-80GB", 8
	first, err := estimate.New(chips, nil, nil).Answer(ask)
	must.Do(t, err)
	hours := 1.7 * first.Hours.Value // slower than computed
	job := aRun("llama", hours, 1000/hours, 1000)
	rows := runhistory.Rows([]runhistory.Run{of(t, job, j)}, chips)
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	next, err := estimate.New(chips, nil, rows).Answer(ask)
	must.Do(t, err)
	if e := math.Abs(next.Hours.Value/hours - 1); e > 0.03 {
		t.Errorf("the same run again is expected to take %g h, and took %g", next.Hours.Value, hours)
	}
	if was, is := first.Hours.High/first.Hours.Low, next.Hours.High/next.Hours.Low; is > was/2 {
		t.Errorf("its range spans a factor of %g, before of %g", is, was)
	}
	if !strings.Contains(next.Provenance, "learned from one measured run of yours") {
		t.Error(next.Provenance)
	}
	ask.Count = 4
	half, err := estimate.New(chips, nil, rows).Answer(ask)
	if err != nil || math.Abs(half.Hours.Value/(2*hours)-1) > 0.15 {
		t.Errorf("%v on half as many accelerators, %v: want about %g h", half.Hours, err, 2*hours)
	}
	for name, change := range map[string]func(*runhistory.Run){
		"no model":       func(r *runhistory.Run) { r.Model = nil },
		"a file's model": func(r *runhistory.Run) { r.Model = &spec.Model{Config: "config.json"} },
		"no accelerator": func(r *runhistory.Run) { r.Accelerator, r.Accelerators = "", 0 },
		"no throughput":  func(r *runhistory.Run) { r.Throughput = nil },
	} {
		r := of(t, job, j)
		change(&r)
		if _, ok := r.Row(chips); ok {
			t.Errorf("%s: it taught something", name)
		}
	}
}

func TestCompare_UsesWhatWasKnownAtSubmission(t *testing.T) {
	chips := hardware.Catalogued()
	j := spec.Job{Name: "llama", Command: "train", Model: spec.Model{Config: "llama-3-8b"},
		Work: spec.Work{Tokens: 2_000_000_000, Steps: 1000}}
	at := func(weeks int, hours float64) runhistory.Run {
		job := aRun("llama", hours, 1000/hours, 1000)
		job.work = time.Duration(hours / 2 * float64(time.Hour))
		job.at, job.id = begun.AddDate(0, 0, 7*weeks), fmt.Sprintf("llama-%d", weeks)
		return of(t, job, j)
	}
	list := runhistory.Compare([]runhistory.Run{at(2, 40), at(1, 40), at(0, 40)}, nil, chips)
	var rates []float64
	for _, p := range list {
		if p.What == "throughput" {
			rates = append(rates, p.Error())
		}
	}
	if len(rates) != 3 || rates[2] < 0.3 || rates[1] > 0.05 || rates[0] > 0.05 {
		t.Errorf("%v: only the first, which is last, was estimated by arithmetic alone", rates)
	}
	together := runhistory.Compare([]runhistory.Run{at(0, 40), at(0, 40), at(0, 40)}, nil, chips)
	for _, p := range together {
		if p.What == "throughput" && p.Error() < 0.3 {
			t.Errorf("%+v: of runs at one time none knew of another", p)
		}
	}
	byKind := map[string]runhistory.Missed{}
	for _, m := range runhistory.Missing(list) {
		byKind[m.What+" "+m.Kind] = m
	}
	if h := byKind["hours experiment"]; h.Runs != 3 || !near(h.Median, 0.5) || !near(h.Bias, -0.5) || h.Within != nil {
		t.Errorf("%+v: half of each was stated", h)
	}
	if r := byKind["throughput transformer-dense"]; r.Runs != 3 || r.Within == nil || byKind["throughput all"].Runs != 3 {
		t.Errorf("%+v", r)
	}
	if _, ok := byKind["dollars all"]; ok {
		t.Error("no price is known, and dollars are compared")
	}
	job := aRun("llama", 40, 25, 1000)
	job.work, job.rate = 20*time.Hour, 2e12
	for _, m := range runhistory.Missing(runhistory.Compare([]runhistory.Run{of(t, job, j)}, nil, chips)) {
		if m.What == "dollars" && (m.Runs != 1 || !near(m.Bias, -0.5)) {
			t.Errorf("%+v: 20 h at $2 were expected, and 40 h came out", m)
		}
		byKind[m.What] = m
	}
	if byKind["dollars"].Runs != 1 {
		t.Error("dollars are not compared")
	}
}
