package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/durable"
	"scrimp/internal/lib/isolate"
	"scrimp/internal/lib/wait"
	"scrimp/internal/server/forecast"
)

// Forecasts returns the newest forecasts of running jobs.
type Forecasts interface {
	Median(job string) (forecast.Median, bool)
}

// expected is the trouble that a forecast shows. Times are wall time.
type expected struct {
	Deadline *time.Time `json:"deadline,omitempty"`
	Finish   *time.Time `json:"finish,omitempty"` // median; null: unknown
	Budget   string     `json:"budget,omitempty"` // in the job's currency
	Spent    string     `json:"spent,omitempty"`
	Detail   string     `json:"detail"`
	Fix      string     `json:"fix"`
	Passed   bool       `json:"passed,omitempty"` // the deadline has passed
}

// foreseenFolder holds a file for each expected trouble: the report while it is due, and nothing once it was made.
const foreseenFolder = "foreseen"

const (
	lookEvery = 3 * time.Second
	// waitingEvery is the interval between two passes over all jobs, which find those that wait beyond their deadline.
	waitingEvery = time.Minute
)

// trouble is what one look at a job shows.
type trouble struct {
	key string // the event, the job and the terms that it is about; also the name of its file
	at  time.Time
	w   word
	of  uint64 // event with the job file
	// certain is true if the trouble is no forecast: the first look reports it.
	certain bool
}

// looks returns what a look at a job at time now shows. m is its forecast, if it has one for its terms. absent
// lists the keys of troubles that it does not have.
func looks(j *core.Job, m forecast.Median, known bool, now time.Time, wall func(time.Time) time.Time) (list []trouble,
	absent []string) {
	t := j.Terms()
	told := core.ToldOf(j.ID(), j.Reopened())
	known = known && sameTerms(&m.Terms, t)
	add := func(event, about string, holds bool, at time.Time, what expected) {
		one := trouble{key: event + "." + told + "." + about, at: at, of: j.SpecEvent()}
		if !holds {
			absent = append(absent, one.key)
			return
		}
		one.w = word{ID: event + "/" + told + "/" + about, Job: j.ID(), Event: event, State: string(j.State()),
			Why: j.Why(), Forecast: &what}
		one.certain = what.Passed
		list = append(list, one)
	}
	if passed := now.After(t.Deadline); !t.Deadline.IsZero() && (known || passed) {
		at, what := m.At, lateness(j, m.Finish, wall)
		if passed {
			at, what = now, lateness(j, time.Time{}, wall)
			what.Detail, what.Passed = "its deadline has passed: "+stamp(*what.Deadline), true
		}
		add(spec.Late, fmt.Sprint(t.Deadline.Unix()), passed || m.Finish.IsZero() || m.Finish.After(t.Deadline), at, what)
	}
	if known && (t.HasBudget || t.GPUHours > 0 || t.WallClock > 0) {
		add(spec.OverBudget, aboutBudget(t), m.OverBudget, m.At, shortage(j, now))
	}
	return list, absent
}

// sameTerms reports whether a forecast for the terms a holds for b.
func sameTerms(a, b *core.Terms) bool {
	return a.Deadline.Equal(b.Deadline) && aboutBudget(a) == aboutBudget(b)
}

// aboutBudget names the budgets of a job.
func aboutBudget(t *core.Terms) string {
	sum := sha256.Sum256([]byte(fmt.Sprint(t.HasBudget, t.Budget, t.GPUHours, t.WallClock)))
	return hex.EncodeToString(sum[:6])
}

// stamp formats a moment to the second.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// lateness describes a job that finishes at the given market time, or never if that is zero.
func lateness(j *core.Job, finish time.Time, wall func(time.Time) time.Time) expected {
	deadline := wall(j.Terms().Deadline)
	e := expected{Deadline: &deadline, Detail: "most simulated runs do not finish; its deadline is " + stamp(deadline),
		Fix: "scrimp update " + j.ID() + " --deadline TIME, or scrimp explain " + j.ID()}
	if !finish.IsZero() {
		at := wall(finish)
		e.Finish = &at
		e.Detail = "half of the simulated runs finish after " + stamp(at) + "; its deadline is " + stamp(deadline)
	}
	return e
}

// shortage describes a job whose budget is too small.
func shortage(j *core.Job, now time.Time) expected {
	t := j.Terms()
	e := expected{Spent: j.Spent(now).String(), Detail: "a budget ends most simulated runs before the work is done",
		Fix: "scrimp update " + j.ID() + " --budget DOLLARS, --gpu-hours or --wall-clock"}
	if t.HasBudget {
		e.Budget = t.Budget.String()
	}
	return e
}

// streaks counts the looks in a row that show a trouble.
type streaks map[string]streak

type streak struct {
	at time.Time // of the last look
	n  int
}

// enough is the number of looks in a row after which a trouble is reported.
const enough = 2

// again counts a look that shows a trouble, and reports whether it completes the number. A forecast that was counted
// before does not count again.
func (s streaks) again(key string, at time.Time) bool {
	one := s[key]
	if one.n > 0 && one.at.Equal(at) {
		return false
	}
	one.at, one.n = at, one.n+1
	s[key] = one
	return one.n >= enough
}

// mostKept bounds what the watcher remembers; beyond it, the watcher begins anew.
const mostKept = 100_000

