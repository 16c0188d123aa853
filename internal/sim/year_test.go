package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// year returns a year of a team with jobs of 1 to 72 hours.
func year(jobs int) *World { return teamOf(jobs, 365, 72) }

// teamOf returns the given days of a team: the given number of jobs of 1 hour to longest hours, submitted at random
// times, on eight zones of spot and on-demand, with at most fifty at once.
func teamOf(jobs, days, longest int) *World {
	w := newWorld(rand.New(rand.NewPCG(1, 0x7ea)), epoch)
	w.keeps, w.plain = false, true
	for n := range 8 {
		z := w.zone(fmt.Sprintf("z%d", n))
		z.rate, z.onDemandRate = money.Rate(900_000_000_000+w.rng.Int64N(400_000_000_000)), onDemandRate
		o := market.Offer{Provider: "sim", Region: "r", Zone: z.name, Machine: "m", CPUs: 4, Memory: 8 * size.GiB, Speed: 1, Currency: money.USD, Capacity: market.Spot}
		o.ID = market.ID(o)
		z.offer, z.spot = o, o.ID
		o.Capacity = market.OnDemand
		o.ID = market.ID(o)
		z.firmOffer, z.firm = o, o.ID
		w.after(w.span(5), func() { w.turn(z) })
	}
	cfg := core.DefaultConfig()
	cfg.MaxRunning = 50
	w.step(core.Configured{Config: cfg})
	w.quotes()
	for n := range jobs {
		work := time.Duration(1+w.rng.IntN(longest)) * time.Hour
		j := simJob{id: fmt.Sprintf("job%04d", n), pace: 3600, steps: int64(work.Hours() * 3600), boot: time.Minute, save: 20 * time.Second}
		j.terms = core.Terms{
			Name: j.id, Currency: money.USD, Steps: j.steps, Restart: 3 * time.Minute, Grace: 2 * time.Minute, Saves: true, Priority: w.rng.IntN(2),
			Owner: ledger.Owner{Team: fmt.Sprintf("team%d", n%5), Project: "p"}, Need: plan.Need{Requirements: plan.Requirements{CPUs: 1}}, Work: work,
		}
		w.jobs = append(w.jobs, j)
		at := epoch.Add(time.Duration(w.rng.Int64N(int64(days-1) * int64(24*time.Hour))))
		if w.chance(0.5) {
			j.terms.Deadline = at.Add(work + time.Duration(w.rng.Float64()*float64(work)) + time.Hour)
		}
		w.at(at, func() { w.step(core.JobSubmitted{Job: j.id, Terms: j.terms}) })
	}
	w.after(time.Minute, w.housekeeping)
	day := 24 * time.Hour
	for len(w.heap) > 0 && w.now.Sub(epoch) < time.Duration(days+15)*day {
		w.next()
		if w.now.Sub(epoch) > time.Duration(days)*day && w.m.Quiet() {
			break
		}
	}
	return w
}

// BenchmarkAYearOfATeam runs a year with 1,000 jobs, which must take less than a minute. It reports the time and the
// outcome.
func BenchmarkAYearOfATeam(b *testing.B) {
	for b.Loop() {
		w := year(1000)
		done, interruptions := 0, 0
		for j := range w.m.Jobs() {
			if j.State() == core.Succeeded {
				done++
			}
			for _, a := range j.Attempts() {
				if a.Taken() {
					interruptions++
				}
			}
		}
		if done != 1000 || interruptions < 1000 {
			b.Fatalf("%d of 1,000 jobs are done after %d interruptions", done, interruptions)
		}
		if w.check(); len(w.Broken) > 0 {
			b.Fatalf("%d properties do not hold, the first: %s", len(w.Broken), w.Broken[0])
		}
		b.ReportMetric(float64(w.m.Seq()), "steps/year")
		b.ReportMetric(float64(interruptions), "interruptions/year")
	}
}
