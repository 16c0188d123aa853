package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// drawRules makes jobs wait for approval and for quotas in some lives. Its own random source leaves the other lives
// unchanged.
func (w *World) drawRules() {
	rng := rand.New(rand.NewPCG(w.seed, 0xb0d9e7))
	if w.calm5() || rng.IntN(5) > 1 {
		return
	}
	minutes := func(most int) time.Duration { return time.Duration(1+rng.IntN(most)) * time.Minute }
	for n := range w.jobs {
		j := &w.jobs[n]
		if rng.IntN(2) == 0 {
			continue
		}
		j.asks = minutes(30 * 60)
		id, at := j.id, minutes(40*60)
		switch rng.IntN(4) {
		case 0: // nobody reviews it
		case 1:
			w.after(at, func() { w.insist(core.JobReviewed{Job: id, Reason: "not now"}) })
		default:
			w.after(at, func() { w.insist(core.JobReviewed{Job: id, Approved: true}) })
		}
	}
	set := func() core.Body {
		var list []budget.Limit
		for _, scope := range []budget.Scope{"all", "team:team0", "team:team1"} {
			l := budget.Limit{Scope: scope, Window: budget.Day}
			switch rng.IntN(4) {
			case 0:
				n := rng.IntN(3)
				l.Running = &n
			case 1:
				n := rng.IntN(9)
				l.GPUs = &n
			case 2:
				hours := float64(rng.IntN(80))
				l.GPUHours, l.Wait = &hours, true
			}
			if l.Queues() {
				list = append(list, l)
			}
		}
		return core.BudgetsSet{Rules: budget.Rules{Limits: list}}
	}
	rules := set()
	w.after(0, func() { w.insist(rules) })
	for range rng.IntN(3) {
		other := set()
		w.after(minutes(40*60), func() { w.insist(other) })
	}
	w.after(60*time.Hour, func() { w.insist(core.BudgetsSet{}) }) // otherwise some job may wait forever
}

// insist repeats the event until it is durable.
func (w *World) insist(b core.Body) {
	if !w.step(b) {
		w.after(time.Minute, func() { w.insist(b) })
	}
}

// asking returns the approval that the job needs, with the time from now.
func (w *World) asking(j simJob) *budget.PendingApproval {
	if j.asks == 0 || w.fault == FaultUnasked {
		return nil
	}
	return &budget.PendingApproval{Limits: []budget.Threshold{{Limit: "all/month", Scope: budget.All, Above: money.Picos(100e12)}}, Most: money.Picos(120e12), Bounded: true, Until: w.now.Add(j.asks)}
}

// anyHeld reports whether a job waits for approval.
func (w *World) anyHeld() bool {
	return slices.ContainsFunc(w.allJobs(), func(j *core.Job) bool { return j.State() == core.Held })
}

// held verifies that a job that waits for approval has and takes nothing, and ends when its time is over, and that no
// launch exceeds a quota.
func (t *twin) held(e core.Event, out core.Outcome) {
	if b, ok := e.Body.(core.JobReviewed); ok {
		if j, known := t.w.known(b.Job); known && j.Approval() != nil && j.Approval().At.Equal(t.w.m.Now()) {
			t.w.saw("reviewed: " + map[bool]string{true: "approved", false: "rejected"}[b.Approved])
			if over := j.State().Over(); over == b.Approved && !slices.Contains(guards, policy.Stop(j.Why())) { // it may be too late for its budget
				t.w.breaks("approval: %s is %s after its review", j.ID(), j.State())
			}
		}
	}
	for _, n := range t.w.m.Waiting() {
		if n > 0 {
			t.w.saw("a job waits for a quota")
		}
	}
	for _, j := range t.w.allJobs() {
		if j.State() != core.Held {
			continue
		}
		if j.Reopened() == 0 && (len(j.Attempts()) > 0 || !j.Spent(t.w.m.Now()).IsZero() || j.Last().Why != "") {
			t.w.breaks("approval: %s waits for it and was decided about", j.ID())
		}
		if t.w.m.Now().After(j.Approval().Until) {
			t.w.breaks("approval: %s waits for it after %v", j.ID(), j.Approval().Until)
		}
	}
	rules, _ := t.w.m.Rules()
	t.rated(rules, out)
	for _, f := range out.Facts { // a restart repeats earlier requests, whatever the limits are now
		l, ok := f.(state.AllocationRequested)
		if !ok {
			continue
		}
		j, _ := t.w.known(l.Job)
		if mine := t.w.job(l.Job); mine.asks > 0 && (j.Approval() == nil || !j.Approval().Approved) {
			t.w.breaks("approval: %s is launched without", l.Job)
		}
		for _, limit := range rules.Limits {
			if limit.Scope.Holds(j.Terms().Owner, j.User()) {
				t.quota(limit, j, e)
			}
		}
	}
}

