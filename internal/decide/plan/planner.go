package plan

import (
	"math"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/onezone"
	"scrimp/internal/decide/policy/zonechoice/costtogo"
	"scrimp/internal/market"
)

// Planner keeps expensive results between decisions: tables, a cache of pure results. Observations of the markets
// come with the options, so a planner without its cache decides the same. It is not safe for concurrent use.
type Planner struct {
	shelf  *onezone.Shelf
	zones  *costtogo.Shelf // tables for several zones that others build; nil: the planner builds them when needed
	placed []*placed       // for jobs in several zones, the newest last

	room     room
	rejected rejected
}

// Fork returns a planner for another world. It shares the tables for one zone, which hold in every world. Tables
// for several zones belong to one job, unless others build them.
func (m *Planner) Fork() *Planner { return &Planner{shelf: m.shelf, zones: m.zones} }

// places is the number of tables for several zones that are kept, a few MB each.
const places = 16

// maxProblems bounds the number of different problems whose tables the planner keeps.
const maxProblems = 64

// NewPlanner returns a planner with an empty cache. It builds missing tables within a decision, unless OnRequest is
// called.
func NewPlanner() *Planner {
	return &Planner{shelf: onezone.NewShelf(onezone.Public, maxProblems)}
}

// Expect is the expected cost from now to the end of the job for each choice made now, in dollars; it is a
// statistic. A choice that is impossible has no number.
type Expect struct {
	Wait     *float64 `json:"wait_usd"`
	Spot     *float64 `json:"spot_usd"`
	OnDemand *float64 `json:"on_demand_usd"`
	// Up says whether spot is available. Chance is the probability that it is available at the next poll. If
	// several zones were weighed, it is that of the best available zone, or of any zone coming back.
	Up     bool    `json:"spot_up"`
	Chance float64 `json:"spot_chance"`
	// NextPoll is the time until the next poll.
	NextPoll time.Duration `json:"look_ns"`
	// Zones is the expectation for each zone's spot, if several were weighed.
	Zones []ZoneExpect `json:"zones,omitempty"`
}

// Whole reports whether every number of e is finite. The log cannot hold others, so they must not get that far.
func (e *Expect) Whole() bool {
	sum := e.Chance + Least(e)
	for i := range e.Zones {
		sum += e.Zones[i].Chance
		if usd := e.Zones[i].USD; usd != nil {
			sum += *usd
		}
	}
	return !math.IsNaN(sum) && !math.IsInf(sum, 0)
}

// Least returns the lowest expected cost, or a negative number if none is known.
func Least(e *Expect) float64 {
	best := -1.0
	for _, v := range []*float64{e.Wait, e.Spot, e.OnDemand} {
		if v != nil && (best < 0 || *v < best) {
			best = *v
		}
	}
	return best
}

// ZoneExpect is the expectation for the spot of one zone.
type ZoneExpect struct {
	Offer market.OfferID `json:"offer"`
	// USD is the expected cost of the job from now to its end if this zone is taken; nil if it cannot be.
	USD *float64 `json:"usd"`
	// Up reports whether it was seen available, Tried whether anybody probed it.
	Up    bool `json:"up"`
	Tried bool `json:"tried"`
	// Chance is the probability that spot stays up for an hour if it is up, that it returns within an hour if it is
	// down, or that it is up now if nobody probed it.
	Chance float64 `json:"chance_hour"`
}

// foreseeable reports whether the default policy can weigh the future of the job: the deadline is not near enough
// for the guard, the work is known, and spot is for sale for less than on-demand.
func (r *ranking) foreseeable(job *Job, v *policy.View) bool {
	if !job.byDefault() || job.Need.Critical || r.onDemand == nil || r.market() == nil {
		return false
	}
	if perWork(r.market()) >= perWork(r.onDemand) {
		return false
	}
	if !v.Known || v.Left <= 0 || v.Deadline.IsZero() || v.Guard(v.Working()) || !v.Deadline.After(v.Began) {
		return false
	}
	return v.Left+v.Done >= coarse*r.problem(v).Grid
}

// coarse is the fewest table steps that the whole work must have. With fewer, the steps are larger than what is
// weighed: a job of half a minute with a deadline in a day would wait all day although spot is for sale.
const coarse = 8

// problem returns the problem that the job's future is weighed by.
func (r *ranking) problem(v *policy.View) onezone.Problem {
	speed := r.speed()
	if speed <= 0 {
		speed = 1
	}
	price := ratio(perWork(r.market()) * speed / r.onDemand.dollarsPerHour())
	return onezone.For(v.Deadline.Sub(v.Began), v.Restart, max(v.Poll, v.Detect), price, 1)
}

// market returns the spot option whose availability counts: the held or best available one, else the best
// unavailable one.
func (r *ranking) market() *Option {
	if r.spot != nil {
		return r.spot
	}
	return r.asleep
}

// foresee weighs waiting, spot and on-demand by their expected costs, and returns the time until the next poll.
func (m *Planner) foresee(d *Decision, _ *Job, r *ranking, v *policy.View) (policy.Choice, time.Duration) {
	spot := r.market()
	p := r.problem(v)
	seen := spot.Watch.At(v.Now)
	seen.Up, seen.Losses = r.spot != nil, spot.losses
	if m.missing(d, p, seen) {
		return policy.Wait, p.Grid
	}
	state := onezone.State{Until: v.Deadline.Sub(v.Now) - v.Reserve - v.Detect - v.Margin, Left: v.Left, Market: seen}
	if v.Held != policy.Wait {
		state.Held, state.Owed = v.Held, v.Warming
	}
	got := m.shelf.Solver(p).Decide(state)
	for k := range got.USD {
		got.USD[k] *= r.onDemand.dollarsPerHour() // the table counts in hours of on-demand
	}
	d.Expect = &Expect{
		Wait: dollars(got.USD[onezone.None]), Spot: dollars(got.USD[onezone.Spot]),
		OnDemand: dollars(got.USD[onezone.OnDemand]),
		Up:       seen.Up, Chance: chance(got.Lasts, seen.Up), NextPoll: p.Grid,
	}
	return got.Choice, p.Grid
}

// ratio rounds the price of spot over that of on-demand for a table. Only that ratio affects the choice, and
// markets within a hundredth of each other share a table.
func ratio(r float64) float64 { return min(max(math.Round(r*100), 1), 99) / 100 }

func dollars(usd float64) *float64 {
	if math.IsInf(usd, 0) || math.IsNaN(usd) {
		return nil
	}
	usd = math.Round(usd*1e4) / 1e4
	return &usd
}

// chance returns the probability of spot being available at the next poll, to four digits.
func chance(lasts float64, up bool) float64 {
	if !up {
		lasts = 1 - lasts
	}
	return math.Round(lasts*1e4) / 1e4
}

// again returns when the passing of time alone could change the choice: when the guard will apply, and, for a job
// that waits or pays for on-demand, just after the next poll, so that the poll's result comes first.
func (r *ranking) again(v *policy.View, choice policy.Choice, step time.Duration) time.Time {
	var at time.Time
	if choice != policy.NonPreemptible {
		at, _ = v.GuardAt(v.Working())
	}
	if choice != policy.Spot {
		if next := v.Now.Add(step + 1); at.IsZero() || next.Before(at) {
			at = next
		}
	}
	return at
}
