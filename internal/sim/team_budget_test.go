package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// admit names the job of a wish and sets its budget if it has none.
func (t *tenants) admit(x *wish) (no string) {
	w := t.w
	book := t.server()
	c := t.caller(book, x.user)
	if _, _, _, err := book.Place(c, x.team, x.project); err != nil && w.fault != FaultNoRole {
		return "role"
	}
	x.job.terms = x.asks
	terms := &x.job.terms
	if !terms.HasBudget && budget.Capped(t.limitsNow(), terms.Owner, x.user) {
		most := terms.Need.MaxRate
		if most == 0 {
			for _, l := range w.m.Sale() {
				most = max(most, l.Quote.Rate)
			}
		}
		if usd, ok := budget.Bound(terms.Work, most); ok {
			terms.Budget, terms.HasBudget = usd, true
			w.saw("a budget from the work")
		}
	}
	x.id = t.name(x)
	x.job.id, terms.Name = x.id, x.id
	if at := slices.IndexFunc(w.jobs, func(o simJob) bool { return o.id == x.id }); at < 0 {
		w.jobs = append(w.jobs, x.job)
	} else {
		w.jobs[at] = x.job
	}
	return ""
}

// limitsNow returns the limits in force.
func (t *tenants) limitsNow() []budget.Limit {
	r, _ := t.w.m.Rules()
	return r.Limits
}

// refuses returns why the core refuses a group of events, or "".
func (t *tenants) refuses(group []core.Event) string {
	t.breaks()
	err := t.w.m.Admit(group)
	var no *core.Refusal
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &no):
		panic(err)
	case no.Why == core.TagMissing:
		return "tags"
	}
	return string(no.Limit.Why)
}

// breaks plants the fault in the current machine.
func (t *tenants) breaks() {
	money := []budget.Reason{budget.Dollars, budget.GPUHours}
	w, n := t.w, 0
	spares := map[Fault]func(string) bool{
		FaultNoGuard: func(string) bool { return true },
		FaultSpares:  func(job string) bool { return job == t.wishes[0].id },
	}[w.fault]
	w.m.Break(core.Faults{Unasked: w.fault == FaultNoAsking, Burns: w.fault == FaultBurns, Spares: spares, LetsIn: map[Fault]func(*core.Refusal) bool{
		FaultNoHold: func(no *core.Refusal) bool { return no.Limit != nil && slices.Contains(money, no.Limit.Why) },
		FaultOneBook: func(no *core.Refusal) bool {
			n++
			return no.Why == core.LimitReached && n == 1
		},
		FaultNoTags:    func(no *core.Refusal) bool { return no.Why == core.TagMissing },
		FaultRulesGone: func(*core.Refusal) bool { return t.v.epoch > 0 },
	}[w.fault]})
}

// name returns a name that no other job has.
func (t *tenants) name(x *wish) string {
	wanted := x.name
	for n := 1; ; n++ {
		id := wanted
		if n > 1 {
			id = fmt.Sprintf("%s-%d", wanted, n)
		}
		_, taken := t.w.m.Job(id)
		if !taken && !slices.ContainsFunc(t.wishes, func(o *wish) bool { return o != x && o.id == id }) {
			return id
		}
	}
}

func (t *tenants) budgetJob(id, user string, terms *core.Terms) budget.Job {
	return budget.Job{
		ID: id, Owner: terms.Owner, User: user, Most: terms.Budget, Bounded: terms.HasBudget && !terms.DeadlineFirst,
		GPUMost: terms.GPUHours, GPUBounded: terms.GPUHours > 0 || terms.Need.Accelerators == 0,
	}
}

// cost returns the amount that a posting adds to the costs.
func cost(p ledger.Posting) (part money.Amount) {
	if isCost(p.To) {
		part = part.Add(p.Amount)
	}
	if isCost(p.From) {
		part = part.Sub(p.Amount)
	}
	return part
}

// payer returns the user of a posting: of its job, or of the previous job if the machine was idle.
func (t *tenants) payer(p ledger.Posting) string {
	if !p.Idles() {
		return t.by[p.Owner.Job]
	}
	if i := t.w.m.State().Instance(p.Owner.Instance); i != nil {
		for _, idle := range i.Idles() {
			if idle.Owner.Task == p.Owner.Task {
				return t.before(&idle)
			}
		}
	}
	return ""
}

// before returns the user of the job after which a machine is idle.
func (t *tenants) before(idle *state.Idle) string {
	job, _, _ := strings.Cut(idle.After, ".")
	return t.by[job]
}

