package commit

import (
	"math"
)

// A Policy is what to buy, at which price, and which fall of demand to insure against.
type Policy struct {
	Price  int64   // of an hour of a committed unit, in ten thousandths of the price on demand: 1 to 9,999
	Months int     // of a term: 12 or 36
	Insure float64 // chance that demand falls within twelve months, 0 to below 1
	Fall   int64   // share of the demand that this fall takes, in ten thousandths
}

// gridLevels is how many levels of demand a plan tells apart. With less demand it tells each unit apart.
const gridLevels = 4096

// sooner is by how much a month counts less than the one before: of two plans that cost the same, the one that saves
// sooner is chosen.
const sooner = 1e-4

// TermHours returns how long a purchase is owed.
func (p Policy) TermHours() int { return p.Months / 12 * 365 * 24 }

// Plan returns the units to buy at the start of each of the coming months, the first of which is month: its first
// hour is the one after past. Only the first is bought now; the others are what the plan expects to buy if demand
// goes on.
//
// It minimises the expected cost over two terms. In each month demand falls with the same chance, for good; after a
// fall nothing above the level that is then best is bought. So a unit is bought in the month in which its use in the
// hours to come, weighed with what it costs idle after a fall, is worth its price. Terms that end at different times
// leave less idle after a fall, so purchases spread over the year as far as that costs less than it insures.
func (p Policy) Plan(past []int64, cal Calendar, month int, held []Purchase) []int64 {
	s := p.scenarios(newForecast(past))
	if s == nil {
		return make([]int64, 2*p.Months)
	}
	now := len(past)
	for k := range s.months {
		// In a leap year a term ends a day before a month does: the middle of the month decides.
		at := cal.Month(month+k) + 15*24
		if k == 0 {
			at = now
		}
		existing := int((level(held, at) + s.grain/2) / s.grain)
		for j := range s.level {
			s.level[j][k] = existing
		}
	}
	s.descend()
	out := make([]int64, len(s.buy))
	for k, n := range s.buy {
		out[k] = int64(n) * s.grain
	}
	return out
}

// scenarios are the months to come: demand goes on, or falls in one of them.
type scenarios struct {
	months  int
	term    int
	grain   int64     // units of one step of a level
	price   float64   // of an hour of a committed unit
	on      []costs   // of each month if demand goes on
	fallen  []costs   // of each month after a fall
	weight  []float64 // of a month: sooner counts more
	goes    []float64 // the same times the chance that demand has not fallen by the month's end
	falls   []float64 // chance that it falls in a month
	level   [][]int   // [j][k]: level in month k with the purchases of months up to j alone
	buy     []int     // in each month
	highest int       // level that no month's demand is above
}

// costs are the mean cost of an hour at each level, in steps.
type costs []float64

// at returns the cost at a level; above the last nothing more is served.
func (c costs) at(level int, price float64) float64 {
	last := len(c) - 1
	if level <= last {
		return c[level]
	}
	return c[last] + float64(price*float64(level-last))
}

// scenarios returns the months to come with nothing bought, nil where there was no demand of late.
func (p Policy) scenarios(f forecast) *scenarios {
	if f.top() == 0 {
		return nil
	}
	s := &scenarios{months: 2 * p.Months, term: p.Months, price: float64(p.Price) / One,
		grain: (int64(f.top()) + gridLevels - 1) / gridLevels}
	s.grain = max(s.grain, 1)
	hazard := 1 - math.Pow(1-p.Insure, 1.0/12)
	left := 1 - float64(p.Fall)/One
	alive, weight := 1.0, 1.0
	for k := range s.months {
		s.on = append(s.on, s.costs(f.hours, f.factor(k)))
		after := s.costs(f.hours, f.factor(k)*left)
		// What the lower demand still needs can be bought then, so less than the best level costs no more.
		best := 0
		for l, c := range after {
			if c < after[best] {
				best = l
			}
		}
		for l := range best {
			after[l] = after[best]
		}
		s.fallen = append(s.fallen, after)
		s.falls = append(s.falls, alive*hazard)
		alive *= 1 - hazard
		s.goes = append(s.goes, alive*weight)
		s.weight = append(s.weight, weight)
		weight *= 1 - sooner
		s.level = append(s.level, make([]int, s.months))
	}
	s.buy = make([]int, s.months)
	return s
}

