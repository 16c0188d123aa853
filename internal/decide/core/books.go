package core

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// settle posts what an attempt's time from its last settlement until t was for. The cost
// of a span is the difference of the cumulative cost, so any cut has the same sum.
func (m *Machine) settle(j *Job, k *Task, use ledger.Use, t time.Time) {
	from := k.Settled()
	if !t.After(from) {
		return
	}
	part := k.Cost(t).Sub(k.Cost(from))
	moved := money.Amount{} // what was posted already and nobody knew what it was for
	if open := k.Uses()[ledger.Open]; open.Sign() > 0 && part.Sign() > 0 {
		if moved = part; open.Cmp(part) < 0 {
			moved = open
		}
	}
	m.move(j, k, moved, ledger.Open, use, "")
	p := m.entry(j, k, ledger.Accrued, use, "")
	p.Begin, p.End = from, t
	m.charge(k, p, part.Sub(moved), use)
	m.fact(state.TimeSettled{Attempt: k.Attempt().ID(), Node: k.Rank(), Until: t})
}

// accrue posts what an attempt has cost and nobody knows yet what it was for.
func (m *Machine) accrue(j *Job, k *Task, t time.Time) {
	p := m.entry(j, k, ledger.Accrued, ledger.Open, "")
	p.Begin, p.End = period(k.Settled(), t)
	m.charge(k, p, k.Cost(t).Sub(k.Posted()), ledger.Open)
}

// period is from the earlier to the later: an end that is told late lies before what is settled,
// and what was settled beyond it is taken back.
func period(a, b time.Time) (begin, end time.Time) {
	if b.Before(a) {
		return b, a
	}
	return a, b
}

// charge posts a cost that is owed to the machine's provider.
func (m *Machine) charge(k *Task, p ledger.Posting, amount money.Amount, use ledger.Use) {
	m.enter(p, amount, ledger.Payable(k.Machine().Provider), ledger.Cost(ledger.Compute, use))
}

// level settles what is still open at the end of an attempt: a price that came
// later than the settlement of its time is of the last use, and what was settled
// beyond the end, as by a clock that was ahead, is taken back from the largest.
func (m *Machine) level(j *Job, k *Task, last ledger.Use, until time.Time) {
	m.accrue(j, k, until)
	if open := k.Uses()[ledger.Open]; open.Sign() > 0 {
		m.move(j, k, open, ledger.Open, last, "priced_later")
	}
	for k.Uses()[ledger.Open].Sign() < 0 {
		use, most := ledger.Open, money.Amount{}
		for u, v := range k.Uses() {
			if c := v.Cmp(most); c > 0 || c == 0 && v.Sign() > 0 && u < use {
				use, most = u, v
			}
		}
		if use == ledger.Open {
			return
		}
		part := money.Amount{}.Sub(k.Uses()[ledger.Open])
		if most.Cmp(part) < 0 {
			part = most
		}
		m.move(j, k, part, use, ledger.Open, "settled_too_far")
	}
}

// postsAt books the next hourly posting of a job that is billed: just after the hour, so
// that what happens at the hour is known before.
func (m *Machine) postsAt(j *Job) {
	next := m.now().Truncate(time.Hour).Add(time.Hour + 1)
	if p := at(j); !p.posts.Equal(next) {
		p.posts = next
		m.hours.push(wake{next, j})
	}
}

// postHours posts, once an hour, what the time of each running job was for: useful up to
// its newest checkpoint. What is older than an hour and in no checkpoint is posted as open.
func (m *Machine) postHours() {
	for len(m.hours) > 0 && !m.hours[0].at.After(m.now()) {
		w := m.hours.pop()
		if !w.at.Equal(at(w.job).posts) {
			continue
		}
		at(w.job).posts = time.Time{}
		m.works(w.job)
		live := false
		for _, a := range w.job.Open() {
			if !a.Live() {
				continue
			}
			live = true
			for _, k := range a.Tasks() {
				m.postHour(w.job, k)
			}
		}
		if live {
			m.postsAt(w.job)
		}
	}
}

// postHour is that of a task.
func (m *Machine) postHour(j *Job, k *Task) {
	if !k.Live() {
		return
	}
	if !k.Started().IsZero() && k.Over().IsZero() {
		m.settle(j, k, ledger.Useful, k.Kept())
	}
	if m.now().Sub(k.Settled()) >= time.Hour {
		m.accrue(j, k, m.now())
	}
}

// move reclassifies cost of the attempt.
func (m *Machine) move(j *Job, k *Task, part money.Amount, from, to ledger.Use, rule string) {
	if from == to {
		return
	}
	m.enter(m.entry(j, k, ledger.Accrued, to, rule), part, ledger.Cost(ledger.Compute, from),
		ledger.Cost(ledger.Compute, to))
}

