package core

import (
	"time"

	"scrimp/internal/decide/core/accounting"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// Unposted returns, as unbooked postings, what running machines and reservations have cost up to t and the ledger
// does not have yet. Together with the ledger they add up to the amount spent by t. t must not be before the last
// event. tenant owns the reservations. What these have cost unused before since is left out, unless since is zero.
func (m *Machine) Unposted(tenant string, since, t time.Time) []ledger.Posting {
	u := unposted{at: t}
	for _, a := range m.Live() {
		j, ok := m.Job(a.Job())
		if !ok {
			continue
		}
		for _, k := range a.Tasks() {
			if k.Live() {
				u.task(m, j, k)
			}
		}
	}
	for _, i := range m.step.State.Waiting() {
		u.idle(m, i)
	}
	for _, l := range m.market.Prepaid {
		if o := l.Offer(); t.After(o.Reserved.From) {
			u.add(m.market.ReservedEntry(o, ledger.Estimated, tenant, t), m.market.UnusedSince(o, since, t))
		}
	}
	return u.list
}

type unposted struct {
	at   time.Time
	list []ledger.Posting
}

func (u *unposted) task(m *Machine, j *Job, k *Task) {
	due := k.Cost(u.at).Sub(k.Posted())
	for _, p := range k.Pieces(k.Accrued(), u.at) {
		due = due.Sub(p.Amount)
		u.add(m.books.Timed(m.books.Entry(j, k, ledger.Estimated, ledger.Open, ""), k.Machine(), p), p.Amount)
	}
	u.add(m.books.Entry(j, k, ledger.Estimated, ledger.Open, PricedLater), due)
}

func (u *unposted) idle(m *Machine, i *Instance) {
	idle, _ := i.Idle()
	due := i.Cost(u.at).Sub(i.Posted())
	for _, p := range i.Pieces(idle.PostedUntil(), u.at) {
		due = due.Sub(p.Amount)
		entry := m.books.IdleEntry(i, &idle, ledger.Estimated, "")
		u.add(m.books.Timed(entry, i.Machine(), accounting.Undivided(p)), p.Amount)
	}
	u.add(m.books.IdleEntry(i, &idle, ledger.Estimated, PricedLater), due)
}

func (u *unposted) add(p ledger.Posting, amount money.Amount) {
	moved, ok := ledger.Move(amount, ledger.Payable(p.Provider), ledger.Cost(p.Category, p.Use))
	if !ok {
		return
	}
	p.Amount, p.From, p.To, p.At = moved.Amount, moved.From, moved.To, u.at
	u.list = append(u.list, p)
}
