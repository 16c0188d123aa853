package sim

import (
	"math"
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

// calmTrace always sells spot at $1 and on-demand at $3.30.
func calmTrace() market.Trace {
	spot := market.Offer{Provider: "local", Region: "r", Zone: "a", Machine: "m", Capacity: market.Spot, CPUs: 1, Memory: size.GiB, Speed: 1,
		Currency: money.USD, Notice: 2 * time.Minute}
	spot.ID = market.ID(spot)
	firm := spot
	firm.Capacity, firm.Notice = market.OnDemand, 0
	firm.ID = market.ID(firm)
	return market.Trace{Name: "calm", Currency: money.USD, Speed: 1, Lines: []market.TraceLine{
		{Offer: spot, Price: []market.Price{{Rate: 1e12}}, Available: []market.Span{{To: 1000 * time.Hour}}},
		{Offer: firm, Price: []market.Price{{Rate: 33e11}}}}}
}

// people draws programs as users write them, from a fifth of an hour to two hours of work.
func people(rng *rand.Rand) (r rhythm, pace float64, steps int64) {
	pace = math.Exp(4 + rng.Float64()*7) // 54 to 60,000 steps an hour
	steps = max(20, int64(pace*(0.2+2*rng.Float64())))
	r.reported = max(time.Second, time.Duration(float64(1+rng.IntN(5))/pace*float64(time.Hour)))
	r.first = time.Duration(rng.Float64() * float64(3*time.Minute)) // imports, caches, compilation
	if rng.IntN(2) == 0 {
		r.every = max(2, steps/int64(5+rng.IntN(30)))
		r.pause = time.Duration(float64(r.every) / pace * rng.Float64() / 2 * float64(time.Hour))
	}
	if rng.IntN(2) == 0 {
		r.sleeps, r.asleep = 1+rng.Int64N(steps), 2*time.Minute
	}
	return r, pace, steps
}

// Programs with a warm-up, validations, and a machine that sleeps for two minutes, with half again of the time that
// they need. Whether or not their duration is known, none counts as late, so none moves to on-demand while spot is
// never interrupted.
func TestPlay_WarmUpAndPausesDoNotCountAsLate(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 4))
	trace, mind := calmTrace(), plan.NewPlanner()
	for n := range lane.Pick(10, 200) {
		r, pace, steps := people(rng)
		all := r.takes(0, steps, pace)
		p := Playback{
			Terms: core.Terms{Name: "j", Currency: money.USD, Steps: steps, Restart: 2 * time.Second, Grace: time.Second, Saves: true,
				Priority: 1, Deadline: epoch.Add(all + all/2 + 10*time.Minute)},
			Restart: 2 * time.Second, Save: time.Second, Trace: trace, Opened: epoch, Policy: policy.Default, Planner: mind,
			rhythm: r, pace: pace,
		}
		if n%2 == 0 {
			p.Terms.Work = time.Duration(float64(steps) / pace * float64(time.Hour))
		}
		got := Play(p)
		if !got.InTime {
			t.Errorf("%d: %s (%s) after %v of %v, %+v", n, got.State, got.Why, got.Finish, all, r)
		}
		for _, a := range got.Attempts {
			if a.Capacity() == market.OnDemand {
				t.Errorf("%d: on-demand was bought for work of %v with %v of time, said: %v, %.0f steps an hour of %d, %+v", n, all,
					p.Terms.Deadline.Sub(epoch), p.Terms.Work, pace, steps, r)
			}
		}
	}
}

// A program that becomes three times as slow moves to a faster machine in time.
func TestPlay_SlowingProgramMovesInTime(t *testing.T) {
	trace := calmTrace()
	trace.Lines[1].Offer.Speed = 3
	trace.Lines[1].Offer.ID = market.ID(trace.Lines[1].Offer)
	p := Playback{
		Terms: core.Terms{Name: "j", Currency: money.USD, Steps: 3600, Work: time.Hour, Restart: 2 * time.Second, Grace: time.Second, Saves: true,
			Priority: 1, Deadline: epoch.Add(95 * time.Minute)},
		Restart: 2 * time.Second, Save: time.Second, Trace: trace, Opened: epoch, Policy: policy.Default,
		rhythm: rhythm{reported: 10 * time.Second, slower: 1200},
	}
	if got := Play(p); !got.InTime || got.Attempts[len(got.Attempts)-1].Capacity() != market.OnDemand {
		t.Errorf("%s (%s) after %v", got.State, got.Why, got.Finish)
	}
}
