package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/budget"
	"scrimp/internal/core"
	"scrimp/internal/money"
)

// guardBudgets looks at the limits every few seconds: it warns, and at the limit
// saves and stops what runs. New work is refused at submission.
func (s *Server) guardBudgets(ctx context.Context) {
	t := time.NewTicker(2 * time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := s.lookAtBudgets(ctx); err != nil && ctx.Err() == nil {
			s.opts.Log.Error("budgets not looked at", "error", err)
		}
	}
}

// booksNow are the rules and their books at one moment, durable.
func (s *Server) booksNow(ctx context.Context) (rules budget.Rules, b budget.Accounts, burn map[string]money.Rate,
	err error) {
	if no := s.settled(ctx); no != nil {
		return rules, b, burn, no.err
	}
	if rules = s.rulesNow(); len(rules.Limits) > 0 {
		var seq uint64
		b, burn, seq = s.books()
		s.durable(seq)
	}
	return rules, b, burn, nil
}

// lookAtBudgets looks once. No submission waits while a webhook is told.
func (s *Server) lookAtBudgets(ctx context.Context) error {
	_, b, _, err := s.booksNow(ctx)
	if err != nil || len(b.Limits) == 0 {
		return err
	}
	v := warnings{s: s, b: b, now: s.control.Now(), told: map[string]bool{}, still: map[string]bool{}}
	if text, ok, err := s.store.Meta(ctx, warnedMeta); err != nil {
		return err
	} else if ok && json.Unmarshal([]byte(text), &v.told) != nil {
		return errors.New("read what budgets have warned of")
	}
	for _, l := range b.Limits {
		v.shares(ctx, l)
		v.breach(ctx, l)
	}
	// of windows that are over
	maps.DeleteFunc(s.owed, func(key string, _ owed) bool { _, due := v.still[key]; return !due })
	if !v.changed {
		return nil
	}
	text, err := json.Marshal(v.still)
	if err != nil {
		return err
	}
	return s.store.PutMeta(ctx, warnedMeta, string(text))
}

// warnings are those that are due now, by limit, share and window.
type warnings struct {
	s        *Server
	b        budget.Accounts
	now      time.Time
	told     map[string]bool // before
	still    map[string]bool // and now
	changed  bool
	outlooks map[string]budget.Outlook // nil: nobody has asked yet
}

// key names a warning in the window of its limit.
func (v *warnings) key(l budget.Limit, of string) string {
	return fmt.Sprintf("%s@%s %s", l.Name(), of, l.Window.Begin(v.now).Format(time.RFC3339))
}

// shares warns of the shares of a limit that are spent, and stops its jobs where all is.
func (v *warnings) shares(ctx context.Context, l budget.Limit) {
	u := v.b.Use(l)
	for _, share := range l.Passed(u) {
		if share == 1 { // before anybody is told
			v.s.stopAll(ctx, l, v.b)
		}
		key := v.key(l, fmt.Sprintf("%g", share))
		v.still[key] = v.told[key] || v.s.warn(ctx, key, l, u, api.BudgetWarning{Share: share})
		v.changed = v.changed || v.still[key] && !v.told[key]
	}
}

// breach warns once in a window, however it goes on, that all of a limit will be spent.
func (v *warnings) breach(ctx context.Context, l budget.Limit) {
	u := v.b.Use(l)
	if l.Dollars == nil || l.Notify == "" || u.Spent.Cmp(*l.Dollars) >= 0 {
		return
	}
	key := v.key(l, "breach")
	if v.told[key] {
		v.still[key] = true
		return
	}
	if v.outlooks == nil {
		v.outlooks, _ = v.s.outlooks(v.b)
	}
	if o := v.outlooks[l.Name()]; o.Breach != nil {
		share := u.Spent.Float() / l.Dollars.Float()
		warning := api.BudgetWarning{Share: share, Breach: o.Breach, Chance: o.Chance, Jobs: o.Jobs}
		v.still[key] = v.s.warn(ctx, key, l, u, warning)
		v.changed = v.changed || v.still[key]
	}
}

// owed is a warning that its webhook has not taken.
type owed struct {
	next time.Time // wall
	wait time.Duration
}

