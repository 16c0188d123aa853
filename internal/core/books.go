package core

import (
	"math/big"
	"slices"
	"time"

	"scrimp/internal/ledger"
	"scrimp/internal/market"
	"scrimp/internal/money"
)

// accrue posts what the attempt has cost since the last time, as open: nobody
// knows yet whether the time was useful.
func (m *Machine) accrue(out *Outcome, j *Job, a *Attempt, t time.Time) {
	cost := a.Cost(t)
	m.post(out, j, a, cost.Sub(a.Posted), ledger.Payable(a.Provider), ledger.Cost(ledger.Compute, ledger.Open), ledger.Accrued, ledger.Open, "")
	a.Posted = cost
	a.Uses[ledger.Open] = a.Uses[ledger.Open].Add(cost.Sub(sum(a.Uses)))
}

// keep settles the time from the last settlement until t as use. The cost of a
// span is the difference of the cumulative cost, so any cut has the same sum.
func (m *Machine) keep(out *Outcome, j *Job, a *Attempt, use ledger.Use, t time.Time) {
	if t.Before(a.Kept) {
		t = a.Kept
	}
	m.accrue(out, j, a, m.until(a))
	part := a.Cost(t).Sub(a.Cost(a.Kept))
	m.move(out, j, a, part, ledger.Open, use, "")
	a.Kept = t
}

// level settles what is still open at the end of an attempt: a price that came
// later than the settlement of its time is of the last use, and what was settled
// beyond the end, as by a clock that was ahead, is taken back from the largest.
func (m *Machine) level(out *Outcome, j *Job, a *Attempt, last ledger.Use) {
	if open := a.Uses[ledger.Open]; open.Sign() > 0 {
		m.move(out, j, a, open, ledger.Open, last, "priced_later")
	}
	for a.Uses[ledger.Open].Sign() < 0 {
		use, most := ledger.Open, money.Amount{}
		for u, v := range a.Uses {
			if c := v.Cmp(most); c > 0 || c == 0 && v.Sign() > 0 && u < use {
				use, most = u, v
			}
		}
		if use == ledger.Open {
			return
		}
		part := money.Amount{}.Sub(a.Uses[ledger.Open])
		if most.Cmp(part) < 0 {
			part = most
		}
		m.move(out, j, a, part, use, ledger.Open, "settled_too_far")
	}
}

// until is up to when the attempt is billed as far as is known now.
func (m *Machine) until(a *Attempt) time.Time {
	if !a.Until.IsZero() {
		return a.Until
	}
	return m.now
}

// move reclassifies cost of the attempt.
func (m *Machine) move(out *Outcome, j *Job, a *Attempt, part money.Amount, from, to ledger.Use, rule string) {
	if from == to {
		return
	}
	m.post(out, j, a, part, ledger.Cost(ledger.Compute, from), ledger.Cost(ledger.Compute, to), ledger.Accrued, to, rule)
	a.Uses[from] = a.Uses[from].Sub(part)
	a.Uses[to] = a.Uses[to].Add(part)
}

// reprice starts a new price segment for every instance of the offer.
func (m *Machine) reprice(id market.OfferID, q market.Quote) {
	for _, j := range m.running {
		for _, a := range j.Attempts[j.Closed:] {
			if a.Offer != id || len(a.Rates) == 0 || !a.Until.IsZero() {
				continue
			}
			last := &a.Rates[len(a.Rates)-1]
			switch {
			case last.Rate == q.Rate || q.At.Before(last.From):
			case q.At.Equal(last.From):
				last.Rate = q.Rate
			default:
				a.Rates = append(a.Rates, market.Segment{From: q.At, Rate: q.Rate})
			}
		}
	}
}

// bill takes the provider's bill: plain seconds confirm or correct what was
// accrued, every other line is a rule of the provider and stands by itself.
// Without a bill the accrued cost stands, and stays owed.
func (m *Machine) bill(out *Outcome, j *Job, a *Attempt, lines []BillLine) {
	if len(lines) == 0 {
		return
	}
	var plain money.Amount
	for _, l := range lines {
		if l.Rule == "" {
			plain = plain.Add(l.Amount)
		}
	}
	if off := plain.Sub(a.Posted); !off.IsZero() {
		m.correct(out, j, a, off, "reconciled")
	}
	for _, l := range lines {
		if l.Rule != "" {
			m.correct(out, j, a, l.Amount, l.Rule)
		}
	}
	m.post(out, j, a, a.Posted.Add(a.Rules), ledger.Invoice(a.Provider), ledger.Payable(a.Provider), ledger.Billed, ledger.Open, "")
	a.Billed = true
}

