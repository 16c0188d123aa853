package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/budget"
	"scrimp/internal/core"
	"scrimp/internal/identity"
	"scrimp/internal/money"
)

// tally sums what was booked by limit, in the window of the newest posting. It
// reads on where it stopped.
type tally struct {
	after uint64
	sums  map[string]tallied
}

type tallied struct {
	begin time.Time
	spent money.Amount
}

// What the store keeps beside the log.
const (
	budgetsMeta = "budgets" // the rules of releases that had no event for them
	warnedMeta  = "budgets_warned"
)

// readRules returns the rules in force, which are in the log. Those that a release
// before kept beside the log are taken into it once. The caller holds s.ledgers.
func (s *Server) readRules(ctx context.Context) (v budget.Rules, err error) {
	set := false
	s.control.Peek(func(m *core.Machine) { v, set = m.Rules() }) // what is admitted under them follows them in the log
	if set || s.adopted {
		return v, nil
	}
	text, ok, err := s.store.Meta(ctx, budgetsMeta)
	if err != nil {
		return v, err
	}
	if ok {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			return v, fmt.Errorf("read the budgets: %w", err)
		}
		if err := s.control.Tell(ctx, s.rulesSet("server", v)); err != nil {
			return v, err
		}
	}
	s.adopted = true
	return v, nil
}

func (s *Server) rulesSet(actor string, v budget.Rules) core.Event {
	return core.Event{At: s.control.Now(), Schema: core.Schema, Tenant: "default", Actor: actor, Body: core.BudgetsSet{Rules: v}}
}

// books are what is spent and held by now. The caller holds s.ledgers until what
// it admits is written, so that two submissions never take the same money.
func (s *Server) books(ctx context.Context, rules budget.Rules) (budget.Books, map[string]money.Rate, error) {
	b := budget.Books{Limits: rules.Limits, Spent: map[string]money.Amount{}, GPUs: map[string]float64{}}
	burn := map[string]money.Rate{}
	g, err := s.registered(ctx)
	if err != nil {
		return b, nil, err
	}
	end, now := uint64(0), time.Time{}
	s.control.Read(func(m *core.Machine) {
		end, now = m.Seq(), s.control.Now()
		if m.Now().After(now) {
			now = m.Now()
		}
		for j := range m.Jobs() {
			user := g.users[j.ID]
			gpus, runs, inUse := 0.0, false, 0
			for _, a := range j.Attempts {
				if a.Instance == "" {
					continue
				}
				until := a.Until
				if until.IsZero() {
					until = now
				}
				gpus += float64(a.GPUs) * until.Sub(a.From).Hours()
				if a.Live() {
					runs, inUse = true, inUse+a.GPUs
				}
				for _, l := range b.Limits {
					if !l.Scope.Holds(j.Terms.Owner, user) {
						continue
					}
					from := a.From
					if begin := l.Window.Begin(now); from.Before(begin) {
						from = begin
					}
					if until.After(from) {
						b.GPUs[l.Name()] += float64(a.GPUs) * until.Sub(from).Hours()
					}
					if a.Live() {
						b.Spent[l.Name()] = b.Spent[l.Name()].Add(a.Cost(now).Sub(a.Posted))
						if len(a.Rates) > 0 && a.Until.IsZero() {
							burn[l.Name()] += a.Rates[len(a.Rates)-1].Rate
						}
					}
				}
			}
			if !closed(j) {
				v := budgetJob(j.ID, user, j.Terms)
				v.Asks = j.State == core.Held
				v.Spent, v.GPUSpent, v.Runs, v.GPUsNow = j.Spent(now), gpus, runs, inUse
				b.Live = append(b.Live, v)
			}
		}
	})
	if err := s.tallied(ctx, rules, g, end); err != nil {
		return b, nil, err
	}
	for _, l := range b.Limits {
		if sum := s.tally.sums[l.Name()]; sum.begin.Equal(l.Window.Begin(now)) {
			b.Spent[l.Name()] = b.Spent[l.Name()].Add(sum.spent)
		}
	}
	return b, burn, nil
}

// tallied adds the postings up to the event end.
func (s *Server) tallied(ctx context.Context, rules budget.Rules, g *register, end uint64) error {
	if s.tally.sums == nil {
		s.tally.sums = map[string]tallied{}
	}
	for s.tally.after < end {
		records, err := s.store.WholeRecords(ctx, s.tally.after, int(min(1000, end-s.tally.after)))
		if err != nil {
			return err
		}
		if len(records) == 0 {
			return errors.New("the log ends before its last event")
		}
		for _, r := range records {
			for _, p := range r.Postings {
				part := money.Amount{}
				if _, _, ok := p.To.IsCost(); ok {
					part = part.Add(p.Amount)
				}
				if _, _, ok := p.From.IsCost(); ok {
					part = part.Sub(p.Amount)
				}
				if part.IsZero() {
					continue
				}
				for _, l := range rules.Limits {
					if !l.Scope.Holds(p.Owner, g.users[p.Owner.Job]) {
						continue
					}
					sum := s.tally.sums[l.Name()]
					if begin := l.Window.Begin(p.At); !sum.begin.Equal(begin) {
						sum = tallied{begin: begin}
					}
					sum.spent = sum.spent.Add(part)
					s.tally.sums[l.Name()] = sum
				}
			}
			s.tally.after = r.Seq
		}
	}
	return nil
}