// warn tells the limit's webhook that a share of it is spent, or will be all of it; false: not told, so
// that it is tried again, each time after a longer wait. The log has it once.
func (s *Server) warn(ctx context.Context, key string, l budget.Limit, u budget.Use, w api.BudgetWarning) bool {
	now, before := time.Now(), s.owed[key]
	switch {
	case before.wait == 0:
		s.opts.Log.Warn("budget", "limit", l.Name(), "share", w.Share, "foreseen", w.Breach != nil, "spent", u.Spent.String(),
			"of", l.Dollars.String())
	case now.Before(before.next):
		return false
	}
	if l.Notify == "" {
		return true
	}
	w.Budget, w.Spent, w.Held, w.Dollars = l.Name(), u.Spent, u.Held, *l.Dollars
	body, err := json.Marshal(w)
	if err != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	asked, err := s.outbox.post(ctx, l.Notify, "", body)
	if err == nil || errors.Is(err, errHook) {
		delete(s.owed, key)
		if err != nil {
			s.opts.Log.Warn("webhook of a budget not told", "limit", l.Name(), "host", host(l.Notify), "error", err)
		}
		return true
	}
	wait := min(max(2*before.wait, toldFirst, asked), toldMost)
	if s.owed == nil {
		s.owed = map[string]owed{}
	}
	s.owed[key] = owed{now.Add(wait), wait}
	s.opts.Log.Warn("webhook of a budget not told yet", "limit", l.Name(), "host", host(l.Notify), "again_in", wait,
		"error", err)
	return false
}

// stopsAtOnce is how many jobs are gone through, and stopped, at once: others have
// their turn between them.
const stopsAtOnce = 2000

// stopAll saves and stops the jobs of a limit that is spent: first those that cost
// something, then those that wait, which may be a million.
func (s *Server) stopAll(ctx context.Context, l budget.Limit, b budget.Accounts) {
	var ids []string
	for _, v := range b.Live {
		ids = append(ids, v.ID)
	}
	stopped, ok := s.stopJobs(ctx, l, func(m *core.Machine, stop func(*core.Job)) {
		for _, id := range ids {
			if j, known := m.Job(id); known {
				stop(j)
			}
		}
	})
	for last, more := "", b.Outstanding[l.Name()].Jobs > 0; ok && more; { // some wait, which is so once
		var n int
		n, ok = s.stopJobs(ctx, l, func(m *core.Machine, stop func(*core.Job)) {
			jobs, _ := m.JobsAfter(last) // no job is ever forgotten
			seen := 0
			more = false
			for j := range jobs {
				if more = seen == stopsAtOnce; more {
					return
				}
				stop(j)
				last, seen = j.ID(), seen+1
			}
		})
		stopped += n
	}
	if stopped > 0 {
		s.opts.Log.Warn("budget spent: jobs are saved and stopped", "limit", l.Name(), "jobs", stopped)
	}
}

// stopJobs saves and stops those of the jobs which the limit holds that each gives to
// stop. It reports how many, and whether that is in the log.
func (s *Server) stopJobs(ctx context.Context, l budget.Limit,
	each func(m *core.Machine, stop func(*core.Job))) (n int, ok bool) {
	var events []core.Event
	now := s.control.Now()
	if !s.control.Read(func(m *core.Machine) {
		each(m, func(j *core.Job) {
			ends := j.State() == core.Held || j.State().Over() || j.Ending() != "" && j.Ending() != core.Paused
			if ends || !l.Scope.Holds(j.Terms().Owner, j.User()) {
				return
			}
			events = append(events, core.Event{At: now, Schema: core.Schema, Tenant: "default", Actor: "budget:" + l.Name(),
				Body: core.JobEnded{Job: j.ID(), Save: true, Limit: l.Name()}})
		})
	}) {
		return 0, false
	}
	if len(events) == 0 {
		return 0, true
	}
	if err := s.control.Propose(ctx, events...); err != nil {
		if ctx.Err() == nil {
			s.opts.Log.Error("jobs of a spent budget not stopped", "limit", l.Name(), "error", err)
		}
		return 0, false
	}
	return len(events), true
}