// books sums spent and held amounts by now, as the server does.
func (t *tenants) books(r budget.Rules) budget.Accounts {
	w, limits := t.w, r.Limits
	b := budget.Accounts{Limits: limits, Spent: map[string]money.Amount{}, GPUs: map[string]float64{}}
	now := w.m.Now()
	if w.now.After(now) {
		now = w.now
	}
	for j := range w.m.Jobs() {
		user, gpus := t.by[j.ID()], 0.0
		for _, a := range j.Attempts() {
			if a.Instance() == "" {
				continue
			}
			until := a.Until()
			if until.IsZero() {
				until = now
			}
			gpus += float64(a.GPUs()) * until.Sub(a.From()).Hours()
			for _, l := range limits {
				if !l.Scope.Holds(j.Terms().Owner, user) {
					continue
				}
				from := a.From()
				if begin := l.Window.Begin(now); from.Before(begin) {
					from = begin
				}
				if until.After(from) {
					b.GPUs[l.Name()] += float64(a.GPUs()) * until.Sub(from).Hours()
				}
				if a.Live() {
					b.Spent[l.Name()] = b.Spent[l.Name()].Add(a.Cost(now).Sub(a.Posted()))
				}
			}
		}
		if !isClosed(j) {
			v := t.budgetJob(j.ID(), user, j.Terms())
			v.Spent, v.GPUSpent, v.AwaitsApproval = j.Spent(now), gpus, j.State() == core.Held
			b.Live = append(b.Live, v)
		}
	}
	for _, i := range w.m.State().Instances() {
		for _, idle := range i.Idles() {
			if !idle.Until.IsZero() {
				continue
			}
			user := t.before(&idle)
			open := i.Cost(now).Sub(i.Posted())
			for _, l := range limits {
				if l.Scope.Holds(idle.Owner, user) {
					b.Spent[l.Name()] = b.Spent[l.Name()].Add(open)
				}
			}
			b.Live = append(b.Live, budget.Job{ID: i.ID(), Owner: idle.Owner, User: user, Kind: budget.Hold, // no market has a minimum
				Most: idle.Posted.Add(open), Spent: idle.Posted.Add(open), Bounded: true, GPUBounded: true})
		}
	}
	for ; t.tallied < len(w.postings); t.tallied++ {
		p := w.postings[t.tallied]
		user := t.payer(p)
		for _, l := range limits {
			if part := cost(p); !part.IsZero() && l.Scope.Holds(p.Owner, user) {
				sum := t.sums[l.Name()]
				if begin := l.Window.Begin(p.At); !sum.begin.Equal(begin) {
					sum = tallied{begin: begin}
				}
				sum.spent = sum.spent.Add(part)
				t.sums[l.Name()] = sum
			}
		}
	}
	for _, l := range limits {
		if sum := t.sums[l.Name()]; sum.begin.Equal(l.Window.Begin(now)) {
			b.Spent[l.Name()] = b.Spent[l.Name()].Add(sum.spent)
		}
	}
	return b
}

// isClosed reports whether a job can no longer cost anything: a cancelled launch of it may still be granted.
func isClosed(j *core.Job) bool {
	return j.State().Over() && j.Asked() == nil && len(j.Cancelling()) == 0 && !slices.ContainsFunc(j.Attempts(), (*core.Attempt).Live)
}

// guard checks the budgets and sends warnings. The core stops the jobs of a spent budget.
func (t *tenants) guard() {
	w := t.w
	w.after(look, t.guard)
	if !t.v.idle() {
		return
	}
	t.breaks()
	b := t.books(t.rules())
	t.sameSums(b)
	for _, l := range b.Limits {
		for _, share := range l.Passed(b.Use(l)) {
			key := fmt.Sprintf("%s@%g %s", l.Name(), share, l.Window.Begin(w.now).Format(time.RFC3339))
			if share == 1 {
				t.allStop(l)
			}
			if l.Notify != "" && t.told[key] == 0 {
				t.waits[key]++
			}
			if l.Notify == "" || t.noted[key] || !t.v.idle() {
				continue
			}
			if w.fault == FaultNoWarning {
				t.noted[key] = true
			}
			if w.chance(0.3) {
				w.saw("a webhook is away")
				continue
			}
			t.told[key]++
			w.saw("a warning")
			t.noted[key] = w.fault == FaultNoWarning || !w.chance(t.v.odds*6) // otherwise the server died before it recorded the warning
		}
	}
}

// sameSums verifies that the core knows exactly what its limits have spent and hold.
func (t *tenants) sameSums(all budget.Accounts) {
	now := t.w.m.Now()
	if t.w.now.After(now) {
		now = t.w.now
	}
	kept, _ := t.w.m.Books(now)
	for _, l := range all.Limits {
		a, b := kept.Use(l), all.Use(l)
		if a.Spent != b.Spent || a.Held != b.Held || a.Jobs != b.Jobs || a.AwaitingApproval != b.AwaitingApproval {
			t.w.breaks("sums: the core says of %s %+v, the postings and jobs %+v", l.Name(), a, b)
		}
	}
}

// allStop verifies that the core stops the jobs of a spent limit.
func (t *tenants) allStop(l budget.Limit) {
	if t.spent == nil {
		t.spent = map[string]int{}
	}
	for j := range t.w.m.Jobs() {
		key := l.Name() + " " + j.ID()
		goes := lives(j) && !j.State().Over() && j.Ending() == "" && l.Scope.Holds(j.Terms().Owner, t.by[j.ID()])
		if !goes {
			delete(t.spent, key)
		} else if t.spent[key]++; t.spent[key] == 5 { // the server may have been down meanwhile
			t.w.breaks("limit: all of %s is spent, and %s goes on", l.Name(), j.ID())
		}
	}
}
