package blocks_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
	"scrimp/internal/work/commit"
	"scrimp/internal/work/commit/blocks"
)

func rate(t *testing.T, text string) money.Rate {
	t.Helper()
	r, err := money.ParseRate(text)
	must.Do(t, err)
	return r
}

// played returns what a purchase costs, hour by hour: the blocks in full, and on-demand machines for what the blocks
// that run do not serve.
func played(terms blocks.Terms, list []blocks.Block, r commit.Region, zero time.Time) money.Amount {
	sum := money.Amount{}
	for _, b := range list {
		sum = sum.Add(blocks.Cost(terms.Block, b.Paid()))
	}
	for half := range 2 * len(r.Units) {
		at, free := zero.Add(time.Duration(half)*30*time.Minute), int64(0)
		for _, b := range list {
			if !at.Before(b.Start) && at.Before(b.End().Add(-30*time.Minute)) {
				free += b.Machines
			}
		}
		sum = sum.Add(blocks.Cost(terms.OnDemand, max(0, r.Units[half/2]-free)))
	}
	return sum
}

// cheapest tries each set of blocks of one machine from a day on, and returns the lowest cost.
func cheapest(terms blocks.Terms, r commit.Region, zero time.Time, day, days int, list []blocks.Block) money.Amount {
	if day > days {
		return played(terms, list, r, zero)
	}
	best := cheapest(terms, r, zero, day+1, days, list)
	start := zero.Truncate(24*time.Hour).AddDate(0, 0, day-1).Add(11*time.Hour + 30*time.Minute)
	for _, n := range blocks.Lengths(terms.Longest) {
		b := blocks.Block{Start: start, Days: n, Machines: 1}
		best = money.Min(best, cheapest(terms, r, zero, day+n, days, append(list[:len(list):len(list)], b)))
	}
	return best
}

// The plan costs what playing it costs, and no set of blocks is cheaper.
func TestPlan_IsTheCheapest(t *testing.T) {
	bought := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		terms := blocks.Terms{Block: rate(t, "3"), OnDemand: rate(t, []string{"3.5", "6", "12.1"}[seed%3]), Machines: 2, Longest: 1 + rng.IntN(3)}
		zero := time.Date(2027, 3, 1, rng.IntN(24), 0, 0, 0, time.UTC)
		r := commit.Region{Units: make([]int64, 24*4)}
		for i := range r.Units {
			switch {
			case i%(1+rng.IntN(9)) == 0:
				r.Units[i] = int64(rng.IntN(4))
			case i > 0:
				r.Units[i] = r.Units[i-1]
			}
		}
		p := terms.Plan(r, zero)
		saved := played(terms, nil, r, zero).Sub(played(terms, p.Blocks, r, zero))
		cost := blocks.Cost(terms.OnDemand, p.Rest)
		for _, b := range p.Blocks {
			bought++
			cost = cost.Add(blocks.Cost(terms.Block, b.Paid()))
		}
		if is := played(terms, p.Blocks, r, zero); is != cost {
			t.Fatalf("seed %d: the plan says %s, playing it costs %s: %+v", seed, cost, is, p)
		}
		// Machine by machine, as the demand of the n-th is independent of the others.
		want := money.Amount{}
		for n := int64(1); n <= terms.Machines; n++ {
			one := commit.Region{Units: make([]int64, len(r.Units))}
			for i, u := range r.Units {
				if u >= n {
					one.Units[i] = 1
				}
			}
			want = want.Add(played(terms, nil, one, zero).Sub(cheapest(terms, one, zero, 0, 5, nil)))
		}
		if saved != want {
			t.Fatalf("seed %d: the plan saves %s, the best set of blocks %s: %+v", seed, saved, want, p)
		}
	}
	if bought < 20 {
		t.Errorf("only %d blocks were bought: the cases show nothing", bought)
	}
}

// Sixteen machines for ten days at $40 an hour on demand and $20 in a block: see docs/commit.md.
func TestPlan_OfTheDocs(t *testing.T) {
	zero := time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	r := commit.Region{Units: make([]int64, 24*14)}
	for i := 36; i < 36+240; i++ { // from noon of the second day
		r.Units[i] = 16
	}
	terms := blocks.Terms{Block: rate(t, "20"), OnDemand: rate(t, "40"), Machines: blocks.MostMachines, Longest: blocks.LongestDays}
	p := terms.Plan(r, zero)
	if len(p.Blocks) != 1 || p.Blocks[0] != (blocks.Block{Start: time.Date(2027, 3, 2, 11, 30, 0, 0, time.UTC), Days: 10, Machines: 16, Used: 16 * 2 * 239}) ||
		p.Rest != 16*2 {
		t.Errorf("%+v", p)
	}
	if block, rest := blocks.Cost(terms.Block, p.Blocks[0].Paid()), blocks.Cost(terms.OnDemand, p.Rest); block.String() != "76800" ||
		rest.String() != "640" {
		t.Errorf("the block costs %s and the rest %s", block, rest)
	}
}

func TestPlan_BuysNothingThatDoesNotPay(t *testing.T) {
	zero := time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	r := commit.Region{Units: make([]int64, 24*30)}
	for i := range r.Units {
		r.Units[i] = int64(i % 24 / 20) // four hours a day
	}
	terms := blocks.Terms{Block: rate(t, "20"), OnDemand: rate(t, "40"), Machines: blocks.MostMachines, Longest: blocks.LongestDays}
	if p := terms.Plan(r, zero); len(p.Blocks) != 0 || p.Rest != p.Demand || p.Demand != 30*4*2 {
		t.Errorf("%+v", p)
	}
	if got := blocks.Lengths(30); len(got) != 16 || got[13] != 14 || got[14] != 21 || got[15] != 28 {
		t.Errorf("lengths %v", got)
	}
}
