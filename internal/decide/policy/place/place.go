// Package place says where a job with a deadline runs, and when: in which of
// several zones on spot, on on-demand, or not at all for now, and which zone to
// look at next where looking is limited.
//
// A Policy sees what its View holds, no more, and the default's answer follows
// from the View alone. The same policies are driven by the benchmark's plain loop
// and by the product.
package place

import (
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Kind is what is held, or wanted, for the next tick.
type Kind = market.Choice

// The kinds, as this package's policies name them.
const (
	None     = market.ChoiceNone
	Spot     = market.ChoiceSpot
	OnDemand = market.ChoiceOnDemand
)

// Sight is what is known of a zone's spot capacity in this tick.
type Sight int8

// The sights. Unseen is neither: nobody looked.
const (
	Unseen Sight = iota
	Down
	Up
)

// Zone is one place to run. Zones of one region share their on-demand machine
// and the checkpoint's store.
type Zone struct {
	Name, Region string
	OnDemand     money.Rate
}

// Job is the work to place, as it stands before its first tick. It is never
// changed during a run.
type Job struct {
	Zones    []Zone // the order counts: it breaks ties
	Tick     time.Duration
	Work     time.Duration // on any of the machines
	Deadline time.Duration // after the start
	Restart  time.Duration // d: from taking a machine to useful work
	// Moving the checkpoint to another region takes Transfer longer and costs
	// Carry, once for each move; Egress has the routes that cost something else.
	Transfer time.Duration
	Carry    money.Amount
	Egress   Egress
	// Looks says that a policy sees only the zone of its held spot machine and one
	// other that it names (form B); false: it sees all (form A).
	Looks bool
	// Tries, with Looks, says that a look is a try to rent (sight C): one that succeeds and whose machine is not
	// taken is billed for Fee. PerTick is how many tries a tick allows; 0: any number.
	Tries   bool
	Fee     time.Duration
	PerTick int
	// Latch says that the guard, once it holds, keeps the job on on-demand to its end; false: working spot is kept.
	Latch bool
}

// Polls is how many zones may be polled in a tick.
func (j *Job) Polls() int {
	switch {
	case !j.Looks:
		return 0
	case !j.Tries:
		return 1
	case j.PerTick == 0:
		return len(j.Zones)
	}
	return j.PerTick
}

// A Fare is what it costs to move the checkpoint from one region to another.
type Fare struct {
	From string       `json:"from"`
	To   string       `json:"to"`
	Cost money.Amount `json:"cost"`
}

// Egress lists the fares that are not the usual one.
type Egress []Fare

// Moving is what it costs to bring the checkpoint to a region, where other is what the routes cost that e does not
// have; nothing where there is no checkpoint yet.
func (e Egress) Moving(from, to string, other money.Amount) money.Amount {
	if from == "" || from == to {
		return money.Amount{}
	}
	for i := range e {
		if e[i].From == from && e[i].To == to {
			return e[i].Cost
		}
	}
	return other
}

// Moving is what it costs to bring the checkpoint to a region.
func (j *Job) Moving(from, to string) money.Amount { return j.Egress.Moving(from, to, j.Carry) }

// Ticks is T, the number of whole ticks before the deadline.
func (j *Job) Ticks() int { return int(j.Deadline / j.Tick) }

// View is what a policy may see at the start of a tick. Its slices belong to
// the driver and change with the next tick.
type View struct {
	Tick   int           // t, 0 to T−1
	Now    time.Time     // on any clock that the records are on too
	Left   time.Duration // work left
	Done   time.Duration
	Prices []money.Rate // spot, by zone
	// Seen is by zone: Up or Down where it was seen in this tick.
	Seen []Sight
	// Past is by zone what was seen of it so far, this tick's sights included.
	Past []Record
	// Held is what survives into this tick, in zone Zone; Lost says that a spot
	// machine was held in the last tick and is gone.
	Held Kind
	Zone int
	Lost bool
	// Overhead is what the held machine still has to spend before it does useful
	// work.
	Overhead time.Duration
	// Home is the region of the checkpoint; empty before the first machine.
	Home string
}

// Choice is what to hold in this tick. Zone means nothing with None.
type Choice struct {
	Kind Kind
	Zone int
}

// A Policy decides one run, tick by tick.
type Policy interface {
	Decide(View) Choice
}

// A Poller names the zone to poll in this tick, −1 for none. It is asked
// before Decide, where Job.Looks; the View holds the sight of the held zone and of
// those polled in this tick. It is asked again after each answer as long as the job allows more.
type Poller interface {
	Poll(View) int
}

// Guarded reports whether the guard holds: with overhead d, transfer delay x,
// work left w and m ticks to the deadline, ceil((w + d + x) / tick) ≥ m, so that
// nothing is left to lose. Latched it counts without x: it stays in the region, or goes where that is in time.
func (j *Job) Guarded(t int, left time.Duration) bool {
	return j.tight(t, left, j.reserve())
}

// reserve is what the guard keeps besides the work left.
func (j *Job) reserve() time.Duration {
	if j.Latch {
		return j.Restart
	}
	return j.Restart + j.Transfer
}

func (j *Job) tight(t int, left, spare time.Duration) bool {
	m := time.Duration(j.Ticks() - t)
	return left+spare > (m-1)*j.Tick // ceil(a/g) ≥ m ⇔ a > (m−1)·g
}

// Guard returns c, or what no estimate can override where the slack is used up:
// the held spot machine where it lives and works, else the held on-demand
// machine, else on-demand where the checkpoint is. A latched guard returns on-demand in
// the held machine's zone, else where the work left costs least, its transfer included.
func (j *Job) Guard(v View, c Choice) Choice {
	switch {
	case !j.Guarded(v.Tick, v.Left):
		return c
	case j.Latch && v.Held == None:
		return Choice{OnDemand, j.toEnd(v)}
	case j.Latch:
		return Choice{OnDemand, v.Zone}
	case v.Held == Spot && v.Overhead == 0, v.Held == OnDemand:
		return Choice{v.Held, v.Zone}
	}
	return Choice{OnDemand, j.Reserve(v)}
}

// Reserve is the zone in which on-demand is taken: the held one's, else the
// cheapest in the checkpoint's region, else the cheapest; the first of equals.
func (j *Job) Reserve(v View) int {
	if v.Held == OnDemand {
		return v.Zone
	}
	best := -1
	for i, z := range j.Zones {
		switch {
		case best < 0:
			best = i
		case (z.Region == v.Home) != (j.Zones[best].Region == v.Home):
			if z.Region == v.Home {
				best = i
			}
		case z.OnDemand < j.Zones[best].OnDemand:
			best = i
		}
	}
	return best
}

// toEnd is the zone where on-demand does the work left for the least, moving there included, by
// the deadline where that can be; of equals one in the checkpoint's region, then the first.
func (j *Job) toEnd(v View) int {
	type bill struct {
		late, away bool
		cost       money.Amount
	}
	of := func(z Zone) bill {
		b := bill{away: v.Home != "" && z.Region != v.Home, cost: j.Moving(v.Home, z.Region)}
		busy := v.Left + j.Restart
		if b.away {
			busy += j.Transfer
		}
		ticks := int((busy + j.Tick - 1) / j.Tick)
		b.late = ticks > j.Ticks()-v.Tick
		b.cost = b.cost.Add(z.OnDemand.Until(j.Tick).Times(ticks))
		return b
	}
	best := 0
	least := of(j.Zones[0])
	for i, z := range j.Zones[1:] {
		b := of(z)
		better := b.cost.Cmp(least.cost) < 0 || b.cost == least.cost && least.away && !b.away
		if b.late != least.late {
			better = least.late
		}
		if better {
			best, least = i+1, b
		}
	}
	return best
}

// Cheapest is the zone seen up with the lowest spot price, the first of equals.
func Cheapest(v View) (zone int, ok bool) {
	zone = -1
	for i, s := range v.Seen {
		if s == Up && (zone < 0 || v.Prices[i] < v.Prices[zone]) {
			zone = i
		}
	}
	return zone, zone >= 0
}
