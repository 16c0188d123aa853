package variance_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/variance"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/lane"
	_ "scrimp/internal/test/sameseed"
)

func periodOf(list []charge.Charge) *variance.Period {
	p := variance.NewPeriod()
	for i := range list {
		p.Add(&list[i])
	}
	return p
}

// anyCharges draws charges of every kind, including some that the ledger never produces.
func anyCharges(t *rapid.T, name string) (list []charge.Charge) {
	for range rapid.IntRange(0, 20).Draw(t, name) {
		c := charge.Charge{Amount: money.Picos(rapid.Int64Range(-1e15, 1e15).Draw(t, "amount")), Currency: "USD",
			Category: rapid.SampledFrom([]ledger.Category{ledger.Compute, ledger.Compute, ledger.Compute, ledger.Fixed, ledger.Storage, ledger.Overhead}).Draw(t, "category"),
			Use:      rapid.SampledFrom([]ledger.Use{ledger.Open, ledger.Useful, ledger.Useful, ledger.Lost, ledger.StartUp, ledger.Idle, "new"}).Draw(t, "use"),
			SKU:      rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "sku"),
			Source: charge.Source{Capacity: rapid.SampledFrom([]market.Capacity{market.Spot, market.OnDemand}).Draw(t, "capacity"),
				Work: rapid.SampledFrom([]float64{0, 0.5, 1, 1e-9, 3.7, 1e9}).Draw(t, "work")}}
		if c.Timed = rapid.IntRange(0, 3).Draw(t, "timed") > 0; c.Timed {
			c.Time = time.Duration(rapid.Int64Range(1, int64(1000*time.Hour)).Draw(t, "time"))
		}
		list = append(list, c)
	}
	return list
}

// The parts of any two periods add up to their difference exactly.
func TestSplit_AddsUpExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for range 10 { // with the hundred checks of rapid: 1,000 pairs
			before, after := periodOf(anyCharges(t, "before")), periodOf(anyCharges(t, "after"))
			var sum money.Amount
			for c, a := range variance.Split(before, after) {
				if !slices.Contains(variance.Causes, c) {
					t.Fatalf("%q is no cause", c)
				}
				sum = sum.Add(a)
			}
			if want := after.Cost().Sub(before.Cost()); sum != want {
				t.Fatalf("the parts add up to %v, the difference is %v", sum, want)
			}
		}
	})
}

// month draws a month of a team: jobs on spot and on-demand machines of two types, with lost time, start-up and
// idle machines.
func month(r *rand.Rand, jobs int) (list []charge.Charge) {
	rates := map[string]money.Rate{"a spot": 1e12, "a on-demand": 3e12, "b spot": 4e12, "b on-demand": 11e12}
	for n := range jobs {
		sku, capacity := "a", market.Spot
		if r.Float64() < 0.4 {
			sku = "b"
		}
		if r.Float64() < 0.3 {
			capacity = market.OnDemand
		}
		rate := rates[sku+" "+string(capacity)]
		hours := 5 + 10*r.Float64()
		for use, share := range map[ledger.Use]float64{ledger.Useful: 1, ledger.Lost: 0.05 + 0.05*r.Float64(),
			ledger.StartUp: 0.02 + 0.02*r.Float64(), ledger.Idle: 0.05 + 0.05*r.Float64()} {
			c := charge.Charge{Time: time.Duration(hours * share * float64(time.Hour)), Timed: true, Currency: "USD", Category: ledger.Compute,
				Use: use, Provider: "p", SKU: sku, Price: ledger.PriceOf(rate, true), Owner: ledger.Owner{Job: fmt.Sprint("j", n)},
				Source: charge.Source{Capacity: capacity, Work: 1}}
			c.Amount = rate.Until(c.Time)
			list = append(list, c)
		}
	}
	return list
}

// planted changes one cause by a factor x of about 1.4.
var planted = map[variance.Cause]func(c *charge.Charge, x float64) []charge.Charge{
	variance.Volume: func(c *charge.Charge, x float64) []charge.Charge { return []charge.Charge{longer(*c, x)} },
	variance.Price:  func(c *charge.Charge, x float64) []charge.Charge { return []charge.Charge{dearer(*c, x)} },
	variance.Efficiency: func(c *charge.Charge, x float64) []charge.Charge {
		l := longer(*c, x)
		l.Work /= x
		return []charge.Charge{l}
	},
	variance.Mix: func(c *charge.Charge, x float64) []charge.Charge {
		if c.Capacity != market.Spot {
			return []charge.Charge{*c}
		}
		rest, moved := longer(*c, 2-x), longer(*c, x-1)
		moved.Capacity, moved.Price = market.OnDemand, ledger.PriceOf(3e12, true)
		if c.SKU == "b" {
			moved.Price = ledger.PriceOf(11e12, true)
		}
		moved.Amount = moved.Price.Rate.Until(moved.Time)
		return []charge.Charge{rest, moved}
	},
	variance.Failures: func(c *charge.Charge, x float64) []charge.Charge { return added(*c, ledger.Lost, x) },
	variance.Waiting:  func(c *charge.Charge, x float64) []charge.Charge { return added(*c, ledger.Idle, x) },
	variance.Unmatched: func(c *charge.Charge, x float64) []charge.Charge {
		more := longer(*c, x-1)
		more.Category, more.Timed = ledger.Storage, false
		return []charge.Charge{*c, more}
	},
}

func longer(c charge.Charge, x float64) charge.Charge {
	c.Time = time.Duration(float64(c.Time) * x)
	c.Amount = c.Price.Rate.Until(c.Time)
	return c
}

