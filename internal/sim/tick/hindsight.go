package tick

import (
	"errors"
	"math"
	"slices"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// unreachable is the cost of a state that cannot be reached.
const unreachable = math.MaxInt64 / 4

// Fits returns the work that an hour on the offer does, on one machine or on as many as the job takes, in hours on
// machines of speed 1, at the price of one. It returns false if the job cannot or may not run there.
type Fits func(o market.Offer, rate money.Rate) (speed float64, ok bool)

// Reasons why a job has no optimum on a trace.
var (
	ErrNothing = errors.New("nothing fits the job")
	ErrLate    = errors.New("nothing meets the deadline")
	ErrLong    = errors.New("the search would take too long")
)

// Nodes is the number of machines that a job has at once; 0 means one.
type Nodes struct{ Least, Most int }

// hindsightCells bounds the search: about half a second of one core.
const hindsightCells = 80_000_000

// Hindsight returns the least cost of the work by the deadline, from a time since the market opened, if the trace is
// known in advance. It is a dynamic programme from the last tick to the first over the work left, the held machine, and
// its outstanding restart.
//
// The job holds a fixed number of machines of an offer at once. An elastic job holds the cheapest number, at a
// proportional speed; a change of the number is a restart.
//
// A tick is a minute, or longer if the search would exceed its bound. A held machine bills whole ticks at the price of
// their beginning and is available only if it is throughout the tick. The restart is rounded down to half ticks. For a
// speed that is no multiple of a tenth, the work of a tick is rounded up. Billing minimums, lifetimes, transfers,
// budgets and lost work do not count. So nobody pays less, apart from the rounding of ticks.
func Hindsight(t market.Trace, fits Fits, nodes Nodes, from, work, deadline, restart time.Duration) (
	money.Amount, error) {
	best, err := hindsightOn(t, fits, nodes, from, work, deadline, restart)
	if nodes.Least == nodes.Most || err != nil {
		return best, err
	}
	fixed, err := hindsightOn(t, fits, Nodes{nodes.Most, nodes.Most}, from, work, deadline, restart) // in finer ticks
	if err != nil || fixed.Cmp(best) > 0 {
		return best, nil
	}
	return fixed, nil
}

func hindsightOn(t market.Trace, fits Fits, nodes Nodes, from, work, deadline, restart time.Duration) (
	money.Amount, error) {
	for grid := time.Minute; grid <= 2*time.Hour; grid *= 2 {
		h := hindsight{grid: grid, ticks: int(deadline / grid), restart: max(1, int(restart/(grid/2)))}
		if h.ticks < 1 {
			return money.Amount{}, ErrLate
		}
		if err := h.cut(t, fits, from); err != nil {
			return money.Amount{}, err
		}
		h.multiply(nodes)
		h.unit(work)
		if h.work > h.ticks*h.most {
			return money.Amount{}, ErrLate
		}
		if h.cells() > hindsightCells {
			continue
		}
		best := h.solve()
		if best >= unreachable {
			return money.Amount{}, ErrLate
		}
		return money.Picos(best), nil
	}
	return money.Amount{}, ErrLong
}

type hindsight struct {
	grid     time.Duration
	ticks    int
	restart  int // half ticks, at least 1
	machines []rented
	units    []int // candidates
	parts    int   // units of work per tick on a machine of speed 1; even
	work     int   // units
	most     int   // units per tick on the fastest machine
}

// rented is a machine, tick by tick.
type rented struct {
	speed      float64
	cost       []int64 // of a tick, in picos; -1 if it is unavailable
	half, full int     // units of work in half a tick and in a whole one
}

// cut divides the trace into ticks.
func (h *hindsight) cut(t market.Trace, fits Fits, from time.Duration) error {
	for _, l := range t.Lines {
		m := rented{cost: make([]int64, h.ticks)}
		at := from
		q := t.Quote(l, at, time.Time{})
		next, changes := t.Next(l, at)
		for i := range h.ticks {
			begin := from + time.Duration(i)*h.grid
			for changes && next <= begin {
				at = next
				q = t.Quote(l, at, time.Time{})
				next, changes = t.Next(l, at)
			}
			m.cost[i] = -1
			up := q.Available // throughout the tick
			for n, c := next, changes; up && c && n < begin+h.grid; n, c = t.Next(l, n) {
				up = t.Quote(l, n, time.Time{}).Available
			}
			if !up {
				continue
			}
			if speed, ok := fits(l.Offer, q.Rate); ok && speed > 0 {
				m.speed = speed
				m.cost[i] = int64(math.Round(q.Rate.Until(h.grid).Float() * 1e12))
			}
		}
		if m.speed > 0 {
			h.machines = append(h.machines, m)
		}
	}
	if len(h.machines) == 0 {
		return ErrNothing
	}
	return nil
}

// multiply replaces each machine by gangs of n machines. Prices count the whole gang, and smaller gangs are slower.
func (h *hindsight) multiply(nodes Nodes) {
	one, most := h.machines, max(1, nodes.Most)
	h.machines = nil
	for n := max(1, nodes.Least); n <= most; n++ {
		for _, m := range one {
			g := rented{speed: m.speed * float64(n) / float64(most), cost: slices.Clone(m.cost)}
			for i, c := range g.cost {
				g.cost[i] = max(-1, c*int64(n))
			}
			h.machines = append(h.machines, g)
		}
	}
	for _, p := range []int{2, 4, 10, 20} {
		if h.units = append(h.units, p); nodes.Least < most {
			h.units = append(h.units, p*most)
		}
	}
	slices.Sort(h.units)
}

// unit chooses the unit of work: the coarsest in which every machine does a whole number in half a tick, or the finest
// if there is none.
func (h *hindsight) unit(work time.Duration) {
	for _, h.parts = range h.units {
		whole := true
		for _, m := range h.machines {
			half := m.speed * float64(h.parts) / 2
			whole = whole && math.Abs(half-math.Round(half)) < 1e-9
		}
		if whole {
			break
		}
	}
	for i := range h.machines {
		m := &h.machines[i]
		m.half = int(math.Ceil(m.speed*float64(h.parts)/2 - 1e-9))
		m.full = 2 * m.half
		h.most = max(h.most, m.full)
	}
	h.work = int(math.Ceil(float64(work)*float64(h.parts)/float64(h.grid) - 1e-9))
}

// band returns the range of work that may be left at tick t if the deadline can still be met: at most what the fastest
// machine does until then, at least what is left if it had run from the beginning.
func (h *hindsight) band(t int) (low, high int) {
	return max(0, h.work-t*h.most), min(h.work, (h.ticks-t)*h.most)
}

func (h *hindsight) cells() int {
	n := 0
	for t := range h.ticks {
		if low, high := h.band(t); high >= low {
			n += high - low + 1
		}
	}
	return n * len(h.machines) * (2 + (h.restart+1)/2)
}

// solve returns the least cost, with nothing held at the first tick.
func (h *hindsight) solve() int64 {
	// A machine has one state per outstanding restart, in half ticks: restart−2, restart−4, …, and none.
	states := (h.restart + 1) / 2
	owed := make([]int, states)
	for k := range owed {
		owed[k] = max(0, h.restart-2*(k+1))
	}
	layer := func() [][]int64 {
		all := make([][]int64, 1+len(h.machines)*states)
		for i := range all {
			all[i] = make([]int64, h.work+1)
			for w := 1; w <= h.work; w++ {
				all[i][w] = unreachable
			}
		}
		return all
	}
	next, this := layer(), layer()
	for t := h.ticks - 1; t >= 0; t-- {
		low, high := h.band(t)
		none := this[0]
		for w := max(1, low); w <= high; w++ {
			none[w] = next[0][w]
		}
		for i := range h.machines {
			m := &h.machines[i]
			if m.cost[t] < 0 {
				continue
			}
			into, does := next[1+i*states], m.done(h.restart)
			for w := max(1, low); w <= high; w++ {
				none[w] = min(none[w], m.cost[t]+into[max(0, w-does)])
			}
		}
		for i := range h.machines {
			m := &h.machines[i]
			for k, o := range owed {
				held := this[1+i*states+k]
				if m.cost[t] < 0 {
					copy(held[low:high+1], none[low:high+1])
					continue
				}
				into, does := next[1+i*states+min(k+1, states-1)], m.done(o)
				for w := max(1, low); w <= high; w++ {
					held[w] = min(none[w], m.cost[t]+into[max(0, w-does)])
				}
			}
		}
		next, this = this, next
	}
	return next[0][h.work]
}

// done returns the work of a tick in which the given number of half ticks goes to the restart.
func (m *rented) done(owed int) int { return m.half * (2 - min(2, owed)) }
