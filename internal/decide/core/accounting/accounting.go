package accounting

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// Settle posts the use of an attempt's time from its last settlement until t. The cost of a span is a difference of
// cumulative costs, so the costs of any division add up.
func (bk *Books) Settle(j *state.Job, k *state.Task, use ledger.Use, t time.Time) {
	from := k.Settled()
	if !t.After(from) {
		return
	}
	known := k.Accrued() // posted already, with unknown use
	if t.Before(known) {
		known = t
	}
	moved := k.Pieces(from, known)
	cost := money.Amount{}
	for _, p := range moved {
		cost = cost.Add(p.Amount)
	}
	if dearer := cost.Sub(k.Uses()[ledger.Open]); dearer.Sign() > 0 {
		bk.charge(k, bk.Entry(j, k, ledger.Accrued, ledger.Open, PricedLater), dearer)
	}
	for _, p := range moved {
		bk.Enter(bk.Timed(bk.Entry(j, k, ledger.Accrued, use, ""), k.Machine(), p), p.Amount,
			ledger.Cost(ledger.Compute, ledger.Open), ledger.Cost(ledger.Compute, use))
	}
	for _, p := range k.Pieces(known, t) {
		bk.charge(k, bk.Timed(bk.Entry(j, k, ledger.Accrued, use, ""), k.Machine(), p), p.Amount)
	}
	bk.Fact(state.TimeSettled{Attempt: k.Attempt().ID(), Node: k.Rank(), Until: t})
}

// PricedLater marks the amount that a late price adds to, or removes from, time that was already posted.
const PricedLater = "priced_later"

// accrue posts an attempt's cost that was not posted yet; its use is decided later. If the machine ended earlier than
// was posted, accrue reverses the excess. It does not count that time as settled, because a machine that was given up
// may have run on.
func (bk *Books) accrue(j *state.Job, k *state.Task, t time.Time) {
	due, known := k.Cost(t).Sub(k.Posted()), k.Accrued()
	for _, p := range Due(k.Pieces, known, t) {
		if t.Before(known) {
			p.Amount = p.Amount.Neg()
		}
		due = due.Sub(p.Amount)
		bk.charge(k, bk.Timed(bk.Entry(j, k, ledger.Accrued, ledger.Open, ""), k.Machine(), p), p.Amount)
	}
	if t.Before(k.Settled()) {
		bk.Fact(state.TimeSettled{Attempt: k.Attempt().ID(), Node: k.Rank(), Until: t})
	}
	bk.charge(k, bk.Entry(j, k, ledger.Accrued, ledger.Open, PricedLater), due)
}

// Due returns the pieces of time between known, up to which cost is posted, and t. If t is earlier, the newest
// comes first: each reversal moves the posted time back to where it begins.
func Due[P any](pieces func(from, to time.Time) []P, known, t time.Time) []P {
	if !t.Before(known) {
		return pieces(known, t)
	}
	list := pieces(t, known)
	slices.Reverse(list)
	return list
}

// Correct moves the end of the time that a task paid for to t: the task has left the machine i, which had ended
// before, or ran on after it was given up.
func (bk *Books) Correct(j *state.Job, k *state.Task, i *state.Instance, t time.Time) {
	known := k.Accrued()
	for _, p := range Due(i.Pieces, known, t) {
		use, amount := ledger.Lost, p.Amount
		if t.Before(known) {
			use, amount = ledger.Open, amount.Neg()
		}
		bk.charge(k, bk.Timed(bk.Entry(j, k, ledger.Accrued, use, ""), k.Machine(), Undivided(p)), amount)
	}
	bk.Fact(state.TimeSettled{Attempt: k.Attempt().ID(), Node: k.Rank(), Until: t})
	bk.settledTooFar(j, k)
}

// charge posts a cost that is owed to the machine's provider.
func (bk *Books) charge(k *state.Task, p ledger.Posting, amount money.Amount) {
	bk.Enter(p, amount, ledger.Payable(k.Machine().Provider), ledger.Cost(p.Category, p.Use))
}

