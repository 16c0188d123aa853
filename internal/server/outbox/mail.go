package outbox

import (
	"fmt"
	"strings"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/forecast"
)

// subject is what a report says about its job. Times are wall time.
type subject struct {
	user, secrets string
	submitted     time.Time
	cost          string // so far
	budget        string // "": none
	exit          int    // of the program of a job that failed; 0: none
	detail        string
	ended         time.Time // zero: it has not
	deadline      time.Time // zero: none
	finish        time.Time // forecast of a job that has not ended; zero: unknown
	server        string    // its address; "": users reach it by the data folder only
}

// about returns what reports say about a job.
func (o *Outbox) about(id string) (s subject) {
	odds, known := forecast.Median{}, false
	if o.Odds != nil {
		odds, known = o.Odds.Median(id)
	}
	o.Control.Job(id, func(m *core.Machine, j *core.Job) {
		s = subjectOf(j, o.Control.Now(), o.Control.Clock().ToWall)
		s.secrets = m.State().Secrets(j)
		if o.Known != nil {
			s.user = o.Known(s.user)
		}
		if known && sameTerms(&odds.Terms, j.Terms()) && !j.State().Over() && !odds.Finish.IsZero() {
			s.finish = o.Control.Clock().ToWall(odds.Finish)
		}
	})
	s.server = o.Address
	return s
}

// subjectOf returns what reports say about a job at market time now.
func subjectOf(j *core.Job, now time.Time, wall func(time.Time) time.Time) subject {
	t := j.Terms()
	s := subject{user: j.User(), submitted: j.Submitted(), detail: j.Detail(),
		cost: money.Short(j.Spent(now), t.Currency)}
	if j.State() == state.Failed {
		s.exit = j.Exit()
	}
	if t.HasBudget {
		s.budget = money.Short(t.Budget, t.Currency)
	}
	if !t.Deadline.IsZero() {
		s.deadline = wall(t.Deadline)
	}
	if !j.Finished().IsZero() {
		s.ended = wall(j.Finished())
	}
	return s
}

// text returns the body of an e-mail.
func (w *word) text(s subject) string {
	var b strings.Builder
	fact := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-12s %s\n", name, value)
		}
	}
	fmt.Fprintf(&b, "%s.\n\n", strings.TrimPrefix(w.line(), "scrimp: "))
	fact("event", w.Event)
	fact("state", w.State)
	fact("reason", strings.ReplaceAll(w.Why, "_", " "))
	fact("detail", strings.Join(strings.Fields(s.detail), " "))
	if s.exit != 0 {
		fact("exit code", fmt.Sprint(s.exit))
	}
	fact("cost so far", s.cost)
	fact("budget", s.budget)
	if !s.deadline.IsZero() {
		fact("deadline", stamp(s.deadline))
	}
	if !s.ended.IsZero() {
		fact("ended", stamp(s.ended)+w.behind(&s))
	}
	if w.Event == spec.Late && s.ended.IsZero() {
		fact("forecast", w.forecast(&s))
	}
	fact("server", s.server)
	if f := w.Forecast; f != nil {
		fmt.Fprintf(&b, "\n%s.\n", strings.ToUpper(f.Detail[:1])+f.Detail[1:])
	}
	fmt.Fprintf(&b, "\nNext: %s\nAll about it: scrimp status %s\n", w.next(), w.Job)
	return b.String()
}

// forecast says when a job that is late ends.
func (w *word) forecast(s *subject) string {
	f, finish := w.Forecast, s.finish
	if f != nil && f.Finish != nil {
		finish = *f.Finish
	}
	switch {
	case !finish.IsZero():
		return "ends " + stamp(finish) + ", median of the simulated runs"
	case f == nil || f.Passed:
		return "unknown"
	}
	return "most simulated runs do not finish"
}

// behind says by how much a job that has ended missed its deadline.
func (w *word) behind(s *subject) string {
	if s.deadline.IsZero() || !s.ended.After(s.deadline) {
		return ""
	}
	return ", " + s.ended.Sub(s.deadline).Round(time.Second).String() + " after its deadline"
}

// next returns the command that the reader of a report needs first.
func (w *word) next() string {
	switch {
	case w.Forecast != nil:
		return w.Forecast.Fix
	case w.Event == spec.OverBudget:
		return "scrimp receipt " + w.Job
	case w.State == string(core.Failed):
		return "scrimp logs " + w.Job
	case w.State == string(core.Succeeded):
		return "scrimp get " + w.Job
	}
	return "scrimp receipt " + w.Job
}
