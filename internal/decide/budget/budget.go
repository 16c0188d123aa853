// Package budget says whether there is money for a job: limits of scopes and
// windows, what is spent and held in them, and when a limit will be passed.
//
// A job is admitted with a hold: the most that it can cost. What was spent in
// the window, what is held for jobs that are not over, and the new hold must
// not pass the limit, in every scope that the job is in. Jobs keep to their
// holds, so no window's spending passes a limit, however windows turn: a hold
// counts in full in the window that is open.
package budget

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
)

// Scope is whose jobs a limit is for: all, team:NAME, project:NAME, user:NAME or tag:KEY=VALUE.
type Scope string

// All is the scope that every job is in.
const All Scope = "all"

// ParseScope reads a scope.
func ParseScope(text string) (Scope, error) {
	kind, name, _ := strings.Cut(text, ":")
	switch {
	case text == string(All):
		return All, nil
	case (kind == "team" || kind == "project" || kind == "user") && name != "":
		if fix := identity.WrongName(name); fix != "" {
			return "", fmt.Errorf("scope %q: %s", text, fix)
		}
		return Scope(text), nil
	case kind == "tag":
		if key, value, ok := strings.Cut(name, "="); ok && key != "" && value != "" {
			if fix := cmp.Or(identity.WrongName(key), identity.WrongLabel(value)); fix != "" {
				return "", fmt.Errorf("scope %q: %s", text, fix)
			}
			return Scope(text), nil
		}
	}
	return "", fmt.Errorf("scope %q: write all, team:NAME, project:NAME, user:NAME or tag:KEY=VALUE", text)
}

// Holds reports whether a job of that owner and user is in the scope. A name in another case is the same one.
func (s Scope) Holds(o ledger.Owner, user string) bool {
	kind, name, _ := strings.Cut(string(s), ":")
	switch kind {
	case "all":
		return true
	case "team":
		return identity.Same(o.Team, name)
	case "project":
		return identity.Same(o.Project, name)
	case "user":
		return identity.Same(user, name)
	case "tag":
		key, value, _ := strings.Cut(name, "=")
		return identity.Same(o.Labels()[key], value)
	}
	return false
}

// Window is the span that a limit is for: a calendar day, week (from Monday) or
// month in UTC, market time, or all time.
type Window string

// The windows.
const (
	Day   Window = "day"
	Week  Window = "week"
	Month Window = "month"
	Total Window = "total"
)

// Begin returns when the window began that t is in; the zero time for Total.
func (w Window) Begin(t time.Time) time.Time {
	y, m, d := t.UTC().Date()
	switch w {
	case Day:
		return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	case Week:
		return time.Date(y, m, d-(int(t.UTC().Weekday())+6)%7, 0, 0, 0, 0, time.UTC)
	case Month:
		return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
	case Total:
	}
	return time.Time{}
}

// End returns when the window ends that t is in, or false for Total.
func (w Window) End(t time.Time) (time.Time, bool) {
	b := w.Begin(t)
	switch w {
	case Day:
		return b.AddDate(0, 0, 1), true
	case Week:
		return b.AddDate(0, 0, 7), true
	case Month:
		return b.AddDate(0, 1, 0), true
	case Total:
	}
	return time.Time{}, false
}

// Limit is what the jobs of a scope may use in a window. What is null is not limited.
type Limit struct {
	Scope    Scope         `json:"scope"`
	Window   Window        `json:"window"`
	Dollars  *money.Amount `json:"dollars"`
	GPUHours *float64      `json:"gpu_hours"`
	Jobs     *int          `json:"jobs"`    // that are not over, at any time
	Running  *int          `json:"running"` // jobs that hold a machine at once; more wait in the queue
	GPUs     *int          `json:"gpus"`    // that are in use at once; more wait in the queue
	// Wait lets a job wait for the next window where the GPU-hours of this one do
	// not suffice; else it is not let in.
	Wait    bool          `json:"wait,omitempty"`
	Approve *money.Amount `json:"approve"` // jobs that can cost more wait for approval
	// ApproveWithin is how long a job waits for it, on the wall; 0: DefaultApproval.
	ApproveWithin time.Duration `json:"approve_within_ns,omitempty"`
	Warn          []float64     `json:"warn"` // shares of Dollars at which Notify is told
	Notify        string        `json:"notify,omitempty"`
}

// hookForm is an address that can be told; what it holds beyond that is its owner's business.
var hookForm = regexp.MustCompile(`^https?://[^/?#\s]+[^\s]*$`)

