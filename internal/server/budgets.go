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

	"scrimp/client"
	"scrimp/internal/api"
	"scrimp/internal/api/convert"
	"scrimp/internal/budget"
	"scrimp/internal/core"
	"scrimp/internal/identity"
	"scrimp/internal/ledger"
	"scrimp/internal/money"
	"scrimp/internal/server/webhook"
	"scrimp/internal/state"
)

// What the store keeps beside the log.
const (
	budgetsMeta = "budgets" // the rules of releases that had no event for them
	warnedMeta  = "budgets_warned"
)

// settled sees to it that the rules in force are the core's: those that a release before
// kept beside the log are taken into it once, and of limits that it set what they have spent.
func (s *Server) settled(ctx context.Context) *refusal {
	if s.ruled.Load() {
		return nil
	}
	s.setting.Lock()
	defer s.setting.Unlock()
	if err := s.settle(ctx); err != nil {
		return &refusal{status: http.StatusServiceUnavailable, title: "the budgets were not read",
			fix: "ask again with the same key", err: err}
	}
	return nil
}

// settle is settled for who holds s.setting.
func (s *Server) settle(ctx context.Context) error {
	if s.ruled.Load() {
		return nil
	}
	var v budget.Rules
	set, partial := false, false
	s.control.ReadUncommitted(func(m *core.Machine) {
		v, set = m.Rules()
		partial = m.PartlySpent()
	})
	if !set {
		text, ok, err := s.store.Meta(ctx, budgetsMeta)
		if err != nil {
			return err
		}
		if partial = ok; ok {
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				return fmt.Errorf("read the budgets: %w", err)
			}
		}
	}
	if partial {
		if err := s.setRules(ctx, v, func(e core.Event) error {
			e.Actor = "server"
			return s.control.Propose(ctx, e)
		}); err != nil {
			return err
		}
	}
	s.ruled.Store(true)
	return nil
}

// setRules hands rules to tell, with what their limits have spent so far; again, where that
// is not the newest by then.
func (s *Server) setRules(ctx context.Context, v budget.Rules, tell func(core.Event) error) (err error) {
	for range 10 {
		b := core.BudgetsSet{Rules: v}
		if b.Base, b.AsOf, err = s.spentUnder(ctx, v.Limits); err != nil {
			return err
		}
		err = tell(core.Event{At: s.control.Now(), Schema: core.Schema, Tenant: s.control.Tenant(), Body: b})
		if !errors.Is(err, core.ErrStale) {
			return err
		}
	}
	return err
}

// rulesNow are the rules in force.
func (s *Server) rulesNow() (v budget.Rules) {
	s.control.ReadUncommitted(func(m *core.Machine) { v, _ = m.Rules() })
	return v
}

// books are what is spent and held by now. They may depend on events up to seq that are
// not durable: who shows them waits for that.
func (s *Server) books() (b budget.Accounts, burn map[string]money.Rate, seq uint64) {
	s.control.ReadUncommitted(func(m *core.Machine) {
		now := s.control.Now()
		if m.Now().After(now) {
			now = m.Now()
		}
		b, burn = m.Books(now)
		seq = m.Seq()
	})
	return b, burn, seq
}

// spentUnder sums what was booked of limits in the windows that are open now, up to the
// event asOf.
func (s *Server) spentUnder(ctx context.Context, limits []budget.Limit) (base map[string]state.Spent, asOf uint64,
	err error) {
	s.spent.mu.Lock()
	defer s.spent.mu.Unlock()
	if err := s.spentTo(ctx, s.control.Durable()); err != nil {
		return nil, 0, err
	}
	base = map[string]state.Spent{}
	for _, l := range limits {
		sum := state.Spent{Begin: l.Window.Begin(s.control.Now())}
		held := map[int]bool{}
		// it begins with an hour, so none is cut
		s.spent.sums.Since(sum.Begin, func(whose int, _ ledger.Column, a money.Amount) {
			in, known := held[whose]
			if !known {
				w := s.spent.sums.Dimensions()[whose]
				in = l.Scope.Holds(w.Owner(), w.User)
				held[whose] = in
			}
			if in {
				sum.Amount = sum.Amount.Add(a)
			}
		})
		base[l.Name()] = sum
	}
	return base, s.spent.upTo, nil
}

// durable waits until that event is.
func (s *Server) durable(seq uint64) {
	s.control.ReadUpTo(func(*core.Machine) uint64 { return seq })
}

// shows reports whether the caller may know of the limit: one of a team that it
// sees, of itself, or, where it sees all teams, any.
func shows(c identity.Caller, scope budget.Scope) bool {
	kind, name, _ := strings.Cut(string(scope), ":")
	return c.Role(identity.Everywhere) >= identity.Viewer || kind == "team" && c.Role(name) >= identity.Viewer ||
		kind == "user" && name == c.User
}

func (s *Server) getBudgets(w http.ResponseWriter, r *http.Request) {
	v := api.Budgets{Limits: []api.BudgetLine{}, Tags: budget.Tags{}, Currency: money.USD}
	set, b, burn, err := s.booksNow(r.Context())
	if err != nil {
		problem(w, http.StatusInternalServerError, "the budgets were not read", "ask again", err)
		return
	}
	if set.Tags != nil {
		v.Tags = set.Tags
	}
	outlooks, now := map[string]budget.Outlook{}, s.control.Now()
	if len(b.Limits) > 0 {
		outlooks, now = s.outlooks(b)
	}
	all := rules(callerOf(r))
	for _, l := range set.Limits {
		if !shows(callerOf(r), l.Scope) {
			continue
		}
		use := b.Use(l)
		line := api.BudgetLine{Limit: convert.To[client.Limit](l), Use: convert.To[client.LimitUse](use),
			Burn: burn[l.Name()]}
		if at, ok := l.Breach(use, line.Burn, now); ok {
			line.AtRate = &at
		}
		if o, ok := outlooks[l.Name()]; ok {
			line.Outlook, line.Breach = convert.To[*client.Outlook](&o), o.Breach
		}
		if line.Limit.Notify != "" && !all {
			line.Limit.Notify = webhook.Host(line.Limit.Notify) // the address may hold a secret
		}
		v.Limits = append(v.Limits, line)
	}
	answer(w, v)
}

