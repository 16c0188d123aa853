package core

import (
	"cmp"
	"math/big"
	"slices"

	"scrimp/internal/ledger"
	"scrimp/internal/money"
	"scrimp/internal/state"
)

// TakesBill reports whether the bill of an instance would be booked if it came now: its end
// was told. One that comes before is to be sent again.
func (m *Machine) TakesBill(instance, launch string) bool {
	if i := m.s.Instance(instance); i != nil && i.Shared() {
		return i.Allocation() == launch && !i.Live() && !i.Lost()
	}
	if a := m.s.AttemptOf(launch); a != nil && a.Instance() == instance {
		return !a.Live() && !a.GivenUp()
	}
	i := m.s.Instance(instance)
	return i != nil && i.Stray() && !i.Live()
}

// billed books the newest bill of an instance. That of a machine that runs, or that
// nothing was heard of yet, is not whole: the one that comes after its end is booked.
func (m *Machine) billed(b BillReceived) {
	if i := m.s.Instance(b.Instance); i != nil && i.Shared() {
		if m.TakesBill(b.Instance, b.Launch) {
			m.splitBill(i, b.Lines)
		}
		return
	}
	if a := m.s.AttemptOf(b.Launch); a != nil && a.Instance() == b.Instance {
		if !a.Live() && !a.GivenUp() {
			if m.bill(m.s.Job(a.Job()), a, b.Lines) {
				m.fact(state.BillTaken{Instance: a.Instance()})
			}
		}
		return
	}
	i := m.s.Instance(b.Instance)
	if i == nil || !i.Stray() || i.Live() {
		return
	}
	total := money.Amount{}
	for _, l := range b.Lines {
		total = total.Add(l.Amount)
	}
	m.bookStray(i, total.Sub(i.Posted()), "billed")
	m.fact(state.BillTaken{Instance: i.ID()})
}

// splitBill books the newest bill of a machine that was shared, in parts that are the bill. Plain
// seconds and credits are split by what its attempts and its spans without a task cost at plain
// seconds. What a rule adds, as a minimum charge, is of whoever had the machine when it
// ended: a job that is over is not charged for what nobody used after it.
func (m *Machine) splitBill(i *Instance, lines []BillLine) {
	var attempts []*Attempt
	var weights []money.Amount
	for _, id := range i.Served() {
		if a := m.s.AttemptOf(id); a != nil {
			attempts, weights = append(attempts, a), append(weights, atLeastZero(a.Posted()))
		}
	}
	for _, idle := range i.Idles() {
		weights = append(weights, atLeastZero(idle.Posted))
	}
	parts := make([][]BillLine, len(weights))
	atEnd := atTheEnd(i, attempts, weights)
	for _, l := range lines {
		by := weights
		if l.Rule != "" && l.Amount.Sign() > 0 {
			by = atEnd
		}
		for n, part := range allocate(l.Amount, by) {
			if !part.IsZero() || l.Rule == "" {
				parts[n] = append(parts[n], BillLine{Rule: l.Rule, Amount: part})
			}
		}
	}
	f := state.BillSplit{Instance: i.ID()}
	for n, a := range attempts {
		m.bill(m.s.Job(a.Job()), a, parts[n])
		f.Parts = append(f.Parts, state.BillPart{Attempt: a.ID(), Bill: byRule(parts[n])})
	}
	for n := range i.Idles() {
		lines := parts[len(attempts)+n]
		m.billIdle(i, &i.Idles()[n], lines)
		f.Parts = append(f.Parts, state.BillPart{Task: i.Idles()[n].Owner.Task, Bill: byRule(lines)})
	}
	m.fact(f)
}

// atTheEnd are the weights of those that had a machine when it ended: its tasks, or nobody.
func atTheEnd(i *Instance, attempts []*Attempt, weights []money.Amount) []money.Amount {
	last := make([]money.Amount, len(weights))
	if idles := i.Idles(); len(idles) > 0 && idles[len(idles)-1].Taken == "" {
		last[len(last)-1] = money.Picos(1)
		return last
	}
	for n, a := range attempts {
		if !a.Until().Before(i.Until()) {
			last[n] = weights[n].Add(money.Picos(1)) // it pays also where it was there for no time
		}
	}
	return last
}

// allocate is ledger.Allocate; where nothing was posted the first pays all.
func allocate(total money.Amount, weights []money.Amount) []money.Amount {
	units := make([]*big.Int, len(weights))
	for n, w := range weights {
		units[n] = w.Big()
	}
	if parts, ok := ledger.Allocate(total, units); ok {
		return parts
	}
	parts := make([]money.Amount, len(weights))
	parts[0] = total
	return parts
}

func atLeastZero(a money.Amount) money.Amount {
	if a.Sign() < 0 {
		return money.Amount{}
	}
	return a
}

// billIdle books the part of a span without a task: it is idle, whatever the rule.
func (m *Machine) billIdle(i *Instance, idle *state.Idle, lines []BillLine) {
	provider := i.Machine().Provider
	after, before := byRule(lines), idle.Bill
	known := before
	if before == nil {
		known = map[string]money.Amount{"": idle.Posted}
	}
	owed := money.Amount{}
	for _, rule := range rulesOf(after, before) {
		owed = owed.Add(after[rule]).Sub(before[rule])
		m.enter(m.idleEntry(i, idle, ledger.Billed, cmp.Or(rule, "reconciled")), after[rule].Sub(known[rule]),
			ledger.Payable(provider), ledger.Cost(ledger.Compute, ledger.Idle))
	}
	p := m.idleEntry(i, idle, ledger.Billed, "")
	p.Use = ledger.Open
	m.enter(p, owed, ledger.Invoice(provider), ledger.Payable(provider))
}

// byRule sums the lines of a bill by rule.
func byRule(lines []BillLine) map[string]money.Amount {
	sums := map[string]money.Amount{}
	for _, l := range lines {
		sums[l.Rule] = sums[l.Rule].Add(l.Amount)
	}
	return sums
}

// rulesOf are the rules of two bills, sorted.
func rulesOf(a, b map[string]money.Amount) (list []string) {
	for rule := range a {
		list = append(list, rule)
	}
	for rule := range b {
		if _, there := a[rule]; !there {
			list = append(list, rule)
		}
	}
	slices.Sort(list)
	return list
}
