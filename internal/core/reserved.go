package core

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/ledger"
	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/plan"
	"scrimp/internal/policy"
	"scrimp/internal/state"
)

// settleEvery is how often the hours of a reservation that nobody uses are booked.
const settleEvery = 15 * time.Minute

// settleReserved posts what the reservations have cost by now and no attempt has: with
// what the attempts have, it is what was paid, to the last unit.
func (m *Machine) settleReserved(ended bool) {
	for _, l := range m.prepaid {
		o := l.Offer()
		r, s := o.Reserved, m.s.Stock(o.ID)
		soon := m.now().Sub(s.Settled) < settleEvery && (m.now().Before(r.Until) || !s.Settled.Before(r.Until))
		if m.now().Before(r.From) || soon && !ended {
			continue
		}
		idle := r.Committed(m.now()).Sub(s.Used).Sub(s.Idle)
		for _, j := range m.s.Running() {
			for _, a := range j.Open() {
				if a.Offer() == o.ID && a.Live() {
					idle = idle.Sub(a.Cost(m.now()).Sub(a.Posted())) // not posted yet
				}
			}
		}
		m.fact(state.ReserveSettled{Offer: o.ID})
		p := ledger.Posting{
			Currency: o.Currency, Category: ledger.Fixed, Phase: ledger.Billed, Use: ledger.Idle, Rule: state.ReservedRule,
			Owner:    ledger.Owner{Tenant: m.e.Tenant, Team: r.Team, Instance: string(o.ID)},
			Provider: o.Provider, Region: o.Region,
			SKU: o.Machine,
		}
		m.enter(p, idle, ledger.Payable(o.Provider), ledger.Cost(ledger.Fixed, ledger.Idle))
		p.Use = ledger.Open
		m.enter(p, idle, ledger.Invoice(o.Provider), ledger.Payable(o.Provider))
	}
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
	n := o.Reserved.Count
	for _, k := range m.s.Running() {
		for _, a := range k.Open() {
			if a.Offer() == o.ID && a.Live() {
				n--
			}
		}
	}
	for a := range m.s.Allocations() {
		if a.Offer() == o.ID {
			n--
		}
	}
	return n
}

// reviewRunning reviews the jobs that run elsewhere for a reserved machine that came free,
// and reports whether one did.
func (m *Machine) reviewRunning() bool {
	if !m.freedReserved {
		return false
	}
	m.freedReserved = false
	for _, j := range slices.Clone(m.s.Running()) {
		if a := j.Live(); a != nil && !a.Machine().Prepaid {
			m.reviewJob(j)
		}
	}
	return true
}

// reservations says of each reserved offer what j may have of it.
func (m *Machine) reservations(j *Job) (list []plan.Reservation) {
	for _, l := range m.prepaid {
		if l.Offer().Currency == m.cfg().Currency {
			list = append(list, m.reservation(j, l))
		}
	}
	return list
}

// reservation says of a reserved offer what j may have of it: nothing where all its
// machines are in use, or where as many jobs as it has free machines have the better claim.
func (m *Machine) reservation(j *Job, l *state.Listing) plan.Reservation {
	r := plan.Reservation{Offer: l.Offer().ID}
	if a := j.Live(); a != nil && a.Offer() == r.Offer && j.State() == Running && !a.Draining() {
		r.Promised = a.Task() != Ended && m.yields(j, l)
		return r
	}
	free := m.free(l.Offer())
	if free <= 0 {
		r.InUse = true
		return r
	}
	rivals := m.rivals(j)
	if len(rivals) < free || !l.Quote().Available {
		return r
	}
	mine := m.claim(j)
	for _, k := range rivals {
		if k.MigratingTo() == r.Offer || m.better(m.claim(k), mine) && m.wants(k, l) {
			free--
		}
	}
	r.Promised = free <= 0
	return r
}

// rivals are jobs besides j that could use a reserved machine and have none: of
// those that run and of those that wait at most as many as one step tries at.
func (m *Machine) rivals(j *Job) []*Job {
	var list []*Job
	for _, k := range m.s.Running() {
		a := k.Live()
		if a != nil && k != j && !a.Machine().Prepaid && (a.Task() == TaskRunning || a.Task() == Ended) && k.Ending() == "" &&
			a.Noticed().IsZero() && len(list) < tries {
			list = append(list, k)
		}
	}
	blocks := m.blocks()
	for _, c := range m.queue.classes {
		for _, p := range c.subqueues {
			for _, u := range p.sides[:overQuota] {
				for _, k := range u[:min(tries, len(u))] {
					if k != j && len(list) < 2*tries && blocks(k).by == nil {
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
func (m *Machine) yields(j *Job, l *state.Listing) bool {
	o := l.Offer()
	if m.free(o) > 0 {
		return false
	}
	v := m.view(j)
	slack, timed := v.Progress.Slack(false)
	if !v.Progress.Known || timed && slack < 3*v.Progress.Restart+v.Progress.Reserve+v.Progress.Detect+v.Progress.Margin {
		return false
	}
	mine := m.claim(j)
	for _, h := range m.s.Running() {
		if a := h.Live(); a != nil && h != j && a.Offer() == o.ID && m.better(mine, m.claim(h)) {
			return false
		}
	}
	for _, k := range m.rivals(j) {
		its, p := m.claim(k), m.progress(k, 1)
		if !p.Known || k.Terms().Priority < j.Terms().Priority || its.rate <= mine.rate {
			continue
		}
		span := min(v.Progress.Left, p.Left, o.Reserved.Until.Sub(m.now()))
		moves := its.rate.Until(p.Restart).Add(mine.rate.Until(v.Progress.Restart))
		if (its.rate-mine.rate).Until(max(0, span)).Cmp(moves) > 0 && m.wants(k, l) {
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
	for _, k := range m.s.Running() {
		if a := k.Live(); a != nil && k != j && a.Machine().Prepaid {
			m.wakeAt(k, m.now().Add(m.timingOf(a.Machine()).Detect))
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
	v.Probed, v.Unreserved, v.Pending = true, true, ""
	if a := j.Live(); a != nil && a.Machine().Prepaid {
		v.Held, v.Warming = "", 0
	}
	if v.Rule == "" || v.Rule == policy.Default {
		v.Rule = policy.UniformProgress // which needs no tables
	}
	return claim{j, m.planner.Decide(v, m.class(j)).Rate}
}

// better reports whether a has the better claim: the higher priority, then what
// costs more elsewhere, then the earlier deadline, then who came first.
func (m *Machine) better(a, b claim) bool {
	if c := cmp.Or(-cmp.Compare(a.job.Terms().Priority, b.job.Terms().Priority), -cmp.Compare(a.rate, b.rate)); c != 0 {
		return c < 0
	}
	return before(a.job, b.job)
}

// wants reports whether k would take the reserved offer if it were the only one free.
func (m *Machine) wants(k *Job, l *state.Listing) bool {
	v := m.view(k)
	v.Pending = ""
	if v.Rule == "" || v.Rule == policy.Default {
		v.Rule = policy.UniformProgress
	}
	return m.planner.Wants(v, m.class(k), l.Plan())
}
