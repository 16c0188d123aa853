package core

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/ledger"
	"scrimp/internal/money"
	"scrimp/internal/plan"
	"scrimp/internal/policy"
)

// stock is what became of a reservation's money: what was booked to the attempts
// that ran there, and what to nobody, because nobody did.
type stock struct {
	Used    money.Amount `json:"used"`
	Idle    money.Amount `json:"idle"`
	Settled time.Time    `json:"settled"`
}

// settleEvery is how often the hours of a reservation that nobody uses are booked.
const settleEvery = 15 * time.Minute

// reserved returns the offer of an attempt where it is paid beforehand, or nil.
func (m *Machine) reserved(a *Attempt) *offer {
	if len(m.prepaid) == 0 {
		return nil
	}
	if o := m.offers[a.Offer]; o != nil && o.Offer.Reserved.Count > 0 {
		return o
	}
	return nil
}

// settle books what the reservations have cost by now and no attempt has: with
// what the attempts have, it is what was paid, to the last unit.
func (m *Machine) settle(out *Outcome, ended bool) {
	for _, o := range m.prepaid {
		r, s := o.Offer.Reserved, &o.Stock
		soon := m.now.Sub(s.Settled) < settleEvery && (m.now.Before(r.Until) || !s.Settled.Before(r.Until))
		if m.now.Before(r.From) || soon && !ended {
			continue
		}
		s.Settled = m.now
		idle := r.Committed(m.now).Sub(s.Used).Sub(s.Idle)
		for _, j := range m.running {
			for _, a := range j.Attempts[j.Closed:] {
				if a.Offer == o.Offer.ID && a.Live() {
					idle = idle.Sub(a.Cost(m.now).Sub(a.Posted)) // not posted yet
				}
			}
		}
		p, ok := ledger.Move(idle, ledger.Payable(o.Offer.Provider), ledger.Cost(ledger.Fixed, ledger.Idle))
		if !ok {
			continue
		}
		s.Idle = s.Idle.Add(idle)
		p.Currency, p.Category, p.Phase, p.Use, p.Rule = o.Offer.Currency, ledger.Fixed, ledger.Billed, ledger.Idle, "reserved"
		p.Owner = ledger.Owner{Tenant: "default", Team: r.Team, Instance: string(o.Offer.ID)}
		m.enter(out, &p)
		bill := p
		bill.From, bill.To, bill.Use = ledger.Invoice(o.Offer.Provider), ledger.Payable(o.Offer.Provider), ledger.Open
		if idle.Sign() < 0 {
			bill.From, bill.To = bill.To, bill.From
		}
		m.enter(out, &bill)
	}
}

// findPrepaid finds what is reserved among what is for sale.
func (m *Machine) findPrepaid() {
	m.prepaid = nil
	for _, o := range m.sale {
		if o.Offer.Reserved.Count > 0 {
			m.prepaid = append(m.prepaid, o)
		}
	}
}

// free is how many machines of a reserved offer no attempt has.
func (m *Machine) free(o *offer) int {
	n := o.Offer.Reserved.Count
	for _, k := range m.running {
		for _, a := range k.Attempts[k.Closed:] {
			if a.Offer == o.Offer.ID && a.Live() {
				n--
			}
		}
	}
	return n
}

// stirred lets the jobs that run elsewhere look at a reserved machine that came free,
// and reports whether one did.
func (m *Machine) stirred(out *Outcome) bool {
	if !m.stir {
		return false
	}
	m.stir = false
	for _, j := range slices.Clone(m.running) {
		if a := j.live(); a != nil && m.reserved(a) == nil {
			m.review(out, j)
		}
	}
	return true
}

// shares says of each reserved offer what j may have of it.
func (m *Machine) shares(j *Job) (list []plan.Reservation) {
	for _, o := range m.prepaid {
		if o.Offer.Currency == m.cfg.Currency {
			list = append(list, m.share(j, o))
		}
	}
	return list
}

// share says of a reserved offer what j may have of it: nothing where all its machines
// are taken, or where as many jobs as it has free machines have the better claim.
func (m *Machine) share(j *Job, o *offer) plan.Reservation {
	r := plan.Reservation{Offer: o.Offer.ID}
	if a := j.live(); a != nil && a.Offer == o.Offer.ID && j.State == Running && !a.Draining {
		r.Promised = (a.Phase == Booting || a.Phase == Working) && m.yields(j, o)
		return r
	}
	free := m.free(o)
	if free <= 0 {
		r.InUse = true
		return r
	}
	rivals := m.rivals(j)
	if len(rivals) < free || !o.Quote.Available {
		return r
	}
	mine := m.claim(j)
	for _, k := range rivals {
		if k.Bound == o.Offer.ID || m.before(m.claim(k), mine) && m.wants(k, o) {
			free--
		}
	}
	r.Promised = free <= 0
	return r
}

