// Package zonechoice decides where and when a job with a deadline runs: in which of several zones on spot, on
// on-demand, or not at all for now, and which zone to poll next if polls are limited.
//
// A Policy sees only its View, and the answer of the default policy depends on the View alone. The benchmark's
// plain loop and the product drive the same policies.
package zonechoice

import (
	"time"

	"scrimp/internal/decide/policy/zonechoice/hazard"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Kind is the capacity held, or wanted, for the next tick.
type Kind = market.Choice

// Kinds, as named in this package.
const (
	None     = market.ChoiceNone
	Spot     = market.ChoiceSpot
	OnDemand = market.ChoiceOnDemand
)

// Sight is the knowledge about a zone's spot capacity in this tick.
type Sight int8

// Values of Sight. Unseen means that nobody polled the zone.
const (
	Unseen Sight = iota
	Down
	Up
)

// Zone is one place to run. The zones of a region share their on-demand machine and the checkpoint store.
type Zone struct {
	Name, Region string
	OnDemand     money.Rate
}

// Job is the work to place, as of its first tick. It never changes during a run.
type Job struct {
	Zones    []Zone // the order breaks ties
	Tick     time.Duration
	Work     time.Duration // the same on any of the machines
	Deadline time.Duration // after the start
	Restart  time.Duration // d: from taking a machine to useful work
	// Moving the checkpoint to another region takes Transfer longer and costs Carry for each move. Egress has the
	// routes with another cost.
	Transfer time.Duration
	Carry    money.Amount
	Egress   Egress
	// Looks is set if a policy sees only the zone of its held spot machine and one other that it names (form B);
	// false: it sees all (form A).
	Looks bool
	// Tries is set, with Looks, if a poll is an attempt to rent (sight C). A successful attempt whose machine is
	// not taken is billed for Fee. PerTick is the number of attempts per tick; 0: any number.
	Tries   bool
	Fee     time.Duration
	PerTick int
	// Latch is set if the guard, once it applies, keeps the job on on-demand to its end; false: it keeps working
	// spot.
	Latch bool
}

// Polls returns how many zones may be polled in a tick.
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

// Fare is the cost of moving the checkpoint from one region to another.
type Fare struct {
	From string       `json:"from"`
	To   string       `json:"to"`
	Cost money.Amount `json:"cost"`
}

// Egress lists the fares that differ from the usual one.
type Egress []Fare

// Moving returns the cost of bringing the checkpoint to a region; other is the cost of routes that e lacks. It
// returns zero if there is no checkpoint yet.
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

// Moving returns the cost of bringing the checkpoint to a region.
func (j *Job) Moving(from, to string) money.Amount { return j.Egress.Moving(from, to, j.Carry) }

// Ticks is T, the number of whole ticks before the deadline.
func (j *Job) Ticks() int { return int(j.Deadline / j.Tick) }

// View is what a policy may see at the start of a tick. Its slices belong to the driver and change with the next
// tick.
type View struct {
	Tick   int           // t, 0 to T−1
	Now    time.Time     // on the same clock as the records
	Left   time.Duration // remaining work
	Done   time.Duration
	Losses float64      // how many times more often the job is interrupted than one machine; 0: once
	Prices []money.Rate // spot, by zone
	// Seen is by zone: Up or Down if it was seen in this tick.
	Seen []Sight
	// Past holds the observations by zone so far, including this tick.
	Past []hazard.Record
	// Held is what survives into this tick, in zone Zone. Lost is set if a spot machine was held in the last tick
	// and is gone.
	Held Kind
	Zone int
	Lost bool
	// Overhead is the time that the held machine still needs before it does useful work.
	Overhead time.Duration
	// Home is the region of the checkpoint; empty before the first machine.
	Home string
}

// Choice is what to hold in this tick. Zone has no meaning with None.
type Choice struct {
	Kind Kind
	Zone int
}

// Policy decides one run, tick by tick.
type Policy interface {
	Decide(View) Choice
}

// Poller names the zone to poll in this tick, or −1 for none. If Job.Looks is set, Poll is called before Decide;
// the View has the sight of the held zone and of the zones polled in this tick. Poll is called again after each
// answer as long as the job allows more.
type Poller interface {
	Poll(View) int
}

// Guarded reports whether the guard applies: with overhead d, transfer delay x, remaining work w and m ticks to the
// deadline, ceil((w + d + x) / tick) ≥ m, so that no tick may be lost. A latched guard omits x: it stays in the
// region, or goes where that is in time.
func (j *Job) Guarded(t int, left time.Duration) bool {
	return j.tight(t, left, j.reserve())
}

// reserve is the time that the guard keeps besides the remaining work.
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

// Guard returns c, or, if the slack is used up, the choice that no estimate overrides: the held spot machine if it
// is alive and working, else the held on-demand machine, else on-demand in the checkpoint's region. A latched guard
// returns on-demand in the held machine's zone, else where the remaining work costs least, including the transfer.
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

// Reserve is the zone for on-demand: the held one, else the cheapest in the checkpoint's region, else the cheapest;
// the first of equals.
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

// toEnd is the zone where on-demand does the remaining work for the least, including the move, by the deadline if
// possible. Among equals it prefers the checkpoint's region, then the first.
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

// Cheapest returns the zone seen up with the lowest spot price, the first of equals.
func Cheapest(v View) (zone int, ok bool) {
	zone = -1
	for i, s := range v.Seen {
		if s == Up && (zone < 0 || v.Prices[i] < v.Prices[zone]) {
			zone = i
		}
	}
	return zone, zone >= 0
}
