// Package chargeback divides the cost of a month among teams: the cost of each team itself, and its share of the
// shared cost by a stated rule. The parts add up to the whole exactly.
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

// The pools of shared cost from the ledger. Each fee is a pool with a name of its own.
const (
	IdlePool         = "(idle machines)"       // machines of no team, while they wait for a job
	ReservedPool     = "(unused reservations)" // reserved time that no team reserved or used
	UnattributedPool = "(unattributed)"        // all other cost without a team
)

// Account is the cost of one team or one pool in one currency.
type Account struct {
	Name     string
	Currency money.Currency
	Own      money.Amount
	Uses     map[ledger.Use]money.Amount
	Phases   map[ledger.Phase]money.Amount

	// List is the cost at on-demand prices of the machine time whose on-demand price is known; Listed is its actual
	// cost.
	List, Listed money.Amount
	HasList      bool
	Unlisted     money.Amount // cost of machine time without a known on-demand price

	GPUTime  *big.Int // accelerator-nanoseconds
	GPUCost  money.Amount
	Time     *big.Int // machine-nanoseconds
	Jobs     map[string]money.Amount
	lostCost map[string]map[string]money.Amount
	spread   *Rule // of a fee; nil: the rule of the statement
}

// Lost returns the lost cost of a job by attempt.
func (a *Account) Lost(job string) map[string]money.Amount { return a.lostCost[job] }

// Saved returns how much less than on-demand the machine time cost; false if no on-demand price is known.
func (a *Account) Saved() (money.Amount, bool) { return a.List.Sub(a.Listed), a.HasList }

// PerGPUHour returns the cost per accelerator hour, truncated to 1e-12; false if no accelerator ran.
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

// NewMonth returns an empty month.
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

// Teams returns the accounts of the teams, by name and currency.
func (m *Month) Teams() []*Account { return sorted(m.teams) }

// Pools returns the accounts of shared cost, by name and currency.
func (m *Month) Pools() []*Account { return sorted(m.pools) }

func sorted(of map[key]*Account) []*Account {
	return slices.SortedFunc(maps.Values(of), func(a, b *Account) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Currency, b.Currency))
	})
}

// Add adds a charge to the account of its team, or to a pool if it has none.
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

// AddFee adds a cost of the month from outside the ledger, such as a subscription. Spread divides it; nil: the rule of
// the statement does.
func (m *Month) AddFee(name string, amount money.Amount, c money.Currency, spread *Rule) {
	a := account(m.pools, name, c)
	a.spread = spread
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
	long, timed := c.MachineTime()
	if !timed {
		return
	}
	a.Time.Add(a.Time, long)
	a.GPUTime.Add(a.GPUTime, new(big.Int).Mul(long, big.NewInt(int64(c.Accelerators))))
	list, known := c.ListAmount()
	if !known {
		a.Unlisted = a.Unlisted.Add(c.Amount)
		return
	}
	a.List, a.Listed, a.HasList = a.List.Add(list), a.Listed.Add(c.Amount), true
}
