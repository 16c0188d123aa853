package plan

import (
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/market"
)

// A job that saves nothing starts on spot only if the whole run would end before the guard applies, and does not
// leave spot if it will.
func TestTryWhole_StartsOnSpotOnlyIfWholeRunFits(t *testing.T) {
	tried, stayed, left := 0, 0, 0
	planner := NewPlanner()
	for seed := range uint64(40_000) {
		rng := rand.New(rand.NewPCG(seed, 7))
		job, options := draw(rng)
		job.Rule, job.Unsaving, job.Limited, job.UnsavedLosses = "", true, false, rng.IntN(5)
		job.Progress.Margin = time.Duration(rng.IntN(30)) * time.Minute
		p := job.Progress
		if !p.Known || job.Need.Critical || p.Left <= 0 {
			continue
		}
		job.Unsaved = 0
		if job.Held != "" {
			job.Unsaved = time.Duration(rng.Int64N(int64(p.Left)))
		}
		class := classOf(job, options)
		s := new(room).rank(&job, class)
		v := s.view(&job)
		if s.onDemand == nil || v.Guard(v.Working()) {
			continue
		}
		guard, ok := v.GuardAt(false)
		d := planner.Decide(job, class)
		var take *Listing
		for i := range options {
			if options[i].Offer.ID == d.Take {
				take = &options[i]
			}
		}
		held := s.held != nil && s.held.Offer.Capacity == market.Spot
		switch {
		case !ok || take == nil:
		case held && d.Take != job.Held && take.Offer.Capacity == market.Spot:
			t.Fatalf("seed %d: leaves spot for other spot, where it begins anew", seed)
		case take.Offer.Capacity == market.Spot && !held:
			tried++
			if done := p.Now.Add(p.Restart + p.Left + p.Margin + p.Detect); done.After(guard) {
				t.Fatalf("seed %d: begins on spot what is done at %s, after the guard at %s", seed, done, guard)
			}
		case held:
			done := p.Now.Add(p.Left - job.Unsaved)
			if d.Take == job.Held {
				stayed++
				if done.After(guard) {
					t.Fatalf("seed %d: stays on spot until %s, after the guard at %s", seed, done, guard)
				}
			} else if left++; !done.After(guard) && perWork(s.onDemand) >= perWork(s.held) {
				t.Fatalf("seed %d: leaves spot (%s) that would be done at %s, before the guard at %s", seed, d.Why, done, guard)
			}
		}
	}
	if tried < 100 || stayed < 100 || left < 20 {
		t.Errorf("begun on spot %d times, stayed %d, left %d", tried, stayed, left)
	}
}

// The expected cost of an attempt lies between its own cost and that of the attempt plus the whole work again.
func TestAttempt_CostIsBetweenOneRunAndTwo(t *testing.T) {
	o := Option{Listing: &Listing{Offer: market.Offer{ID: "a", Capacity: market.Spot}}}
	o.Quote.Rate = 1e12
	last := 1.0
	for hours := range 40 {
		run := time.Duration(hours+1) * time.Hour
		usd, lasts := o.attempt(now, run, 100)
		if lasts <= 0 || lasts >= last {
			t.Errorf("%s of spot are had with %g, an hour less with %g", run, lasts, last)
		}
		if full := o.hours(run); usd > full+(1-lasts)*100+1e-9 || usd < full*lasts {
			t.Errorf("a try of %s, lasting with %g, costs %g", run, lasts, usd)
		}
		last = lasts
		if anew := o.retries(now, run, 5*run, 100); anew > 100 || anew > o.retries(now, run, run, 100) {
			t.Errorf("the more tries of %s have room, the dearer: %g", run, anew)
		}
	}
	if got := o.retries(now, time.Hour, 0, 100); got != 100 {
		t.Errorf("without room for a try it costs %g, not on-demand's 100", got)
	}
}
