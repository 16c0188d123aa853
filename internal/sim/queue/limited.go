package queue

import (
	"container/heap"
	"fmt"
	"maps"
	"slices"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/fair"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// Share is what the jobs of a team would have cost under a limit of dollars an hour, and how long they would have
// taken.
type Share struct {
	Team string
	Jobs int // that ended
	Cost money.Amount
	// Mean and P99 are seconds from the submission of a job to its end.
	Mean, P99 float64
	// Never counts the jobs that never start: their cheapest machine alone exceeds the limit.
	Never int
}

// Limited replays past jobs in the server's own queue: its core decides in virtual time which job starts when, and on
// which machine, under the given rules. Each job has a machine of its own. Machines come at once; what a job needed to
// start is a part of its time there. It leaves out the same jobs as Pools.
func Limited(jobs []Past, sales []Sale, rules budget.Rules) (list []Share, left LeftOut) {
	pools, left := Pools(jobs, sales)
	plays := map[string]bool{}
	for i := range pools {
		for _, j := range pools[i].Jobs {
			plays[j.ID] = true
		}
	}
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(p Past) bool { return !plays[p.ID] })
	slices.SortStableFunc(jobs, func(a, b Past) int { return a.Submitted.Compare(b.Submitted) })
	if len(jobs) == 0 {
		return nil, left
	}
	l := newLimited(jobs, sales, rules)
	for l.next() {
	}
	return l.shares(jobs), left
}

// limited is a core that replays past jobs.
type limited struct {
	m     *core.Machine
	now   time.Time
	rates map[market.OfferID]money.Rate
	jobs  []Past // that are still to be submitted
	past  map[string]Past
	ends  ends
	wake  time.Time // when the core wants to be asked again; zero: never
	idle  bool      // the last tick changed nothing while nothing ran or was to come
	over  map[string]time.Time
	cost  map[string]money.Amount // by job
}

func newLimited(jobs []Past, sales []Sale, rules budget.Rules) *limited {
	l := &limited{m: core.New(), now: jobs[0].Submitted, rates: map[market.OfferID]money.Rate{}, jobs: jobs,
		past: map[string]Past{}, over: map[string]time.Time{}, cost: map[string]money.Amount{}}
	c := core.DefaultConfig()
	c.MaxRunning, c.Idle = len(jobs), 0
	l.step(core.Configured{Config: c})
	seen := core.MarketSeen{}
	for _, s := range cheapest(sales) {
		o := market.Offer{Provider: "replay", Region: "replay", Zone: "replay", Machine: s.Name, Capacity: market.OnDemand,
			CPUs: s.CPUs, Memory: size.Bytes(s.Memory), Accelerator: s.Accelerator, Accelerators: s.Accelerators, Speed: 1,
			Currency: money.USD}
		o.ID = market.ID(o)
		l.rates[o.ID] = s.Price
		seen.Offers = append(seen.Offers, o)
		seen.Quotes = append(seen.Quotes, market.Quote{Offer: o.ID, Rate: s.Price, Priced: true, Available: true, At: l.now})
	}
	l.step(seen)
	l.step(core.BudgetsSet{Rules: rules})
	return l
}

// next goes on to the next submission, end or question of the core, and reports whether there was one.
func (l *limited) next() bool {
	switch {
	case len(l.ends) > 0 && !l.wakesBefore(l.ends[0].at) &&
		(len(l.jobs) == 0 || !l.jobs[0].Submitted.Before(l.ends[0].at)):
		e := heap.Pop(&l.ends).(end)
		l.now, l.over[e.job] = e.at, e.at
		l.step(core.AttemptEnded{Attempt: e.attempt, Message: 2, Reason: "completed"})
	case len(l.jobs) > 0 && !l.wakesBefore(l.jobs[0].Submitted):
		p := l.jobs[0]
		l.jobs, l.past[p.ID], l.now = l.jobs[1:], p, p.Submitted
		l.step(core.JobSubmitted{Job: p.ID, Terms: p.terms()})
	case len(l.ends)+len(l.jobs) == 0 && (l.idle || l.wake.IsZero()):
		return false
	default:
		l.now = l.wake
		started := len(l.ends)
		l.step(core.Tick{})
		l.idle = len(l.ends) == started
	}
	return true
}

