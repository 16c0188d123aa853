package ledger_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

// span is the time of a machine with its prices.
func span(t *rapid.T) (segments []market.Segment, end time.Time) {
	at := start
	for range rapid.IntRange(1, 6).Draw(t, "prices") {
		segments = append(segments, market.Segment{From: at, Rate: money.Rate(rapid.Int64Range(0, 1<<62).Draw(t, "rate"))})
		at = at.Add(time.Duration(rapid.Int64Range(1, int64(100*time.Hour)).Draw(t, "length")))
	}
	return segments, at
}

// plain computes the same the slow way: the cost of each price segment up to t, in units of 1e-12, truncated once.
func plain(segments []market.Segment, t time.Time) *big.Int {
	sum := new(big.Int)
	for i, s := range segments {
		end := t
		if i+1 < len(segments) && segments[i+1].From.Before(t) {
			end = segments[i+1].From
		}
		if !end.After(s.From) {
			continue
		}
		n := new(big.Int).Mul(big.NewInt(int64(s.Rate)), big.NewInt(int64(end.Sub(s.From))))
		sum.Add(sum, n.Quo(n, big.NewInt(int64(time.Hour))))
	}
	return sum
}

// Every cut of a span, posted piece by piece as the difference of the cumulative cost, has exactly the same sum:
// that of plain big integers.
func TestSum_DoesNotDependOnTheCuts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		segments, end := span(t)
		cuts := rapid.SliceOfN(rapid.Int64Range(0, int64(end.Sub(start))), 0, 30).Draw(t, "cuts")
		slices.Sort(cuts)
		var list []ledger.Posting
		var posted money.Amount
		for i, cut := range append(cuts, int64(end.Sub(start))) {
			cost := market.Cost(segments, start.Add(time.Duration(cut)))
			p, ok := ledger.Move(cost.Sub(posted), ledger.Payable("local"), ledger.Cost(ledger.Compute, ledger.Open))
			posted = cost
			if !ok {
				continue // zero amounts are not posted
			}
			p.Event, p.Currency, p.Owner = uint64(i+1), "USD", ledger.Owner{Tenant: "default", Job: "j"}
			list = append(list, p)
		}
		list, _ = ledger.Seal(list, ledger.Hash{})
		must.Do(t, ledger.Verify(seq(list)))
		totals, err := ledger.Totals(seq(list), ledger.ByJob)
		must.Do(t, err)
		got := totals[ledger.Key{Currency: "USD", Owner: "j", Category: ledger.Compute, Use: ledger.Open}]
		if want := plain(segments, end); got.Big().Cmp(want) != 0 {
			t.Fatalf("%d cuts sum to %s, the whole is %s", len(cuts), got.Big(), want)
		}
	})
}

// random draws postings of two currencies and teams, with jobs, attempts and tasks; some move cost, some credit it.
func random(t *rapid.T) []ledger.Posting {
	uses := []ledger.Use{ledger.Open, ledger.Useful, ledger.Lost, ledger.StartUp, ledger.Idle}
	categories := []ledger.Category{ledger.Compute, ledger.Storage, ledger.Transfer, ledger.Image, ledger.Overhead, ledger.Fixed}
	var list []ledger.Posting
	for i := range rapid.IntRange(1, 60).Draw(t, "postings") {
		category := rapid.SampledFrom(categories).Draw(t, "category")
		cost := func(name string) ledger.Account {
			return ledger.Cost(category, rapid.SampledFrom(uses).Draw(t, name))
		}
		from, to := ledger.Payable("local"), cost("to")
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			from = cost("from")
		case 1:
			from, to = ledger.Invoice("local"), ledger.Payable("local")
		}
		p, ok := ledger.Move(money.Picos(rapid.Int64().Draw(t, "amount")), from, to)
		if !ok || from == to {
			continue
		}
		team := rapid.IntRange(0, 2).Draw(t, "team")
		job := fmt.Sprintf("%d.%d", team, rapid.IntRange(0, 2).Draw(t, "job"))
		attempt := fmt.Sprintf("%s.%d", job, rapid.IntRange(0, 2).Draw(t, "attempt"))
		p.Event, p.Currency = uint64(i+1), rapid.SampledFrom([]money.Currency{"USD", "EUR"}).Draw(t, "currency")
		p.Owner = ledger.Owner{Tenant: "default", Job: job, Attempt: attempt, Task: fmt.Sprintf("%s/%d", attempt, rapid.IntRange(0, 1).Draw(t, "task"))}
		if team > 0 { // 0 means no team
			p.Owner.Team = fmt.Sprint(team)
		}
		list = append(list, p)
	}
	return list
}