// Timed completes a posting about a time at one price: its duration and the price.
func (bk *Books) Timed(p ledger.Posting, of *state.Machine, t state.Piece) ledger.Posting {
	p.Begin, p.End = t.Begin, t.End
	if bk.Faults.Lumps {
		t.Rate = bk.State.Instance(p.Owner.Instance).PresentRate()
	}
	p.Quantity, p.Unit, p.Price = ledger.Seconds(t.End.Sub(t.Begin)), ledger.SecondUnit, ledger.PriceOf(t.Rate, true)
	if list, known := bk.listPrice(of); known {
		p.ListPrice = ledger.PriceOf(t.Of(list), true)
	}
	return p
}

// Level settles what is still open at the end of an attempt. A price that came after the settlement of its time
// goes to the last use. What was settled beyond the end, for example by a fast clock, is reversed from the largest
// use.
func (bk *Books) Level(j *state.Job, k *state.Task, last ledger.Use, until time.Time) {
	bk.accrue(j, k, until)
	if open := k.Uses()[ledger.Open]; open.Sign() > 0 {
		bk.Move(j, k, open, ledger.Open, last, PricedLater)
	}
	bk.settledTooFar(j, k)
}

// settledTooFar takes a reversed amount from the largest use.
func (bk *Books) settledTooFar(j *state.Job, k *state.Task) {
	for k.Uses()[ledger.Open].Sign() < 0 {
		use, most := ledger.Open, money.Amount{}
		for u, v := range k.TimeUses() {
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
		bk.Move(j, k, part, use, ledger.Open, "settled_too_far")
	}
}

// PostsAt schedules the next hourly posting of a billed job: just after the hour, so that events on the hour come
// first.
func (bk *Books) PostsAt(j *state.Job) {
	next := bk.Now().Truncate(time.Hour).Add(time.Hour + 1)
	if p := step.TimesOf(j); !p.Posts.Equal(next) {
		p.Posts = next
		bk.Hours.Push(step.Wake{At: next, Job: j})
	}
}

// postsAtOnce bounds the jobs that PostHours posts in a step, which takes a millisecond or two.
const postsAtOnce = 16

// PostHours posts, once an hour, the use of each running job's time: useful up to its newest checkpoint. Time older
// than an hour that is in no checkpoint is posted as open. It posts a bounded number of jobs; the others follow in
// steps of their own, because thousands may have started at the same time.
func (bk *Books) PostHours() {
	for n := 0; n < postsAtOnce && len(bk.Hours) > 0 && !bk.Hours[0].At.After(bk.Now()); {
		w := bk.Hours.Pop()
		if !w.At.Equal(step.TimesOf(w.Job).Posts) {
			continue
		}
		n++
		step.TimesOf(w.Job).Posts = time.Time{}
		bk.Works(w.Job)
		live := false
		for _, a := range w.Job.Open() {
			if !a.Live() {
				continue
			}
			live = true
			for _, k := range a.Tasks() {
				bk.postHour(w.Job, k)
			}
		}
		if live {
			bk.PostsAt(w.Job)
		}
	}
}

// postHour posts the hour of one task.
func (bk *Books) postHour(j *state.Job, k *state.Task) {
	if !k.Live() {
		return
	}
	if !k.Started().IsZero() && k.Over().IsZero() {
		bk.Settle(j, k, ledger.Useful, k.Kept())
	}
	if bk.Now().Sub(k.Settled()) >= time.Hour {
		bk.accrue(j, k, bk.Now())
	}
}

// Move moves cost of the attempt from one use to another.
func (bk *Books) Move(j *state.Job, k *state.Task, part money.Amount, from, to ledger.Use, rule string) {
	if from == to {
		return
	}
	bk.Enter(bk.Entry(j, k, ledger.Accrued, to, rule), part, ledger.Cost(ledger.Compute, from),
		ledger.Cost(ledger.Compute, to))
}

// Bill books the newest bill of an attempt's machine: plain seconds confirm or correct the accrued cost, and every
// other line is a rule of the provider and stands by itself. Without a bill the accrued cost stands and stays owed.
// For a repeated bill only the changes are booked. Bill reports whether there were any.
func (bk *Books) Bill(j *state.Job, k *state.Task, lines []state.BillLine) bool {
	before, byRule := k.Bill(), Together(lines)
	after := SumsOf(byRule)
	rules := rulesOf(after, before)
	known := before
	if before == nil {
		known = map[string]money.Amount{"": k.Posted()}
	}
	off := func(rule string) money.Amount { return after[rule].Sub(known[rule]) }
	slices.SortFunc(rules, func(x, y string) int { // credits last, so that there is cost for them to lower
		return cmp.Or(-cmp.Compare(off(x).Sign(), off(y).Sign()), cmp.Compare(x, y))
	})
	owed := money.Amount{}
	for _, rule := range rules {
		owed = owed.Add(after[rule]).Sub(before[rule])
		if !off(rule).IsZero() {
			bk.correct(j, k, off(rule), byRule[rule], cmp.Or(rule, "reconciled"))
		}
	}
	if owed.IsZero() && before != nil {
		return false
	}
	bk.Enter(bk.Entry(j, k, ledger.Billed, ledger.Open, ""), owed, ledger.Invoice(k.Machine().Provider),
		ledger.Payable(k.Machine().Provider))
	return true
}

// correct adds a line of the bill that plain seconds do not explain. An added amount is time paid for nothing
// (idle). A credit lowers each use by its share of the whole, and the largest use takes the remainder. A line that
// is not machine time, such as a disk, has its own category.
func (bk *Books) correct(j *state.Job, k *state.Task, off money.Amount, line state.BillLine, rule string) {
	whole := Sum(k.TimeUses())
	if off.Sign() > 0 || whole.Sign() <= 0 || !ofMachine(line) {
		bk.charge(k, asBilled(bk.Entry(j, k, ledger.Billed, ledger.Idle, rule), line, off), off)
		return
	}
	before := k.TimeUses()
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
	for i := len(uses) - 1; i >= 0; i-- { // the largest comes last and takes the remainder
		u := uses[i]
		part := rest
		if i > 0 {
			part = money.Portion(off, before[u], whole)
		}
		rest = rest.Sub(part)
		bk.charge(k, asBilled(bk.Entry(j, k, ledger.Billed, u, rule), line, part), part)
	}
}

// Sum returns the sum over all uses of a time.
func Sum(uses map[ledger.Use]money.Amount) money.Amount {
	var total money.Amount
	for _, v := range uses {
		total = total.Add(v) // exact, so the order does not matter
	}
	return total
}

// BookStray books the cost of an instance that scrimp did not request, as overhead.
func (bk *Books) BookStray(i *state.Instance, amount money.Amount, rule string) {
	provider := cmp.Or(i.Machine().Provider, "unknown")
	currency := cmp.Or(i.Machine().Currency, bk.Config().Currency)
	p := ledger.Posting{
		Currency: currency, Category: ledger.Overhead, Phase: ledger.Billed, Use: ledger.Lost, Rule: rule,
		Owner: ledger.Owner{Tenant: bk.Event.Tenant, Instance: i.ID()},
	}
	bk.Enter(p, amount, ledger.Payable(provider), ledger.Cost(ledger.Overhead, ledger.Lost))
}

// Entry returns a posting about a task, without its amount.
func (bk *Books) Entry(j *state.Job, k *state.Task, phase ledger.Phase, use ledger.Use, rule string) ledger.Posting {
	p := bought(k.Machine(), ledger.Posting{Phase: phase, Use: use, Rule: rule, Owner: j.Terms().Owner})
	p.Currency = k.Currency()
	p.Owner.Tenant, p.Owner.Job, p.Owner.Attempt, p.Owner.Task, p.Owner.Instance = j.Tenant(), j.ID(), k.Attempt().ID(),
		k.Name(), k.Instance()
	return p
}

// bought completes a posting about the time of a machine with the facts of the machine.
func bought(of *state.Machine, p ledger.Posting) ledger.Posting {
	p.Currency, p.Category = of.Currency, ledger.Compute
	p.Provider, p.Region, p.Zone, p.SKU = of.Provider, of.Region, of.Zone, of.Type
	return p
}

// Enter posts an amount. It skips zero, and posts a negative amount in the other direction.
func (bk *Books) Enter(p ledger.Posting, amount money.Amount, from, to ledger.Account) {
	moved, ok := ledger.Move(amount, from, to)
	if !ok {
		return
	}
	p.Amount, p.From, p.To = moved.Amount, moved.From, moved.To
	out := bk.Out
	p.Event, p.Line, p.At = bk.State.Seq(), len(out.Postings), bk.Now()
	out.Postings = append(out.Postings, p)
	last := out.Postings[p.Line:]
	ledger.Seal(last, bk.State.Head(p.Owner.Tenant))
	bk.State.Post(&last[0])
}