// rivals are jobs besides j that could use a reserved machine and have none: of
// those that run and of those that wait at most as many as one step looks at.
func (m *Machine) rivals(j *Job) []*Job {
	var list []*Job
	for _, k := range m.running {
		a := k.live()
		if a != nil && k != j && m.reserved(a) == nil && (a.Phase == Working || a.Phase == Leaving) && k.Ending == "" && a.Noticed.IsZero() && len(list) < looks {
			list = append(list, k)
		}
	}
	blocks := m.blocks()
	for _, c := range m.queue.classes {
		for _, p := range c.piles {
			for _, u := range p.sides[:stuck] {
				for _, k := range u[:min(looks, len(u))] {
					if k != j && len(list) < 2*looks && blocks(k).by == nil {
						list = append(list, k)
					}
				}
			}
		}
	}
	return list
}

// yields reports whether j leaves its reserved machine to another job: none is free,
// no job there has the lesser claim, and what the other saves in the time that both
// still need is more than the two restarts cost. A job whose deadline leaves no room for
// the move stays, and so does one of which nobody knows how long it needs.
func (m *Machine) yields(j *Job, o *offer) bool {
	if m.free(o) > 0 {
		return false
	}
	v := m.view(j)
	slack, timed := v.Progress.Slack(false)
	if !v.Progress.Known || timed && slack < 3*v.Progress.Restart+v.Progress.Reserve+v.Progress.Detect+v.Progress.Doubt {
		return false
	}
	mine := m.claim(j)
	for _, h := range m.running {
		if a := h.live(); a != nil && h != j && a.Offer == o.Offer.ID && m.before(mine, m.claim(h)) {
			return false
		}
	}
	for _, k := range m.rivals(j) {
		its, p := m.claim(k), m.progress(k, 1)
		if !p.Known || k.Terms.Priority < j.Terms.Priority || its.rate <= mine.rate {
			continue
		}
		span := min(v.Progress.Left, p.Left, o.Offer.Reserved.Until.Sub(m.now))
		moves := its.rate.Until(p.Restart).Add(mine.rate.Until(v.Progress.Restart))
		if (its.rate-mine.rate).Until(max(0, span)).Cmp(moves) > 0 && m.wants(k, o) {
			return true
		}
	}
	return false
}

// outbid lets the jobs on reserved machines look again, because j found none free.
func (m *Machine) outbid(j *Job) {
	if len(m.prepaid) == 0 {
		return
	}
	for _, k := range m.running {
		if a := k.live(); a != nil && k != j && m.reserved(a) != nil {
			m.wakeAt(k, m.now.Add(m.cfg.Detect))
		}
	}
}

// claim is how much a job would gain by a machine that is paid for: what an hour
// elsewhere costs it now, and how urgent it is.
type claim struct {
	job  *Job
	rate money.Rate
}

// claim is that of a job: what the machine costs that it would take or stay on if
// nothing were reserved; 0 where it would wait.
func (m *Machine) claim(j *Job) claim {
	v := m.view(j)
	v.Probed, v.Unreserved = true, true
	if a := j.live(); a != nil && m.reserved(a) != nil {
		v.Held, v.Warming = "", 0
	}
	if v.Rule == "" || v.Rule == policy.Default {
		v.Rule = policy.UniformProgress // which needs no tables
	}
	return claim{j, m.mind.Decide(v, m.class(j)).Rate}
}

// before reports whether a has the better claim: the higher priority, then what
// costs more elsewhere, then the earlier deadline, then who came first.
func (m *Machine) before(a, b claim) bool {
	if c := cmp.Or(-cmp.Compare(a.job.Terms.Priority, b.job.Terms.Priority), -cmp.Compare(a.rate, b.rate)); c != 0 {
		return c < 0
	}
	return before(a.job, b.job)
}

// wants reports whether k would take the reserved offer if it were the only one free.
func (m *Machine) wants(k *Job, o *offer) bool {
	v := m.view(k)
	if v.Rule == "" || v.Rule == policy.Default {
		v.Rule = policy.UniformProgress
	}
	return m.mind.Wants(v, m.class(k), &o.Listing)
}
