package policy

import (
	"time"

	"scrimp/internal/market"
)

// Choice is the kind of capacity that a rule wants now.
type Choice = market.Choice

// Choices. NonPreemptible is on-demand or reserved capacity.
const (
	Wait           = market.ChoiceNone
	Spot           = market.ChoiceSpot
	NonPreemptible = market.ChoiceOnDemand
)

// Rule names a deadline policy.
type Rule string

// Rules. All of them obey the guard.
const (
	Default          Rule = "default"
	OnDemand         Rule = "on-demand"
	Greedy           Rule = "greedy"
	GreedyGuard      Rule = "greedy-guard" // relies on the guard alone to be in time
	UniformProgress  Rule = "uniform-progress"
	UniformProgress2 Rule = "uniform-progress-2" // without its second condition
)

// Rules lists them in the order in which tables show them.
var Rules = []Rule{OnDemand, Greedy, UniformProgress, UniformProgress2, Default}

// View is the input of a rule: the job, its machine, and the market.
type View struct {
	Progress
	Held    Choice        // Wait: nothing
	Warming time.Duration // time until the held machine makes progress; 0: it does now
	// Spot is set if spot is available, or held and alive. Sold is set if spot is for sale at all.
	Spot, Sold bool
}

// Working reports whether held spot makes progress, so that its loss costs no more than one restart.
func (v View) Working() bool { return v.Held == Spot && v.Spot && v.Warming <= 0 }

// Choose returns what the rule wants, subject to the guard: if only non-preemptible capacity is in time, it returns
// that, except on working spot whose loss would still leave time for a restart.
func Choose(r Rule, v View) Choice {
	if v.Guard(v.Working()) {
		return NonPreemptible
	}
	want := wants(r, v)
	if want == Spot && !v.Spot {
		return Wait
	}
	return want
}

// wants returns the choice of the rule without the guard.
//
// Uniform Progress and greedy follow Wu et al., "Can't Be Late" (NSDI 2024), in the order in which the public
// benchmark applies them.
func wants(r Rule, v View) Choice {
	slack, timed := v.Slack(true)
	// A second restart would not fit.
	tight := timed && slack < 2*v.Restart+v.Reserve+v.Detect+v.Margin+v.Poll
	switch r {
	case OnDemand:
		return NonPreemptible
	case Greedy, GreedyGuard:
		return v.greedy(tight && r == Greedy, r == GreedyGuard)
	default:
		return v.uniform(tight, r == UniformProgress)
	}
}

// greedy takes spot whenever it is available, and on-demand if certain is set. It keeps on-demand that it holds if
// keeps is set.
func (v View) greedy(certain, keeps bool) Choice {
	switch {
	case v.Held == Spot && v.Spot:
		return Spot
	case certain:
		return NonPreemptible
	case v.Spot:
		return Spot
	case v.Held == NonPreemptible && keeps:
		return NonPreemptible
	}
	return v.orWait()
}

// uniform is Uniform Progress. second is its second condition: return to spot only if the job stays ahead of its
// line after two restarts.
func (v View) uniform(tight, second bool) Choice {
	switch {
	case v.Held == Spot && v.Spot:
		return Spot
	case tight:
		return NonPreemptible
	case v.Held == NonPreemptible:
		if ahead, ok := v.Ahead(2 * v.Restart); !v.Spot || second && ok && !ahead {
			return NonPreemptible
		}
		return Spot
	case v.Spot:
		return Spot
	}
	if behind, ok := v.Behind(0); ok && behind {
		return NonPreemptible
	}
	return v.orWait()
}

// orWait waits if spot may come, and otherwise takes any available capacity.
func (v View) orWait() Choice {
	if !v.Sold || v.Uncounted && !v.Deadline.IsZero() { // the time left for waiting will never be known
		return NonPreemptible
	}
	return Wait
}

// Again returns when the passing of time alone could change the rule's choice, or zero.
func Again(r Rule, v View, chosen Choice) time.Time {
	var at time.Time
	if chosen == NonPreemptible {
		return at
	}
	if guard, ok := v.GuardAt(v.Working()); ok {
		at = guard
	}
	if chosen != Wait {
		return at
	}
	sooner := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if slack, ok := v.Slack(true); ok && r != GreedyGuard { // when the slack becomes too small for a second restart
		sooner(v.Now.Add(max(0, slack-(2*v.Restart+v.Reserve+v.Detect+v.Margin+v.Poll)+1)))
	}
	if behind, ok := v.BehindAt(); ok && r != Greedy && r != GreedyGuard {
		sooner(behind)
	}
	return at
}
