// Package chargeback divides what a month cost among teams: what each had by itself, and its share of what nobody had
// by itself, by a stated rule. The parts add up to the whole exactly.
package chargeback

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// The pools of shared cost that the ledger has itself. Fees are pools with names of their own.
const (
	IdlePool         = "(idle machines)"       // machines of no team, while they waited for a job
	ReservedPool     = "(unused reservations)" // reserved time that no team reserved and nobody used
	UnattributedPool = "(unattributed)"        // all other cost that belongs to no team
)

// Account is what one team, or one pool, had in one currency.
type Account struct {
	Name     string
	Currency money.Currency
	Own      money.Amount
	Uses     map[ledger.Use]money.Amount
	Phases   map[ledger.Phase]money.Amount

	// List is what the machine time whose on-demand price is known costs at that price, and Listed what it cost.
	List, Listed money.Amount
	HasList      bool
	Unlisted     money.Amount // cost of machine time whose on-demand price nobody knows

	GPUTime  *big.Int // ns of accelerators
	GPUCost  money.Amount
	Time     *big.Int // ns of machines
	Jobs     map[string]money.Amount
	lostCost map[string]map[string]money.Amount
}

// Lost returns what was lost in each attempt of a job.
func (a *Account) Lost(job string) map[string]money.Amount { return a.lostCost[job] }

// Saved is how much less the machine time cost than on demand, where that is known of some of it.
func (a *Account) Saved() (money.Amount, bool) { return a.List.Sub(a.Listed), a.HasList }

// PerGPUHour is the cost of an accelerator's hour, cut off at 1e-12, where any ran.
func (a *Account) PerGPUHour() (money.Amount, bool) {
	if a.GPUTime.Sign() <= 0 {
		return money.Amount{}, false
	}
	n := new(big.Int).Mul(a.GPUCost.Big(), big.NewInt(int64(time.Hour)))
	return money.FromBig(n.Quo(n, a.GPUTime))
}

type key struct {
	name     string
	currency money.Currency
}

// Month collects the charges of a month.
type Month struct {
	teams, pools map[key]*Account
}

// NewMonth has nothing.
func NewMonth() *Month { return &Month{teams: map[key]*Account{}, pools: map[key]*Account{}} }

func account(of map[key]*Account, name string, c money.Currency) *Account {
	k := key{name, c}
	if of[k] == nil {
		of[k] = &Account{Name: name, Currency: c, Uses: map[ledger.Use]money.Amount{},
			Phases: map[ledger.Phase]money.Amount{}, GPUTime: new(big.Int), Time: new(big.Int),
			Jobs: map[string]money.Amount{}, lostCost: map[string]map[string]money.Amount{}}
	}
	return of[k]
}

// Teams are the accounts of teams, by name and currency.
func (m *Month) Teams() []*Account { return sorted(m.teams) }

// Pools are those of shared cost, by name and currency.
func (m *Month) Pools() []*Account { return sorted(m.pools) }

func sorted(of map[key]*Account) []*Account {
	return slices.SortedFunc(maps.Values(of), func(a, b *Account) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Currency, b.Currency))
	})
}

// Add adds a charge to its team, or to a pool where it has none.
func (m *Month) Add(c *charge.Charge) {
	a := (*Account)(nil)
	switch {
	case c.Owner.Team != "":
		a = account(m.teams, c.Owner.Team, c.Currency)
	case c.Rule == state.ReservedRule:
		a = account(m.pools, ReservedPool, c.Currency)
	case c.Owner.Job == "" && c.Use == ledger.Idle:
		a = account(m.pools, IdlePool, c.Currency)
	default:
		a = account(m.pools, UnattributedPool, c.Currency)
	}
	a.add(c)
}

// AddFee adds a cost of the month that is no charge of the ledger, such as a subscription.
func (m *Month) AddFee(name string, amount money.Amount, c money.Currency) {
	a := account(m.pools, name, c)
	a.Own = a.Own.Add(amount)
	a.Phases[ledger.Accrued] = a.Phases[ledger.Accrued].Add(amount)
}

func (a *Account) add(c *charge.Charge) {
	a.Own = a.Own.Add(c.Amount)
	a.Uses[c.Use] = a.Uses[c.Use].Add(c.Amount)
	a.Phases[c.Confidence()] = a.Phases[c.Confidence()].Add(c.Amount)
	if job := c.Owner.Job; job != "" {
		a.Jobs[job] = a.Jobs[job].Add(c.Amount)
		if c.Use == ledger.Lost && c.Owner.Attempt != "" {
			if a.lostCost[job] == nil {
				a.lostCost[job] = map[string]money.Amount{}
			}
			a.lostCost[job][c.Owner.Attempt] = a.lostCost[job][c.Owner.Attempt].Add(c.Amount)
		}
	}
	if c.Category != ledger.Compute {
		return
	}
	if c.Accelerators > 0 {
		a.GPUCost = a.GPUCost.Add(c.Amount)
	}
	if !c.Timed {
		return
	}
	long := big.NewInt(int64(c.Time))
	if c.Amount.Sign() < 0 {
		long.Neg(long) // it takes back time that was charged before
	}
	if c.Whole > 0 { // of a machine with several tasks
		long.Quo(long.Mul(long, big.NewInt(c.Part)), big.NewInt(c.Whole))
	}
	a.Time.Add(a.Time, long)
	a.GPUTime.Add(a.GPUTime, new(big.Int).Mul(long, big.NewInt(int64(c.Accelerators))))
	if !c.ListPrice.Known {
		a.Unlisted = a.Unlisted.Add(c.Amount)
		return
	}
	list := c.ListPrice.Rate.Until(c.Time)
	if c.Amount.Sign() < 0 {
		list = list.Neg()
	}
	a.List, a.Listed, a.HasList = a.List.Add(list), a.Listed.Add(c.Amount), true
}
