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

// Scenario describes a job at a point in time. Ask plays it forward through the core, on markets drawn from what is
// known about the offers.
type Scenario struct {
	Terms      core.Terms
	Now        time.Time
	Done       int64                    // steps in the newest checkpoint
	Pace       float64                  // steps an hour at speed 1
	PaceSpread float64                  // relative standard deviation of Pace; 0 if Pace is known
	Restart    time.Duration            // boot and restore
	Starts     map[string]time.Duration // boot and restore by provider; one without an entry takes Restart
	Save       time.Duration            // duration of a save
	Offers     []market.Offer
	Speed      float64 // market seconds per wall second, for notices; 0 means 1
	Quotes     []market.Quote
	Hazards    map[market.OfferID]policy.Hazard
	// Opens holds when the current holders release a reserved offer. Ask leaves out taken offers without an entry.
	Opens map[market.OfferID]time.Time
	Spent money.Amount
	Runs  int
	// Events bounds the simulated events of all runs together, which are what a forecast takes time for: once they are
	// used, Ask ends after the current run, but not before fewestRuns. 0 is no bound.
	Events  int
	Config  core.Config   // of the core that will decide; zero means the default
	Planner *plan.Planner // shared between questions; nil makes a new one
	// Halt is called now and then; true ends the simulation, with the answer of the runs that are complete. nil never
	// ends it.
	Halt func() bool
	// Told is called after each run with the number of complete ones; nil is not called.
	Told func(runs int)
}

// Forecast is the result over all runs. Durations count market time from Scenario.Now.
type Forecast struct {
	Halted        bool       // by Scenario.Halt: fewer runs than asked; without any, all other fields are meaningless
	Runs          int        // complete runs
	InTime        float64    // share of the runs that met the deadline; 1 without a deadline
	Done          float64    // share of the runs that completed within the budget
	OverBudget    float64    // share of the runs that a budget of the job ended
	Endless       float64    // share of the runs that did not end within the simulated time
	Cost          [3]float64 // 10 %, median and 90 % in currency units, without Scenario.Spent
	Marginal      [3]float64 // as Cost, without the reserved machines that are paid anyway; decisions use this
	Reads         [3]float64 // besides Cost, for reading the job's inputs from another region, on each new machine
	Finish        [3]time.Duration
	Begin         [3]time.Duration // start of the first machine, over the runs that had one
	On            market.OfferID   // the first machine of the first run; empty if none
	Interruptions float64          // mean
	OnDemand      *plan.OnDemand   // cost of the same work on-demand; nil if no suitable on-demand offer exists
	First         plan.Decision    // the action to take now, with its reasons
}

