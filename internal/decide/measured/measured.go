// Package measured holds what finished runs have measured, as the log tells it:
// pace, throughput, hours and dollars beside what was expected of them. It is a
// view of the job's state and of its job file, so there is no second record that
// could disagree; plans, checks and estimates of later runs count on it.
package measured

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/estimate/shape"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Run is what a run that is over has measured. Spans go by the market's clock. Null is unknown.
type Run struct {
	Job       string    `json:"job"`
	Name      string    `json:"name"`
	Kind      string    `json:"kind"` // of the job: experiment, production …
	State     string    `json:"state"`
	Submitted time.Time `json:"submitted"` // market
	Finished  time.Time `json:"finished"`  // market

	// Where it ran longest.
	Offer        string  `json:"offer"`
	Machine      string  `json:"machine,omitempty"`
	Accelerator  string  `json:"accelerator,omitempty"`
	Accelerators int     `json:"accelerators,omitempty"`
	Speed        float64 `json:"speed"` // of that machine

	CPUs  int      `json:"cpus,omitempty"` // of that machine
	Cores *float64 `json:"cores_used"`     // of them, on average while the program ran

	Steps        int64    `json:"steps"`          // newest seen
	Total        *int64   `json:"total"`          // of the whole job
	StepsPerHour *float64 `json:"steps_per_hour"` // on a machine of speed 1
	Spread       *float64 `json:"spread"`         // from minute to minute, a share
	WorkS        *float64 `json:"work_s"`         // all of the work on speed 1, in seconds
	ExpectedS    *float64 `json:"expected_s"`     // what was said of that at the submission

	Currency money.Currency `json:"currency"`
	Cost     money.Amount   `json:"cost"`
	// at the first decision, or else the stated work at the first machine's price
	ExpectedCost *money.Amount `json:"expected_cost"`

	Model      *spec.Model `json:"model"`          // as the job file says it
	Work       spec.Work   `json:"work"`           // likewise
	Unit       string      `json:"unit,omitempty"` // of throughput
	Throughput *float64    `json:"throughput"`     // of the whole job, on the machine where it ran longest
	PeakMemory *float64    `json:"peak_memory_gb"` // of one accelerator, as the program reports it

	// hash of the command: what is measured of one program says nothing of another
	Program string `json:"program,omitempty"`
	Env     string `json:"env,omitempty"` // hash of its environment but STEPS
}

// fewest is how many steps a pace needs.
const fewest = 10

// Of is what the state says of a job; With adds what its job file says. It is
// false where the job still goes on or nothing was measured.
func Of(j *core.Job, now time.Time, offer func(market.OfferID) (market.Offer, bool)) (Run, bool) {
	if !j.State().Over() {
		return Run{}, false
	}
	r := Run{Job: j.ID(), Name: j.Terms().Name, Kind: j.Terms().JobKind, State: string(j.State()),
		Submitted: j.Submitted(),
		Finished:  j.Finished(), Steps: j.Step(), Currency: j.Terms().Currency, Cost: j.Spent(now)}
	if r.Kind == "" {
		r.Kind = "experiment"
	}
	if total := j.Total(); total > 0 {
		r.Total = &total
	}
	longest, newest := attempts(j)
	if longest == nil {
		return Run{}, false
	}
	r.Offer, r.Speed = string(longest.Offer()), max(longest.Speed(), 0)
	if r.Speed == 0 {
		r.Speed = 1
	}
	if o, ok := offer(longest.Offer()); ok {
		r.Machine, r.Accelerator, r.Accelerators, r.CPUs = o.Machine, o.Accelerator, o.Accelerators, o.CPUs
	}
	if cores := longest.CPU(); longest.CPUSeen() > 0 {
		r.Cores = &cores
	}
	if !r.paced(j, longest, newest) {
		return Run{}, false
	}
	if w := j.Terms().Work; w > 0 {
		s := w.Seconds()
		r.ExpectedS = &s
		r.ExpectedCost = atFirst(j, w)
	}
	r.reported(j.Metrics())
	return r, true
}

// attempts are the one that ran longest, and the newest that made steps enough for a pace.
func attempts(j *core.Job) (longest, newest *core.Attempt) {
	most := time.Duration(0)
	for _, a := range j.Attempts() {
		if d := worked(a); d > most {
			longest, most = a, d
		}
		if a.Step()-a.First() >= fewest {
			newest = a
		}
	}
	return longest, newest
}

