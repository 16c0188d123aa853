package server

import (
	"context"
	"encoding/json"
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
)

// tally is what was booked by limit before the event from, in the window that was
// open then: what the core does not know after a restart, or of a new limit.
type tally struct {
	from uint64 // 0: nothing was summed yet
	sums map[string]tallied
}

type tallied struct {
	begin time.Time
	spent money.Amount
}

// admitted is a job that is let in and that the core has not taken yet.
type admitted struct {
	job  budget.Job
	till time.Time // wall; zero: its event is under way
}

// unsure is how long a hold stands whose event may or may not come: whoever sent it has gone.
const unsure = time.Minute

// What the store keeps beside the log.
const (
	budgetsMeta = "budgets" // the rules of releases that had no event for them
	warnedMeta  = "budgets_warned"
)

// readRules returns the rules in force, which are in the log. Those that a release
// before kept beside the log are taken into it once. The caller holds s.ledgers.
func (s *Server) readRules(ctx context.Context) (v budget.Rules, err error) {
	set := false
	// what is admitted under them follows them in the log
	s.control.ReadUncommitted(func(m *core.Machine) { v, set = m.Rules() })
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
		if err := s.control.Propose(ctx, s.rulesSet("server", v)); err != nil {
			return v, err
		}
	}
	s.adopted = true
	return v, nil
}

func (s *Server) rulesSet(actor string, v budget.Rules) core.Event {
	return core.Event{At: s.control.Now(), Schema: core.Schema, Tenant: s.control.Tenant(), Actor: actor,
		Body: core.BudgetsSet{Rules: v}}
}

// books are what is spent and held by now, with what is let in and not written yet.
// They may depend on events up to seq that are not durable: who shows them waits for
// that. The caller holds s.ledgers, and no other time than this is spent under it
// but for the first books after a start and after a change of the limits.
func (s *Server) books(ctx context.Context) (b budget.Accounts, burn map[string]money.Rate, seq uint64, err error) {
	for {
		from, now := uint64(0), time.Time{}
		s.control.ReadUncommitted(func(m *core.Machine) {
			seq, now = m.Seq(), s.control.Now()
			if m.Now().After(now) {
				now = m.Now()
			}
			b, burn, from = m.Books(now)
			for id, a := range s.pending {
				j, taken := m.Job(id)
				if taken && j.State() != core.Held || !a.till.IsZero() && time.Now().After(a.till) {
					delete(s.pending, id)
					continue
				}
				b.Live = append(b.Live, a.job)
			}
		})
		if s.tally.from == from {
			for _, l := range b.Limits {
				if sum := s.tally.sums[l.Name()]; sum.begin.Equal(l.Window.Begin(now)) {
					b.Spent[l.Name()] = b.Spent[l.Name()].Add(sum.spent)
				}
			}
			return b, burn, seq, nil
		}
		s.control.ReadUpTo(func(*core.Machine) uint64 { return from - 1 })
		if err := s.tallied(ctx, b.Limits, from, now); err != nil {
			return b, nil, 0, err
		}
	}
}

// tallied sums what was booked before the event from, in the windows that are open
// now: it takes the kept sums, and out of them the few postings from that event on.
func (s *Server) tallied(ctx context.Context, limits []budget.Limit, from uint64, now time.Time) error {
	s.spent.mu.Lock()
	defer s.spent.mu.Unlock()
	if err := s.spentTo(ctx, from-1); err != nil {
		return err
	}
	list := map[string]tallied{}
	for _, l := range limits {
		sum := tallied{begin: l.Window.Begin(now)}
		held := map[int]bool{}
		// it begins with an hour, so none is cut
		s.spent.sums.Since(sum.begin, func(whose int, _ ledger.Column, a money.Amount) {
			in, known := held[whose]
			if !known {
				w := s.spent.sums.Dimensions()[whose]
				in = l.Scope.Holds(w.Owner(), w.User)
				held[whose] = in
			}
			if in {
				sum.spent = sum.spent.Add(a)
			}
		})
		list[l.Name()] = sum
	}
	var after []ledger.Posting
	for p, err := range s.store.PostingsOf(ctx, s.control.Tenant(), from-1, s.spent.upTo) {
		if err != nil {
			return err
		}
		after = append(after, p)
	}
	users, _ := s.ofJobs(after)
	for i, p := range after {
		for _, l := range limits {
			if sum := list[l.Name()]; l.Scope.Holds(p.Owner, users[i]) && !p.At.Before(sum.begin) {
				sum.spent = sum.spent.Sub(core.Cost(p))
				list[l.Name()] = sum
			}
		}
	}
	s.tally = tally{from: from, sums: list}
	return nil
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
	s.ledgers.Lock()
	v, _, ok := s.changed(w, r, b)
	s.ledgers.Unlock()
	if !ok {
		return
	}
	s.control.Prepare(r.Context(), &v) // while jobs are let in under the limits of before
	s.ledgers.Lock()
	defer s.ledgers.Unlock()
	v, object, ok := s.changed(w, r, b) // somebody else may have changed them meanwhile
	if !ok {
		return
	}
	if err := s.tell(r, object, s.rulesSet(actor(callerOf(r).User), v)); err != nil {
		problem(w, http.StatusServiceUnavailable, "not written", "ask again", err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// changed is the rules with the change, and what it is about; or it answers what is
// wrong with it. The caller holds s.ledgers.
func (s *Server) changed(w http.ResponseWriter, r *http.Request, b api.SetBudget) (v budget.Rules,
	object string, ok bool) {
	old, err := s.readRules(r.Context())
	if err != nil {
		problem(w, http.StatusServiceUnavailable, "the budgets were not read", "ask again", err)
		return v, "", false
	}
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
