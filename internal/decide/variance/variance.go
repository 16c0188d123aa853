// Package variance says why the cost of one period differs from that of another: it splits the difference into parts
// with one cause each, which add up to it exactly.
package variance

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Cause is why cost changed.
type Cause string

// The causes, in the order in which they are shown.
const (
	Volume     Cause = "volume"     // more or less work was done
	Price      Cause = "price"      // the same machine, bought in the same way, had another price
	Mix        Cause = "mix"        // other machines, or more of them spot, on-demand or reserved
	Efficiency Cause = "efficiency" // the same work took another time of machines
	Failures   Cause = "failures"   // time was lost to interruptions and failures
	Waiting    Cause = "waiting"    // start-up, idle machines and reserved time that nobody used
	Unmatched  Cause = "unmatched"  // no machine time with a price: disks, transfer, fees
)

// Causes are all of them.
var Causes = []Cause{Volume, Price, Mix, Efficiency, Failures, Waiting, Unmatched}

// Parts are what each cause adds to the cost, of one currency.
type Parts map[Cause]money.Amount

// machine is what is bought: one price is compared with another only of the same.
type machine struct {
	provider, region, sku string
	capacity              market.Capacity
}

// bought is how long a machine was paid for, and what it cost.
type bought struct {
	time   time.Duration
	amount money.Amount
}

// Period is what a period had, of one group and currency.
type Period struct {
	cost     money.Amount
	gross    money.Amount // of charges, with those below zero as above
	charges  int64
	work     float64 // ns of standard work
	time     map[Cause]time.Duration
	machines map[machine]bought
	untimed  Parts // amounts without a time, by their cause
	byUse    Parts // of machine time, by the cause of its use: what is compared where there is no useful time
}

// NewPeriod has nothing.
func NewPeriod() *Period {
	return &Period{time: map[Cause]time.Duration{}, machines: map[machine]bought{}, untimed: Parts{}, byUse: Parts{}}
}

// Cost is what the period cost.
func (p *Period) Cost() money.Amount { return p.cost }

// rounding is how far rounding alone can move a part: a charge may be 1e-9 off, which charge.Stream spares a row of its
// own, and the work is a sum of floats, right to 1e-9 of it.
func (p *Period) rounding() money.Amount {
	share := new(big.Int).Quo(p.gross.Big(), big.NewInt(1e9))
	return amountOf(share.Add(share, new(big.Int).Mul(big.NewInt(p.charges), big.NewInt(1000))))
}

// causes are what time of each use is counted as. Open time counts as useful until it is known what became of it.
var causes = map[ledger.Use]Cause{ledger.Useful: Volume, ledger.Open: Volume, ledger.Lost: Failures,
	ledger.StartUp: Waiting, ledger.Idle: Waiting}

// Add adds a charge.
func (p *Period) Add(c *charge.Charge) {
	p.cost, p.gross, p.charges = p.cost.Add(c.Amount), p.gross.Add(size(c.Amount)), p.charges+1
	cause, known := causes[c.Use]
	if !known || c.Category != ledger.Compute && c.Category != ledger.Fixed {
		p.untimed[Unmatched] = p.untimed[Unmatched].Add(c.Amount)
		return
	}
	if !c.Timed || c.Amount.Sign() <= 0 {
		if cause == Volume {
			cause = Price // a price that came late, or a credit
		}
		p.untimed[cause] = p.untimed[cause].Add(c.Amount)
		return
	}
	p.time[cause] += c.Time
	p.byUse[cause] = p.byUse[cause].Add(c.Amount)
	m := machine{c.Provider, c.Region, c.SKU, c.Capacity}
	b := p.machines[m]
	p.machines[m] = bought{b.time + c.Time, b.amount.Add(c.Amount)}
	if cause == Volume {
		rate := c.Work
		if rate <= 0 || math.IsInf(rate, 0) || math.IsNaN(rate) {
			rate = 1
		}
		p.work += float64(float64(c.Time) * rate)
	}
}

// Jobs sums the cost of jobs in both periods.
type Jobs map[string][2]money.Amount

// Job is what a job cost in both periods.
type Job struct {
	Job           string
	Before, After money.Amount
}

// Change is how much more it cost.
func (j Job) Change() money.Amount { return j.After.Sub(j.Before) }

// Most are the n jobs whose cost changed the most, up or down.
func (j Jobs) Most(n int) (list []Job) {
	for name, cost := range j {
		if cost[0] != cost[1] {
			list = append(list, Job{name, cost[0], cost[1]})
		}
	}
	slices.SortFunc(list, func(a, b Job) int {
		return cmp.Or(size(b.Change()).Cmp(size(a.Change())), cmp.Compare(a.Job, b.Job))
	})
	return list[:min(n, len(list))]
}

func size(a money.Amount) money.Amount {
	if a.Sign() < 0 {
		return a.Neg()
	}
	return a
}