// bill books the newest bill of an attempt's machine: plain seconds confirm or correct
// what was accrued, every other line is a rule of the provider and stands by itself.
// Without a bill the accrued cost stands, and stays owed. A bill that comes again is
// booked by what has changed.
// It reports whether it is news.
func (m *Machine) bill(j *Job, k *Task, lines []BillLine) bool {
	before := k.Bill()
	after, rules := map[string]money.Amount{}, []string{}
	for _, l := range lines {
		if _, twice := after[l.Rule]; !twice {
			rules = append(rules, l.Rule)
		}
		after[l.Rule] = after[l.Rule].Add(l.Amount)
	}
	for rule := range before {
		if _, there := after[rule]; !there {
			rules = append(rules, rule)
		}
	}
	known := before
	if before == nil {
		known = map[string]money.Amount{"": k.Posted()}
	}
	off := func(rule string) money.Amount { return after[rule].Sub(known[rule]) }
	slices.SortFunc(rules, func(x, y string) int { // credits last, so that there is what they lower
		return cmp.Or(-cmp.Compare(off(x).Sign(), off(y).Sign()), cmp.Compare(x, y))
	})
	owed := money.Amount{}
	for _, rule := range rules {
		owed = owed.Add(after[rule]).Sub(before[rule])
		if !off(rule).IsZero() {
			m.correct(j, k, off(rule), cmp.Or(rule, "reconciled"))
		}
	}
	if owed.IsZero() && before != nil {
		return false
	}
	m.enter(m.entry(j, k, ledger.Billed, ledger.Open, ""), owed, ledger.Invoice(k.Machine().Provider),
		ledger.Payable(k.Machine().Provider))
	return true
}

// correct adds a line of the bill that plain seconds do not explain. What is
// added was time paid for nothing (idle); what is given back lowers each use by
// its share of the whole, the largest uses taking what does not divide.
func (m *Machine) correct(j *Job, k *Task, off money.Amount, rule string) {
	whole := sum(k.Uses())
	if off.Sign() > 0 || whole.Sign() <= 0 {
		m.charge(k, m.entry(j, k, ledger.Billed, ledger.Idle, rule), off, ledger.Idle)
		return
	}
	before := maps.Clone(k.Uses())
	uses := make([]ledger.Use, 0, len(before))
	for u, v := range before {
		if v.Sign() > 0 {
			uses = append(uses, u)
		}
	}
	slices.SortFunc(uses, func(x, y ledger.Use) int {
		return cmp.Or(before[y].Cmp(before[x]), cmp.Compare(x, y))
	})
	rest := off
	for i := len(uses) - 1; i >= 0; i-- { // the largest comes last and takes the rest
		u := uses[i]
		part := rest
		if i > 0 {
			part = portion(off, before[u], whole)
		}
		rest = rest.Sub(part)
		m.charge(k, m.entry(j, k, ledger.Billed, u, rule), part, u)
	}
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

// bookStray books what an instance costs that nobody asked for, as overhead.
func (m *Machine) bookStray(i *Instance, amount money.Amount, rule string) {
	provider, currency := i.Machine().Provider, i.Machine().Currency
	if provider == "" {
		provider, currency = "unknown", m.cfg().Currency
	}
	p := ledger.Posting{
		Currency: currency, Category: ledger.Overhead, Phase: ledger.Billed, Use: ledger.Lost, Rule: rule,
		Owner: ledger.Owner{Tenant: m.e.Tenant, Instance: i.ID()},
	}
	m.enter(p, amount, ledger.Payable(provider), ledger.Cost(ledger.Overhead, ledger.Lost))
}

// entry is a posting about a task, without its amount.
func (m *Machine) entry(j *Job, k *Task, phase ledger.Phase, use ledger.Use, rule string) ledger.Posting {
	p := ledger.Posting{Currency: k.Currency(), Category: ledger.Compute, Phase: phase, Use: use, Rule: rule,
		Owner: j.Terms().Owner}
	p.Owner.Tenant, p.Owner.Job, p.Owner.Attempt, p.Owner.Task, p.Owner.Instance = j.Tenant(), j.ID(), k.Attempt().ID(),
		k.Name(), k.Instance()
	return p
}

// enter posts an amount; nothing is not posted, and a negative one goes the other way.
func (m *Machine) enter(p ledger.Posting, amount money.Amount, from, to ledger.Account) {
	moved, ok := ledger.Move(amount, from, to)
	if !ok {
		return
	}
	p.Amount, p.From, p.To = moved.Amount, moved.From, moved.To
	out := m.out
	p.Event, p.Line, p.At = m.s.Seq(), len(out.Postings), m.now()
	one := [1]ledger.Posting{p}
	ledger.Seal(one[:], m.s.Head(p.Owner.Tenant))
	out.Postings = append(out.Postings, one[0])
	m.s.Post(&one[0])
}