// Ask runs the scenario. It is deterministic.
func Ask(q Scenario) Forecast {
	f := Forecast{}
	if q.Planner == nil {
		q.Planner = plan.NewPlanner()
	}
	var all outcomes
	for n, events := 0, 0; n < q.Runs && (q.Events == 0 || events < q.Events || n < fewestRuns); n++ {
		w, j := play(q, uint64(n)+1)
		if q.Halt != nil && q.Halt() {
			if f.Halted = true; n == 0 {
				return f
			}
			break
		}
		if n == 0 {
			f.First = w.first
		}
		f.count(q, j)
		all.add(q.Now, w.now, j)
		f.Runs, events = n+1, events+w.events
		if q.Told != nil {
			q.Told(f.Runs)
		}
	}
	runs := float64(f.Runs)
	f.OverBudget /= runs
	f.Done, f.InTime, f.Endless, f.Interruptions = f.Done/runs, f.InTime/runs, f.Endless/runs, f.Interruptions/runs
	f.Cost, f.Marginal, f.Reads = shares(all.costs), shares(all.marginal), shares(all.reads)
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
	if j.State().Over() && policy.Stop(j.Why()).IsBudget() {
		f.OverBudget++
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
	reads            []float64
	finishes, begins []time.Duration
	ways             []string // variants that started in any run
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
	o.reads = append(o.reads, ReadsOf(j).Float())
	cost := j.Spent(end)
	o.costs = append(o.costs, cost.Float())
	o.marginal = append(o.marginal, cost.Sub(paidAnyway(j, end)).Float())
	finish := end.Sub(begin)
	if !j.Finished().IsZero() {
		finish = j.Finished().Sub(begin)
	}
	o.finishes = append(o.finishes, finish)
}

// ReadsOf returns the cost of reading the job's inputs on its machines, once for each machine that started.
func ReadsOf(j *core.Job) (sum money.Amount) {
	need := &j.Terms().Need
	if len(need.Reads) == 0 {
		return sum
	}
	for _, a := range j.Attempts() {
		if a.Started().IsZero() {
			continue
		}
		at := market.Offer{Provider: a.Provider(), Region: a.Region()}
		cost, _ := need.ReadCosts(&at, a.Nodes()) // known, or no machine would have been rented
		sum = sum.Add(cost)
	}
	return sum
}

// paidAnyway returns the part of the job's cost by t that accrues whether the job runs or not.
func paidAnyway(j *core.Job, t time.Time) (sum money.Amount) {
	for _, a := range j.Attempts() {
		if a.Capacity() == market.Reserved {
			machine := a.Machine()
			sum = sum.Add(machine.Owned(a.Cost(t)))
		}
	}
	return sum
}

// shares sorts the values and returns their 10 %, 50 % and 90 % quantiles, or zeros if there are none.
func shares[T cmp.Ordered](list []T) (v [3]T) {
	slices.Sort(list)
	for i, share := range []float64{0.1, 0.5, 0.9} {
		if len(list) > 0 {
			v[i] = list[min(int(share*float64(len(list))), len(list)-1)]
		}
	}
	return v
}

// onDemand returns what the remaining work costs on-demand, using one of the given variants.
func (q *Scenario) onDemand(ways []string) *plan.OnDemand {
	if q.Pace <= 0 {
		return nil
	}
	sold := plan.Listings{Shared: func(provider string) bool { return q.Config.TimingOf(provider).Seats > 1 }}
	w := plan.Work{Span: q.left(), StartUp: q.Restart, Ways: ways, Nodes: q.Terms.Most(), Reads: true,
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

// StepsOf returns the number of steps to assume for work whose steps are unknown: a minute each, and at least a
// thousand. Only whole steps are saved, so longer ones would lose work that a program saves.
func StepsOf(work time.Duration) int64 { return max(1000, int64(work/time.Minute)) }

// mostTries is the number of attempts after which a run counts as endless: its machines are interrupted before the job
// makes progress.
const mostTries = 1000

// mostLooks bounds the number of reports and saves of a run, so that a plan for months takes seconds. Work of 25 hours
// or less reports as often as a live job.
const mostLooks = 1000

// fewestRuns is the number of runs that Scenario.Events leaves in any case.
const fewestRuns = 10

// left returns the remaining work as time on a machine of speed 1.
func (q *Scenario) left() time.Duration {
	return time.Duration(float64(q.Terms.Steps-q.Done) / q.Pace * float64(time.Hour))
}

// opens creates the zones in which the scenario's offers open and close.
func (w *World) opens(q *Scenario) {
	for i, o := range q.Offers {
		o.Notice = stretched(o.Notice, q.Speed)
		quote, opened := q.Quotes[i], time.Time{}
		name := o.Zone
		if r := o.Reserved; r.Count > 0 {
			opens, known := q.Opens[o.ID]
			if !quote.Available && !q.Now.Before(r.From) && !known {
				continue // others hold it, and their end is unknown
			}
			opened = opens
			name = string(o.ID)
		}
		z := w.zone(name)
		if o.Capacity == market.Spot && z.spot != "" || o.Capacity != market.Spot && z.firm != "" {
			z = w.zone(string(o.ID)) // another machine of the same zone opens and closes independently
		}
		if o.Capacity == market.Spot {
			z.spot, z.offer, z.rate, z.open, z.unpriced = o.ID, o, quote.Rate, quote.Available, !quote.Priced
			h := q.Hazards[o.ID]
			z.up, z.down = h.Between(), max(h.Between()/10, 2*time.Minute)
			w.after(w.exponential(z.up, z.down, z.open), func() { w.turn(z) })
		} else {
			z.firm, z.firmOffer, z.onDemandRate = o.ID, o, quote.Rate
			z.firmUnpriced, z.opens = !quote.Priced, opened
			w.reserves(z)
		}
	}
}

// play simulates the job once, on a market drawn from the seed.
func play(q Scenario, seed uint64) (*World, *core.Job) {
	w := newWorld(rand.New(rand.NewPCG(seed, 0xf0ca)), q.Now)
	w.seed, w.calm, w.keeps, w.mind = seed, true, false, q.Planner
	w.m.Share(q.Planner)
	if q.Terms.Most() > 1 {
		w.several(seed)
	}
	w.opens(&q)
	t := q.Terms // terms of the remaining work: the job starts again with fewer steps
	t.Steps -= q.Done
	t.Budget = t.Budget.Sub(q.Spent)
	t.Metric, t.Notify = policy.Metric{}, false
	if q.PaceSpread > 0 {
		q.Pace *= math.Exp(q.PaceSpread * rand.New(rand.NewPCG(seed, 0xd0b7)).NormFloat64())
	}
	end, looks := horizon, time.Duration(0)
	if q.Pace > 0 {
		t.Work = q.left()
		days := int((24*time.Hour-1)/t.Window.Length()) + 1 // for the open hours of a day, rounded up
		end, looks = max(end, quantity.Times(t.Work, 3*days)), t.Work/mostLooks
	}
	id := "job"
	w.jobs = []simJob{{id: id, terms: t, steps: t.Steps, pace: q.Pace, boot: q.Restart, boots: q.Starts, save: q.Save}}
	if looks > reportEvery {
		w.jobs[0].rhythm = rhythm{reported: looks, saved: looks}
	}
	cfg := q.Config
	if cfg.MaxRunning == 0 {
		cfg = core.DefaultConfig()
	}
	cfg.MaxRunning = 1
	if usual := core.DefaultConfig().Detect; cfg.Detect < usual { // the core hears of an end sooner than from a cloud
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
		w.events = n
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
