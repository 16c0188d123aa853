package costtogo

import (
	"cmp"
	"slices"
)

// ways are the ways to reach a zone from the region of the checkpoint. Way 0 is from its own region. The other
// regions are grouped by the cost of the move and of on-demand there, in up to mostWays ways in total.
type ways struct {
	kinds int         // ways of the zone with the most
	of    [][]int     // way, by region to and region from
	fare  [][]float64 // dollars, by region to and way: the mean over its regions
	from  [][]int     // by region to and way: a region that represents it
}

// mostWays bounds the ways that a table holds for the zones of one region.
const mostWays = 4

// onDemandFor is the number of hours of on-demand whose price counts like a fare when regions are grouped into
// ways.
const onDemandFor = 4

func (m *Model) ways() ways {
	w := ways{kinds: 1}
	for to := range m.N {
		of, fare, from := make([]int, m.N), []float64{0}, []int{to}
		cost := func(h int) float64 { return m.Fare(h, to) + float64(onDemandFor*m.Demand[h]) }
		var others []int // the next region first, so that it represents those with the same cost
		for i := range m.N - 1 {
			others = append(others, (to+1+i)%m.N)
		}
		slices.SortStableFunc(others, func(a, b int) int { return cmp.Compare(cost(a), cost(b)) })
		for len(others) > 0 {
			n := len(others)
			if left := mostWays - len(fare); left > 1 { // cut before the widest gaps
				n = cut(others, cost, left)
			}
			sum := 0.0
			for _, h := range others[:n] {
				of[h] = len(fare)
				sum += m.Fare(h, to)
			}
			fare, from = append(fare, sum/float64(n)), append(from, slices.Min(rotated(others[:n], to, m.N)))
			from[len(from)-1] = (from[len(from)-1] + to) % m.N
			others = others[n:]
		}
		w.kinds = max(w.kinds, len(fare))
		w.of, w.fare, w.from = append(w.of, of), append(w.fare, fare), append(w.from, from)
	}
	return w
}

// rotated returns region numbers counted from another region.
func rotated(list []int, from, n int) (out []int) {
	for _, h := range list {
		out = append(out, (h-from+n)%n)
	}
	return out
}

// cut returns how many entries of the sorted list form the first group, if that many groups are left for all of it.
func cut(list []int, cost func(int) float64, groups int) int {
	var gaps []float64
	for i := 1; i < len(list); i++ {
		gaps = append(gaps, cost(list[i])-cost(list[i-1]))
	}
	wide := slices.Clone(gaps)
	slices.SortFunc(wide, func(a, b float64) int { return cmp.Compare(b, a) })
	if len(wide) == 0 {
		return len(list)
	}
	least := wide[min(groups-1, len(wide))-1]
	for i, g := range gaps {
		if g >= least && g > 1e-9 {
			return i + 1
		}
	}
	return len(list)
}

// Fare is the cost of a move of the checkpoint.
func (m *Model) Fare(from, to int) float64 {
	if from < 0 || from == to {
		return 0
	}
	return m.Carry[from*m.N+to]
}

// Forced is the cost of the remaining work once the guard applies and nothing is held: on-demand in the
// checkpoint's region, or, if the guard latches, wherever it costs least.
func (m *Model) Forced(home int, work float64) float64 {
	least := m.Demand[home] * (work + m.Restart)
	for r := range m.N {
		if m.Latch && m.Demand[r] < m.Demand[home] {
			least = min(least, m.Fare(home, r)+float64(m.Demand[r]*(work+m.Restart+m.Further)))
		}
	}
	return least
}

// DemandAt is the on-demand price in the zone's region.
func (m *Model) DemandAt(zone int) float64 { return m.Demand[m.Regions[zone]] }
