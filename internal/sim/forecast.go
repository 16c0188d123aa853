package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/plan"
	"scrimp/internal/policy"
)

// Scenario asks how a job would go on from now: it is played forward through
// the core on markets drawn from what is known of the offers.
type Scenario struct {
	Terms   core.Terms
	Now     time.Time
	Done    int64         // steps in the newest checkpoint
	Pace    float64       // steps an hour on speed 1
	Restart time.Duration // boot and restore
	Save    time.Duration // what a save takes
	Offers  []market.Offer
	Speed   float64 // market seconds a wall second, in which notices are given; 0: 1
	Quotes  []market.Quote
	Hazards map[market.OfferID]policy.Hazard
	Spent   money.Amount
	Runs    int
	Config  core.Config   // of the core that will decide; zero: the default
	Planner *plan.Planner // kept from one question to the next; nil: a new one
	// Halt is asked now and then; true ends the play, and there is no answer. nil: it goes on.
	Halt func() bool
}

// Forecast is the answer, over all runs. Spans are market time from now.
type Forecast struct {
	Halted        bool // by Question.Halt; nothing else means anything then
	Runs          int
	InTime        float64    // share of the runs that met the deadline; 1 without one
	Done          float64    // share that was completed, within the budget
	Cost          [3]float64 // 10 %, median, 90 %, in currency units, without what was spent before
	Finish        [3]time.Duration
	Interruptions float64       // mean
	OnDemand      float64       // cost of the cheapest on-demand run; 0: none is for sale
	First         plan.Decision // what would be done now, and why
}

// Ask plays the question. The same question has the same answer.
func Ask(q Scenario) Forecast {
	f := Forecast{Runs: q.Runs}
	if q.Planner == nil {
		q.Planner = plan.NewPlanner()
	}
	var costs []float64
	var finishes []time.Duration
	for n := range q.Runs {
		w, j := play(q, uint64(n)+1)
		if q.Halt != nil && q.Halt() {
			return Forecast{Halted: true}
		}
		if n == 0 {
			f.First = w.first
		}
		cost := j.Spent(w.now).Float()
		finish := w.now.Sub(q.Now)
		if !j.Finished().IsZero() {
			finish = j.Finished().Sub(q.Now)
		}
		if j.State() == core.Succeeded {
			f.Done++
			if q.Terms.Deadline.IsZero() || !j.Finished().After(q.Terms.Deadline) {
				f.InTime++
			}
		}
		for _, a := range j.Attempts() {
			if a.Cause() == "interrupted" {
				f.Interruptions++
			}
		}
		costs, finishes = append(costs, cost), append(finishes, finish)
	}
	runs := float64(q.Runs)
	f.Done, f.InTime, f.Interruptions = f.Done/runs, f.InTime/runs, f.Interruptions/runs
	slices.Sort(costs)
	slices.Sort(finishes)
	for i, share := range []float64{0.1, 0.5, 0.9} {
		at := min(int(share*runs), q.Runs-1)
		f.Cost[i], f.Finish[i] = costs[at], finishes[at]
	}
	if q.Pace > 0 {
		hours := float64(q.Terms.Steps-q.Done)/q.Pace + q.Restart.Hours()
		for i, o := range q.Offers {
			if o.Capacity == market.OnDemand && q.Quotes[i].Priced {
				if cost := max(hours, o.Billing.Minimum.Hours()) * q.Quotes[i].Rate.Float(); f.OnDemand == 0 || cost < f.OnDemand {
					f.OnDemand = cost
				}
			}
		}
	}
	return f
}

// play lives one life of the job on a market drawn by the seed.
func play(q Scenario, seed uint64) (*World, *core.Job) {
	w := newWorld(rand.New(rand.NewPCG(seed, 0xf0ca)), q.Now)
	w.seed, w.calm, w.keeps, w.mind = seed, true, false, q.Planner
	w.m.Share(q.Planner)
	for i, o := range q.Offers {
		o.Notice = stretched(o.Notice, q.Speed)
		quote := q.Quotes[i]
		name := o.Zone
		if r := o.Reserved; r.Count > 0 {
			if !quote.Available && !q.Now.Before(r.From) {
				continue // others have it
			}
			name = string(o.ID)
		}
		z := w.zone(name)
		if o.Capacity == market.Spot {
			z.spot, z.offer, z.rate, z.open = o.ID, o, quote.Rate, quote.Available
			h := q.Hazards[o.ID]
			z.up, z.down = h.Between(), max(h.Between()/10, 2*time.Minute)
			w.after(w.exponential(z.up, z.down, z.open), func() { w.turn(z) })
		} else {
			z.firm, z.firmOffer, z.firmRate = o.ID, o, quote.Rate
			w.reserves(z)
		}
	}
	t := q.Terms // of what is left: the job begins anew with less to do
	t.Steps -= q.Done
	t.Budget = t.Budget.Sub(q.Spent)
	t.Metric, t.Notify = policy.Metric{}, false
	if q.Pace > 0 {
		t.Work = time.Duration(float64(t.Steps) / q.Pace * float64(time.Hour))
	}
	id := "job"
	w.jobs = []simJob{{id: id, terms: t, steps: t.Steps, pace: q.Pace, boot: q.Restart, save: q.Save}}
	cfg := q.Config
	if cfg.MaxRunning == 0 {
		cfg = core.DefaultConfig()
	}
	cfg.MaxRunning = 1
	if usual := core.DefaultConfig().Detect; cfg.Detect < usual { // the core is told sooner than by a cloud
		w.brisk = float64(cfg.Detect) / float64(usual)
	}
	w.step(core.Configured{Config: cfg})
	w.quotes()
	w.step(core.JobSubmitted{Job: id, Terms: t})
	if j, ok := w.m.Job(id); ok {
		w.first = j.Last()
	}
	for n := 1; len(w.heap) > 0 && w.now.Sub(q.Now) < horizon; n++ {
		if n%1000 == 0 && q.Halt != nil && q.Halt() {
			break
		}
		w.next()
		if w.m.Quiet() && w.allTold() {
			break
		}
	}
	j, _ := w.m.Job(id)
	return w, j
}
