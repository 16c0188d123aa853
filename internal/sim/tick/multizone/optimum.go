package multizone

import (
	"math"
	"time"

	"scrimp/internal/decide/policy/zonechoice"
	"scrimp/internal/lib/money"
)

// never is the cost of a state that cannot meet the deadline.
const never = math.MaxInt64 / 4

// Optimum returns the run's cost if its whole window is known in advance, and false if no choice meets the
// deadline. It ignores the guard.
//
// It is a dynamic programme from the last tick to the first over the held machine, its outstanding overhead, and the
// slack s = ticks left · gap − work left. Waiting costs a gap of slack, overhead its duration, and work nothing. So s
// never grows, and two layers of (deadline − work) / unit cells suffice. All durations count the greatest common
// divisor of tick, restart and transfer (15 s in the benchmark): the work of a tick is always a multiple of it, so
// other amounts of work take as long as the next multiple. The search tries every choice but one: replacing a machine
// by the same machine.
func (r *Run) Optimum() (money.Amount, bool) {
	p := newOptimum(r)
	if p.slack < 0 {
		return money.Amount{}, false
	}
	for t := p.ticks - 1; t >= 0; t-- {
		p.step(t)
	}
	best := p.next[p.none(p.regions)][p.slack]
	return money.Picos(best), best < never
}

// optimum is one dynamic programme. Its machines are the zones' spot machines, followed by the regions' on-demand
// machines.
type optimum struct {
	run            *Run
	gap            int
	ticks, slack   int
	zones, regions int
	home           []int     // region by machine
	od             []int64   // of a tick, by region: the cheapest of its zones
	carry          [][]int64 // by region from and to
	// owed lists the outstanding overheads that a machine can have at the start of a tick, with owed[0] = 0. begin
	// holds the indices of the restart without and with the transfer, and after maps each index to that of the next
	// tick.
	owed, after []int
	begin       [2]int
	next, this  [][]int64 // by state, by slack
}

func newOptimum(r *Run) *optimum {
	j := &r.Job
	unit := Grid(j)
	p := &optimum{run: r, gap: int(j.Tick / unit), ticks: j.Ticks(), zones: len(j.Zones)}
	p.slack = p.ticks*p.gap - int((j.Work+unit-1)/unit)
	index, names := map[string]int{}, []string{}
	for _, z := range j.Zones {
		k, ok := index[z.Region]
		if !ok {
			k = len(index)
			index[z.Region] = k
			names = append(names, z.Region)
			p.od = append(p.od, never)
		}
		p.od[k] = min(p.od[k], rateTick(z.OnDemand, j.Tick))
		p.home = append(p.home, k)
	}
	p.regions = len(index)
	for _, from := range names {
		row := make([]int64, 0, len(names))
		for _, to := range names {
			c, _ := picos(j.Moving(from, to))
			row = append(row, c)
		}
		p.carry = append(p.carry, row)
	}
	for k := range p.regions {
		p.home = append(p.home, k)
	}
	place := map[int]int{0: 0}
	p.owed = []int{0}
	for i, d := range []time.Duration{j.Restart, j.Restart + j.Transfer} {
		owed := int(d / unit)
		for o := owed; o > 0; o -= p.gap {
			if _, ok := place[o]; !ok {
				place[o] = len(p.owed)
				p.owed = append(p.owed, o)
			}
		}
		p.begin[i] = place[owed]
	}
	for _, o := range p.owed {
		p.after = append(p.after, place[max(0, o-p.gap)])
	}
	if p.slack >= 0 {
		n := len(p.home)*len(p.owed) + p.regions + 1
		p.next, p.this = layers(n, p.slack+1), layers(n, p.slack+1)
	}
	return p
}

// Grid returns the largest unit of which all durations of a run's optimum are multiples.
func Grid(j *zonechoice.Job) time.Duration {
	return gcdSpan(j.Tick, gcdSpan(j.Restart, j.Transfer))
}

func layers(n, m int) [][]int64 {
	out, cells := make([][]int64, n), make([]int64, n*m)
	for i := range cells {
		cells[i] = never
	}
	for i := range out {
		out[i] = cells[i*m : (i+1)*m : (i+1)*m]
	}
	return out
}

func (p *optimum) state(machine, owed int) int { return machine*len(p.owed) + owed }
func (p *optimum) none(region int) int         { return len(p.home)*len(p.owed) + region }

// ride lowers out, by slack, to the cost from tick t on if machine runs in t and owes owed at its start.
func (p *optimum) ride(out []int64, t, machine, owed int, price int64) {
	served := min(p.owed[owed], p.gap)
	next := p.next[p.state(machine, p.after[owed])]
	// From here on the remaining work fits into the tick.
	last := min((p.ticks-t-1)*p.gap+served, len(out))
	if served < last {
		from := next[:last-served]
		to := out[served:last]
		for s, v := range from {
			to[s] = min(to[s], price+v)
		}
	}
	for s := last; s < len(out); s++ {
		out[s] = min(out[s], price)
	}
}

// step computes the layer of tick t.
func (p *optimum) step(t int) {
	j := &p.run.Job
	price := make([]int64, len(p.home)) // of the tick; 0 if unavailable
	for z, trace := range p.run.Traces {
		if trace.Up[t] {
			price[z] = rateTick(trace.Price[t], j.Tick)
		}
	}
	copy(price[p.zones:], p.od)
	for h := range p.regions + 1 {
		none := p.this[p.none(h)]
		for s := range none {
			none[s] = never
		}
		if len(none) > p.gap {
			copy(none[p.gap:], p.next[p.none(h)])
		}
		for m, c := range price {
			switch {
			case c == 0:
			case h == p.regions || p.home[m] == h:
				p.ride(none, t, m, p.begin[0], c)
			default:
				p.ride(none, t, m, p.begin[1], c+p.carry[h][p.home[m]])
			}
		}
	}
	for m, c := range price {
		none := p.this[p.none(p.home[m])]
		for o := range p.owed {
			to := p.this[p.state(m, o)]
			copy(to, none)
			if c != 0 {
				p.ride(to, t, m, o, c)
			}
		}
	}
	p.next, p.this = p.this, p.next
}

func gcdSpan(a, b time.Duration) time.Duration {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// rateTick returns the price of a tick in 1e-12 dollars.
func rateTick(r money.Rate, tick time.Duration) int64 {
	n, _ := picos(r.Until(tick))
	return n
}

// picos returns a in 1e-12 dollars, and false if that exceeds 63 bits.
func picos(a money.Amount) (int64, bool) {
	b := a.Big()
	return b.Int64(), b.IsInt64()
}
