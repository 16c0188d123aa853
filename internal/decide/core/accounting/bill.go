package accounting

import (
	"cmp"
	"math/big"
	"slices"

	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// TakesBill reports whether the bill of an instance would be booked now: its end has been reported. An earlier bill
// must be sent again.
func (bk *Books) TakesBill(instance, launch string) bool {
	i := bk.State.Instance(instance)
	if i != nil && bk.Incomplete(i) {
		return !i.Live() && !i.Lost()
	}
	if i != nil && i.Shared() {
		return i.Allocation() == launch && !i.Live() && !i.Lost()
	}
	if a := bk.State.AttemptOf(launch); a != nil && a.On(instance) != nil {
		k := a.On(instance)
		return !k.Live() && !k.GivenUp()
	}
	return i != nil && i.Stray() && !i.Live()
}

// Billed books the newest bill of an instance. The bill of a machine that still runs, or that no event mentioned
// yet, is incomplete: only the one after its end is booked.
func (bk *Books) Billed(b state.BillReceived) {
	i := bk.State.Instance(b.Instance)
	switch {
	case i == nil:
	case bk.Incomplete(i):
		if !i.Live() && !i.Lost() {
			bk.Fact(state.BillTaken{Instance: i.ID()}) // it is booked when its allocation is closed
		}
		return
	case i.Shared():
		if bk.TakesBill(b.Instance, b.Launch) {
			bk.SplitBill(i, b.Lines)
		}
		return
	}
	if a := bk.State.AttemptOf(b.Launch); a != nil && a.On(b.Instance) != nil {
		if k := a.On(b.Instance); !k.Live() && !k.GivenUp() {
			if bk.Bill(bk.State.Job(a.Job()), k, b.Lines) {
				bk.Fact(state.BillTaken{Instance: b.Instance})
			}
		}
		return
	}
	if i != nil && i.Stray() && !i.Live() {
		bk.billStray(i, b.Lines)
	}
}

// billStray books the bill of a machine that no attempt requested: the part that is not booked yet.
func (bk *Books) billStray(i *state.Instance, lines []state.BillLine) {
	total := money.Amount{}
	for _, l := range lines {
		total = total.Add(l.Amount)
	}
	bk.BookStray(i, total.Sub(i.Posted()), "billed")
	bk.Fact(state.BillTaken{Instance: i.ID()})
}

// SplitBill books the newest bill of a shared machine in parts that add up to it. It splits plain seconds by the cost
// of the attempts and idle spans at plain seconds. A rule's amount, such as a minimum charge, goes to whoever had the
// machine when it ended: an earlier job does not pay for unused time after it. It splits a credit by the charges of the
// bill, so that nobody gets back more than they paid.
func (bk *Books) SplitBill(i *state.Instance, lines []state.BillLine) {
	var tasks []*state.Task
	var weights []money.Amount
	for _, id := range i.Served() {
		a := bk.State.AttemptOf(id)
		if a == nil {
			return // its archived job could not be restored, and the others must not pay its part
		}
		k := a.On(i.ID())
		tasks, weights = append(tasks, k), append(weights, atLeastZero(k.Posted()))
	}
	for _, idle := range i.Idles() {
		weights = append(weights, atLeastZero(idle.Posted))
	}
	parts := make([][]state.BillLine, len(weights))
	atEnd := atTheEnd(i, tasks, weights)
	charged := make([]money.Amount, len(weights))
	share := func(l state.BillLine, by []money.Amount) {
		for n, part := range allocate(l.Amount, by) {
			if !part.IsZero() || l.Rule == "" {
				mine := l
				if mine.Amount = part; part != l.Amount {
					mine.Rate = 0 // the rate is for all of it
				}
				parts[n] = append(parts[n], mine)
			}
			charged[n] = charged[n].Add(part)
		}
	}
	for _, l := range lines {
		switch {
		case l.Amount.Sign() < 0:
		case l.Rule != "":
			share(l, atEnd)
		default:
			share(l, weights)
		}
	}
	for _, l := range lines {
		if l.Amount.Sign() < 0 {
			share(l, owed(charged, weights))
		}
	}
	f := state.BillSplit{Instance: i.ID()}
	for n, k := range tasks {
		bk.Bill(bk.State.Job(k.Attempt().Job()), k, parts[n])
		f.Parts = append(f.Parts, state.BillPart{Attempt: k.Attempt().ID(), Bill: SumsOf(Together(parts[n]))})
	}
	for n := range i.Idles() {
		lines := parts[len(tasks)+n]
		bk.billIdle(i, &i.Idles()[n], lines)
		f.Parts = append(f.Parts, state.BillPart{Task: i.Idles()[n].Owner.Task, Bill: SumsOf(Together(lines))})
	}
	bk.Fact(f)
}

// owed returns the charges of those that still owe something, or the weights if nobody does.
func owed(charged, weights []money.Amount) []money.Amount {
	owed, some := make([]money.Amount, len(charged)), false
	for n, a := range charged {
		owed[n] = atLeastZero(a)
		some = some || a.Sign() > 0
	}
	if !some {
		return weights
	}
	return owed
}

// atTheEnd returns the weights of those that had a machine when it ended: its tasks, or the last idle span.
func atTheEnd(i *state.Instance, tasks []*state.Task, weights []money.Amount) []money.Amount {
	last := make([]money.Amount, len(weights))
	if idles := i.Idles(); len(idles) > 0 && idles[len(idles)-1].Taken == "" {
		last[len(last)-1] = money.Picos(1)
		return last
	}
	for n, k := range tasks {
		if !k.Until().Before(i.Until()) {
			last[n] = weights[n].Add(money.Picos(1)) // it pays even if it was there for no time
		}
	}
	return last
}

// allocate is ledger.Allocate, except that the first pays everything if nothing was posted.
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

// billIdle books the part of the bill of an idle span. Its use is idle, whatever the rule.
func (bk *Books) billIdle(i *state.Instance, idle *state.Idle, lines []state.BillLine) {
	provider := i.Machine().Provider
	lineOf, before := Together(lines), idle.Bill
	after := SumsOf(lineOf)
	known := before
	if before == nil {
		known = map[string]money.Amount{"": idle.Posted}
	}
	owed := money.Amount{}
	for _, rule := range rulesOf(after, before) {
		owed = owed.Add(after[rule]).Sub(before[rule])
		off := after[rule].Sub(known[rule])
		entry := bk.IdleEntry(i, idle, ledger.Billed, cmp.Or(rule, "reconciled"))
		bk.ChargeIdle(i, asBilled(entry, lineOf[rule], off), off)
	}
	p := bk.IdleEntry(i, idle, ledger.Billed, "")
	p.Use = ledger.Open
	bk.Enter(p, owed, ledger.Invoice(provider), ledger.Payable(provider))
}

// Together combines the lines of a bill by rule: it adds the amounts, joins the times, and keeps the other fields
// that agree.
func Together(lines []state.BillLine) map[string]state.BillLine {
	all := map[string]state.BillLine{}
	for _, l := range lines {
		sum, twice := all[l.Rule]
		if !twice {
			all[l.Rule] = l
			continue
		}
		if sum.Category != l.Category || sum.SKU != l.SKU {
			sum.Category, sum.SKU = "", ""
		}
		if l.From.Before(sum.From) {
			sum.From = l.From
		}
		sum.Rate, sum.To, sum.Amount = 0, step.Later(sum.To, l.To), sum.Amount.Add(l.Amount)
		all[l.Rule] = sum
	}
	return all
}

// SumsOf returns the amounts of lines by rule.
func SumsOf(lines map[string]state.BillLine) map[string]money.Amount {
	sums := make(map[string]money.Amount, len(lines))
	for rule, l := range lines {
		sums[rule] = l.Amount
	}
	return sums
}

// ofMachine reports whether a line of a bill is for time of the machine itself.
func ofMachine(l state.BillLine) bool { return l.Category == "" || l.Category == ledger.Compute }

// asBilled completes a posting of amount with the provider's statement of the line: its time, what was bought, and, if
// the posting is the whole line, quantity and price.
func asBilled(p ledger.Posting, l state.BillLine, amount money.Amount) ledger.Posting {
	if !l.To.Before(l.From) {
		p.Begin, p.End = l.From, l.To
	}
	p.Category, p.SKU = cmp.Or(l.Category, p.Category), cmp.Or(l.SKU, p.SKU)
	if span := p.End.Sub(p.Begin); l.Rate > 0 && span > 0 && amount == l.Rate.Until(span) {
		p.Quantity, p.Unit, p.Price = ledger.Seconds(span), ledger.SecondUnit, ledger.PriceOf(l.Rate, true)
	}
	return p
}

// rulesOf returns the rules of two bills, sorted.
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

// Incomplete reports whether the allocation of the instance still lacks machines.
func (bk *Books) Incomplete(i *state.Instance) bool {
	return len(i.Seats()) > 0 && bk.State.Allocation(i.Seats()[0].Attempt) != nil
}