func dearer(c charge.Charge, x float64) charge.Charge {
	c.Price.Rate = money.Rate(float64(c.Price.Rate) * x)
	c.Amount = c.Price.Rate.Until(c.Time)
	return c
}

func added(c charge.Charge, use ledger.Use, x float64) []charge.Charge {
	more := longer(c, x-1)
	more.Use = use
	return []charge.Charge{c, more}
}

func with(list []charge.Charge, cause variance.Cause, x float64) (changed []charge.Charge) {
	for i := range list {
		changed = append(changed, planted[cause](&list[i], x)...)
	}
	return changed
}

// If one cause alone changes, its part is the whole difference to the last cent; the others are zero.
func TestSplit_OneCauseAloneIsItsOwnPart(t *testing.T) {
	for _, cause := range variance.Causes {
		r := rand.New(rand.NewPCG(1, 2))
		for range 20 {
			list := month(r, 20)
			before := periodOf(list)
			changed := with(list, cause, 1.1+0.8*r.Float64())
			if cause == variance.Failures || cause == variance.Waiting { // shares are relative to the useful time
				for i := range changed {
					changed[i].Work = list[0].Work
				}
			}
			after := periodOf(changed)
			parts := variance.Split(before, after)
			diff := after.Cost().Sub(before.Cost())
			for _, c := range variance.Causes {
				want := 0.0
				if c == cause {
					want = diff.Float()
				}
				if off := parts[c].Float() - want; off > 0.005 || off < -0.005 {
					t.Errorf("%s was changed by %v: %s has %v", cause, diff, c, parts[c])
				}
			}
		}
	}
}

// For two months with different jobs and one cause changed by half, that cause has the largest part in at least 95
// % of the cases.
func TestSplit_FindsTheCauseAmongOtherJobs(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, cause := range variance.Causes {
		cases := lane.Pick(25, 150)
		found := 0
		for range cases {
			before, after := periodOf(month(r, 300)), periodOf(with(month(r, 300), cause, 1.5))
			parts := variance.Split(before, after)
			largest := slices.MaxFunc(variance.Causes, func(a, b variance.Cause) int { return size(parts[a]).Cmp(size(parts[b])) })
			if largest == cause {
				found++
			}
		}
		if found*100 < 95*cases {
			t.Errorf("%s was found in %d of %d cases", cause, found, cases)
		}
	}
}

func size(a money.Amount) money.Amount {
	if a.Sign() < 0 {
		return a.Neg()
	}
	return a
}

// 10 hours of work at $1 per hour cost $10; twice the work at $1.50 costs $30. Of the $20 more, volume is $12.50
// (10 h to 20 h at the mean price of $1.25) and price $7.50 ($0.50 at the mean of 15 h).
func TestSplit_MatchesTheExample(t *testing.T) {
	period := func(hours int, rate money.Rate) *variance.Period {
		c := charge.Charge{Category: ledger.Compute, Use: ledger.Useful, Timed: true, Time: time.Duration(hours) * time.Hour,
			Amount: rate.Until(time.Duration(hours) * time.Hour), Source: charge.Source{Work: 1}}
		return periodOf([]charge.Charge{c})
	}
	parts := variance.Split(period(10, 1e12), period(20, 15e11))
	for _, c := range variance.Causes {
		want := map[variance.Cause]money.Amount{variance.Volume: money.Picos(12.5e12), variance.Price: money.Picos(7.5e12)}[c]
		if parts[c] != want {
			t.Errorf("%s is %v, want %v", c, parts[c], want)
		}
	}
	// After an empty period all is volume.
	if parts := variance.Split(variance.NewPeriod(), period(10, 1e12)); parts[variance.Volume] != money.Picos(10e12) {
		t.Error(parts)
	}
}

func TestMost_ReturnsTheLargestChanges(t *testing.T) {
	jobs := variance.Jobs{"up": {money.Picos(1), money.Picos(9)}, "down": {money.Picos(20), {}}, "same": {money.Picos(5), money.Picos(5)}, "up2": {{}, money.Picos(8)}}
	if got := fmt.Sprint(jobs.Most(3)); got != fmt.Sprint([]variance.Job{{"down", money.Picos(20), money.Amount{}}, {"up", money.Picos(1), money.Picos(9)}, {"up2", money.Amount{}, money.Picos(8)}}) {
		t.Error(got)
	}
}

// At constant prices and paces, twice the work is all volume: neither the rounding of charges nor that of a sum of
// floats counts as a cause.
func TestSplit_RoundingIsNoCause(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		draw := func(n int) (list []charge.Charge) {
			for range n {
				c := charge.Charge{Category: ledger.Compute, Use: ledger.Useful, Timed: true, SKU: "a",
					Time: time.Duration(1 + r.Int64N(int64(10*time.Hour))), Source: charge.Source{Work: 3.7}}
				c.Amount = money.Rate(973_123_456_789).Until(c.Time)
				list = append(list, c)
			}
			return list
		}
		before, after := periodOf(draw(1+r.IntN(20))), periodOf(draw(1+r.IntN(20)))
		parts := variance.Split(before, after)
		for _, c := range variance.Causes {
			if c != variance.Volume && !parts[c].IsZero() {
				t.Fatalf("%s is %v of %v", c, parts[c], after.Cost().Sub(before.Cost()))
			}
		}
		if parts[variance.Volume] != after.Cost().Sub(before.Cost()) {
			t.Fatal(parts)
		}
	}
}