// wakesBefore reports whether the core wants to be asked before t.
func (l *limited) wakesBefore(t time.Time) bool { return !l.wake.IsZero() && l.wake.Before(t) }

// step steps b now. Machines come and end at once.
func (l *limited) step(b core.Body) {
	out := l.m.Step(core.Event{At: l.now, Schema: core.Schema, Tenant: "replay", Actor: "user:replay", Body: b})
	for _, p := range out.Postings {
		l.cost[p.Owner.Job] = l.cost[p.Owner.Job].Add(state.CostOf(p))
	}
	l.wake = out.Wake
	for _, a := range out.Actions {
		switch a := a.(type) {
		case core.Launch:
			p := l.past[a.Job]
			l.step(core.LaunchDone{Launch: a.Allocation, Instance: "i-" + a.Allocation, Offer: a.Offer,
				Rate: l.rates[a.Offer], From: l.now})
			l.step(core.AttemptStarted{Attempt: a.Allocation, Message: 1})
			heap.Push(&l.ends, end{l.now.Add(p.Start + p.Work), a.Job, a.Allocation})
		case core.Terminate:
			l.step(core.InstanceEnded{Instance: a.Instance, Until: l.now, Cause: "terminated"})
		}
	}
}

// terms returns what the core needs to know of the job.
func (p *Past) terms() core.Terms {
	return core.Terms{Name: p.ID, Owner: ledger.Owner{Team: p.Team}, Currency: money.USD, Priority: p.Priority,
		Work: p.Work, Restart: p.Start, Need: plan.Need{Requirements: plan.Requirements{CPUs: p.CPUs, Memory: p.Memory,
			Accelerator: p.Accelerator, Accelerators: p.Accelerators}}}
}

// shares sums the replay by team.
func (l *limited) shares(jobs []Past) (list []Share) {
	teams, took := map[string]*Share{}, map[string][]int64{}
	for _, p := range jobs {
		s := teams[p.Team]
		if s == nil {
			s = &Share{Team: p.Team}
			teams[p.Team] = s
		}
		s.Cost = s.Cost.Add(l.cost[p.ID])
		if over, ended := l.over[p.ID]; ended {
			s.Jobs++
			took[p.Team] = append(took[p.Team], int64(over.Sub(p.Submitted)/time.Second))
		} else {
			s.Never++
		}
	}
	for _, team := range slices.Sorted(maps.Keys(teams)) {
		if s := teams[team]; s.Jobs > 0 {
			r := Result{Took: took[team]}
			r.summarize()
			s.Mean, s.P99 = r.Mean, r.P99
		}
		list = append(list, *teams[team])
	}
	return list
}

// end is when the program of an attempt ends.
type (
	end struct {
		at           time.Time
		job, attempt string
	}
	ends []end
)

func (e ends) Len() int { return len(e) }

func (e ends) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].job < e[j].job
}

func (e ends) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *ends) Push(x any) { *e = append(*e, x.(end)) }

// Pop implements heap.Interface.
func (e *ends) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// Weighted returns the rules of a limit of dollars an hour for all jobs, and of the weights of teams.
func Weighted(rate money.Rate, weights map[string]float64) (budget.Rules, error) {
	r := budget.Rules{Limits: []budget.Limit{{Scope: budget.All, Window: budget.Hour, Rate: &rate}}}
	for _, team := range slices.Sorted(maps.Keys(weights)) {
		r.Fair = fair.Set(r.Fair, fair.Team{Name: team, Weight: weights[team]})
	}
	if err := r.Limits[0].Check(); err != nil {
		return r, fmt.Errorf("--rate: %w", err)
	}
	if r.Fair != nil {
		return r, fair.Check(r.Fair, nil)
	}
	return r, nil
}
