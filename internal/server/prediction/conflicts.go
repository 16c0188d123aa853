package prediction

import (
	"fmt"
	"math"
	"time"

	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/sim"
)

// alternatives is the number of simulated runs for each way out of a conflict.
const alternatives = 60

// conflicts reports, before anything is spent, whether deadline, promise and budget conflict, and which one gives way.
func conflicts(q sim.Scenario, f sim.Forecast) []string {
	var list []string
	t := q.Terms
	if t.HasBudget && !t.Deadline.IsZero() && (f.InTime < max(t.Promise, 0.9) || f.Done < 1 ||
		t.DeadlineFirst && f.Cost[2] > t.Budget.Float()) {
		return apart(q, f)
	}
	if !t.Deadline.IsZero() && t.Promise > 0 && f.InTime < t.Promise {
		list = append(list, fmt.Sprintf("%.0f %% of the simulated runs meet the deadline, the promise is %.4g %%: give a "+
			"later deadline, more budget, or a lower promise", f.InTime*100, t.Promise*100))
	}
	switch {
	case !t.HasBudget:
	case !t.DeadlineFirst && f.Done < 1:
		list = append(list, fmt.Sprintf("the budget ends before the work in %.0f %% of the runs: the job then stops with "+
			"a checkpoint", (1-f.Done)*100))
	case t.DeadlineFirst && f.Cost[2] > t.Budget.Float():
		list = append(list, fmt.Sprintf("it may cost %s, more than the budget of %s: the deadline comes first, so it goes on",
			money.ShortFloat(f.Cost[2], money.USD), money.Short(t.Budget, money.USD)))
	}
	return list
}

// apart simulates a job with conflicting deadline and budget once without each of them. It reports when each variant
// ends and its cost, which of the two gives way, and the nearest deadline and budget that would do.
func apart(q sim.Scenario, f sim.Forecast) []string {
	t := q.Terms
	q.Runs, q.Events = alternatives, events*alternatives/Runs
	timely, thrifty := q, q
	timely.Terms.HasBudget = false
	thrifty.Terms.Deadline, thrifty.Terms.DeadlineFirst = time.Time{}, false
	a, b := sim.Ask(timely), sim.Ask(thrifty)
	first := "the budget comes first, so the job is late rather than dearer: it waits for an offer that finishes within " +
		"the budget, and where there is none it stops early, with a checkpoint"
	if t.DeadlineFirst {
		first = "the deadline comes first, so the job may pass its budget"
	}
	list := []string{fmt.Sprintf("deadline and budget both hold in %.0f %% of the runs; %s", f.InTime*100, first)}
	if t.DeadlineFirst {
		list[0] = fmt.Sprintf("it may cost %s, more than the budget of %s; %s", roundedUp(f.Cost[2]),
			money.Short(t.Budget, money.USD), first)
	}
	if a.InTime < 0.1 && b.Done >= 0.9 && !t.DeadlineFirst { // money is not the problem
		list[0] = "the deadline is too soon for any budget: the job finishes as early as its budget allows, and late"
	}
	allowed := t.Deadline.Sub(q.Now)
	switch {
	case a.InTime >= 0.9 && t.Budget.Float() >= a.Cost[2]*1.02:
		list = append(list, fmt.Sprintf("in time it costs %s in four of five runs, within the budget of %s: a larger "+
			"budget is for the dearest runs only", between(roundedUp, a.Cost), money.Short(t.Budget, money.USD)))
	case a.InTime >= 0.9:
		list = append(list, fmt.Sprintf("in time it costs %s: a budget of %s would do", between(roundedUp, a.Cost),
			roundedUp(a.Cost[2]*1.02)))
	default:
		list = append(list, fmt.Sprintf("no budget meets the deadline in more than %.0f %% of the runs: the job takes %s",
			a.InTime*100, between(draw.Span, a.Finish)))
	}
	switch {
	case b.Done >= 0.9 && b.Finish[2] > allowed:
		list = append(list, fmt.Sprintf("within the budget it is done in %s: a deadline in %s would do",
			between(draw.Span, b.Finish), draw.Span(b.Finish[2]+b.Finish[2]/50)))
	case b.Done >= 0.9:
		list = append(list, fmt.Sprintf("within the budget it is done in %s", between(draw.Span, b.Finish)))
	default:
		thrifty.Terms.HasBudget = false
		c := sim.Ask(thrifty)
		list = append(list, fmt.Sprintf("the budget is too small in %.0f %% of the runs, however late: the cheapest way "+
			"costs %s", 100*(1-b.Done), between(roundedUp, c.Cost)))
	}
	return list
}

// between formats the range of the runs, or one value if both ends look the same.
func between[T any](text func(T) string, q [3]T) string {
	low, high := text(q[0]), text(q[2])
	if low == high {
		return low
	}
	return low + " to " + high
}

// roundedUp formats dollars rounded up, so that the printed budget suffices.
func roundedUp(usd float64) string {
	if usd < 1 {
		return fmt.Sprintf("$%.4f", math.Ceil(usd*1e4)/1e4)
	}
	return fmt.Sprintf("$%.2f", math.Ceil(usd*100)/100)
}

// tooLate explains why a job does not end in time.
func tooLate(q sim.Scenario, f sim.Forecast) string {
	share, what := f.Done, "done"
	if q.Terms.HasBudget {
		what = "done within budget"
	}
	if f.Done >= 0.5 { // the deadline fails
		share, what = f.InTime, "done in time"
	}
	text := fmt.Sprintf("%s in %.0f %% of the runs: the work needs about %s", what, share*100, draw.Span(q.Terms.Work))
	if f.Begin[1] >= time.Minute {
		text += ", and begins in " + draw.Span(f.Begin[1])
	}
	return text
}