// maxHours is a million GPUs for two months; more do not fit a span of time.
const maxHours = 2_000_000

// Name is what the limit is called: one scope has one limit for a window.
func (l Limit) Name() string { return string(l.Scope) + "/" + string(l.Window) }

// Queues reports whether jobs wait in the queue for the limit.
func (l Limit) Queues() bool { return l.Running != nil || l.GPUs != nil || l.Wait && l.GPUHours != nil }

// Check says what is wrong with the limit.
func (l Limit) Check() error {
	if _, err := ParseScope(string(l.Scope)); err != nil {
		return err
	}
	if !slices.Contains([]Window{Day, Week, Month, Total}, l.Window) {
		return fmt.Errorf("window %q: write day, week, month or total", l.Window)
	}
	switch {
	case !l.limits():
		return fmt.Errorf("%s limits nothing: give dollars, GPU-hours, jobs, running jobs, GPUs or an amount above "+
			"which jobs are approved", l.Name())
	case l.negative():
		return fmt.Errorf("%s is below zero: give zero to allow nothing", l.Name())
	case l.GPUHours != nil && *l.GPUHours > maxHours:
		return fmt.Errorf("%s has more GPU-hours than can be counted: give at most %d", l.Name(), maxHours)
	case l.ApproveWithin < 0 || l.ApproveWithin > 0 && l.Approve == nil:
		return fmt.Errorf("%s gives a time for an approval that it does not ask for: give an amount above which "+
			"jobs are approved", l.Name())
	case l.Wait && l.GPUHours == nil:
		return fmt.Errorf("%s waits for GPU-hours that are not limited: give GPU-hours too", l.Name())
	case l.Wait && l.Window == Total:
		return fmt.Errorf("%s has no next window to wait for: give a day, week or month", l.Name())
	}
	return l.checkTelling()
}

// limits reports whether anything is limited.
func (l Limit) limits() bool {
	return l.Dollars != nil || l.GPUHours != nil || l.Jobs != nil || l.Approve != nil || l.Running != nil || l.GPUs != nil
}

// negative reports whether a limit is below zero, or no number.
func (l Limit) negative() bool {
	below := func(n *int) bool { return n != nil && *n < 0 }
	return l.Dollars != nil && l.Dollars.Sign() < 0 || l.Approve != nil && l.Approve.Sign() < 0 ||
		l.GPUHours != nil && !(*l.GPUHours >= 0) || below(l.Jobs) || below(l.Running) || below(l.GPUs)
}

// checkTelling says what is wrong with when and where the limit tells of itself.
func (l Limit) checkTelling() error {
	if l.Dollars == nil && len(l.Warn) > 0 {
		return fmt.Errorf("%s warns of dollars that are not limited: give dollars too", l.Name())
	}
	if l.Notify != "" && !hookForm.MatchString(l.Notify) {
		return fmt.Errorf("%s tells %q: give an http or https URL", l.Name(), l.Notify)
	}
	for _, w := range l.Warn {
		if !(w > 0 && w <= 1) {
			return fmt.Errorf("%s warns at %g: write shares above 0 and up to 1", l.Name(), w)
		}
	}
	return nil
}

// Kind says how a job counts in dollars.
type Kind int

// The kinds.
const (
	Single Kind = iota
	Part        // it takes its dollars from a hold, and counts in all else
	Hold        // it holds the dollars of its parts, and is no job
)

// Job is what a limit needs to know of a job that is not over, or asks to begin.
type Job struct {
	ID    string
	Kind  Kind
	Owner ledger.Owner
	User  string
	// Most is what the job can cost in all; Bounded says that it is known.
	Most    money.Amount
	Bounded bool
	// Spent is what it has cost so far, in all windows.
	Spent money.Amount
	// GPUMost and GPUSpent are the same in GPU-hours; a job without GPUs is bounded by 0.
	GPUMost, GPUSpent float64
	GPUBounded        bool
	// GPUs are the fewest that it can run on.
	GPUs int
	// AwaitsApproval says that it waits for approval: it takes nothing.
	AwaitsApproval bool
	// Runs says that it holds a machine now, with so many GPUs.
	Runs    bool
	GPUsNow int
}

// held is what is set aside for the rest of the job: never below zero.
func (j Job) held() money.Amount {
	if j.Kind == Part {
		return money.Amount{}
	}
	if h := j.Most.Sub(j.Spent); h.Sign() > 0 {
		return h
	}
	return money.Amount{}
}

// gpuHeld is the same in GPU-hours.
func (j Job) gpuHeld() float64 { return min(max(0, j.GPUMost-j.GPUSpent), maxHours) }