// Watcher looks for trouble.
type Watcher struct {
	o      *Outbox
	seen   streaks
	made   map[string]bool   // names of files
	passed map[string]uint64 // troubles that the job file does not ask for, by the event with that file
	whole  time.Time         // of the last pass over all jobs
	all    sync.WaitGroup

	// WholeEvery is the interval between two passes over all jobs, in wall time; the others see running jobs only.
	WholeEvery time.Duration
}

// Watcher returns a Watcher, and makes the reports that an earlier server has decided on and not made.
func (o *Outbox) Watcher(ctx context.Context) (*Watcher, error) {
	w := &Watcher{o: o, seen: streaks{}, passed: map[string]uint64{}, WholeEvery: waitingEvery}
	dir := filepath.Join(o.Dir, foreseenFolder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the folder of expected troubles: %w", err)
	}
	var err error
	if w.made, err = listed(dir); err != nil {
		return nil, fmt.Errorf("read the expected troubles: %w", err)
	}
	if w.made == nil {
		w.made = map[string]bool{}
	}
	for name := range w.made {
		w.resume(ctx, filepath.Join(dir, name))
	}
	return w, nil
}

// Wait returns when no report is being made.
func (w *Watcher) Wait() { w.all.Wait() }

// Foresee reports jobs that will be late or over their budget, until ctx ends.
func (o *Outbox) Foresee(ctx context.Context) {
	for ctx.Err() == nil {
		w, err := o.Watcher(ctx)
		if err != nil {
			o.Log.Error("cannot look for jobs that will be late", "error", err)
			_ = wait.For(ctx, time.Minute)
			continue
		}
		for ctx.Err() == nil {
			w.Pass(ctx)
			_ = wait.For(ctx, lookEvery)
		}
		w.Wait()
	}
}

// resume makes a report that an earlier server has decided on and not made.
func (w *Watcher) resume(ctx context.Context, path string) {
	b, err := os.ReadFile(path)
	if err != nil || len(b) == 0 || strings.HasPrefix(filepath.Base(path), ".") {
		return
	}
	var word word
	if err := json.Unmarshal(b, &word); err != nil {
		w.o.Log.Warn("cannot read an expected trouble", "file", filepath.Base(path), "error", err)
		return
	}
	n, err := w.o.notifyOf(ctx, word.Job)
	if err == nil {
		w.report(ctx, n, path, word)
	}
}

// Pass looks at the jobs once.
func (w *Watcher) Pass(ctx context.Context) {
	var due []trouble
	now := w.o.Control.Now()
	whole := time.Since(w.whole) >= w.WholeEvery
	if whole {
		w.whole = time.Now()
		if len(w.seen)+len(w.passed) > mostKept { // of jobs that ended
			clear(w.seen)
			clear(w.passed)
		}
	}
	w.o.Control.Read(func(m *core.Machine) {
		running := map[string]bool{}
		for _, a := range m.Live() {
			if j, ok := m.Job(a.Job()); ok && !running[j.ID()] {
				running[j.ID()] = true
				due = append(due, w.look(j, now)...)
			}
		}
		if !whole {
			return
		}
		for j := range m.Jobs() {
			if !running[j.ID()] && j.State() != core.Held {
				due = append(due, w.look(j, now)...)
			}
		}
	})
	for _, t := range due {
		if ctx.Err() == nil {
			w.decide(ctx, t)
		}
	}
}

// look counts what a look at a job shows, and returns the troubles to report.
func (w *Watcher) look(j *core.Job, now time.Time) (due []trouble) {
	if !j.Terms().Notify || j.State().Over() {
		return nil
	}
	m, known := w.o.Odds.Median(j.ID())
	list, absent := looks(j, m, known, now, w.o.Control.Clock().ToWall)
	for _, key := range absent {
		delete(w.seen, key)
	}
	for _, t := range list {
		if !w.made[t.key] && w.passed[t.key] != t.of && (t.certain || w.seen.again(t.key, t.at)) {
			delete(w.seen, t.key)
			due = append(due, t)
		}
	}
	return due
}

// decide reports a trouble if the job file asks for it. It first writes the report, so that the next server makes it
// if this one stops.
func (w *Watcher) decide(ctx context.Context, t trouble) {
	n, err := w.o.notifyOf(ctx, t.w.Job)
	if err != nil {
		w.o.Log.Warn("cannot read whom to notify; the next look retries", "job", t.w.Job, "error", err)
		return
	}
	if !n.Wants(t.w.Event) {
		w.passed[t.key] = t.of
		return
	}
	path := filepath.Join(w.o.Dir, foreseenFolder, t.key)
	b, err := json.Marshal(t.w)
	if err == nil {
		err = durable.Replace(path, b)
	}
	if err != nil {
		w.o.Log.Warn("cannot record an expected trouble; the next look retries", "job", t.w.Job, "error", err)
		return
	}
	w.made[t.key] = true
	w.report(ctx, n, path, t.w)
}

// report makes a report beside the looks, and records that it is made.
func (w *Watcher) report(ctx context.Context, n spec.Notify, path string, one word) {
	w.all.Go(func() {
		isolate.Retry(ctx, w.o.Log, "report of job "+one.Job, func() {
			w.o.finish(ctx, n, path, one)
		})
	})
}

// notifyOf returns whom a job's file names.
func (o *Outbox) notifyOf(ctx context.Context, job string) (spec.Notify, error) {
	raw, ok, err := o.Control.Spec(ctx, job)
	if err != nil || !ok {
		return spec.Notify{}, err
	}
	j, err := spec.Decode(raw)
	return j.Notify, err
}
