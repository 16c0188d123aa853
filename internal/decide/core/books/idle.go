package books

import (
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// PaidUntil is until when a machine is paid for anyway, by its minimum charge.
func (bk *Books) PaidUntil(i *state.Instance) time.Time {
	if l := bk.State.Listing(i.Machine().Offer); l != nil {
		return i.From().Add(l.Offer().Billing.Minimum)
	}
	return i.From()
}

// IdleJob is a machine that waits as limits see it by t: what it is paid for anyway is held.
// What it may cost beyond has to give way to whatever needs the room.
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

// Undivided is a piece of the time of a machine that nobody shares.
func Undivided(p market.Piece) state.Piece { return state.Piece{Piece: p, Part: 1, Whole: 1} }

// ChargeIdle posts a cost of a span without a task.
func (bk *Books) ChargeIdle(i *state.Instance, p ledger.Posting, amount money.Amount) {
	bk.Enter(p, amount, ledger.Payable(i.Machine().Provider), ledger.Cost(p.Category, ledger.Idle))
}

// IdleEntry is a posting about a span without a task, without its amount.
func (bk *Books) IdleEntry(i *state.Instance, idle *state.Idle, phase ledger.Phase, rule string) ledger.Posting {
	return bought(i.Machine(), ledger.Posting{Phase: phase, Use: ledger.Idle, Rule: rule, Owner: idle.Owner})
}
