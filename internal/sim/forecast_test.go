package sim

import (
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/hours"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// longJob is a scenario of long work on an uninterruptible machine at $3 an hour.
func longJob(work time.Duration) Scenario {
	o := market.Offer{Provider: "local", Region: "r", Zone: "a", Machine: "m", Capacity: market.OnDemand, CPUs: 1,
		Memory: size.GiB, Speed: 1, Currency: money.USD}
	o.ID = market.ID(o)
	return Scenario{Terms: core.Terms{Name: "long", Currency: money.USD, Priority: 1, Steps: 1000, Saves: true,
		Restart: time.Minute, Work: work}, Now: epoch, Pace: 1000 / work.Hours(), Restart: time.Minute, Save: time.Second,
		Runs: 1, Offers: []market.Offer{o}, Hazards: map[market.OfferID]policy.Hazard{o.ID: {}},
		Quotes: []market.Quote{{Offer: o.ID, Rate: 3e12, Priced: true, Available: true, At: epoch}}}
}

// Long work reports and saves rarely; what remains is a posting an hour.
func TestAsk_PlaysTenYearsOfWorkInFewEvents(t *testing.T) {
	for _, work := range []time.Duration{30 * 24 * time.Hour, 10 * 365 * 24 * time.Hour} {
		q, thousands := longJob(work), 0
		q.Halt = func() bool { thousands++; return false }
		f := Ask(q)
		if late := f.Finish[1] - work; f.Done != 1 || late < 0 || late > work/100+time.Hour {
			t.Errorf("work of %v is done after %v in a share of %v of the runs", work, f.Finish[1], f.Done)
		}
		if by := 3 * f.Finish[1].Hours(); f.Cost[1] < 0.999*by || f.Cost[1] > 1.001*by {
			t.Errorf("work of %v costs $%.2f, at $3 an hour for %v that is $%.2f", work, f.Cost[1], f.Finish[1], by)
		}
		if most := 10 + int(1.1*work.Hours()/1000); thousands > most {
			t.Errorf("work of %v takes %d thousand events", work, thousands)
		}
	}
}

// A forecast bills what the offer states. It used to bill each machine a minute at least: a job of 20 seconds at a cent
// a second cost $0.60 in scrimp plan, and $0.28 on its receipt.
func TestAsk_BillsTheMinimumThatTheOfferStates(t *testing.T) {
	const rate = 0.01 // dollars a second
	for _, least := range []time.Duration{0, time.Minute} {
		q := longJob(20 * time.Second)
		q.Restart, q.Terms.Restart, q.Offers[0].Billing.Minimum, q.Quotes[0].Rate = 3*time.Second, 3*time.Second, least, 36e12
		f := Ask(q)
		low, high := rate*20, rate*(f.Finish[1].Seconds()+10) // it ends its machine some seconds after its program
		if least > 0 {
			low, high = rate*60, rate*60
		}
		if f.Done != 1 || f.Cost[1] < 0.9999*low || f.Cost[1] > 1.0001*high {
			t.Errorf("billed for %v at least: $%.4f after %v, want $%.4f to $%.4f", least, f.Cost[1], f.Finish[1], low, high)
		}
	}
}

func TestAsk_ReturnsNoAnswerWhenHalted(t *testing.T) {
	q := longJob(10 * 365 * 24 * time.Hour)
	q.Runs, q.Halt = 1000, func() bool { return true }
	if f := Ask(q); !f.Halted || f.Runs != 0 {
		t.Errorf("%+v", f)
	}
}

// A halted forecast answers with the runs that were complete: the same as one of so many runs.
func TestAsk_AnswersWithCompleteRunsWhenHalted(t *testing.T) {
	q := longJob(30 * time.Hour)
	q.Runs = 7
	want := Ask(q)
	told := 0
	q.Runs, q.Told, q.Halt = 200, func(runs int) { told = runs }, func() bool { return told >= 7 }
	f := Ask(q)
	if !f.Halted || f.Runs != 7 || f.Cost != want.Cost || f.Finish != want.Finish || f.Done != want.Done {
		t.Errorf("%+v, want %+v", f, want)
	}
}

// Work of months gets as many runs as the bound of events allows, and at least ten; work of hours gets all.
func TestAsk_BoundsEventsOfAllRuns(t *testing.T) {
	for work, runs := range map[time.Duration]int{time.Hour: 40, 300 * 24 * time.Hour: fewestRuns} {
		q := longJob(work)
		q.Runs, q.Events = 40, 20_000
		if f := Ask(q); f.Runs != runs || f.Done != 1 || f.Halted {
			t.Errorf("work of %v: %d runs, done %v, want %d", work, f.Runs, f.Done, runs)
		}
	}
}

// A window of some hours a day stretches work over more days than a run of usual length has: it is done nevertheless.
func TestAsk_PlaysWorkInItsWindowToTheEnd(t *testing.T) {
	q := longJob(40 * 24 * time.Hour)
	q.Terms.Window = hours.Window{From: 22 * time.Hour, Until: 23 * time.Hour}
	if f := Ask(q); f.Done != 1 || f.Endless > 0 || f.Finish[1] < 960*24*time.Hour {
		t.Errorf("done %v, endless %v, after %v", f.Done, f.Endless, f.Finish[1])
	}
}

// A machine that is terminated after its provider announced the interruption counts as interrupted. The provider's
// count agrees.
func TestAsk_CountsEachInterruption(t *testing.T) {
	for _, notice := range []time.Duration{0, 2 * time.Minute} {
		q := longJob(30 * time.Hour)
		o := &q.Offers[0]
		o.Capacity, o.Notice = market.Spot, notice
		o.ID = market.ID(*o)
		q.Planner = plan.NewPlanner()
		q.Quotes[0].Offer, q.Hazards, q.Runs = o.ID, map[market.OfferID]policy.Hazard{o.ID: {}}, 10
		f := Ask(q)
		taken := 0
		for n := range q.Runs {
			w, _ := play(q, uint64(n)+1)
			for _, i := range w.instances {
				if i.announced || i.cause == "interrupted" {
					taken++
				}
			}
		}
		if want := float64(taken) / float64(q.Runs); f.Interruptions != want || want < 0.5 {
			t.Errorf("with a notice of %v a run has %v interruptions, by its provider %v", notice, f.Interruptions, want)
		}
	}
}
