package portfolio_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"scrimp/internal/lib/money"
	"scrimp/internal/work/portfolio"
)

func usd(n int) money.Amount { return money.Picos(int64(n) * 1e12) }

func TestRank_SortsByValuePerDollarThenCostThenName(t *testing.T) {
	t.Parallel()
	list := []portfolio.Item{{"worthless", usd(0), usd(0)}, {"b", usd(10), usd(20)}, {"large", usd(20), usd(40)},
		{"a", usd(10), usd(20)}, {"free", usd(0), usd(1)}, {"best", usd(3), usd(9)}, {"third", usd(3), usd(1)}}
	portfolio.Rank(list)
	got := ""
	for _, x := range list {
		got += x.ID + " "
	}
	if want := "free best a b large third worthless "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Among all sets, written out, none within the budget is worth more, and none of the same value costs less.
func TestChoose_FindsTheBestOfAllSets(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		var list []portfolio.Item
		for i := range r.IntN(10) {
			list = append(list, portfolio.Item{ID: fmt.Sprint(i), Cost: usd(r.IntN(12)), Value: usd(r.IntN(12))})
		}
		budget := r.IntN(40)
		portfolio.Rank(list)
		chosen, exact := portfolio.Choose(list, usd(budget))
		sum := func(in func(int) bool) (cost, value money.Amount) {
			for i, x := range list {
				if in(i) {
					cost, value = cost.Add(x.Cost), value.Add(x.Value)
				}
			}
			return cost, value
		}
		cost, value := sum(func(i int) bool { return chosen[i] })
		if !exact || cost.Cmp(usd(budget)) > 0 {
			t.Fatalf("%v of %v costs %v of %d, exact %v", chosen, list, cost, budget, exact)
		}
		for set := range 1 << len(list) {
			c, v := sum(func(i int) bool { return set>>i&1 == 1 })
			if c.Cmp(usd(budget)) <= 0 && (v.Cmp(value) > 0 || v == value && c.Cmp(cost) < 0) {
				t.Fatalf("%v of %v: %v for %v, and set %b is worth %v for %v", chosen, list, value, cost, set, v, c)
			}
		}
	}
}

// With more sets than it tries, it says so, stays within the budget, and is no worse than what fits in rank order.
func TestChoose_IsNoWorseThanTheRankWhenItGivesUp(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	gaveUp := false
	for range 20 {
		var list []portfolio.Item
		for i := range 60 {
			c := 1000 + r.IntN(1000)
			list = append(list, portfolio.Item{ID: fmt.Sprint(i), Cost: usd(c), Value: usd(c)})
		}
		portfolio.Rank(list)
		budget := usd(30_000)
		chosen, exact := portfolio.Choose(list, budget)
		gaveUp = gaveUp || !exact
		var cost, value, greedy, least money.Amount
		for i, x := range list {
			if chosen[i] {
				cost, value = cost.Add(x.Cost), value.Add(x.Value)
			}
			if greedy.Add(x.Cost).Cmp(budget) <= 0 {
				greedy, least = greedy.Add(x.Cost), least.Add(x.Value)
			}
		}
		if cost.Cmp(budget) > 0 || value.Cmp(least) < 0 {
			t.Errorf("%v for %v, and in rank order %v", value, cost, least)
		}
	}
	// The example of docs/proposals.md: the first of the rank is not in the best set.
	list := []portfolio.Item{{"a", usd(6), usd(13)}, {"b", usd(5), usd(10)}, {"c", usd(5), usd(10)}}
	portfolio.Rank(list)
	if chosen, exact := portfolio.Choose(list, usd(10)); !exact || !slices.Equal(chosen, []bool{false, true, true}) {
		t.Errorf("%v", chosen)
	}
	if !gaveUp {
		t.Error("every search was exact: the test shows nothing")
	}
	if chosen, exact := portfolio.Choose(nil, usd(1)); !exact || slices.Contains(chosen, true) {
		t.Error("no proposals have an empty choice")
	}
}
