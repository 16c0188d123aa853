package placement

import (
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
	"scrimp/money"
)

// settleEvery is how often the hours of a reservation that nobody uses are booked.
const settleEvery = 15 * time.Minute

// SettleReserved posts what the reservations have cost by now and no attempt has: with
// what the attempts have, it is what was paid, exactly.
func (mk *Market) SettleReserved(ended bool) {
	for _, l := range mk.Prepaid {
		o := l.Offer()
		r, s := o.Reserved, mk.State.Stock(o.ID)
		soon := mk.Now().Sub(s.Settled) < settleEvery && (mk.Now().Before(r.Until) || !s.Settled.Before(r.Until))
		if mk.Now().Before(r.From) || soon && !ended {
			continue
		}
		idle := mk.Unused(o, mk.Now())
		mk.Fact(state.ReserveSettled{Offer: o.ID})
		p := mk.ReservedEntry(o, ledger.Billed, mk.Event.Tenant)
		mk.books.Enter(p, idle, ledger.Payable(o.Provider), ledger.Cost(ledger.Fixed, ledger.Idle))
		p.Use = ledger.Open
		mk.books.Enter(p, idle, ledger.Invoice(o.Provider), ledger.Payable(o.Provider))
	}
}

// ReservedEntry is a posting about what a reservation cost and nobody used, without its amount. Between two steps there
// is no event, so the caller names the tenant.
func (mk *Market) ReservedEntry(o *market.Offer, phase ledger.Phase, tenant string) ledger.Posting {
	return ledger.Posting{
		Currency: o.Currency, Category: ledger.Fixed, Phase: phase, Use: ledger.Idle, Rule: state.ReservedRule,
		Owner:    ledger.Owner{Tenant: tenant, Team: o.Reserved.Team, Instance: string(o.ID)},
		Provider: o.Provider, Region: o.Region,
		SKU: o.Machine,
	}
}

// Unused is what a reservation has cost by t that no attempt has, and that is not booked.
func (mk *Market) Unused(o *market.Offer, t time.Time) money.Amount {
	s := mk.State.Stock(o.ID)
	idle := o.Reserved.Committed(t).Sub(s.Used).Sub(s.Idle)
	for _, j := range mk.State.Running() {
		for _, a := range j.Open() {
			if a.Offer() == o.ID && a.Live() {
				machine := a.Machine()
				idle = idle.Sub(machine.Owned(a.Cost(t).Sub(a.Posted()))) // not posted yet
			}
		}
	}
	return idle
}

// Unused is what a reservation cost and nobody used.
type Unused struct {
	Team     string // that pays for it
	Currency money.Currency
	Amount   money.Amount
}

// Unused returns what reservations have cost between two times, used by nobody, that is not booked yet. No time is
// before the last event but the first.
func (dc *Decider) Unused(since, until time.Time) (list []Unused) {
	for _, l := range dc.market.Prepaid {
		o := l.Offer()
		if !until.After(o.Reserved.From) {
			continue
		}
		amount := dc.market.Unused(o, until)
		if since.After(dc.State.Stock(o.ID).Settled) && since.After(o.Reserved.From) {
			amount = amount.Sub(dc.market.Unused(o, since))
		}
		if amount.Sign() != 0 {
			list = append(list, Unused{o.Reserved.Team, o.Currency, amount})
		}
	}
	return list
}

// FindPrepaid finds what is reserved among what is for sale.
func (mk *Market) FindPrepaid() {
	mk.Prepaid = nil
	for _, l := range mk.State.Sale() {
		if l.Offer().Reserved.Count > 0 {
			mk.Prepaid = append(mk.Prepaid, l)
		}
	}
}

// Free is how many machines of a reserved offer nobody has or asks for.
func (mk *Market) Free(o *market.Offer) int {
	free, _ := mk.SeatsOf(o, nil)
	return free
}

// SeatsOf is how many machines of a reserved offer nobody has or asks for, and how many are kept
// for other jobs than j: a round has placed them there, or they leave their machines for it.
func (mk *Market) SeatsOf(o *market.Offer, j *state.Job) (free, kept int) {
	free = o.Reserved.Count - mk.seated(o)
	for a := range mk.State.Allocations() {
		if a.Offer() == o.ID {
			free -= a.Nodes()
		}
	}
	for _, k := range mk.State.Running() {
		if k != j && k.Asked() == nil && k.MigratingTo() == o.ID {
			if offer, _ := k.Kept(mk.Now()); offer != o.ID {
				kept += mk.decider.nodesOf(k)
			}
		}
	}
	for _, k := range mk.bids.Rounds.Kept {
		if offer, nodes := k.Kept(mk.Now()); k != j && offer == o.ID {
			kept += nodes
		}
	}
	return free, kept
}

// seated is how many machines of the offer live attempts have. Jobs that share a machine count it once.
func (mk *Market) seated(o *market.Offer) (n int) {
	shared := map[string]bool{}
	for _, k := range mk.State.Running() {
		for _, a := range k.Open() {
			if a.Offer() != o.ID || !a.Live() {
				continue
			}
			i := mk.State.Instance(a.Instance())
			if a.Nodes() == 1 && i != nil && len(i.Seats()) > 1 {
				if shared[i.ID()] {
					continue
				}
				shared[i.ID()] = true
			}
			n += a.Nodes()
		}
	}
	return n
}

// reservations says of each reserved offer what j may have of it.
func (mk *Market) reservations(j *state.Job) (list []plan.Reservation) {
	for _, l := range mk.Prepaid {
		if l.Offer().Currency == mk.Config().Currency {
			list = append(list, mk.reservation(j, l.Offer()))
		}
	}
	return list
}

// reservation says of a reserved offer what j may have of it: nothing where all its machines are
// in use, or kept for others. Who has one stays there until a round takes it away.
func (mk *Market) reservation(j *state.Job, o *market.Offer) plan.Reservation {
	r := plan.Reservation{Offer: o.ID}
	if a := j.Live(); a != nil && a.Offer() == o.ID && j.State() == state.Running && !a.Draining() {
		return r
	}
	free, kept := mk.SeatsOf(o, j)
	if mk.Faults.Seizes {
		kept = 0
	}
	r.InUse = free < mk.decider.nodesOf(j)
	r.Promised = !r.InUse && free-kept < mk.decider.nodesOf(j)
	return r
}