// paced adds how fast the run was, and is false where nothing says so.
func (r *Run) paced(j *core.Job, longest, newest *core.Attempt) bool {
	steps, took := longest.Step()-longest.First(), worked(longest)
	switch {
	case steps >= fewest && took > 0:
		rate := j.Rate()
		if newest != longest || rate == 0 { // what that attempt took after its last step is in it
			rate = float64(steps) / took.Hours() / r.Speed
		}
		r.StepsPerHour = &rate
		if j.Pace().Looks > 0 {
			s := j.Pace().Spread()
			r.Spread = &s
		}
		if j.Total() > 0 {
			w := float64(j.Total()) / rate * 3600
			r.WorkS = &w
		}
	case j.State() == core.Succeeded && longest.End() == "completed" && longest.Restored() == "":
		w := took.Seconds() * r.Speed // it shows no steps, and did all of it in one go
		r.WorkS = &w
	default:
		return false
	}
	return true
}

// reported adds what the program itself says of memory and throughput.
func (r *Run) reported(metrics map[string]float64) {
	for _, name := range []string{"peak_memory_gb", "peak_mem_gb"} {
		if v, ok := metrics[name]; ok && v > 0 {
			r.PeakMemory = &v
			break
		}
	}
	for _, u := range []string{"tokens", "samples", "images", "sequences"} {
		if v, ok := metrics[u+"_per_second"]; ok && v > 0 {
			r.Unit, r.Throughput = u+"/s", &v
			break
		}
	}
}

// atFirst is what that much work costs on the first machine that the job had, at its
// price then, without start-up or interruptions.
func atFirst(j *core.Job, work time.Duration) *money.Amount {
	if len(j.Attempts()) == 0 {
		return nil
	}
	a := j.Attempts()[0]
	speed := a.Speed()
	if speed <= 0 {
		speed = 1
	}
	cost := a.LaunchRate().Until(time.Duration(float64(work) / speed))
	return &cost
}

// worked is how long the program ran.
func worked(a *core.Attempt) time.Duration {
	end := a.Over()
	if end.IsZero() {
		end = a.Until()
	}
	if a.Started().IsZero() || end.IsZero() {
		return 0
	}
	return end.Sub(a.Started())
}

// With adds what the job file says.
func (r Run) With(j spec.Job) Run {
	r.Program, r.Env = Program(j), Environment(j)
	r.Work = j.Work
	if j.Checkpoint.Given && r.Spread == nil {
		// It began at a step that nobody knows: the steps before took no time of it. A spread is of
		// a pace that was measured later, between two steps.
		r.StepsPerHour, r.WorkS = nil, nil
	}
	if j.Model.Named() {
		m := j.Model
		r.Model = &m
	}
	if r.StepsPerHour == nil || r.Total == nil {
		return r
	}
	per, unit := 0.0, ""
	switch w := j.Work; {
	case w.Tokens > 0:
		per, unit = float64(w.Tokens)/float64(*r.Total), "tokens/s"
	case w.Samples > 0 && treesOf(j): // a tree takes in all rows
		per, unit = float64(w.Samples), "row-trees/s"
	case w.Samples > 0:
		per, unit = float64(w.Samples)*max(1, w.Epochs)/float64(*r.Total), "samples/s"
	default:
		return r
	}
	v := *r.StepsPerHour * r.Speed / 3600 * per
	r.Throughput, r.Unit = &v, unit
	return r
}

// treesOf reports whether the job grows boosted trees.
func treesOf(j spec.Job) bool {
	m, ok := Shape(j.Name, j.Model)
	return ok && m.Kind == shape.Trees
}

// Program is a hash of what the job runs.
func Program(j spec.Job) string {
	return hash(append([]string{j.Setup, j.Command}, j.Args...))
}

// Environment is a hash of the program's environment but STEPS, which says how
// much is done and not how.
func Environment(j spec.Job) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(j.Env)) {
		if k != "STEPS" {
			list = append(list, k, j.Env[k])
		}
	}
	return hash(list)
}

func hash(list []string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(strings.Join(list, "\x00"))) // it never fails
	return fmt.Sprintf("%016x", h.Sum64())
}
