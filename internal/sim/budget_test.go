package sim

import (
	"flag"
	"math/rand/v2"
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

var purses = flag.Int("purses", lane.Pick(100, 2_000), "how many random markets a job with a budget that comes first is played on")

// strapped draws a market of a few zones with different prices and periods, and a job with a deadline and a budget, of
// which often only one can be met.
func strapped(seed uint64) Playback {
	rng := rand.New(rand.NewPCG(seed, 0xb06e7))
	within := func(lo, hi float64) float64 { return lo + (hi-lo)*rng.Float64() }
	hours := func(lo, hi float64) time.Duration { return time.Duration(within(lo, hi) * float64(time.Hour)) }
	trace := market.Trace{Name: "strapped", Currency: money.USD, Speed: 1}
	for zone := range 1 + rng.IntN(3) {
		offer := market.Offer{Provider: "local", Region: "r", Zone: string(rune('a' + zone)), Machine: "m", Capacity: market.Spot, CPUs: 1, Memory: size.GiB, Speed: 1, Currency: money.USD}
		offer.ID = market.ID(offer)
		line := market.TraceLine{Offer: offer, Available: []market.Span{}}
		rate := within(0.5, 1.5)
		at := hours(0, 2)
		for at < 30*24*time.Hour {
			rate = min(max(rate*within(0.7, 1.4), 0.3), 4)
			line.Price = append(line.Price, market.Price{At: at, Rate: money.Rate(rate * 1e12)})
			span := market.Span{From: at, To: at + hours(0.1, 12)}
			line.Available = append(line.Available, span)
			at = span.To + hours(0.1, 6)
		}
		line.Price[0].At = 0
		trace.Lines = append(trace.Lines, line)
		if zone == 0 || rng.IntN(2) == 0 {
			firm := offer
			firm.Capacity = market.OnDemand
			firm.ID = market.ID(firm)
			trace.Lines = append(trace.Lines, market.TraceLine{Offer: firm, Price: []market.Price{{Rate: money.Rate(within(2, 4) * 1e12)}}})
		}
	}
	work := hours(1, 10).Truncate(time.Minute)
	t := core.Terms{
		Name: "j", Currency: money.USD, Steps: int64(work.Minutes()), Work: work, Restart: 2 * time.Minute, Grace: 2 * time.Minute, Saves: true, Priority: 1,
		HasBudget: true, Need: plan.Need{Requirements: plan.Requirements{CPUs: 1}},
	}
	t.Budget, _ = money.Estimated(work.Hours() * within(0.4, 4))
	opened := epoch
	t.Deadline = opened.Add(time.Duration(float64(work) * within(1.1, 3)))
	rule := policy.Default
	if seed%8 != 0 { // the tables of the default policy are slow to build
		rule = []policy.Rule{policy.UniformProgress, policy.UniformProgress2, policy.Greedy}[seed%3]
	}
	return Playback{Terms: t, Restart: time.Minute, Save: 20 * time.Second, Trace: trace, Opened: opened, Policy: rule}
}

// A budget that comes first is never exceeded, and no job ends unfinished with enough money for the rest of its work on
// the cheapest offer that was ever available for long enough. (The core gives up only beyond a tolerance of a tenth, so
// the test counts the rest in full.)
func TestPlay_BudgetFirstIsKeptAndFinishesWork(t *testing.T) {
	late, early, inTime, short := 0, 0, 0, 0
	mind := plan.NewPlanner()
	for seed := range uint64(*purses) {
		p := strapped(seed)
		p.Planner = mind
		got := Play(p)
		if got.Cost.Cmp(p.Terms.Budget) > 0 {
			t.Fatalf("seed %d: it cost %v of %v", seed, got.Cost, p.Terms.Budget)
		}
		switch {
		case got.InTime:
			inTime++
		case got.State == core.Succeeded:
			late++
		case got.State == core.Queued: // its market ended
			early++
		default:
			short++
			left := p.Terms.Budget.Sub(got.Cost)
			step := int64(0)
			for _, a := range got.Attempts {
				step = max(step, a.Step())
			}
			rest := time.Duration(p.Terms.Steps-step) * time.Minute
			if l, rate, ok := everHad(p, got.Ended.Sub(p.Opened), rest+p.Terms.Restart); ok && rate.Until(rest+2*p.Terms.Restart+p.Terms.Grace).Cmp(left) < 0 {
				t.Fatalf("seed %d: ended (%s) at step %d of %d with %v of %v left, and %s was there for %v an hour", seed, got.Why, step, p.Terms.Steps, left, p.Terms.Budget, l, rate)
			}
		}
	}
	t.Logf("%d markets: in time %d, late and within the budget %d, ended with too little %d, without a market %d", *purses, inTime, late, short, early)
	if *purses >= 100 && (inTime == 0 || late == 0 || short == 0) {
		t.Error("the markets prove nothing about some outcome")
	}
}

// everHad returns the cheapest offer that was available for the whole span before a time.
func everHad(p Playback, until, span time.Duration) (id market.OfferID, least money.Rate, ok bool) {
	for _, l := range p.Trace.Lines {
		spans := l.Available
		if spans == nil {
			spans = []market.Span{{To: 400 * 24 * time.Hour}}
		}
		for _, s := range spans {
			if s.From > until || s.To-s.From < span {
				continue
			}
			if q := p.Trace.Quote(l, s.From, p.Opened); !ok || q.Rate < least {
				id, least, ok = l.Offer.ID, q.Rate, true
			}
		}
	}
	return id, least, ok
}

// A budget that pays twice for on-demand from the start leaves the deadline's odds unchanged.
func TestPlay_AmpleBudgetChangesNothing(t *testing.T) {
	for seed := range uint64(lane.Pick(20, 500)) {
		p := strapped(seed*3 + 1)
		p.Terms.Budget, _ = money.Estimated(p.Terms.Work.Hours() * 20)
		with := Play(p)
		p.Terms.HasBudget = false
		if without := Play(p); with.Cost != without.Cost || with.Finish != without.Finish {
			t.Fatalf("seed %d: with a budget it costs %v and takes %v, without %v and %v", seed, with.Cost, with.Finish, without.Cost, without.Finish)
		}
	}
}