// nobodys says why no job can be in the scope: a name that is misspelt would
// guard nothing. Where there are no teams or users, job files say what they like.
func (s *Server) nobodys(scope budget.Scope) (wrong, fix string) {
	kind, name, _ := strings.Cut(string(scope), ":")
	s.people.RLock()
	defer s.people.RUnlock()
	teams := s.book.Teams()
	switch kind {
	case "team":
		if len(teams) > 0 && !slices.ContainsFunc(teams, func(t identity.Team) bool { return t.Name == name }) {
			return fmt.Sprintf("team %q is not known", name), "scrimp teams lists them, scrimp teams set makes one"
		}
	case "project":
		if len(teams) > 0 && !slices.ContainsFunc(teams,
			func(t identity.Team) bool { return len(t.Projects) == 0 || slices.Contains(t.Projects, name) }) {
			return fmt.Sprintf("no team has a project %q", name), "scrimp teams lists them"
		}
	case "user":
		if _, known := s.book.User(name); !known && name != ownerName && len(s.book.Users()) > 0 {
			return fmt.Sprintf("user %q is not known", name), "scrimp users lists them, scrimp users set makes one"
		}
	}
	return "", ""
}

// weighedJobs is how many of the jobs that wait are weighed for an outlook at most, the
// most urgent: of a longer queue nobody would believe what comes after them.
const weighedJobs = 500

// outlooks are what the limits will come to, by name, and from when they are counted.
func (s *Server) outlooks(b budget.Accounts) (map[string]budget.Outlook, time.Time) {
	uses := map[string]budget.Use{}
	for _, l := range b.Limits {
		uses[l.Name()] = b.Use(l)
	}
	var courses []budget.Course
	var now time.Time
	places, beyond := 0, false
	s.control.Read(func(m *core.Machine) {
		if now = s.control.Now(); m.Now().After(now) {
			now = m.Now()
		}
		courses, places, beyond = m.Courses(now, weighedJobs)
	})
	return budget.Foresee(b.Limits, uses, courses, places, beyond, now), now
}

// putBudgets makes a limit, or changes the one of that scope and window; takes
// one out; or says which values a tag may have.
func (s *Server) putBudgets(w http.ResponseWriter, r *http.Request) {
	b, ok := read[api.SetBudget](w, r, 1<<16)
	if !ok {
		return
	}
	s.setting.Lock()
	defer s.setting.Unlock()
	v, object, ok := s.changed(w, r, b)
	if !ok {
		return
	}
	s.control.Prepare(r.Context(), &v) // while jobs are let in under the limits of before
	if err := s.setRules(r.Context(), v, func(e core.Event) error {
		e.Actor = actor(callerOf(r).User)
		return s.tell(r, object, e)
	}); err != nil {
		problem(w, http.StatusServiceUnavailable, "not written", "ask again", err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// changed is the rules with the change, and what it is about; or it answers what is
// wrong with it. The caller holds s.setting.
func (s *Server) changed(w http.ResponseWriter, r *http.Request, b api.SetBudget) (v budget.Rules,
	object string, ok bool) {
	if err := s.settle(r.Context()); err != nil {
		problem(w, http.StatusServiceUnavailable, "the budgets were not read", "ask again", err)
		return v, "", false
	}
	old := s.rulesNow()
	v = budget.Rules{Limits: slices.Clone(old.Limits), Tags: budget.Tags{}}
	for k, values := range old.Tags {
		v.Tags[k] = values
	}
	switch {
	case b.Limit != nil:
		limit := convert.To[budget.Limit](*b.Limit)
		if err := limit.Check(); err != nil {
			fieldProblem(w, http.StatusUnprocessableEntity, "limit", "the limit is not valid",
				"scrimp budgets set --help says more", err)
			return v, "", false
		}
		if s.hooksInside(limit.Notify) {
			fieldProblem(w, http.StatusUnprocessableEntity, "limit.notify", "the webhook leads inside the server's network",
				hookFix, nil)
			return v, "", false
		}
		if wrong, fix := s.nobodys(limit.Scope); wrong != "" {
			fieldProblem(w, http.StatusUnprocessableEntity, "limit.scope", wrong, fix, nil)
			return v, "", false
		}
		object = limit.Name()
		v.Limits = slices.DeleteFunc(v.Limits, func(l budget.Limit) bool { return l.Name() == object })
		v.Limits = append(v.Limits, limit)
		slices.SortFunc(v.Limits, func(x, y budget.Limit) int { return strings.Compare(x.Name(), y.Name()) })
	case b.Remove != "":
		object = b.Remove
		n := len(v.Limits)
		if v.Limits = slices.DeleteFunc(v.Limits,
			func(l budget.Limit) bool { return l.Name() == object }); len(v.Limits) == n {
			problem(w, http.StatusNotFound, "there is no budget "+object, "scrimp budgets lists them", nil)
			return v, "", false
		}
	case b.Tag != "":
		object = "tag " + b.Tag
		if delete(v.Tags, b.Tag); !b.Free {
			v.Tags[b.Tag] = some(b.Values)
		}
	default:
		fieldProblem(w, http.StatusUnprocessableEntity, "limit", "the change is empty", "send a limit, remove or a tag", nil)
		return v, "", false
	}
	return v, object, true
}
