package sim

import (
	"math"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/test/lane"
)

// gangMarket sells spot at $1 with gaps, and on-demand at $3, each with four accelerators.
func gangMarket(notice time.Duration, gaps ...time.Duration) market.Trace {
	spot := market.Offer{Provider: "local", Region: "r", Zone: "a", Machine: "m", Capacity: market.Spot, CPUs: 1, Memory: size.GiB,
		Accelerator: "A10G", Accelerators: 4, Speed: 1, Currency: money.USD, Notice: notice}
	spot.ID = market.ID(spot)
	firm := spot
	firm.Capacity, firm.Notice = market.OnDemand, 0
	firm.ID = market.ID(firm)
	l := market.TraceLine{Offer: spot, Price: []market.Price{{Rate: 1e12}, {At: 5 * time.Hour, Rate: 12e11}}}
	from := time.Duration(0)
	for i := 0; i+1 < len(gaps); i += 2 {
		l.Available = append(l.Available, market.Span{From: from, To: gaps[i], Notice: notice})
		from = gaps[i+1]
	}
	l.Available = append(l.Available, market.Span{From: from, To: 1000 * time.Hour})
	return market.Trace{Name: "gang", Currency: money.USD, Speed: 1, Lines: []market.TraceLine{l,
		{Offer: firm, Price: []market.Price{{Rate: 3e12}}}}}
}

func gangTerms(nodes int) core.Terms {
	return core.Terms{Name: "j", Currency: money.USD, Steps: 36000, Work: 10 * time.Hour, Restart: 3 * time.Minute, Grace: time.Minute,
		Saves: true, Priority: 1, Nodes: nodes}
}

func playGang(t *testing.T, terms core.Terms, trace market.Trace, rule policy.Rule, config core.Config) Played {
	t.Helper()
	return Play(Playback{Terms: terms, Restart: 3 * time.Minute, Save: 10 * time.Second, Trace: trace, Opened: epoch, Policy: rule,
		Planner: plan.NewPlanner(), Config: config})
}

// Machines that come and go together cost N times one machine under each rule and deadline, with the same finish and
// interruptions, if they save equally often. They may differ by the seconds that their agents need to learn about each
// other.
func TestPlay_GangCostsNTimesOneMachine(t *testing.T) {
	for _, notice := range []time.Duration{0, 2 * time.Minute} {
		trace := gangMarket(notice, 2*time.Hour, 3*time.Hour, 4*time.Hour, 7*time.Hour, 11*time.Hour, 12*time.Hour)
		for _, rule := range []policy.Rule{policy.OnDemand, policy.Greedy, policy.UniformProgress, policy.Default} {
			for _, hours := range []int{13, 0, 11, 20}[:lane.Pick(2, 4)] {
				play := func(nodes int) Played {
					terms := gangTerms(nodes)
					terms.Interval = 10 * time.Minute
					if hours > 0 {
						terms.Deadline = epoch.Add(time.Duration(hours) * time.Hour)
					}
					return playGang(t, terms, trace, rule, core.Config{})
				}
				one := play(1)
				for _, nodes := range []int{8, 2}[:lane.Pick(1, 2)] {
					got := play(nodes)
					each, late := got.Cost.Float()/float64(nodes), got.Finish-one.Finish
					if math.Abs(each/one.Cost.Float()-1) > 0.01 || late.Abs() > 5*time.Minute || got.InTime != one.InTime ||
						got.Interruptions != one.Interruptions {
						t.Errorf("%s, %d h, notice %v: each of %d cost $%.4f, %v, %d attempts, %d interruptions; one alone $%.4f, %v, %d, %d",
							rule, hours, notice, nodes, each, got.Finish, len(got.Attempts), got.Interruptions, one.Cost.Float(),
							one.Finish, len(one.Attempts), one.Interruptions)
					}
				}
			}
		}
	}
}