// quota verifies, counting in the plainest way, that the limit still holds with j launched.
func (t *twin) quota(l budget.Limit, launched *core.Job, e core.Event) {
	running, gpus, hours := 0, 0, time.Duration(0)
	adds := 0 // GPUs in use by the launched job
	now := t.w.m.Now()
	for _, j := range t.w.allJobs() {
		if !l.Scope.Holds(j.Terms().Owner, j.User()) {
			continue
		}
		lives, all, before := false, time.Duration(0), gpus
		if asked := j.Asked(); asked != nil { // it runs as soon as the launch is answered
			lives = true
			gpus += asked.Machine().GPUs
		}
		for _, a := range j.Attempts() {
			if a.Live() {
				lives = true
				gpus += a.GPUs()
			}
			for _, k := range a.Tasks() { // its machines come and go one by one
				if k.From().IsZero() {
					continue
				}
				until := now
				if !k.Until().IsZero() {
					until = k.Until()
				}
				all += time.Duration(k.GPUs()) * until.Sub(k.From())
				from := k.From()
				if begin := l.Window.Begin(now); from.Before(begin) {
					from = begin
				}
				hours += time.Duration(k.GPUs()) * max(0, until.Sub(from))
			}
		}
		if j.ID() == launched.ID() {
			adds = gpus - before
		}
		if lives {
			running++
			hours += max(0, time.Duration(j.Terms().GPUHours*float64(time.Hour))-all)
		}
	}
	switch {
	case l.Running != nil && running > *l.Running:
		t.w.breaks("quota: %s is launched by %s, and %d jobs run under %s of %d", launched.ID(), e.Body.Kind(), running, l.Name(), *l.Running)
	case l.GPUs != nil && gpus > *l.GPUs && adds > 0: // a part of a machine may have none
		t.w.breaks("quota: %s is launched by %s, and %d GPUs are in use under %s of %d", launched.ID(), e.Body.Kind(), gpus, l.Name(), *l.GPUs)
	case l.Wait && launched.Terms().GPUHours > 0 && hours > time.Duration(*l.GPUHours*float64(time.Hour)):
		t.w.breaks("quota: %s is launched by %s, and %v of GPU time are used or held under %s of %g hours", launched.ID(), e.Body.Kind(), hours, l.Name(), *l.GPUHours)
	default:
		t.w.saw("a launch under a quota")
	}
}

// limit parses limit SCOPE [running=2] [gpus=8] [gpu_hours=10 wait] [window=day], and unlimit SCOPE.
func (s *stage) limit(a *args) error {
	scope, err := budget.ParseScope(a.first())
	if err != nil {
		return err
	}
	l := budget.Limit{Scope: scope, Window: budget.Window(a.text("window", "day"))}
	for key, to := range map[string]**int{"running": &l.Running, "gpus": &l.GPUs} {
		if text := a.text(key, ""); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				return err
			}
			*to = &n
		}
	}
	if text := a.text("gpu_hours", ""); text != "" {
		h := a.number("gpu_hours", 0)
		l.GPUHours, l.Wait = &h, a.has("wait")
	}
	var says []string
	if l.Queues() {
		if err := l.Check(); err != nil {
			return err
		}
	}
	for _, v := range []struct {
		what string
		n    *int
	}{{"jobs run", l.Running}, {"GPUs are in use", l.GPUs}} {
		if v.n != nil {
			says = append(says, fmt.Sprintf("at most %d %s", *v.n, v.what))
		}
	}
	if l.GPUHours != nil {
		says = append(says, fmt.Sprintf("%g GPU-hours a %s", *l.GPUHours, l.Window))
	}
	old, _ := s.w.m.Rules()
	rules := budget.Rules{}
	for _, o := range old.Limits {
		if o.Scope != scope {
			rules.Limits = append(rules.Limits, o)
		}
	}
	if l.Queues() {
		rules.Limits = append(rules.Limits, l)
	}
	s.line("limit", "%s: %s", scope, cmp.Or(strings.Join(says, ", "), "none"))
	s.w.insist(core.BudgetsSet{Rules: rules})
	return nil
}

// review parses approve JOB [reason=WORD], and reject JOB reason=WORD.
func (s *stage) review(verb string, a *args) error {
	id := a.first()
	s.line("user", "%ss %s", map[string]string{"approve": "approve", "reject": "reject"}[verb], id)
	s.w.insist(core.JobReviewed{Job: id, Approved: verb == "approve", Reason: a.text("reason", "")})
	return nil
}

// waits prints the quota that a job waits for, when it changes.
func (s *stage) waits() {
	for _, j := range s.w.allJobs() {
		_, detail, _ := s.w.m.Waits(j)
		if detail != s.quota[j.ID()] && detail != "" {
			s.line("waits", "%s: %s", j.ID(), detail)
		}
		s.quota[j.ID()] = detail
	}
}