// counts is how many jobs it is.
func (j Job) counts() int {
	if j.Kind == Hold {
		return 0
	}
	return 1
}

// Use is what a limit has spent and held.
type Use struct {
	Spent    money.Amount `json:"spent"` // booked in the window, and what runs
	Held     money.Amount `json:"held"`  // for what is not over
	GPUSpent float64      `json:"gpu_hours_spent"`
	GPUHeld  float64      `json:"gpu_hours_held"`
	Jobs     int          `json:"jobs"`
	// jobs that wait for approval, which are counted nowhere else
	AwaitingApproval int    `json:"awaiting_approval"`
	Running          int    `json:"running"`             // jobs that hold a machine
	GPUs             int    `json:"gpus"`                // in use
	Unbounded        string `json:"unbounded,omitempty"` // a job that is not over, and for which nobody knows the most
	GPUOpen          string `json:"gpu_unbounded,omitempty"`

	needs int          // GPUs of the job that is weighed
	asks  money.Amount // the most that it can cost
}

// Accounts are what was spent by limit, by name, in the windows that are open, and the
// jobs that are not over: one by one, or, where Outstanding has them, summed.
type Accounts struct {
	Limits      []Limit
	Spent       map[string]money.Amount
	GPUs        map[string]float64
	Live        []Job
	Outstanding map[string]Use // what is spent is left out
}

// Use sums what a limit has spent and held.
func (a Accounts) Use(l Limit) Use {
	u := a.Outstanding[l.Name()]
	u.Spent, u.GPUSpent = a.Spent[l.Name()], a.GPUs[l.Name()]
	for _, j := range a.Live {
		if l.Scope.Holds(j.Owner, j.User) {
			u.add(l, j)
		}
	}
	return u
}

// add counts a job of the limit's scope.
func (u *Use) add(l Limit, j Job) {
	if j.AwaitsApproval {
		u.AwaitingApproval++
		return
	}
	u.Jobs += j.counts()
	if j.Runs {
		u.Running++
		u.GPUs += j.GPUsNow
	}
	u.Held = u.Held.Add(j.held())
	u.GPUHeld += j.gpuHeld()
	if !j.Bounded && l.Dollars != nil {
		u.Unbounded = smaller(u.Unbounded, j.ID)
	}
	if !j.GPUBounded && l.GPUHours != nil {
		u.GPUOpen = smaller(u.GPUOpen, j.ID)
	}
}

// room is what a new job may cost under the limit, in whole cents: a job of that
// much is let in.
func (u Use) room(l Limit) money.Amount {
	left, _, ok := l.Dollars.Sub(u.Spent).Sub(u.Held).Micros()
	if !ok || left < 0 {
		return money.Amount{}
	}
	return money.FromMicros(left-left%10_000, 0)
}

// fix is what helps a job that costs more than is left.
func (u Use) fix(l Limit) string {
	const admin = "ask an admin for scrimp budgets set"
	next := ""
	if l.Window != Total {
		next = "wait for the next " + string(l.Window) + ", or "
	}
	switch {
	case !u.room(l).IsZero():
		return "give the job a smaller budget, wait until jobs are over, or " + admin
	case u.Spent.Cmp(*l.Dollars) < 0:
		return "wait until jobs are over, or " + admin
	}
	return next + admin
}

// Breach returns when spending reaches the limit at the present rate, or false:
// never, or not in the window that is open.
func (l Limit) Breach(u Use, burn money.Rate, now time.Time) (time.Time, bool) {
	if l.Dollars == nil {
		return time.Time{}, false
	}
	left := l.Dollars.Sub(u.Spent)
	if left.Sign() <= 0 {
		return now, true
	}
	d, ok := burn.Buys(left)
	if !ok {
		return time.Time{}, false
	}
	at := now.Add(d)
	if end, ends := l.Window.End(now); ends && !at.Before(end) {
		return time.Time{}, false
	}
	return at, true
}

// Passed returns the shares of the limit that spending has reached, the highest
// last: those to warn of, and 1 for the limit itself.
func (l Limit) Passed(u Use) []float64 {
	if l.Dollars == nil {
		return nil
	}
	var list []float64
	for _, w := range append(slices.Clone(l.Warn), 1) {
		at, ok := money.Estimated(float64(l.Dollars.Float() * w))
		if w == 1 {
			at, ok = *l.Dollars, true
		}
		if ok && u.Spent.Cmp(at) >= 0 && !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	slices.SortFunc(list, cmp.Compare)
	return list
}
