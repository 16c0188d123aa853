package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
)

// server returns the permissions as the current leader has read them.
func (t *tenants) server() *identity.Book {
	if t.book != nil && t.epoch == t.v.epoch && t.w.fault == FaultStaleRoles {
		return t.book
	}
	t.book, t.epoch = identity.NewBook(), t.v.epoch
	for n := range t.w.log {
		r, err := t.w.log[n].back()
		if err != nil {
			panic(err)
		}
		if b, ok := r.event.Body.(core.IdentityChanged); ok {
			t.book.Apply(b.Change)
		}
	}
	return t.book
}

func (t *tenants) caller(book *identity.Book, user string) identity.Caller {
	if user == "owner" || t.w.fault == FaultNoRole {
		return identity.Owner(user)
	}
	u, _ := book.User(user)
	return identity.Caller{User: user, Grants: u.Grants}
}

// rules returns the limits and tags that the server uses.
func (t *tenants) rules() budget.Rules {
	r, _ := t.w.m.Rules()
	if t.w.fault == FaultRulesGone && t.v.epoch > 0 {
		return budget.Rules{}
	}
	return r
}

func (t *tenants) setRules(object string, change func(*budget.Rules)) {
	t.w.until(func() bool {
		if !t.v.idle() {
			return false
		}
		old, _ := t.w.m.Rules()
		r := budget.Rules{Limits: slices.Clone(old.Limits), Tags: budget.Tags{}}
		for k, v := range old.Tags {
			r.Tags[k] = v
		}
		change(&r)
		slices.SortFunc(r.Limits, func(a, b budget.Limit) int { return cmp.Compare(a.Name(), b.Name()) })
		return t.act("owner", "PUT /v1/budgets", object, "done", body(t.based(r)))
	})
}

// based returns the rules with what their limits have spent, over everything durable.
func (t *tenants) based(r budget.Rules) core.BudgetsSet {
	b := core.BudgetsSet{Rules: r, Base: map[string]state.Spent{}, AsOf: uint64(len(t.w.log))}
	for _, l := range r.Limits {
		sum := state.Spent{Begin: l.Window.Begin(t.w.now)}
		for _, p := range t.w.postings {
			if l.Scope.Holds(p.Owner, t.payer(p)) && l.Window.Begin(p.At).Equal(sum.Begin) {
				sum.Amount = sum.Amount.Add(cost(p))
			}
		}
		b.Base[l.Name()] = sum
	}
	return b
}

func (t *tenants) setLimit() {
	w := t.w
	l := budget.Limit{Scope: []budget.Scope{
		budget.All, budget.Scope("team:" + t.teams[w.rng.IntN(len(t.teams))]), "project:p", budget.Scope("user:" + t.users[w.rng.IntN(len(t.users))]), "tag:env=dev",
	}[w.rng.IntN(5)], Window: []budget.Window{budget.Day, budget.Week, budget.Month, budget.Total, budget.Total}[w.rng.IntN(5)]}
	if w.chance(0.75) {
		usd, _ := money.Estimated(2 + 60*w.rng.Float64())
		l.Dollars = &usd
		if w.chance(0.6) {
			l.Warn, l.Notify = []float64{0.5}, "hook"
		}
	}
	if w.chance(0.3) || l.Dollars == nil {
		n := 1 + w.rng.IntN(4)
		l.Jobs = &n
	}
	if w.chance(0.2) {
		n := 1 + w.rng.IntN(2)
		l.Running = &n
	}
	if w.chance(0.45) {
		usd, _ := money.Estimated(1 + 12*w.rng.Float64())
		l.Approve, l.ApproveWithin = &usd, time.Duration(1+w.rng.IntN(40))*time.Hour
	}
	if t.gpus > 0 && w.chance(0.5) {
		h := 5 + 100*w.rng.Float64()
		l.GPUHours = &h
	}
	t.limit(l)
}

// limit sets a limit, in place of the one of that name.
func (t *tenants) limit(l budget.Limit) {
	t.setRules(l.Name(), func(r *budget.Rules) {
		r.Limits = append(slices.DeleteFunc(r.Limits, func(o budget.Limit) bool { return o.Name() == l.Name() }), l)
	})
}

// drawRates limits the dollars an hour of scopes in some lives. Each limit has room for any one machine, so no job waits
// for ever. Its own random source leaves the other lives unchanged.
func (t *tenants) drawRates() {
	rng := rand.New(rand.NewPCG(t.w.seed, 0xd01a9))
	if rng.IntN(4) > 0 {
		return
	}
	for range 1 + rng.IntN(3) {
		rate := onDemandRate * money.Rate(10+rng.IntN(20)) / 10
		l := budget.Limit{Scope: []budget.Scope{budget.All, budget.All, "project:p", budget.Scope("team:" + t.teams[0])}[rng.IntN(4)],
			Window: budget.Hour, Rate: &rate}
		t.w.after(time.Duration(rng.IntN(2)*rng.IntN(900))*time.Minute, func() { t.limit(l) })
	}
}

func (t *tenants) setTag() {
	t.setRules("tag env", func(r *budget.Rules) { r.Tags["env"] = []string{"dev", "prod"} })
}
