package sim

import (
	"encoding/json"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/policy"
)

// simJob is a job with what nobody but its program knows.
type simJob struct {
	id      string
	terms   core.Terms
	spec    json.RawMessage
	steps   int64
	pace    float64 // steps an hour on a machine of speed 1
	boot    time.Duration
	save    time.Duration
	outputs bool          // it leaves folders that are kept
	asks    time.Duration // for approval, so long; 0: it needs none
	by      string        // the user who submits it; "": who owns the data folder
	secret  string        // value that the program was given; it never belongs into the log
	program
}

// program is how a job's program behaves. Steps count over the whole job; 0 is never.
type program struct {
	fails  []failure // in this order, each once
	flat   int64     // from here on its loss falls no more
	dips   int64     // here, and only here, its loss is down at the target
	nan    int64     // from here on its loss is no number
	hangs  int64     // here it stops making steps, and its machine does nothing
	rhythm rhythm    // of its steps
	deaf   bool      // it takes no notice of the signal to save and end, and is killed after the grace
}

// failure is an end of the program with a status other than 0.
type failure struct {
	step  int64 // where it comes to it
	exit  int
	setup bool // the commands before the program failed
}

// loss is what the program reports after that step, and whether it is a number.
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

// speaks is what the program says of its loss up to a step, where its job is judged by
// that: some values between two reports.
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

// progressed is the report of a step and of what the program said of its loss meanwhile.
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

// sleeps puts the machine that all of this runs on to sleep: programs make no
// steps, timers fire late, and time passes all the same.
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

// script says what a simulated run leaves to chance; a scenario sets it.
type script struct {
	refuse   []string        // reasons why the next launches are refused
	unheard  int             // answers to launches that get lost
	pending  time.Duration   // how long a launch is being granted
	slow     time.Duration   // how long giving a machine back takes
	unlisted map[string]bool // instances that the provider's inventory leaves out
	dies     string          // kind of action before which the server dies next
	away     time.Duration   // for how long it does, at least
	still    bool            // nothing happens but the events that the scenario names
	silent   time.Duration   // without word from an agent before the server says so; 0: never
}

// unlisted reports whether the provider's inventory leaves the instance out.
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

// echo lets a message arrive a second time: at once, or after later ones.
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

// anew makes a message look like one that was not heard.
func anew(b core.Body) core.Body {
	if s, ok := b.(core.CheckpointSaved); ok {
		s.Message += 1000
		s.Step += 50
		return s
	}
	return b
}
