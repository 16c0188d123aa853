package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/hours"
	"scrimp/internal/market"
	"scrimp/internal/test/lane"
)

// nightJob is a scenario of work in a window, with spot that is interrupted every few hours and an on-demand machine.
func nightJob(w hours.Window, work time.Duration) Scenario {
	q := longJob(work)
	q.Terms.Window, q.Terms.Grace, q.Planner = w, 2*time.Minute, plan.NewPlanner()
	spot := q.Offers[0]
	spot.Capacity = market.Spot
	spot.ID = market.ID(spot)
	q.Offers = append(q.Offers, spot)
	q.Quotes = append(q.Quotes, market.Quote{Offer: spot.ID, Rate: 1e12, Priced: true, Available: true, At: epoch})
	q.Hazards[spot.ID] = policy.Hazard{Served: 100 * time.Hour, Lost: 150}
	return q
}

// A job has no machine outside its window, apart from the time of a save and an end. It continues at each opening, and
// meets a deadline if its window has enough hours before it.
func TestWindow_HoldsMachinesOfJob(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 14))
	late, nights := 0, 0
	lives := lane.Pick(40, 1_000)
	for n := range lives {
		w := hours.Window{From: time.Duration(rng.IntN(24)) * time.Hour, Offset: time.Duration(rng.IntN(20)-10) * time.Hour}
		w.Until = (w.From + time.Duration(4+rng.IntN(8))*time.Hour) % (24 * time.Hour)
		work := time.Duration(1+rng.IntN(20)) * time.Hour
		q := nightJob(w, work)
		timed := n%2 == 0
		for d := time.Hour; timed; d += time.Hour { // a twentieth more, and some restarts
			open, closings := w.Between(q.Now, q.Now.Add(d))
			if open > work*21/20+20*time.Minute+time.Duration(closings)*10*time.Minute {
				q.Terms.Deadline = q.Now.Add(d)
				break
			}
		}
		world, j := play(q, uint64(n)+1)
		if j.State() != core.Succeeded {
			t.Fatalf("life %d, window %+v: %s (%s)\n%s", n, w, j.State(), j.Why(), world.Story.String())
		}
		if timed && j.Finished().After(q.Terms.Deadline) {
			late++
		}
		for _, i := range world.instances {
			open, closings := w.Between(i.from, i.until)
			if nights += closings; i.until.Sub(i.from)-open > q.Terms.Grace+5*time.Minute {
				t.Errorf("life %d, window %+v: machine from %v until %v, of this %v outside", n, w, i.from, i.until,
					i.until.Sub(i.from)-open)
			}
		}
	}
	t.Logf("%d of %d late, %d machines ended with their window", late, lives/2, nights)
	if late > lives/100 || nights < lives/4 {
		t.Errorf("%d of %d late, %d machines ended with their window", late, lives/2, nights)
	}
}

// A job that saves nothing starts only if the window leaves time to finish.
func TestWindow_UnsavingJobStartsIfItCanFinish(t *testing.T) {
	t.Parallel()
	w := hours.Window{From: 22 * time.Hour, Until: 6 * time.Hour}
	q := nightJob(w, 5*time.Hour)
	q.Offers, q.Quotes = q.Offers[:1], q.Quotes[:1]
	q.Terms.Saves = false
	q.Now = time.Date(2026, 3, 2, 2, 0, 0, 0, time.UTC)
	q.Quotes[0].At = q.Now
	world, j := play(q, 1)
	if j.State() != core.Succeeded || len(world.instances) != 1 {
		t.Fatalf("%s (%s), %d machines\n%s", j.State(), j.Why(), len(world.instances), world.Story.String())
	}
	for _, i := range world.instances {
		if begin := time.Date(2026, 3, 2, 22, 0, 0, 0, time.UTC); i.from.Before(begin) || i.from.After(begin.Add(time.Minute)) {
			t.Errorf("its machine starts at %v, want 22:00", i.from)
		}
	}
}
