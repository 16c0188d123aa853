package placement

import (
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
	"scrimp/money"
)

// settleEvery is how often the unused hours of a reservation are booked.
const settleEvery = 15 * time.Minute

// SettleReserved posts the cost of reserved time that no attempt used. Together with the attempts' postings it adds up
// to the price of the reservation. A step settles the offers in freed, or else one offer that is due, because settling
// an offer reads all jobs on its machines. The other due offers follow in their own steps at the same time.
func (mk *Market) SettleReserved(freed []market.OfferID) {
	for _, l := range mk.Prepaid {
		switch o := l.Offer(); {
		case slices.Contains(freed, o.ID) && !mk.Now().Before(o.Reserved.From):
			mk.settleReserved(o)
		case len(freed) == 0 && mk.unsettled(o):
			mk.settleReserved(o)
			return
		}
	}
}

// settleReserved is SettleReserved of one offer.
func (mk *Market) settleReserved(o *market.Offer) {
	idle, p := mk.Unused(o, mk.Now()), mk.ReservedEntry(o, ledger.Billed, mk.Event.Tenant, mk.Now())
	mk.Fact(state.ReserveSettled{Offer: o.ID})
	mk.books.Enter(p, idle, ledger.Payable(o.Provider), ledger.Cost(ledger.Fixed, ledger.Idle))
	p.Use = ledger.Open
	mk.books.Enter(p, idle, ledger.Invoice(o.Provider), ledger.Payable(o.Provider))
}

// unsettled reports whether the unused hours of a reservation must be booked.
func (mk *Market) unsettled(o *market.Offer) bool {
	r, settled := o.Reserved, mk.State.Stock(o.ID).Settled
	return !mk.Now().Before(r.From) &&
		(mk.Now().Sub(settled) >= settleEvery || !mk.Now().Before(r.Until) && settled.Before(r.Until))
}

// Unsettled reports whether SettleReserved has left a reservation to the next step.
func (mk *Market) Unsettled() bool {
	return slices.ContainsFunc(mk.Prepaid, func(l *state.Listing) bool { return mk.unsettled(l.Offer()) })
}

// ReservedEntry is a posting about the unused cost of a reservation from the last settlement to t, without its amount.
// The caller names the tenant, because no event is current between two steps.
func (mk *Market) ReservedEntry(o *market.Offer, phase ledger.Phase, tenant string, t time.Time) ledger.Posting {
	begin, end := mk.State.Stock(o.ID).Settled, t
	if begin.Before(o.Reserved.From) {
		begin = o.Reserved.From
	}
	if end.After(o.Reserved.Until) {
		end = o.Reserved.Until
	}
	if !begin.Before(end) { // a correction after the end has no period
		begin, end = time.Time{}, time.Time{}
	}
	return ledger.Posting{
		Begin: begin, End: end,
		Currency: o.Currency, Category: ledger.Fixed, Phase: phase, Use: ledger.Idle, Rule: state.ReservedRule,
		Owner:    ledger.Owner{Tenant: tenant, Team: o.Reserved.Team, Instance: string(o.ID)},
		Provider: o.Provider, Region: o.Region,
		SKU: o.Machine,
	}
}

// Unused returns the cost of a reservation up to t that no attempt used and that is not booked yet.
func (mk *Market) Unused(o *market.Offer, t time.Time) money.Amount {
	s := mk.State.Stock(o.ID)
	idle := o.Reserved.Committed(t).Sub(s.Used).Sub(s.Idle)
	mk.recount()
	for j := range mk.stock.holders[o.ID] { // the order does not matter: amounts are exact
		for _, a := range j.Open() {
			if a.Offer() == o.ID && a.Live() {
				machine := a.Machine()
				idle = idle.Sub(machine.Owned(a.Cost(t).Sub(a.Posted()))) // not posted yet
			}
		}
	}
	return idle
}

// UnusedSince is Unused of the time since, unless that is before the last settlement.
func (mk *Market) UnusedSince(o *market.Offer, since, until time.Time) money.Amount {
	amount := mk.Unused(o, until)
	if since.After(mk.State.Stock(o.ID).Settled) && since.After(o.Reserved.From) {
		amount = amount.Sub(mk.Unused(o, since))
	}
	return amount
}

// Unused is the unused cost of a reservation.
type Unused struct {
	Team     string // the team that pays for it
	Currency money.Currency
	Amount   money.Amount
}

// Unused returns the unused cost of reservations between two times that is not booked yet. until, and since unless
// it is the first time, must not be before the last event.
func (dc *Decider) Unused(since, until time.Time) (list []Unused) {
	for _, l := range dc.market.Prepaid {
		o := l.Offer()
		if !until.After(o.Reserved.From) {
			continue
		}
		if amount := dc.market.UnusedSince(o, since, until); amount.Sign() != 0 {
			list = append(list, Unused{o.Reserved.Team, o.Currency, amount})
		}
	}
	return list
}

// FindPrepaid finds the reserved offers for sale.
func (mk *Market) FindPrepaid() {
	mk.Prepaid = nil
	for _, l := range mk.State.Sale() {
		if l.Offer().Reserved.Count > 0 {
			mk.Prepaid = append(mk.Prepaid, l)
		}
	}
}

// reservations returns how j may use each reserved offer.
func (mk *Market) reservations(j *state.Job) (list []plan.Reservation) {
	for _, l := range mk.Prepaid {
		if l.Offer().Currency == mk.Config().Currency {
			list = append(list, mk.reservation(j, l.Offer()))
		}
	}
	return list
}

// reservation returns how j may use a reserved offer: not at all if all its machines are in use or kept for others.
// A job with a seat stays there until a round moves it.
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
