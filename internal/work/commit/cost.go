package commit

import "slices"

// One is the price of an on-demand hour of a unit in ten thousandths; prices of commitments are whole numbers of them.
const One = 10_000

// A Purchase is units bought at the first hour of a month and owed for Hours from then on.
type Purchase struct {
	Start int
	Units int64
	Hours int
}

// level returns the committed units in an hour.
func level(held []Purchase, hour int) (n int64) {
	for _, p := range held {
		if p.Start <= hour && hour < p.Start+p.Hours {
			n += p.Units
		}
	}
	return n
}

// A Tally is the use and payment of a range of hours. Cost counts ten thousandths of an on-demand unit-hour.
type Tally struct {
	Demand, Served, Committed int64 // unit-hours
	Cost                      int64
}

// add adds the hours of demand under one level; price is the hourly price of a committed unit. With the limits of a
// demand file, and purchases up to the largest demand, no sum exceeds 1e5 × 1e9 × 1e4 = 1e18.
func (t *Tally) add(demand []int64, level, price int64) {
	for _, d := range demand {
		t.Demand += d
		t.Served += min(d, level)
		t.Cost += One*max(0, d-level) + price*level
	}
	t.Committed += level * int64(len(demand))
}

// Count adds up the hours from first to before end under the purchases; price is the hourly price of a committed unit.
func Count(demand []int64, held []Purchase, price int64, first, end int) (t Tally) {
	cuts := []int{first, end}
	for _, p := range held {
		cuts = append(cuts, min(max(p.Start, first), end), min(max(p.Start+p.Hours, first), end))
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	for i := 1; i < len(cuts); i++ {
		t.add(demand[cuts[i-1]:cuts[i]], level(held, cuts[i-1]), price)
	}
	return t
}

// Percent returns the cost as a percentage of on-demand, and false if nothing was used.
func (t Tally) Percent() (float64, bool) {
	if t.Demand == 0 {
		return 0, false
	}
	return float64(t.Cost) / float64(t.Demand) / (One / 100), true
}

// Coverage returns the share of the demand that commitments served.
func (t Tally) Coverage() (float64, bool) { return ratio(t.Served, t.Demand) }

// Utilisation returns the share of the committed hours that was used.
func (t Tally) Utilisation() (float64, bool) { return ratio(t.Served, t.Committed) }

func ratio(a, b int64) (float64, bool) {
	if b == 0 {
		return 0, false
	}
	return float64(a) / float64(b), true
}

// BestLevel returns the largest level whose last unit is used in more than price/One of the hours: the cheapest level
// for these hours.
func BestLevel(demand []int64, price int64) int64 {
	if len(demand) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(demand))
	// The unit at level s[i] is used in len-i hours, which suffice if One × (len-i) > price × len.
	n := int64(len(s))
	i := n - price*n/One - 1 // the largest i with One × (n-i) > price × n
	return s[max(0, i)]
}

// A Hindsight is the least possible cost of some months with the best level of each, chosen after the fact.
type Hindsight struct {
	Tally  Tally
	Levels []int64
	// Attainable means that purchases with a term of twelve months can reach these levels: all decreases from month to
	// month together do not exceed the first level. Otherwise the cost is a lower bound.
	Attainable bool
}

// Best returns the best level of each month from first to before end.
func (c Calendar) Best(demand []int64, price int64, first, end int) (h Hindsight) {
	var falls int64
	for m := first; m < end; m++ {
		w := demand[c.Month(m):c.Month(m+1)]
		l := BestLevel(w, price)
		h.Tally.add(w, l, price)
		if m > first {
			falls += max(0, h.Levels[m-first-1]-l)
		}
		h.Levels = append(h.Levels, l)
	}
	h.Attainable = end-first <= 12 && len(h.Levels) > 0 && falls <= h.Levels[0]
	return h
}

// Fallen returns the demand reduced by a share, in ten thousandths, from an hour on, rounded up to whole units.
func Fallen(demand []int64, from int, share int64) []int64 {
	out := slices.Clone(demand)
	for h := from; h < len(out); h++ {
		out[h] = (out[h]*(One-share) + One - 1) / One
	}
	return out
}
