package core

import (
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
	"scrimp/money"
)

// settleEvery is how often the hours of a reservation that nobody uses are booked.
const settleEvery = 15 * time.Minute

// settleReserved posts what the reservations have cost by now and no attempt has: with
// what the attempts have, it is what was paid, exactly.
func (m *Machine) settleReserved(ended bool) {
	for _, l := range m.prepaid {
		o := l.Offer()
		r, s := o.Reserved, m.s.Stock(o.ID)
		soon := m.now().Sub(s.Settled) < settleEvery && (m.now().Before(r.Until) || !s.Settled.Before(r.Until))
		if m.now().Before(r.From) || soon && !ended {
			continue
		}
		idle := m.unused(o, m.now())
		m.fact(state.ReserveSettled{Offer: o.ID})
		p := m.reservedEntry(o, ledger.Billed)
		m.enter(p, idle, ledger.Payable(o.Provider), ledger.Cost(ledger.Fixed, ledger.Idle))
		p.Use = ledger.Open
		m.enter(p, idle, ledger.Invoice(o.Provider), ledger.Payable(o.Provider))
	}
}

// reservedEntry is a posting about what a reservation cost and nobody used, without its amount.
func (m *Machine) reservedEntry(o *market.Offer, phase ledger.Phase) ledger.Posting {
	return ledger.Posting{
		Currency: o.Currency, Category: ledger.Fixed, Phase: phase, Use: ledger.Idle, Rule: state.ReservedRule,
		Owner:    ledger.Owner{Tenant: m.e.Tenant, Team: o.Reserved.Team, Instance: string(o.ID)},
		Provider: o.Provider, Region: o.Region,
		SKU: o.Machine,
	}
}

// unused is what a reservation has cost by t that no attempt has, and that is not booked.
func (m *Machine) unused(o *market.Offer, t time.Time) money.Amount {
	s := m.s.Stock(o.ID)
	idle := o.Reserved.Committed(t).Sub(s.Used).Sub(s.Idle)
	for _, j := range m.s.Running() {
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
func (m *Machine) Unused(since, until time.Time) (list []Unused) {
	for _, l := range m.prepaid {
		o := l.Offer()
		if !until.After(o.Reserved.From) {
			continue
		}
		amount := m.unused(o, until)
		if since.After(m.s.Stock(o.ID).Settled) && since.After(o.Reserved.From) {
			amount = amount.Sub(m.unused(o, since))
		}
		if amount.Sign() != 0 {
			list = append(list, Unused{o.Reserved.Team, o.Currency, amount})
		}
	}
	return list
}

// findPrepaid finds what is reserved among what is for sale.
func (m *Machine) findPrepaid() {
	m.prepaid = nil
	for _, l := range m.s.Sale() {
		if l.Offer().Reserved.Count > 0 {
			m.prepaid = append(m.prepaid, l)
		}
	}
}

// free is how many machines of a reserved offer nobody has or asks for.
func (m *Machine) free(o *market.Offer) int {
	free, _ := m.seatsOf(o, nil)
	return free
}

// seatsOf is how many machines of a reserved offer nobody has or asks for, and how many are kept
// for other jobs than j: a round has placed them there, or they leave their machines for it.
func (m *Machine) seatsOf(o *market.Offer, j *Job) (free, kept int) {
	free = o.Reserved.Count
	shared := map[string]bool{} // machines that several jobs have parts of
	for _, k := range m.s.Running() {
		for _, a := range k.Open() {
			if a.Offer() != o.ID || !a.Live() {
				continue
			}
			i := m.s.Instance(a.Instance())
			if a.Nodes() == 1 && i != nil && len(i.Seats()) > 1 {
				if shared[i.ID()] {
					continue
				}
				shared[i.ID()] = true
			}
			free -= a.Nodes()
		}
		if k != j && k.Asked() == nil && k.MigratingTo() == o.ID {
			if offer, _ := k.Kept(m.now()); offer != o.ID {
				kept += m.nodesOf(k)
			}
		}
	}
	for a := range m.s.Allocations() {
		if a.Offer() == o.ID {
			free -= a.Nodes()
		}
	}
	for _, k := range m.rounds.kept {
		if offer, nodes := k.Kept(m.now()); k != j && offer == o.ID {
			kept += nodes
		}
	}
	return free, kept
}

// seatsFreed lets the jobs go on for which a reserved machine was kept that came free, and
// reports whether one did.
func (m *Machine) seatsFreed() bool {
	if !m.freedReserved {
		return false
	}
	m.freedReserved = false
	for _, j := range slices.Clone(m.rounds.kept) {
		if offer, _ := j.Kept(m.now()); offer != "" && j.State() == Running {
			m.reviewJob(j)
		}
	}
	return true
}

// reservations says of each reserved offer what j may have of it.
func (m *Machine) reservations(j *Job) (list []plan.Reservation) {
	for _, l := range m.prepaid {
		if l.Offer().Currency == m.cfg().Currency {
			list = append(list, m.reservation(j, l.Offer()))
		}
	}
	return list
}

// reservation says of a reserved offer what j may have of it: nothing where all its machines are
// in use, or kept for others. Who has one stays there until a round takes it away.
func (m *Machine) reservation(j *Job, o *market.Offer) plan.Reservation {
	r := plan.Reservation{Offer: o.ID}
	if a := j.Live(); a != nil && a.Offer() == o.ID && j.State() == Running && !a.Draining() {
		return r
	}
	free, kept := m.seatsOf(o, j)
	if m.faults.Seizes {
		kept = 0
	}
	r.InUse = free < m.nodesOf(j)
	r.Promised = !r.InUse && free-kept < m.nodesOf(j)
	return r
}
