package commit

import (
	"math"
	"math/big"
)

// A Policy is what to buy, at which price, and which fall of demand to insure against.
type Policy struct {
	Price  *big.Rat // of an hour of a committed unit, as a share of the price on demand: above 0 and below 1
	Months int      // of a term: 12 or 36
	Insure float64  // chance that demand falls within twelve months, 0 to below 1
	Fall   int64    // share of the demand that this fall takes, in ten thousandths
}

// Share returns a count of ten thousandths as a price.
func Share(n int64) *big.Rat { return big.NewRat(n, One) }

// ratio returns the price for estimates.
func (p Policy) ratio() float64 {
	v, _ := p.Price.Float64()
	return v
}

// whole returns the price in ten thousandths, to the nearest. That of a discount is exact.
func (p Policy) whole() int64 {
	n := new(big.Rat).Mul(p.Price, big.NewRat(One, 1))
	n.Add(n, big.NewRat(1, 2))
	return new(big.Int).Quo(n.Num(), n.Denom()).Int64()
}

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
	existingNow := level(held, now)
	for k := range s.months {
		// In a leap year a term ends a day before a month does: the middle of the month decides.
		at := cal.Month(month+k) + 15*24
		if k == 0 {
			at = now
		}
		existing := level(held, at)
		for j := range s.level {
			s.level[j][k] = existing
		}
	}
	s.descend()
	// What no hour of the forecast uses saves nothing, however little it costs.
	s.buy[0] = min(s.buy[0], max(0, s.highest-existingNow))
	return s.buy
}

// scenarios are the months to come: demand goes on, or falls in one of them.
type scenarios struct {
	months  int
	term    int
	price   float64   // of an hour of a committed unit
	on      []costs   // of each month if demand goes on
	fallen  []costs   // of each month after a fall
	weight  []float64 // of a month: sooner counts more
	goes    []float64 // the same times the chance that demand has not fallen by the month's end
	falls   []float64 // chance that it falls in a month
	level   [][]int64 // [j][k]: level in month k with the purchases of months up to j alone
	buy     []int64   // in each month
	highest int64     // level that no month's demand is above
	least   float64   // by how much a move must lower the cost of an hour to be made
}

// scenarios returns the months to come with nothing bought, nil where there was no demand of late.
func (p Policy) scenarios(f forecast) *scenarios {
	if f.top() == 0 {
		return nil
	}
	c := newCurve(f.hours)
	s := &scenarios{months: 2 * p.Months, term: p.Months, price: p.ratio()}
	hazard := 1 - math.Pow(1-p.Insure, 1.0/12)
	left := 1 - float64(p.Fall)/One
	alive, weight := 1.0, 1.0
	for k := range s.months {
		factor := f.factor(k)
		s.highest = max(s.highest, int64(math.Ceil(f.hours[len(f.hours)-1]*factor)))
		s.on = append(s.on, costs{curve: c, factor: factor, price: s.price})
		// What the lower demand still needs can be bought then, so less than the best level costs no more.
		after := costs{curve: c, factor: factor * left, price: s.price}
		best := f.best(after.factor, s.price)
		low, high := int64(math.Floor(best)), int64(math.Ceil(best))
		if after.floor = low; after.at(high) < after.at(low) {
			after.floor = high
		}
		s.fallen = append(s.fallen, after)
		s.falls = append(s.falls, alive*hazard)
		alive *= 1 - hazard
		s.goes = append(s.goes, alive*weight)
		s.weight = append(s.weight, weight)
		weight *= 1 - sooner
		s.level = append(s.level, make([]int64, s.months))
	}
	s.buy = make([]int64, s.months)
	s.least = max(minLeast, float64(s.highest)*relativeLeast)
	return s
}

// A move must lower the cost of an hour by so much, and by so much of the highest demand, to be made: far above what
// rounding gives, far below what one unit costs in a term.
const (
	minLeast      = 1e-9
	relativeLeast = 1e-13
)

// change returns by how much the expected cost changes if n more units are bought in month i.
func (s *scenarios) change(i int, n int64) (sum float64) {
	end := min(s.months, i+s.term)
	for k := i; k < end; k++ {
		l := s.level[k][k]
		sum += float64(s.goes[k] * (s.on[k].at(l+n) - s.on[k].at(l)))
	}
	for j := i; j < end; j++ { // demand falls in month j, after its purchase
		if s.falls[j] == 0 {
			break
		}
		lost := 0.0
		for k := j; k < end; k++ {
			l := s.level[j][k]
			lost += float64(s.weight[k] * (s.fallen[k].at(l+n) - s.fallen[k].at(l)))
		}
		sum += float64(s.falls[j] * lost)
	}
	return sum
}

// add buys n more units in month i, fewer where n is below zero.
func (s *scenarios) add(i int, n int64) {
	s.buy[i] += n
	end := min(s.months, i+s.term)
	for j := i; j < s.months; j++ {
		for k := i; k < end; k++ {
			s.level[j][k] += n
		}
	}
}

// descend lowers the expected cost, which is convex in the purchases, by more, fewer and later or earlier purchases, in
// steps that become smaller, down to one unit.
func (s *scenarios) descend() {
	step := int64(1)
	for step*64 < s.highest {
		step *= 4
	}
	for ; step > 0; step /= 4 {
		for range 12 {
			if !s.pass(step) {
				break
			}
		}
	}
}

// pass tries each change of one step to the purchases of each month, and reports whether one lowered the cost.
func (s *scenarios) pass(step int64) (moved bool) {
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
	return moved
}

// try buys n more units in month i if that lowers the cost.
func (s *scenarios) try(i int, n int64) bool {
	if s.change(i, n) >= -s.least {
		return false
	}
	s.add(i, n)
	return true
}

// shift moves purchases from one month to another as long as that lowers the cost, and where renewed is set those a
// term later with them.
func (s *scenarios) shift(from, to int, n int64, renewed bool) (moved bool) {
	type move struct {
		month int
		n     int64
	}
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
		if sum >= -s.least {
			for _, m := range moves {
				s.add(m.month, -m.n)
			}
			return moved
		}
		moved = true
	}
	return moved
}