// costs returns the mean cost of an hour at each level, for sorted demand times a factor.
func (s *scenarios) costs(sorted []float64, factor float64) costs {
	scale := factor / float64(s.grain)
	n := len(sorted)
	total := 0.0
	for _, d := range sorted {
		total += float64(d * scale)
	}
	highest := int(math.Ceil(sorted[n-1]*scale)) + 1
	s.highest = max(s.highest, highest)
	out := make(costs, highest+1)
	i, below := 0, 0.0
	for l := range out {
		for i < n && float64(sorted[i]*scale) <= float64(l) {
			below += float64(sorted[i] * scale)
			i++
		}
		over := total - below - float64(float64(n-i)*float64(l))
		out[l] = over/float64(n) + float64(s.price*float64(l))
	}
	return out
}

// least is by how much a move must lower the cost of an hour to be made: far above what rounding gives, far below what
// one unit of one hour in a term costs.
const least = 1e-9

// change returns by how much the expected cost changes if n more steps are bought in month i.
func (s *scenarios) change(i, n int) (sum float64) {
	end := min(s.months, i+s.term)
	for k := i; k < end; k++ {
		l := s.level[k][k]
		sum += float64(s.goes[k] * (s.on[k].at(l+n, s.price) - s.on[k].at(l, s.price)))
	}
	for j := i; j < end; j++ { // demand falls in month j, after its purchase
		if s.falls[j] == 0 {
			break
		}
		lost := 0.0
		for k := j; k < end; k++ {
			l := s.level[j][k]
			lost += float64(s.weight[k] * (s.fallen[k].at(l+n, s.price) - s.fallen[k].at(l, s.price)))
		}
		sum += float64(s.falls[j] * lost)
	}
	return sum
}

// add buys n more steps in month i, fewer where n is below zero.
func (s *scenarios) add(i, n int) {
	s.buy[i] += n
	end := min(s.months, i+s.term)
	for j := i; j < s.months; j++ {
		for k := i; k < end; k++ {
			s.level[j][k] += n
		}
	}
}

// descend lowers the expected cost, which is convex in the purchases, by more, fewer and later or earlier purchases, in
// steps that become smaller.
func (s *scenarios) descend() {
	step := 1
	for step*64 < s.highest {
		step *= 4
	}
	for ; step > 0; step /= 4 {
		for range 12 {
			moved := false
			for i := range s.buy {
				for s.buy[i] <= s.highest && s.try(i, step) {
					moved = true
				}
				for s.buy[i] >= step && s.try(i, -step) {
					moved = true
				}
				if i+1 < s.months {
					moved = s.shift(i, i+1, step, false) || moved
					moved = s.shift(i+1, i, step, false) || moved
				}
				if i+1+s.term < s.months { // with the purchase that renews it, so that the later term does not end too early
					moved = s.shift(i, i+1, step, true) || moved
					moved = s.shift(i+1, i, step, true) || moved
				}
			}
			if !moved {
				break
			}
		}
	}
}

// try buys n more steps in month i if that lowers the cost.
func (s *scenarios) try(i, n int) bool {
	if s.change(i, n) >= -least {
		return false
	}
	s.add(i, n)
	return true
}

// shift moves purchases from one month to another as long as that lowers the cost, and where renewed is set those a
// term later with them.
func (s *scenarios) shift(from, to, n int, renewed bool) (moved bool) {
	type move struct{ month, n int }
	moves := []move{{from, -n}, {to, n}}
	if renewed {
		moves = append(moves, move{from + s.term, -n}, move{to + s.term, n})
	}
	for s.buy[from] >= n && (!renewed || s.buy[from+s.term] >= n) {
		sum := 0.0
		for _, m := range moves {
			sum += s.change(m.month, m.n)
			s.add(m.month, m.n)
		}
		if sum >= -least {
			for _, m := range moves {
				s.add(m.month, -m.n)
			}
			return moved
		}
		moved = true
	}
	return moved
}
