package sim

import (
	"encoding/json"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/policy"
)

// simJob is a job together with the facts that only its program knows.
type simJob struct {
	id      string
	terms   core.Terms
	spec    json.RawMessage
	steps   int64
	pace    float64 // steps an hour on a machine of speed 1
	boot    time.Duration
	boots   map[string]time.Duration // by provider; one without an entry takes boot
	save    time.Duration
	outputs bool          // it writes outputs to keep
	asks    time.Duration // how long it waits for approval; 0 if it needs none
	by      string        // the submitting user; empty for the owner of the data folder
	secret  string        // a secret value of the program, which must never reach the log
	program
}

// program describes a job's program. Steps count over the whole job; 0 means never.
type program struct {
	fails  []failure // in this order, once each
	flat   int64     // from this step on its loss no longer falls
	dips   int64     // at this step alone its loss reaches the target
	nan    int64     // from this step on its loss is NaN
	hangs  int64     // at this step it stops, and its machine becomes idle
	rhythm rhythm    // of its steps
	deaf   bool      // it ignores the signal to save and end, and is killed after the grace period
}

// failure is an exit with a status other than 0.
type failure struct {
	step  int64 // at which it fails
	exit  int
	setup bool // the setup commands failed
}

// loss returns the loss that the program reports after the step, and whether it is a number.
func (j *simJob) loss(step int64) (float64, bool) {
	if j.nan > 0 && step >= j.nan {
		return 0, false
	}
	if j.flat > 0 {
		step = min(step, j.flat)
	}
	if j.dips > 0 && step == j.dips {
		return j.terms.Metric.Target, true
	}
	return 5 - float64(4*float64(step)/float64(max(j.steps, 1))), true
}

// speaks returns the values of the loss that the program reports up to a step, if its metric decides the job. There may
// be several between two progress reports.
func (a *agent) speaks(step int64) policy.Values {
	if a.job.terms.Metric.Name == "" {
		return nil
	}
	from, times := max(a.reported, a.from), 1+step%5
	a.reported = step
	var said policy.Values
	add := func(at int64) {
		loss, number := a.job.loss(at)
		if !number {
			loss = 0
		}
		said = append(said, policy.Value{At: a.began.Add(time.Duration(float64(at-a.from) / a.pace * float64(time.Hour))),
			Step: at, Epoch: float64(at) / 100, Value: loss, Broken: !number})
	}
	last := from
	for i := int64(1); i <= times; i++ {
		next := from + (step-from)*i/times
		if last < a.job.dips && a.job.dips < next {
			add(a.job.dips)
		}
		if next > last {
			add(next)
		}
		last = next
	}
	a.values = append(a.values, said...)
	return said
}

// progressed builds the report of a step with the loss values since the previous report.
func (a *agent) progressed(message, step int64, said policy.Values) core.Body {
	loss, number := a.job.loss(step)
	b := core.Progressed{Attempt: a.attempt, Message: message, Step: step, Total: a.job.steps,
		Metrics: map[string]float64{"loss": loss}, Values: said}
	if !number {
		b.Metrics, b.Broken = nil, []string{"loss"}
	}
	switch {
	case a.w.fault == FaultMute:
		b.Metrics, b.Broken, b.Values = nil, nil, nil
	case a.w.fault == FaultMerge && len(said) > 1:
		b.Values = said[len(said)-1:]
	}
	if a.upTo == nil {
		a.upTo = map[int64]int{}
	}
	a.upTo[message] = len(a.values)
	return b
}

// sleeps suspends the machine that runs this process: programs make no steps and timers fire late, but time passes.
func (w *World) sleeps(d time.Duration) {
	w.asleep = w.now.Add(d)
	for _, i := range w.open {
		for _, a := range i.all() {
			if i.running() && !a.began.IsZero() {
				a.began, a.captured = a.began.Add(d), a.captured.Add(d)
			}
		}
	}
}

// script replaces the chance of a simulated run; a scenario test sets it.
type script struct {
	refuse   []string        // reasons to refuse the next launches
	unheard  int             // number of launch answers to lose
	pending  time.Duration   // how long the provider takes to grant a launch
	slow     time.Duration   // how long a termination takes
	unlisted map[string]bool // instances to omit from the provider's inventory
	dies     string          // the server crashes before the next action of this kind
	away     time.Duration   // minimum downtime after the crash
	still    bool            // only the scenario's own events happen
	silent   time.Duration   // silence of an agent after which the server reports it; 0 means never
}

// unlisted reports whether the provider's inventory omits the instance.
func (w *World) unlisted(i *instance) bool {
	if w.script != nil {
		return w.script.unlisted[i.id]
	}
	if i.running() && w.now.Sub(i.from) < i.lag {
		w.saw("fault lags × inventory")
		return true
	}
	if w.chance(w.faults.Unlisted) {
		w.saw("fault unlisted × inventory")
		return true
	}
	return false
}

// echo delivers a message a second time: at once, or after later ones.
func (a *agent) echo(b core.Body) {
	again := b
	if a.w.fault == FaultTwiceHeard {
		again = anew(b)
	}
	if a.w.chance(a.w.faults.Twice) || a.w.fault == FaultTwiceHeard {
		a.w.saw("fault twice × message")
		a.w.step(again)
	}
	if a.w.chance(a.w.faults.Twice / 2) {
		if a.w.fault == FaultLateHeard {
			again = anew(b)
		}
		a.w.after(time.Duration(1+a.w.rng.IntN(600))*time.Second, func() {
			a.w.saw("fault reordered × message")
			a.w.step(again)
		})
	}
}

// anew makes a repeated message look like a new one.
func anew(b core.Body) core.Body {
	if s, ok := b.(core.CheckpointSaved); ok {
		s.Message += 1000
		s.Step += 50
		return s
	}
	return b
}
