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

// budgetRules are what an admin has set.
type budgetRules struct {
	Limits []budget.Limit `json:"limits"`
	Tags   budget.Tags    `json:"tags"`
}

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

// The names under which the store keeps them.
const (
	budgetsMeta = "budgets"
	warnedMeta  = "budgets_warned"
)

// readRules reads the rules once. The caller holds s.ledgers.
func (s *Server) readRules(ctx context.Context) (*budgetRules, error) {
	if s.budgets != nil {
		return s.budgets, nil
	}
	v := budgetRules{Tags: budget.Tags{}}
	text, ok, err := s.store.Meta(ctx, budgetsMeta)
	if err != nil {
		return nil, err
	}
	if ok {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			return nil, fmt.Errorf("read the budgets: %w", err)
		}
	}
	s.budgets = &v
	return s.budgets, nil
}

// writeRules keeps changed rules. The caller holds s.ledgers.
func (s *Server) writeRules(ctx context.Context, v budgetRules) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := s.store.PutMeta(ctx, budgetsMeta, string(text)); err != nil {
		return err
	}
	s.budgets, s.tally = &v, tally{}
	return nil
}

// books are what is spent and held by now. The caller holds s.ledgers until what
// it admits is written, so that two submissions never take the same money.
func (s *Server) books(ctx context.Context, rules *budgetRules) (budget.Books, map[string]money.Rate, error) {
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
			gpus := 0.0
			for _, a := range j.Attempts {
				if a.Instance == "" {
					continue
				}
				until := a.Until
				if until.IsZero() {
					until = now
				}
				gpus += float64(a.GPUs) * until.Sub(a.From).Hours()
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
				v.Spent, v.GPUSpent = j.Spent(now), gpus
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
func (s *Server) tallied(ctx context.Context, rules *budgetRules, g *register, end uint64) error {
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
		GPUMost: t.GPUHours, GPUBounded: t.GPUHours > 0 || t.Need.Accelerators == 0,
	}
}

// admit answers a job that its tags or the budgets do not let in; a job that is
// let in under a limit of dollars without a budget of its own gets one. done is
// called when the job is written.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, id string, t *core.Terms) (done func(), ok bool) {
	s.ledgers.Lock()
	rules, err := s.readRules(r.Context())
	if err != nil {
		s.ledgers.Unlock()
		problem(w, http.StatusServiceUnavailable, "the budgets were not read", "submit it again with the same key", err)
		return nil, false
	}
	if err := rules.Tags.Check(t.Owner.Tags); err != nil {
		s.ledgers.Unlock()
		fieldProblem(w, http.StatusUnprocessableEntity, "tags", "a tag is required here", "write tags in the job file; scrimp budgets lists what is required", err)
		return nil, false
	}
	if len(rules.Limits) == 0 {
		s.ledgers.Unlock()
		return func() {}, true
	}
	c := callerOf(r)
	if !t.HasBudget && budget.Capped(rules.Limits, t.Owner, c.User) {
		if most, known := budget.Bound(t.Work, s.highest(t)); known {
			t.Budget, t.HasBudget = most, true
		}
	}
	b, _, err := s.books(r.Context(), rules)
	j := budgetJob(id, c.User, *t)
	switch least, by, asks := budget.Approval(rules.Limits, t.Owner, c.User); {
	case err != nil:
		problem(w, http.StatusServiceUnavailable, "the ledger was not read", "submit it again with the same key", err)
	case asks && (!j.Bounded || j.Most.Cmp(least) > 0) && c.Role(t.Owner.Team) < identity.Admin:
		fieldProblem(w, http.StatusForbidden, "budget", fmt.Sprintf("jobs that can cost more than %s are submitted by an admin: budget %s", money.Format(least, t.Currency, 2), by.Name()),
			"give the job a smaller budget, or ask an admin to submit it", nil)
	default:
		no := b.Admit(j)
		if no == nil {
			return s.ledgers.Unlock, true
		}
		status := http.StatusPaymentRequired
		if no.Why == budget.TooMany || no.Why == budget.GPUHours || no.Why == budget.GPUOpen || no.Why == budget.NoGPUBudget {
			status = http.StatusForbidden
		}
		if t.HasBudget && t.DeadlineFirst && no.Why == budget.NoBudget {
			no.Mend = "write first: budget in the job file, so that its budget holds"
		}
		v := api.Problem{Type: "about:blank", Title: "a budget does not let the job in", Status: status, Field: "budget", Detail: no.Error(), Mend: no.Mend, Limit: &no.Limit, Use: &no.Use}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	s.ledgers.Unlock()
	return nil, false
}

// highest is the highest price at which a machine may be rented for the job, as
// far as is known now.
func (s *Server) highest(t *core.Terms) money.Rate {
	if t.Need.MaxRate > 0 {
		return t.Need.MaxRate
	}
	most := money.Rate(0)
	s.control.Read(func(m *core.Machine) {
		for _, l := range m.Sale() {
			if l.Quote.Priced {
				most = max(most, l.Quote.Rate)
			}
		}
	})
	return most
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
	v.Tags = set.Tags
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
	v := budgetRules{Limits: slices.Clone(old.Limits), Tags: budget.Tags{}}
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
	if err := s.tell(r, object); err != nil {
		problem(w, http.StatusServiceUnavailable, "not written", "ask again", err)
		return
	}
	if err := s.writeRules(r.Context(), v); err != nil {
		problem(w, http.StatusServiceUnavailable, "not written", "ask again", err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
