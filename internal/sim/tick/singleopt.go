package tick

import (
	"math"
	"time"

	"scrimp/internal/lib/money"
)

// Optimum returns the run's cost if its whole window is known in advance, and false if no choice meets the deadline. It
// ignores the guard, and a gang loses machines only together.
//
// It is a dynamic programme over the tick, the held machine with its outstanding overhead, and the slack s = ticks left
// · gap − work left. All values are exact: durations count their greatest common divisor. A live spot machine is never
// worth less than waiting, but the search tries every choice all the same.
func (r Run) Optimum() (money.Amount, bool) {
	j := r.Job
	unit := gcd(gcd(j.Gap, j.Overhead), j.Work)
	gap, over, work := int(j.Gap/unit), int(j.Overhead/unit), int(j.Work/unit)
	ticks := j.Ticks()
	slack := ticks*gap - work
	if slack < 0 {
		return money.Amount{}, false
	}
	// A machine rented k ticks ago has outstanding[k] left; the last is 0, and there are at least two.
	outstanding := []int{over, max(0, over-gap)}
	for outstanding[len(outstanding)-1] > 0 {
		outstanding = append(outstanding, max(0, outstanding[len(outstanding)-1]-gap))
	}
	k := len(outstanding) - 1
	// Rows: 0 for nothing held; 1..k for spot rented that many ticks ago; k+1..2k for on-demand.
	next, this := rows(2*k+1, slack+1), rows(2*k+1, slack+1)
	for i := range next {
		for s := range next[i] {
			next[i][s] = math.MaxInt64 / 2
		}
	}
	spend := func(price int64, row, age, s, left int) int64 {
		served := min(outstanding[age], gap)
		switch {
		case left <= gap-served:
			return price
		case s < served:
			return math.MaxInt64 / 2
		}
		return price + next[row+min(age+1, k)][s-served]
	}
	for t := ticks - 1; t >= 0; t-- {
		up := t < len(r.Up) && r.Up[t]
		for s := 0; s <= min(slack, (ticks-t)*gap-1); s++ {
			left := (ticks-t)*gap - s
			wait := int64(math.MaxInt64 / 2)
			if s >= gap {
				wait = next[0][s-gap]
			}
			demand := spend(int64(j.OnDemand), k, 0, s, left)
			fresh := min(wait, demand)
			if up {
				fresh = min(fresh, spend(int64(j.Spot), 0, 0, s, left))
			}
			this[0][s] = fresh
			for age := 1; age <= k; age++ {
				this[age][s], this[k+age][s] = fresh, min(fresh, spend(int64(j.OnDemand), k, age, s, left))
				if up {
					this[age][s] = min(fresh, spend(int64(j.Spot), 0, age, s, left))
				}
			}
		}
		this, next = next, this
	}
	best := next[0][slack]
	if best >= math.MaxInt64/2 {
		return money.Amount{}, false
	}
	return Times(money.Rate(best).Until(j.Gap), r.Nodes), true
}

func rows(n, m int) [][]int64 {
	out := make([][]int64, n)
	for i := range out {
		out[i] = make([]int64, m)
	}
	return out
}

func gcd(a, b time.Duration) time.Duration {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