// The sums of the parts equal the whole at every level: tasks of an attempt, attempts of a job, jobs of a team,
// teams of the tenant, in each currency, category and use. Cost without a team is listed under "".
func TestSums_AgreeAtEveryLevel(t *testing.T) {
	levels := []ledger.Level{ledger.ByTask, ledger.ByAttempt, ledger.ByJob, ledger.ByTeam, ledger.ByTenant}
	rapid.Check(t, func(t *rapid.T) {
		list := random(t)
		parent := map[string]string{} // by owner, one level up
		for _, p := range list {
			o := p.Owner
			parent["0 "+o.Task], parent["1 "+o.Attempt], parent["2 "+o.Job], parent["3 "+o.Team] = o.Attempt, o.Job, o.Team, o.Tenant
		}
		below, err := ledger.Totals(seq(list), levels[0])
		must.Do(t, err)
		for i, level := range levels[1:] {
			up := map[ledger.Key]money.Amount{}
			for k, v := range below {
				k.Owner = parent[fmt.Sprint(i, " ", k.Owner)]
				up[k] = up[k].Add(v)
			}
			whole, err := ledger.Totals(seq(list), level)
			must.Do(t, err)
			if len(up) != len(whole) {
				t.Fatalf("level %d has %d cells, its parts have %d", i+1, len(whole), len(up))
			}
			for k, v := range whole {
				if up[k] != v {
					t.Fatalf("level %d, %+v: %v, its parts %v", i+1, k, v, up[k])
				}
			}
			below = whole
		}
		twin := map[string]*big.Int{} // net amount into cost, by currency
		for _, p := range list {
			s := twin[string(p.Currency)]
			if s == nil {
				s = new(big.Int)
				twin[string(p.Currency)] = s
			}
			if _, _, ok := p.To.IsCost(); ok {
				s.Add(s, p.Amount.Big())
			}
			if _, _, ok := p.From.IsCost(); ok {
				s.Sub(s, p.Amount.Big())
			}
		}
		sums := map[string]*big.Int{}
		for k, v := range below {
			s := sums[string(k.Currency)]
			if s == nil {
				s = new(big.Int)
				sums[string(k.Currency)] = s
			}
			s.Add(s, v.Big())
		}
		for c, want := range twin {
			if got := sums[c]; got == nil && want.Sign() != 0 || got != nil && got.Cmp(want) != 0 {
				t.Fatalf("%s: the tenant's cells sum to %v, plain integers to %v", c, got, want)
			}
		}
	})
}

// Over all accounts each currency's sum is zero.
func TestBalances_AddUpToZero(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		balances, err := ledger.Balances(seq(random(t)))
		must.Do(t, err)
		for c, accounts := range balances {
			var sum money.Amount
			for _, v := range accounts {
				sum = sum.Add(v)
			}
			if !sum.IsZero() {
				t.Fatalf("%s: %v", c, sum)
			}
		}
	})
}

// A cell without postings does not exist, which differs from a cost of zero. A cell whose cost was credited in full
// exists and is zero.
func TestSums_DistinguishUnknownFromZero(t *testing.T) {
	there, _ := ledger.Move(money.Picos(5), ledger.Payable("local"), ledger.Cost(ledger.Compute, ledger.Lost))
	back, _ := ledger.Move(money.Picos(-5), ledger.Payable("local"), ledger.Cost(ledger.Compute, ledger.Lost))
	totals, err := ledger.Totals(seq([]ledger.Posting{there, back}), ledger.ByTeam)
	must.Do(t, err)
	if v, ok := totals[ledger.Key{Category: ledger.Compute, Use: ledger.Lost}]; !ok || !v.IsZero() {
		t.Errorf("what was given back: %v, %v", v, ok)
	}
	if v, ok := totals[ledger.Key{Category: ledger.Compute, Use: ledger.Useful}]; ok {
		t.Errorf("what nobody posted: %v", v)
	}
	if _, ok := ledger.Move(money.Amount{}, "a", "b"); ok {
		t.Error("nothing is posted")
	}
	if parts, ok := ledger.Allocate(money.Picos(5), []*big.Int{new(big.Int), new(big.Int)}); ok {
		t.Errorf("a cost that nobody used is shared as %v", parts)
	}
}

