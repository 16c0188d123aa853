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
	// Carry, once for each move.
	Transfer time.Duration
	Carry    money.Amount
	// Looks says that a policy sees only the zone of its held spot machine and one
	// other that it names (form B); false: it sees all (form A).
	Looks bool
}

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
// before Decide, where Job.Looks; the View holds the held zone's sight only.
type Poller interface {
	Poll(View) int
}

// Guarded reports whether the guard holds: with overhead d, transfer delay x,
// work left w and m ticks to the deadline, ceil((w + d + x) / tick) ≥ m, so that
// nothing is left to lose.
func (j *Job) Guarded(t int, left time.Duration) bool {
	return j.tight(t, left, j.Restart+j.Transfer)
}

func (j *Job) tight(t int, left, spare time.Duration) bool {
	m := time.Duration(j.Ticks() - t)
	return left+spare > (m-1)*j.Tick // ceil(a/g) ≥ m ⇔ a > (m−1)·g
}

// Guard returns c, or what no estimate can override where the slack is used up:
// the held spot machine where it lives and works, else the held on-demand
// machine, else on-demand where the checkpoint is.
func (j *Job) Guard(v View, c Choice) Choice {
	switch {
	case !j.Guarded(v.Tick, v.Left):
		return c
	case v.Held == Spot && v.Overhead == 0, v.Held == OnDemand:
		return Choice{v.Held, v.Zone}
	}
	return Choice{OnDemand, j.Reserve(v)}
}

// Reserve is the zone in which on-demand is taken: the held one's, else the
// first in the checkpoint's region, else the first.
func (j *Job) Reserve(v View) int {
	if v.Held == OnDemand {
		return v.Zone
	}
	for i, z := range j.Zones {
		if z.Region == v.Home {
			return i
		}
	}
	return 0
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
