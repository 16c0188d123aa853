package sim

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/market"
)

// Scenario asks how a job would go on from now: it is played forward through
// the core on markets drawn from what is known of the offers.
type Scenario struct {
	Terms      core.Terms
	Now        time.Time
	Done       int64         // steps in the newest checkpoint
	Pace       float64       // steps an hour on speed 1
	PaceSpread float64       // its standard deviation, as a share of it; 0: it is known
	Restart    time.Duration // boot and restore
	Save       time.Duration // what a save takes
	Offers     []market.Offer
	Speed      float64 // market seconds a wall second, in which notices are given; 0: 1
	Quotes     []market.Quote
	Hazards    map[market.OfferID]policy.Hazard
	// Opens is when others leave what is reserved and not to be had now; what it does not name is left out.
	Opens   map[market.OfferID]time.Time
	Spent   money.Amount
	Runs    int
	Config  core.Config   // of the core that will decide; zero: the default
	Planner *plan.Planner // kept from one question to the next; nil: a new one
	// Halt is asked now and then; true ends the play, and there is no answer. nil: it goes on.
	Halt func() bool
}

// Forecast is the answer, over all runs. Spans go by the market's clock from now.
type Forecast struct {
	Halted        bool // by Question.Halt; nothing else means anything then
	Runs          int
	InTime        float64    // share of the runs that met the deadline; 1 without one
	Done          float64    // share that was completed, within the budget
	Endless       float64    // share that came to no end: it waited, or began again, for as long as was played
	Cost          [3]float64 // 10 %, median, 90 %, in currency units, without what was spent before
	Marginal      [3]float64 // the same without what is paid anyway of reserved machines: what decisions go by
	Finish        [3]time.Duration
	Begin         [3]time.Duration // of the first machine, in those runs that had one
	On            market.OfferID   // the first machine of the first run; "": none
	Interruptions float64          // mean
	OnDemand      *plan.OnDemand   // what the work costs there, as it would be done; nil: none that does it is for sale
	First         plan.Decision    // what would be done now, and why
}

// Ask plays the question. The same question has the same answer.
func Ask(q Scenario) Forecast {
	f := Forecast{Runs: q.Runs}
	if q.Planner == nil {
		q.Planner = plan.NewPlanner()
	}
	var all outcomes
	for n := range q.Runs {
		w, j := play(q, uint64(n)+1)
		if q.Halt != nil && q.Halt() {
			return Forecast{Halted: true}
		}
		if n == 0 {
			f.First = w.first
		}
		f.count(q, j)
		all.add(q.Now, w.now, j)
	}
	runs := float64(q.Runs)
	f.Done, f.InTime, f.Endless, f.Interruptions = f.Done/runs, f.InTime/runs, f.Endless/runs, f.Interruptions/runs
	f.Cost, f.Marginal = shares(all.costs), shares(all.marginal)
	f.Finish, f.Begin = shares(all.finishes), shares(all.begins)
	f.OnDemand = q.onDemand(all.ways)
	return f
}

// count adds a run to the shares of the forecast, which are numbers of runs until the last has been played.
func (f *Forecast) count(q Scenario, j *core.Job) {
	all := j.Attempts()
	if len(all) > 0 && f.On == "" {
		f.On = all[0].Offer()
	}
	if j.State() == core.Succeeded {
		f.Done++
		if q.Terms.Deadline.IsZero() || !j.Finished().After(q.Terms.Deadline) {
			f.InTime++
		}
	}
	if j.Finished().IsZero() {
		f.Endless++
	}
	for _, a := range all {
		if a.Taken() { // also one that was given back once it was told
			f.Interruptions++
		}
	}
}

// outcomes are what the runs of a forecast cost and how long they took, in the order of the runs.
type outcomes struct {
	costs, marginal  []float64
	finishes, begins []time.Duration
	ways             []string // the variants that began in any run
}

// add adds a run that was played from begin to end.
func (o *outcomes) add(begin, end time.Time, j *core.Job) {
	all := j.Attempts()
	if len(all) > 0 {
		o.begins = append(o.begins, max(0, all[0].From().Sub(begin)))
	}
	for _, a := range all {
		if !a.Started().IsZero() && !slices.Contains(o.ways, a.Variant()) {
			o.ways = append(o.ways, a.Variant())
		}
	}
	cost := j.Spent(end)
	o.costs = append(o.costs, cost.Float())
	o.marginal = append(o.marginal, cost.Sub(paidAnyway(j, end)).Float())
	finish := end.Sub(begin)
	if !j.Finished().IsZero() {
		finish = j.Finished().Sub(begin)
	}
	o.finishes = append(o.finishes, finish)
}

// paidAnyway is what of the job's cost by t was paid whether it ran or not.
func paidAnyway(j *core.Job, t time.Time) (sum money.Amount) {
	for _, a := range j.Attempts() {
		if a.Capacity() == market.Reserved {
			machine := a.Machine()
			sum = sum.Add(machine.Owned(a.Cost(t)))
		}
	}
	return sum
}

