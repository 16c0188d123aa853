// Package runhistory derives the measurements of finished runs from the log: pace, throughput, hours and dollars,
// beside their estimates. It is a view of the job's state and its job file, so no second record can disagree.
// Plans, checks and estimates of later runs rely on it.
package runhistory

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

// Run holds the measurements of a finished run. Durations are market time; null means unknown.
type Run struct {
	Job       string    `json:"job"`
	Name      string    `json:"name"`
	Kind      string    `json:"kind"` // of the job: experiment, production and so on
	State     string    `json:"state"`
	Submitted time.Time `json:"submitted"` // market
	Finished  time.Time `json:"finished"`  // market

	// The machine of the longest attempt.
	Offer        string  `json:"offer"`
	Machine      string  `json:"machine,omitempty"`
	Accelerator  string  `json:"accelerator,omitempty"`
	Accelerators int     `json:"accelerators,omitempty"`
	Speed        float64 `json:"speed"` // of that machine

	CPUs  int      `json:"cpus,omitempty"` // of that machine
	Cores *float64 `json:"cores_used"`     // of CPUs, mean while the program ran

	// What the job had of that machine, and the speed of its offer; 0: unknown. Speed is higher where more processors or
	// accelerators make the work faster.
	HadCPUs         int     `json:"had_cpus,omitempty"`
	HadAccelerators int     `json:"had_accelerators,omitempty"`
	OfferSpeed      float64 `json:"offer_speed,omitempty"`

	Steps        int64    `json:"steps"`          // newest step seen
	Total        *int64   `json:"total"`          // of the whole job
	StepsPerHour *float64 `json:"steps_per_hour"` // at speed 1
	Spread       *float64 `json:"spread"`         // from minute to minute, a fraction
	WorkS        *float64 `json:"work_s"`         // total work in seconds at speed 1
	ExpectedS    *float64 `json:"expected_s"`     // estimate of work_s at submission

	Currency money.Currency `json:"currency"`
	Cost     money.Amount   `json:"cost"`
	// from the first decision, otherwise the stated work at the first machine's price
	ExpectedCost *money.Amount `json:"expected_cost"`

	Model      *spec.Model `json:"model"`          // as in the job file
	Work       spec.Work   `json:"work"`           // as in the job file
	Unit       string      `json:"unit,omitempty"` // of throughput
	Throughput *float64    `json:"throughput"`     // of the whole job, on the machine of the longest attempt
	PeakMemory *float64    `json:"peak_memory_gb"` // of one accelerator, as reported by the program

	// hash of the command; measurements of one program do not apply to another
	Program string `json:"program,omitempty"`
	Env     string `json:"env,omitempty"` // hash of the environment without STEPS
}

// fewest is the number of steps that a pace needs.
const fewest = 10

// Of derives a run from the state of a job; With adds the facts of its job file. Of returns false if the job is not
// finished or has no measurement.
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
	o, ok := offer(longest.Offer())
	if r.had(longest, nil); ok {
		r.had(longest, &o)
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

// attempts returns the longest attempt, and the newest with enough steps for a pace.
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

// paced sets the pace of the run, and returns false if nothing shows it.
func (r *Run) paced(j *core.Job, longest, newest *core.Attempt) bool {
	steps, took := longest.Step()-longest.First(), worked(longest)
	switch {
	case steps >= fewest && took > 0:
		rate := j.Rate()
		if newest != longest || rate == 0 { // took includes the time after that attempt's last step
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
		w := took.Seconds() * r.Speed // the program reports no steps, and did all work in one attempt
		r.WorkS = &w
	default:
		return false
	}
	return true
}

// reported adds the memory and throughput that the program reports.
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

// atFirst returns the cost of that much work on the job's first machine, at its price then, without start-up or
// interruptions.
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

// worked returns how long the program of an attempt ran.
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

// With adds the facts of the job file.
func (r Run) With(j spec.Job) Run {
	r.Program, r.Env = Program(j), Environment(j)
	r.Work = j.Work
	if j.Checkpoint.Given && r.Spread == nil {
		// The program resumed from a given checkpoint at an unknown step, so its steps include some that took none
		// of this run's time. A known spread shows that the pace was measured later, between two steps.
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
	case w.Samples > 0 && treesOf(j): // each tree reads all rows
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

// treesOf reports whether the job trains boosted trees.
func treesOf(j spec.Job) bool {
	m, ok := Shape(j.Name, j.Model)
	return ok && m.Kind == shape.Trees
}

// Program returns a hash of the job's command.
func Program(j spec.Job) string {
	return hash(append([]string{j.Setup, j.Command}, j.Args...))
}

// Environment returns a hash of the job's environment without STEPS, which sets the amount of work and not its
// kind.
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
	_, _ = h.Write([]byte(strings.Join(list, "\x00"))) // never fails
	return fmt.Sprintf("%016x", h.Sum64())
}
