package plan

import (
	"math"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/horizon"
	"scrimp/internal/decide/policy/place"
	"scrimp/internal/market"
)

// Planner keeps from one decision to the next what is dear to find out again: tables,
// which are a cache of pure results. What was seen of the markets comes with the
// options, so that a planner that was lost decides as the one before would have. It
// is not for use by several goroutines at once.
type Planner struct {
	shelf  *horizon.Shelf
	zones  *place.Shelf // tables for several zones that others build; nil: all are built when they are needed
	placed []*placed    // for jobs in several zones, the latest last

	room     room
	rejected rejected
}

// Fork returns a planner for another world: it shares the tables for one zone, which
// are true in every world; those for several zones are a job's own, unless others
// build them.
func (m *Planner) Fork() *Planner { return &Planner{shelf: m.shelf, zones: m.zones} }

// places is how many tables for several zones are kept: a few MB each.
const places = 16

// minds is how many jobs that differ share the tables.
const minds = 64

// NewPlanner returns a planner that keeps nothing yet. It builds the tables that it
// lacks within a decision, unless OnRequest is called.
func NewPlanner() *Planner {
	return &Planner{shelf: horizon.NewShelf(horizon.Public, minds)}
}

// Expect is what is expected to be paid from now to the end of the job, by what
// is done now, in dollars: a statistic. A choice that cannot be made has no number.
type Expect struct {
	Wait     *float64 `json:"wait_usd"`
	Spot     *float64 `json:"spot_usd"`
	OnDemand *float64 `json:"on_demand_usd"`
	// Up says whether spot can be had; Chance is that of its being there still, or
	// again, at the next poll. Where several zones were weighed it is that of the
	// best of those that can be had, or of any coming back.
	Up     bool    `json:"spot_up"`
	Chance float64 `json:"spot_chance"`
	// NextPoll is the time until then.
	NextPoll time.Duration `json:"look_ns"`
	// Zones is what was expected of each zone's spot, where several were weighed.
	Zones []ZoneExpect `json:"zones,omitempty"`
}

// Whole reports whether each number of e is one: what the log cannot hold must not get that far.
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

// Least is what is expected of the best that can be done; below zero where nobody can say.
func Least(e *Expect) float64 {
	best := -1.0
	for _, v := range []*float64{e.Wait, e.Spot, e.OnDemand} {
		if v != nil && (best < 0 || *v < best) {
			best = *v
		}
	}
	return best
}

// ZoneExpect is what was expected of a zone's spot.
type ZoneExpect struct {
	Offer market.OfferID `json:"offer"`
	// USD is what the job is expected to cost from now to its end where it is taken;
	// nil where it cannot be.
	USD *float64 `json:"usd"`
	// Up says whether it was seen to be for sale, Tried whether anybody asked.
	Up    bool `json:"up"`
	Tried bool `json:"tried"`
	// Chance is that of its lasting the next hour where it is up, of its coming back
	// within it where it is down, and of its being up now where nobody asked.
	Chance float64 `json:"chance_hour"`
}

// foreseeable reports whether the default policy can weigh the future of the
// job: it has a deadline that is not near enough for the guard, its work is
// known, and spot is for sale for less than on-demand.
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

// coarse is how many steps of a table the whole work must have. Below it the
// table's own steps are larger than what is weighed: a job of half a minute with a
// deadline in a day would wait for that day, with spot for sale.
const coarse = 8

// problem is what the job's future is weighed by.
func (r *ranking) problem(v *policy.View) horizon.Problem {
	speed := r.speed()
	if speed <= 0 {
		speed = 1
	}
	price := ratio(perWork(r.market()) * speed / r.onDemand.more().Float())
	return horizon.For(v.Deadline.Sub(v.Began), v.Restart, max(v.Poll, v.Detect), price, 1)
}

// market is the spot option whose coming and going counts: the one held or to be
// had, else the cheapest.
func (r *ranking) market() *Option {
	if r.spot != nil {
		return r.spot
	}
	return r.asleep
}

// foresee weighs wait, spot and on-demand by what each is expected to cost, and
// says how long until the next poll.
func (m *Planner) foresee(d *Decision, _ *Job, r *ranking, v *policy.View) (policy.Choice, time.Duration) {
	spot := r.market()
	p := r.problem(v)
	seen := spot.Watch.At(v.Now)
	seen.Up = r.spot != nil
	if m.missing(d, p, seen) {
		return policy.Wait, p.Grid
	}
	state := horizon.State{Until: v.Deadline.Sub(v.Now) - v.Reserve - v.Detect - v.Margin, Left: v.Left, Market: seen}
	if v.Held != policy.Wait {
		state.Held, state.Owed = v.Held, v.Warming
	}
	got := m.shelf.Solver(p).Decide(state)
	for k := range got.USD {
		got.USD[k] *= r.onDemand.more().Float() // the table is in hours of on-demand
	}
	d.Expect = &Expect{
		Wait: dollars(got.USD[horizon.None]), Spot: dollars(got.USD[horizon.Spot]),
		OnDemand: dollars(got.USD[horizon.OnDemand]),
		Up:       seen.Up, Chance: chance(got.Lasts, seen.Up), NextPoll: p.Grid,
	}
	return got.Choice, p.Grid
}

// ratio rounds the price of spot over on-demand's for a table: only that ratio
// counts for what is done, and markets within a hundredth of each other share it.
func ratio(r float64) float64 { return min(max(math.Round(r*100), 1), 99) / 100 }

func dollars(usd float64) *float64 {
	if math.IsInf(usd, 0) || math.IsNaN(usd) {
		return nil
	}
	usd = math.Round(usd*1e4) / 1e4
	return &usd
}

// chance is that of spot being there at the next poll, to four digits.
func chance(lasts float64, up bool) float64 {
	if !up {
		lasts = 1 - lasts
	}
	return math.Round(lasts*1e4) / 1e4
}

// again is when time alone could change what was foreseen: when the guard will
// hold, and for who waits or pays for on-demand at the next poll, just after it
// so that what is seen then comes first.
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
