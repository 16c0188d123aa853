// Package tick replays recorded spot markets tick by tick against a policy, by the rules of the public benchmarks. It
// is the plain twin: package replay plays the same runs through the production core and must get the same cost.
package tick

import (
	"fmt"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Kind is what a run holds, or what its policy wants it to hold.
type Kind = market.Choice

// The kinds of machine. None means to wait.
const (
	None     = market.ChoiceNone
	Spot     = market.ChoiceSpot
	OnDemand = market.ChoiceOnDemand
)

// Job is the work of a run and the prices of machines. All fields are above zero, except that Overhead may be zero.
type Job struct {
	Work     time.Duration // useful work
	Deadline time.Duration // from the run's start
	Overhead time.Duration // time from renting a machine to useful work: boot and restore
	Gap      time.Duration // length of a tick
	Spot     money.Rate
	OnDemand money.Rate
}

// Validate returns the first problem with its fix. A deadline that on-demand cannot meet is no error: such a run is
// played and misses.
func (j Job) Validate() error {
	switch {
	case j.Work <= 0:
		return fmt.Errorf("work: %v is not above zero", j.Work)
	case j.Gap <= 0:
		return fmt.Errorf("gap: %v is not above zero", j.Gap)
	case j.Deadline < j.Gap:
		return fmt.Errorf("deadline: %v is shorter than a tick of %v", j.Deadline, j.Gap)
	case j.Overhead < 0:
		return fmt.Errorf("overhead: %v is negative", j.Overhead)
	case j.Spot <= 0 || j.OnDemand <= 0:
		return fmt.Errorf("price: spot %v and on-demand %v must both be above zero", j.Spot, j.OnDemand)
	}
	return nil
}

// Ticks returns the number of whole ticks before the deadline.
func (j Job) Ticks() int { return int(j.Deadline / j.Gap) }

// View is what a policy may know at the start of a tick: the past of its own run and whether spot is available now. The
// policy decides in every tick, so it has seen the availability of all earlier ticks.
type View struct {
	Tick        int // from 0
	Available   bool
	Held        Kind          // after a spot machine was lost at the start of this tick
	Outstanding time.Duration // restart overhead that the held machine must still serve
	Left        time.Duration // useful work left, above zero
}

// Policy decides one run. Each run gets a new one.
type Policy interface {
	Decide(View) Kind
}

// Run is one job in one window of one zone.
type Run struct {
	Zone   string
	Window int
	Job    Job
	Up     []bool // whether spot is available, tick by tick from the run's start
	Nodes  int    // machines that the job has at once; 0 means one
	Alone  Alone  // their additional losses
}

// At reports whether spot is available in tick t. After the end of the window it is not.
func (r Run) At(t int) bool { return t >= 0 && t < len(r.Up) && r.Up[t] }

// Result is the outcome of a run.
type Result struct {
	SpotTicks   int // billed ticks
	DemandTicks int
	Ticks       int // until the work was complete
	Lost        int // interrupted spot machines
	Taken       int // machines rented by the run
	Overhead    time.Duration
	Missed      bool
	Cost        money.Amount
}

// Play runs the job under p. It panics if p chooses unavailable spot: such a policy is wrong, not unlucky. After the
// end of the window there is no spot.
func (r Run) Play(p Policy) Result {
	j := r.Job
	ticks := j.Ticks()
	var out Result
	view := View{Left: j.Work}
	for t := 0; view.Left > 0; t++ {
		view.Tick, view.Available = t, t < len(r.Up) && r.Up[t]
		if view.Held == Spot && (!view.Available || r.Alone.At(t) != 0) {
			view.Held, view.Outstanding = None, 0
			out.Lost++
		}
		kind := p.Decide(view)
		if kind == Spot && !view.Available {
			panic(fmt.Sprintf("tick: %s window %d tick %d: the policy takes spot that cannot be had", r.Zone, r.Window, t))
		}
		kind = j.Guard(view, kind, ticks-t)
		if kind != view.Held {
			view.Held, view.Outstanding = kind, 0
			if kind != None {
				view.Outstanding = j.Overhead
				out.Taken++
			}
		}
		switch kind {
		case None:
			continue
		case Spot:
			out.SpotTicks++
		case OnDemand:
			out.DemandTicks++
		}
		served := min(view.Outstanding, j.Gap)
		view.Outstanding -= served
		out.Overhead += served
		view.Left -= j.Gap - served
		out.Ticks = t + 1
	}
	out.Missed = out.Ticks > ticks
	out.Cost = Times(j.Spot.Until(time.Duration(out.SpotTicks)*j.Gap).
		Add(j.OnDemand.Until(time.Duration(out.DemandTicks)*j.Gap)), r.Nodes)
	return out
}

// Guard returns what replaces kind with m whole ticks to the deadline. Where (left + overhead) / gap, rounded up, is at
// least m, the guard keeps a live spot machine without outstanding overhead and otherwise chooses on-demand.
//
// Example: left 9 h 50 min, overhead 3 min, gap 10 min make 60 ticks of work. With 61 ticks to the deadline the
// policy's choice stands; with 60 it does not.
func (j Job) Guard(v View, kind Kind, m int) Kind {
	if ceil(v.Left+j.Overhead, j.Gap) < m {
		return kind
	}
	if v.Held == Spot && v.Available && v.Outstanding == 0 {
		return Spot
	}
	return OnDemand
}

// ceil returns d / gap rounded up.
func ceil(d, gap time.Duration) int {
	return int((d + gap - 1) / gap)
}