// correct adds a line of the bill that plain seconds do not explain. What is
// added was time paid for nothing (idle); what is given back lowers each use by
// its share of the whole, the largest uses taking what does not divide.
func (m *Machine) correct(out *Outcome, j *Job, a *Attempt, off money.Amount, rule string) {
	a.Rules = a.Rules.Add(off)
	whole := sum(a.Uses)
	if off.Sign() > 0 || whole.Sign() <= 0 {
		m.post(out, j, a, off, ledger.Payable(a.Provider), ledger.Cost(ledger.Compute, ledger.Idle), ledger.Billed, ledger.Idle, rule)
		a.Uses[ledger.Idle] = a.Uses[ledger.Idle].Add(off)
		return
	}
	uses := make([]ledger.Use, 0, len(a.Uses))
	for u, v := range a.Uses {
		if v.Sign() > 0 {
			uses = append(uses, u)
		}
	}
	slices.SortFunc(uses, func(x, y ledger.Use) int {
		if c := a.Uses[y].Cmp(a.Uses[x]); c != 0 {
			return c
		}
		return compare(x, y)
	})
	rest := off
	for i := len(uses) - 1; i >= 0; i-- { // the largest comes last and takes the rest
		u := uses[i]
		part := rest
		if i > 0 {
			part = portion(off, a.Uses[u], whole)
		}
		rest = rest.Sub(part)
		m.post(out, j, a, part, ledger.Payable(a.Provider), ledger.Cost(ledger.Compute, u), ledger.Billed, u, rule)
		a.Uses[u] = a.Uses[u].Add(part)
	}
}

func compare(a, b ledger.Use) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// portion returns off · part / whole, cut off towards zero.
func portion(off, part, whole money.Amount) money.Amount {
	n := new(big.Int).Mul(off.Big(), part.Big())
	a, _ := money.FromBig(n.Quo(n, whole.Big())) // no larger than off
	return a
}

func sum(uses map[ledger.Use]money.Amount) money.Amount {
	var total money.Amount
	for _, v := range uses {
		total = total.Add(v) // exact, so the order does not matter
	}
	return total
}

// bookOrphan books an instance that nobody owned as overhead.
func (m *Machine) bookOrphan(out *Outcome, r Rented, b InstanceEnded) {
	o := m.offers[r.Offer]
	provider, currency := "unknown", m.cfg.Currency
	if o != nil {
		provider, currency = o.Offer.Provider, o.Offer.Currency
	}
	var total money.Amount
	for _, l := range b.Bill {
		total = total.Add(l.Amount)
	}
	if len(b.Bill) == 0 && b.Until.After(r.From) {
		total = r.Rate.Until(b.Until.Sub(r.From))
	}
	p, ok := ledger.Move(total, ledger.Payable(provider), ledger.Cost(ledger.Overhead, ledger.Lost))
	if !ok {
		return
	}
	p.Currency, p.Category, p.Phase, p.Use = currency, ledger.Overhead, ledger.Billed, ledger.Lost
	p.Owner = ledger.Owner{Tenant: "default", Instance: r.Instance}
	m.enter(out, &p)
}

func (m *Machine) post(out *Outcome, j *Job, a *Attempt, amount money.Amount, from, to ledger.Account, phase ledger.Phase, use ledger.Use, rule string) {
	p, ok := ledger.Move(amount, from, to)
	if !ok {
		return
	}
	p.Currency, p.Category, p.Phase, p.Use, p.Rule = a.Currency, ledger.Compute, phase, use, rule
	p.Owner = j.Terms.Owner
	if o := m.reserved(a); o != nil && from == ledger.Payable(a.Provider) {
		o.Stock.Used = o.Stock.Used.Add(amount)
	}
	p.Owner.Tenant, p.Owner.Job, p.Owner.Attempt, p.Owner.Task, p.Owner.Instance = j.Tenant, j.ID, a.ID, a.ID+"/0", a.Instance
	m.enter(out, &p)
}

func (m *Machine) enter(out *Outcome, p *ledger.Posting) {
	p.Event, p.Line, p.At = m.seq, len(out.Postings), m.now
	if out.Postings == nil {
		out.Postings = make([]ledger.Posting, 0, 2) // what a span cost, and what it was for
	}
	out.Postings = append(out.Postings, *p)
	m.booked(p)
}

// seal chains the step's postings to those of their tenants before them.
func (m *Machine) seal(out *Outcome) {
	for list := out.Postings; len(list) > 0; {
		tenant, n := list[0].Owner.Tenant, 1
		for n < len(list) && list[n].Owner.Tenant == tenant {
			n++
		}
		_, m.heads[tenant] = ledger.Seal(list[:n], m.heads[tenant])
		list = list[n:]
	}
}