// budgetJob is a job as limits see it: its budget is the most that it can cost.
func budgetJob(id, user string, t core.Terms) budget.Job {
	return budget.Job{
		ID: id, Owner: t.Owner, User: user, Most: t.Budget, Bounded: t.HasBudget && !t.DeadlineFirst,
		GPUMost: t.GPUHours, GPUBounded: t.GPUHours > 0 || t.Need.LeastGPUs() == 0, GPUs: t.Need.LeastGPUs(),
	}
}

// shows reports whether the caller may know of the limit: one of a team that it
// sees, of itself, or, where it sees all teams, any.
func shows(c identity.Caller, scope budget.Scope) bool {
	kind, name, _ := strings.Cut(string(scope), ":")
	return c.Role(identity.Everywhere) >= identity.Viewer || kind == "team" && c.Role(name) >= identity.Viewer || kind == "user" && name == c.User
}

func (s *Server) getBudgets(w http.ResponseWriter, r *http.Request) {
	s.ledgers.Lock()
	defer s.ledgers.Unlock()
	v := api.Budgets{Limits: []api.BudgetLine{}, Tags: budget.Tags{}, Currency: money.USD}
	set, err := s.readRules(r.Context())
	var b budget.Books
	var burn map[string]money.Rate
	if err == nil {
		b, burn, err = s.books(r.Context(), set)
	}
	if err != nil {
		problem(w, http.StatusInternalServerError, "the budgets were not read", "ask again", err)
		return
	}
	if set.Tags != nil {
		v.Tags = set.Tags
	}
	all := rules(callerOf(r))
	for _, l := range set.Limits {
		if !shows(callerOf(r), l.Scope) {
			continue
		}
		line := api.BudgetLine{Limit: l, Use: b.Use(l), Burn: burn[l.Name()]}
		if at, ok := l.Breach(line.Use, line.Burn, s.control.Now()); ok {
			line.Breach = &at
		}
		if line.Limit.Notify != "" && !all {
			line.Limit.Notify = host(line.Limit.Notify) // the address may hold a secret
		}
		v.Limits = append(v.Limits, line)
	}
	answer(w, v)
}

// putBudgets makes a limit, or changes the one of that scope and window; takes
// one out; or says which values a tag may have.
func (s *Server) putBudgets(w http.ResponseWriter, r *http.Request) {
	b, ok := read[api.SetBudget](w, r, 1<<16)
	if !ok {
		return
	}
	s.ledgers.Lock()
	defer s.ledgers.Unlock()
	old, err := s.readRules(r.Context())
	if err != nil {
		problem(w, http.StatusServiceUnavailable, "the budgets were not read", "ask again", err)
		return
	}
	v := budget.Rules{Limits: slices.Clone(old.Limits), Tags: budget.Tags{}}
	for k, values := range old.Tags {
		v.Tags[k] = values
	}
	object := ""
	switch {
	case b.Limit != nil:
		if err := b.Limit.Check(); err != nil {
			fieldProblem(w, http.StatusUnprocessableEntity, "limit", "the limit is not valid", "scrimp budgets set --help says more", err)
			return
		}
		if s.hooksInside(b.Limit.Notify) {
			fieldProblem(w, http.StatusUnprocessableEntity, "limit.notify", "the webhook leads inside the server's network", hookMend, nil)
			return
		}
		object = b.Limit.Name()
		v.Limits = slices.DeleteFunc(v.Limits, func(l budget.Limit) bool { return l.Name() == object })
		v.Limits = append(v.Limits, *b.Limit)
		slices.SortFunc(v.Limits, func(x, y budget.Limit) int { return strings.Compare(x.Name(), y.Name()) })
	case b.Remove != "":
		object = b.Remove
		n := len(v.Limits)
		if v.Limits = slices.DeleteFunc(v.Limits, func(l budget.Limit) bool { return l.Name() == object }); len(v.Limits) == n {
			problem(w, http.StatusNotFound, "there is no budget "+object, "scrimp budgets lists them", nil)
			return
		}
	case b.Tag != "":
		object = "tag " + b.Tag
		if delete(v.Tags, b.Tag); !b.Free {
			v.Tags[b.Tag] = some(b.Values)
		}
	default:
		fieldProblem(w, http.StatusUnprocessableEntity, "limit", "the change is empty", "send a limit, remove or a tag", nil)
		return
	}
	if err := s.tell(r, object, s.rulesSet(actor(callerOf(r).User), v)); err != nil {
		problem(w, http.StatusServiceUnavailable, "not written", "ask again", err)
		return
	}
	s.tally = tally{}
	w.WriteHeader(http.StatusNoContent)
}