func TestSums_GroupByTagValue(t *testing.T) {
	var list []ledger.Posting
	for i, tags := range []map[string]string{{"run": "a"}, {"run": "b"}, {"run": "a", "x": "y"}, nil} {
		p, _ := ledger.Move(money.Picos(int64(1)<<i), ledger.Payable("local"), ledger.Cost(ledger.Compute, ledger.Useful))
		p.Owner.Tags = tags
		list = append(list, p)
	}
	totals, err := ledger.Totals(seq(list), ledger.ByTag("run"))
	must.Do(t, err)
	for value, want := range map[string]int64{"a": 5, "b": 2, "": 8} {
		if got := totals[ledger.Key{Owner: value, Category: ledger.Compute, Use: ledger.Useful}]; got != money.Picos(want) {
			t.Errorf("run=%s: %v, want %d units", value, got, want)
		}
	}
}

func weights(n ...int64) (out []*big.Int) {
	for _, v := range n {
		out = append(out, big.NewInt(v))
	}
	return out
}

func TestAllocate(t *testing.T) {
	for _, c := range []struct {
		total   int64
		weights []*big.Int
		want    []int64
	}{
		{10, weights(1, 1, 1), []int64{4, 3, 3}}, // the first of equals
		{11, weights(1, 1, 1), []int64{4, 4, 3}}, // then the second
		{-10, weights(1, 1, 1), []int64{-4, -3, -3}},
		{10, weights(0, 1, 2), []int64{0, 3, 7}}, // 3.33 and 6.67: the larger remainder gains
		{1, weights(1, 2, 4), []int64{0, 0, 1}},
		{0, weights(3, 4), []int64{0, 0}},
		{7, weights(5), []int64{7}},
		{100, weights(50, 0, 50), []int64{50, 0, 50}},
	} {
		got, ok := ledger.Allocate(money.Picos(c.total), c.weights)
		if !ok || len(got) != len(c.want) {
			t.Errorf("%d among %v: %v, %v", c.total, c.weights, got, ok)
			continue
		}
		for i, w := range c.want {
			if got[i] != money.Picos(w) {
				t.Errorf("%d among %v: part %d is %s units, want %d", c.total, c.weights, i, got[i].Big(), w)
			}
		}
	}
}

// The parts add up to the whole exactly, and each is within one unit of its exact share. A zero weight pays
// nothing, a larger weight never pays less, and a credit splits like a cost.
func TestAllocate_AddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := money.Picos(rapid.Int64().Draw(t, "total"))
		if rapid.Bool().Draw(t, "large") {
			total, _ = money.FromBig(new(big.Int).Mul(total.Big(), big.NewInt(1<<60)))
		}
		w := weights(rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 1<<62)), 1, 12).Draw(t, "weights")...)
		sum := new(big.Int)
		for _, v := range w {
			sum.Add(sum, v)
		}
		parts, ok := ledger.Allocate(total, w)
		if ok != (sum.Sign() > 0) {
			t.Fatalf("shared: %v with weights of %v", ok, sum)
		}
		if !ok {
			return
		}
		var back money.Amount
		for i, p := range parts {
			back = back.Add(p)
			off := new(big.Int).Mul(p.Big(), sum)
			off.Sub(off, new(big.Int).Mul(total.Big(), w[i])) // sum times the distance from the exact share
			if off.CmpAbs(sum) >= 0 {
				t.Fatalf("part %d is %v: a unit or more from its share", i, p)
			}
			if w[i].Sign() == 0 && !p.IsZero() {
				t.Fatalf("part %d weighs nothing and pays %v", i, p)
			}
			for j, q := range parts {
				if w[i].Cmp(w[j]) > 0 && p.Big().CmpAbs(q.Big()) < 0 {
					t.Fatalf("part %d weighs more than %d and pays less", i, j)
				}
			}
		}
		if back != total {
			t.Fatalf("the parts add to %v, the whole is %v", back, total)
		}
		credit, _ := ledger.Allocate(total.Neg(), w)
		for i := range credit {
			if credit[i] != parts[i].Neg() {
				t.Fatalf("the credit's part %d is %v, the cost's %v", i, credit[i], parts[i])
			}
		}
	})
}

func TestAllocate_RefusesANegativeWeight(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a negative weight was taken")
		}
	}()
	ledger.Allocate(money.Picos(1), weights(1, -1))
}