// shares are what a tenth, half and nine tenths of the values stay below; zero of none. It sorts them.
func shares[T cmp.Ordered](list []T) (v [3]T) {
	slices.Sort(list)
	for i, share := range []float64{0.1, 0.5, 0.9} {
		if len(list) > 0 {
			v[i] = list[min(int(share*float64(len(list))), len(list)-1)]
		}
	}
	return v
}

// onDemand is what the work left costs on-demand, done in one of those ways.
func (q *Scenario) onDemand(ways []string) *plan.OnDemand {
	if q.Pace <= 0 {
		return nil
	}
	sold := plan.Listings{Shared: func(provider string) bool { return q.Config.TimingOf(provider).Seats > 1 }}
	w := plan.Work{Span: q.left(), StartUp: q.Restart, Ways: ways, Nodes: q.Terms.Most(),
		Currency: cmp.Or(q.Config.Currency, core.DefaultConfig().Currency), Unsaving: !q.Terms.Saves}
	best, ok := q.Terms.Need.OnDemand(w, func(yield func(*plan.Listing) bool) {
		for i, o := range q.Offers {
			l := &plan.Listing{Offer: o, Quote: q.Quotes[i]}
			if sold.Add(l); !yield(l) {
				return
			}
		}
	})
	if !ok {
		return nil
	}
	return &best
}

// mostTries is after how many attempts a run of the job counts as one that does not come to its end: its machines
// live for less than it needs to get anywhere.
const mostTries = 1000

// mostLooks bounds how often a run of long work reports and saves, so that a plan for months takes seconds. Work of
// 25 hours and less reports as it does live.
const mostLooks = 1000

// left is the work that is left, on a machine of speed 1.
func (q *Scenario) left() time.Duration {
	return time.Duration(float64(q.Terms.Steps-q.Done) / q.Pace * float64(time.Hour))
}

// opens makes the zones in which the offers of a question come and go.
func (w *World) opens(q *Scenario) {
	for i, o := range q.Offers {
		o.Notice = stretched(o.Notice, q.Speed)
		quote, opened := q.Quotes[i], time.Time{}
		name := o.Zone
		if r := o.Reserved; r.Count > 0 {
			opens, known := q.Opens[o.ID]
			if !quote.Available && !q.Now.Before(r.From) && !known {
				continue // others have it, and nobody knows for how long
			}
			opened = opens
			name = string(o.ID)
		}
		z := w.zone(name)
		if o.Capacity == market.Spot && z.spot != "" || o.Capacity != market.Spot && z.firm != "" {
			z = w.zone(string(o.ID)) // another machine of the same zone comes and goes by itself
		}
		if o.Capacity == market.Spot {
			z.spot, z.offer, z.rate, z.open, z.unpriced = o.ID, o, quote.Rate, quote.Available, !quote.Priced
			h := q.Hazards[o.ID]
			z.up, z.down = h.Between(), max(h.Between()/10, 2*time.Minute)
			w.after(w.exponential(z.up, z.down, z.open), func() { w.turn(z) })
		} else {
			z.firm, z.firmOffer, z.firmRate = o.ID, o, quote.Rate
			z.firmUnpriced, z.opens = !quote.Priced, opened
			w.reserves(z)
		}
	}
}

// play lives one life of the job on a market drawn by the seed.
func play(q Scenario, seed uint64) (*World, *core.Job) {
	w := newWorld(rand.New(rand.NewPCG(seed, 0xf0ca)), q.Now)
	w.seed, w.calm, w.keeps, w.mind = seed, true, false, q.Planner
	w.m.Share(q.Planner)
	if q.Terms.Most() > 1 {
		w.several(seed)
	}
	w.opens(&q)
	t := q.Terms // of what is left: the job begins anew with less to do
	t.Steps -= q.Done
	t.Budget = t.Budget.Sub(q.Spent)
	t.Metric, t.Notify = policy.Metric{}, false
	if q.PaceSpread > 0 {
		q.Pace *= math.Exp(q.PaceSpread * rand.New(rand.NewPCG(seed, 0xd0b7)).NormFloat64())
	}
	end, looks := horizon, time.Duration(0)
	if q.Pace > 0 {
		t.Work = q.left()
		end, looks = max(end, quantity.Times(t.Work, 3)), t.Work/mostLooks
	}
	id := "job"
	w.jobs = []simJob{{id: id, terms: t, steps: t.Steps, pace: q.Pace, boot: q.Restart, save: q.Save}}
	if looks > reportEvery {
		w.jobs[0].rhythm = rhythm{reported: looks, saved: looks}
	}
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
	w.runsOut(q, id, end)
	j, _ := w.m.Job(id)
	return w, j
}

// runsOut plays the job on until it has ended, it has begun too often, the question is halted, or the longest span has
// passed.
func (w *World) runsOut(q Scenario, id string, longest time.Duration) {
	for n := 1; len(w.heap) > 0 && w.now.Sub(q.Now) < longest; n++ {
		if n%1000 == 0 && q.Halt != nil && q.Halt() {
			return
		}
		w.next()
		j, ok := w.m.Job(id)
		if ok && w.first.Why == plan.NextRound {
			w.first = j.Last()
		}
		if ok && j.Epoch() > mostTries {
			return
		}
		if w.m.Quiet() && w.allTold() {
			return
		}
	}
}
