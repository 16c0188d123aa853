// Package variance explains why the cost of one period differs from that of another. It splits the difference into
// parts with one cause each, which add up to it exactly.
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

// Cause is the reason of a change in cost.
type Cause string

// The causes, in display order.
const (
	Volume     Cause = "volume"     // more or less work
	Price      Cause = "price"      // another price for the same machine at the same capacity
	Mix        Cause = "mix"        // other machines, or another share of spot, on-demand or reserved
	Efficiency Cause = "efficiency" // another machine time for the same work
	Failures   Cause = "failures"   // time lost to interruptions and failures
	Waiting    Cause = "waiting"    // start-up, idle machines and unused reserved time
	Unmatched  Cause = "unmatched"  // costs without priced machine time: disks, transfer, fees
)

// Causes lists all causes.
var Causes = []Cause{Volume, Price, Mix, Efficiency, Failures, Waiting, Unmatched}

// Parts holds what each cause adds to the cost, in one currency.
type Parts map[Cause]money.Amount

// machine identifies a kind of machine. Prices are compared only within one kind.
type machine struct {
	provider, region, sku string
	capacity              market.Capacity
}

// bought is the paid time of a machine and its cost.
type bought struct {
	time   time.Duration
	amount money.Amount
}

// Period collects the costs of one period, of one group and currency.
type Period struct {
	cost     money.Amount
	gross    money.Amount // sum of the absolute values of the charges
	charges  int64
	work     float64 // ns of standard work
	time     map[Cause]time.Duration
	machines map[machine]bought
	untimed  Parts // amounts without a time, by cause
	byUse    Parts // of machine time, by the cause of its use; compared directly if there is no useful time
}

// NewPeriod returns an empty period.
func NewPeriod() *Period {
	return &Period{time: map[Cause]time.Duration{}, machines: map[machine]bought{}, untimed: Parts{}, byUse: Parts{}}
}

// Cost returns the cost of the period.
func (p *Period) Cost() money.Amount { return p.cost }

// rounding bounds the effect of rounding on a part. A charge may be off by 1e-9, which charge.Stream does not
// report as a row of its own, and the work is a sum of floats with a relative error of 1e-9.
func (p *Period) rounding() money.Amount {
	share := new(big.Int).Quo(p.gross.Big(), big.NewInt(1e9))
	return amountOf(share.Add(share, new(big.Int).Mul(big.NewInt(p.charges), big.NewInt(1000))))
}

// causes maps each use of time to a cause. Open time counts as useful until its use is known.
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
			cause = Price // a late price, or a credit
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

// Jobs holds the cost of each job in both periods.
type Jobs map[string][2]money.Amount

// Job is the cost of one job in both periods.
type Job struct {
	Job           string
	Before, After money.Amount
}

// Change returns the increase of its cost.
func (j Job) Change() money.Amount { return j.After.Sub(j.Before) }

// Most returns the n jobs whose cost changed the most, up or down.
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
