package replay

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/sim/tick"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

var drawn = flag.Int("drawn", lane.Pick(100, 10_000), "how many drawn markets the properties of the mean are held on (make check: 10,000)")

// meanOf plays the job on the drawn markets through core.Step. It returns the mean cost in dollars, and the mean upper
// bound on the overhead cost of all machines after the first. A miss is an error.
func meanOf(t *testing.T, runs int, job tick.Job, rule policy.Rule) (dollars, overheads float64) {
	t.Helper()
	lines, err := each(t.Context(), runs, func(mind *plan.Planner, i int) tally {
		out := Single(tick.Run{Zone: "drawn", Window: i, Job: job, Up: tick.Drawn(uint64(i), 11, job.Ticks())}, mind, rule, false)
		return tally{cost: out.Cost, missed: out.Missed, launched: out.Launches}
	}, func(int) {})
	must.Do(t, err)
	cost, more, late := money.Amount{}, 0, 0
	for _, l := range lines {
		cost, more = cost.Add(l.cost), more+l.launched-1
		if l.missed {
			late++
		}
	}
	if late > 0 {
		t.Errorf("%d of %d runs missed the deadline", late, len(lines))
	}
	n := float64(len(lines))
	return cost.Float() / n, float64(more) * job.Overhead.Hours() * job.OnDemand.Float() / n
}

func sixHours(deadline float64, spot money.Rate) tick.Job {
	return tick.Job{Work: 6 * time.Hour, Deadline: time.Duration(deadline * float64(time.Hour)), Overhead: 12 * time.Minute, Gap: 10 * time.Minute, Spot: spot, OnDemand: 3e12}
}

// slack is the part of a difference that may be chance: 0.5 % at 10,000 runs, more with fewer.
func slack() float64 { return 0.005 * max(1, 2*float64(1000)/float64(max(*drawn, 1))) }

// In the mean, through the production core.
func TestSingle_MoreSlackNeverCostsMore(t *testing.T) {
	last := 0.0
	for _, hours := range []float64{7, 9, 14} {
		got, _ := meanOf(t, *drawn, sixHours(hours, 1e12), policy.Default)
		t.Logf("%v h: $%.3f", hours, got)
		if last > 0 && got > last*(1+slack()) {
			t.Errorf("%v h to the deadline cost $%.3f, fewer $%.3f", hours, got, last)
		}
		last = got
	}
}

func TestSingle_CheaperMarketNeverCostsMoreThanOnDemand(t *testing.T) {
	firm, _ := meanOf(t, 1, sixHours(8, 1e12), policy.OnDemand) // whatever the market does
	last := 0.0
	for _, spot := range []money.Rate{5e11, 15e11, 29e11} {
		got, overheads := meanOf(t, *drawn, sixHours(8, spot), policy.Default)
		t.Logf("spot at %v: $%.3f, of it overheads of at most $%.3f; on-demand $%.3f", spot, got, overheads, firm)
		if got < last*(1-slack()) {
			t.Errorf("spot at %v cost $%.3f, cheaper spot $%.3f", spot, got, last)
		}
		if got > (firm+overheads)*(1+slack()) {
			t.Errorf("spot at %v: $%.3f, on-demand $%.3f and the overheads $%.3f", spot, got, firm, overheads)
		}
		last = got
	}
	// A policy that ignores prices fails the last property: greedy buys spot that is hardly cheaper and pays for each
	// restart.
	if greedy, _ := meanOf(t, min(*drawn, 300), sixHours(8, 29e11), policy.Greedy); greedy < firm*1.01 || last > firm*(1+slack()) {
		t.Errorf("with spot at 29 of 30 the default costs $%.3f, on-demand $%.3f, greedy $%.3f", last, firm, greedy)
	}
}

func TestSingle_IsDeterministic(t *testing.T) {
	shared := plan.NewPlanner()
	for i := range min(*drawn, lane.Pick(15, 40)) {
		r := tick.Run{Zone: "drawn", Window: i, Job: sixHours(8, 1e12), Up: tick.Drawn(uint64(i), 11, 48)}
		a, b := fmt.Sprintf("%+v", Single(r, plan.NewPlanner(), policy.Default, true)), fmt.Sprintf("%+v", Single(r, shared, policy.Default, true))
		if a != b {
			t.Fatalf("market %d, alone and after others:\n%s\n%s", i, a, b)
		}
	}
}
