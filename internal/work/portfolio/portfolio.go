// Package portfolio ranks proposals by their expected value per dollar, and chooses those that are worth most within a
// budget.
package portfolio

import (
	"cmp"
	"math/big"
	"slices"

	"scrimp/internal/lib/money"
)

// Item is a proposal whose cost and value are known, both 0 or more and in one currency.
type Item struct {
	ID          string
	Cost, Value money.Amount
}

// Rank sorts items by value per dollar, the highest first. Ties go to the lower cost, then to the name.
func Rank(items []Item) {
	slices.SortFunc(items, func(a, b Item) int {
		return cmp.Or(perDollar(b, a), a.Cost.Cmp(b.Cost), cmp.Compare(a.ID, b.ID))
	})
}

// perDollar compares the value per dollar of two items exactly. What is worth nothing is last, at any cost.
func perDollar(a, b Item) int {
	if a.Value.IsZero() || b.Value.IsZero() {
		return cmp.Compare(a.Value.Sign(), b.Value.Sign())
	}
	return times(a.Value, b.Cost).Cmp(times(b.Value, a.Cost))
}

func times(a, b money.Amount) *big.Int { return new(big.Int).Mul(a.Big(), b.Big()) }

// mostNodes bounds the sets that Choose tries.
const mostNodes = 20_000

// Choose returns for each ranked item whether it is in the set that is worth most among those within the budget. Of
// sets of equal value it takes the cheapest, then the one with the first item in which they differ. exact is false if
// there were too many sets to try all: the set is then at least as good as taking what fits in the order of the rank.
func Choose(ranked []Item, budget money.Amount) (chosen []bool, exact bool) {
	s := &search{items: ranked, budget: budget, now: make([]bool, len(ranked)), best: make([]bool, len(ranked))}
	s.from(0, money.Amount{}, money.Amount{})
	return s.best, s.nodes <= mostNodes
}

// search tries sets depth first: an item is first taken, then left out.
type search struct {
	items  []Item
	budget money.Amount
	now    []bool
	nodes  int

	best        []bool
	found       bool
	cost, value money.Amount // of best
}

// from tries all sets of the items from the i-th on, beside those taken before.
func (s *search) from(i int, cost, value money.Amount) {
	if s.nodes++; s.nodes > mostNodes && s.found {
		return
	}
	if i == len(s.items) {
		if by := value.Cmp(s.value); !s.found || by > 0 || by == 0 && cost.Cmp(s.cost) < 0 {
			copy(s.best, s.now)
			s.found, s.cost, s.value = true, cost, value
		}
		return
	}
	if s.found && s.bound(i, cost, value).Cmp(s.value.Big()) < 0 {
		return
	}
	if with := cost.Add(s.items[i].Cost); with.Cmp(s.budget) <= 0 {
		s.now[i] = true
		s.from(i+1, with, value.Add(s.items[i].Value))
		s.now[i] = false
	}
	s.from(i+1, cost, value)
}

// bound returns the most that the items from the i-th on can add up to, with the value so far, if a part of an item
// could be taken.
func (s *search) bound(i int, cost, value money.Amount) *big.Int {
	for ; i < len(s.items); i++ {
		x := s.items[i]
		left := s.budget.Sub(cost)
		if x.Cost.Cmp(left) > 0 {
			part := times(x.Value, left)
			return part.Add(part.Quo(part, x.Cost.Big()), value.Big())
		}
		cost, value = cost.Add(x.Cost), value.Add(x.Value)
	}
	return value.Big()
}