// A budget of N times as much ends N machines where it ends one. A budget that does not pay for the work is reported as
// short for both.
func TestPlay_BudgetOfGangEndsLikeOneMachine(t *testing.T) {
	trace := gangMarket(2*time.Minute, 2*time.Hour, 3*time.Hour)
	for _, dollars := range []int64{3, 9, 14} {
		play := func(nodes int) Played {
			terms := gangTerms(nodes)
			terms.Interval, terms.HasBudget, terms.Budget = 10*time.Minute, true, money.Picos(dollars*int64(nodes)*1e12)
			return playGang(t, terms, trace, policy.Default, core.Config{})
		}
		one := play(1)
		for _, nodes := range []int{2, 8} {
			got := play(nodes)
			if got.State != one.State || got.Why != one.Why || math.Abs(got.Cost.Float()/float64(nodes)-one.Cost.Float()) > 0.15 ||
				got.Cost.Cmp(money.Picos(dollars*int64(nodes)*1e12)) > 0 {
				t.Errorf("$%d for each of %d: %s, %s, $%.3f each; one: %s, %s, $%.3f", dollars, nodes, got.State, got.Why,
					got.Cost.Float()/float64(nodes), one.State, one.Why, one.Cost.Float())
			}
		}
		if done := one.State == core.Succeeded; done != (dollars == 14) {
			t.Errorf("$%d: %s, %s, $%.3f", dollars, one.State, one.Why, one.Cost.Float())
		}
	}
}

// GPU-hours and GPU quotas count all machines: N times the hours last as long.
func TestPlay_GPUHoursCountAllMachinesOfGang(t *testing.T) {
	play := func(nodes int) Played {
		terms := gangTerms(nodes)
		terms.Interval, terms.GPUHours = 10*time.Minute, float64(12*nodes) // three hours of four GPUs on each
		return playGang(t, terms, gangMarket(0), policy.Default, core.Config{})
	}
	for _, nodes := range []int{1, 2, 8} {
		got := play(nodes)
		if got.State != core.Stopped || got.Why != string(policy.GPUHoursSpent) || (got.Finish-3*time.Hour).Abs() > 2*time.Minute {
			t.Errorf("%d machines: %s, %s, after %v", nodes, got.State, got.Why, got.Finish)
		}
	}
}

// A gang meets a deadline that one machine meets, even if a provider takes long to grant on-demand machines: the guard
// allows the same extra time for N as for one.
func TestPlay_GangMeetsDeadlineOfOneMachine(t *testing.T) {
	trace := gangMarket(0, 2*time.Hour, 1000*time.Hour) // spot ends for good after two hours
	for _, wait := range []time.Duration{0, 20 * time.Minute} {
		cfg := core.DefaultConfig()
		cfg.GrantWait = wait
		for _, nodes := range []int{1, 2, 8} {
			terms := gangTerms(nodes)
			terms.Deadline = epoch.Add(13 * time.Hour)
			got := playGang(t, terms, trace, policy.Greedy, cfg) // waits for as long as the guard allows
			firm := got.Attempts[len(got.Attempts)-1]
			early := terms.Deadline.Sub(got.Ended)
			if !got.InTime || firm.Capacity() != market.OnDemand || firm.Nodes() != nodes || early < wait || early > wait+15*time.Minute {
				t.Errorf("%d machines, granted within %v: in time %v, %v before the deadline, on %d × %s", nodes, wait, got.InTime, early,
					firm.Nodes(), firm.Capacity())
			}
		}
	}
}

// An elastic gang takes the fewest machines that leave room before the deadline, and n of N machines take N/n as long.
func TestPlay_ElasticGangTakesFewestMachines(t *testing.T) {
	// 80 machine-hours in half of the time, less a restart: 30 h leave 14.95 h for 13.3 h on six; 9 h are too few even
	// for all.
	for hours, want := range map[int]int{0: 2, 9: 8, 22: 8, 30: 6, 45: 4, 100: 2} {
		terms := gangTerms(8)
		terms.LeastNodes, terms.Interval = 2, 10*time.Minute
		if hours > 0 {
			terms.Deadline = epoch.Add(time.Duration(hours) * time.Hour)
		}
		got := playGang(t, terms, gangMarket(0), policy.Default, core.Config{})
		n := got.Attempts[0].Nodes()
		work := terms.Work * 8 / time.Duration(n)
		if n != want {
			t.Errorf("%d h: it began on %d machines, and %d are enough", hours, n, want)
		}
		if over := got.Finish - work; hours != 9 && (over < 0 || over > 10*time.Minute) || got.InTime != (hours != 9) {
			t.Errorf("%d h: %v of work on %d machines took %v, in time %v", hours, work, n, got.Finish, got.InTime)
		}
	}
}
