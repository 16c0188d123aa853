package accounting

import (
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// PaidUntil is the time until which a machine is paid for in any case, by its minimum charge.
func (bk *Books) PaidUntil(i *state.Instance) time.Time {
	if l := bk.State.Listing(i.Machine().Offer); l != nil {
		return i.From().Add(l.Offer().Billing.Minimum)
	}
	return i.From()
}

// IdleJob returns an idle machine as limits see it at t. The limits hold the time that is billed in any case. The cost
// beyond that yields to anything that needs the room.
func (bk *Books) IdleJob(i *state.Instance, idle *state.Idle, t time.Time) budget.Job {
	spent := idle.Posted.Add(i.Cost(t)).Sub(i.Posted())
	most := spent
	if paid := bk.PaidUntil(i); paid.After(t) {
		most = spent.Add(i.PresentRate().Until(paid.Sub(t)))
	}
	if most.Cmp(idle.Most) > 0 {
		most = idle.Most
	}
	if most.Cmp(spent) < 0 {
		most = spent
	}
	return budget.Job{ID: i.ID(), Owner: idle.Owner, User: idle.User, Most: most, Spent: spent, Bounded: true,
		GPUBounded: true, Kind: budget.Hold}
}

// Undivided returns a piece of the time of a machine that nobody shares.
func Undivided(p market.Piece) state.Piece { return state.Piece{Piece: p, Part: 1, Whole: 1} }

// ChargeIdle posts a cost of an idle span.
func (bk *Books) ChargeIdle(i *state.Instance, p ledger.Posting, amount money.Amount) {
	bk.Enter(p, amount, ledger.Payable(i.Machine().Provider), ledger.Cost(p.Category, ledger.Idle))
}

// IdleEntry returns a posting about an idle span, without its amount.
func (bk *Books) IdleEntry(i *state.Instance, idle *state.Idle, phase ledger.Phase, rule string) ledger.Posting {
	return bought(i.Machine(), ledger.Posting{Phase: phase, Use: ledger.Idle, Rule: rule, Owner: idle.Owner})
}
