// Package budget decides whether there is money for a job: limits on scopes and windows, what is spent and held in
// them, and when a limit will be reached.
//
// A job is admitted with a hold: its maximum cost. In every scope of the job, the sum of what was spent in the
// window, what is held for unfinished jobs, and the new hold must not exceed the limit. Jobs stay within their
// holds, so spending in a window never exceeds a limit, even across windows: a hold counts in full in the current
// window.
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

// Scope is the set of jobs that a limit covers: all, team:NAME, project:NAME, user:NAME or tag:KEY=VALUE.
type Scope string

// All is the scope of all jobs.
const All Scope = "all"

// ParseScope parses a scope.
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

// Holds reports whether a job of that owner and user is in the scope. Names ignore case.
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

// Window is the time span of a limit: a calendar day, week (from Monday) or month in UTC market time, or all time.
type Window string

// Windows.
const (
	Hour  Window = "hour" // of a limit of dollars an hour
	Day   Window = "day"
	Week  Window = "week"
	Month Window = "month"
	Total Window = "total"
)

// Begin returns the start of the window that contains t; the zero time for Total.
func (w Window) Begin(t time.Time) time.Time {
	y, m, d := t.UTC().Date()
	switch w {
	case Day:
		return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	case Week:
		return time.Date(y, m, d-(int(t.UTC().Weekday())+6)%7, 0, 0, 0, 0, time.UTC)
	case Hour:
		return t.UTC().Truncate(time.Hour)
	case Month:
		return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
	case Total:
	}
	return time.Time{}
}

// End returns the end of the window that contains t, or false for Total.
func (w Window) End(t time.Time) (time.Time, bool) {
	b := w.Begin(t)
	switch w {
	case Day:
		return b.AddDate(0, 0, 1), true
	case Week:
		return b.AddDate(0, 0, 7), true
	case Hour:
		return b.Add(time.Hour), true
	case Month:
		return b.AddDate(0, 1, 0), true
	case Total:
	}
	return time.Time{}, false
}

// Limit bounds the use of the jobs of a scope in a window. A null field is unlimited.
type Limit struct {
	Scope    Scope         `json:"scope"`
	Window   Window        `json:"window"`
	Dollars  *money.Amount `json:"dollars"`
	GPUHours *float64      `json:"gpu_hours"`
	Jobs     *int          `json:"jobs"`    // unfinished jobs, at any time
	Running  *int          `json:"running"` // jobs that hold a machine at once; others wait in the queue
	GPUs     *int          `json:"gpus"`    // GPUs in use at once; other jobs wait in the queue
	// Rate limits the dollars an hour of all machines at once, with the window Hour; other jobs wait in the queue.
	Rate *money.Rate `json:"rate,omitempty"`
	// Wait lets a job wait for the next window if this one has too few GPU-hours left; otherwise the job is
	// refused.
	Wait    bool          `json:"wait,omitempty"`
	Approve *money.Amount `json:"approve"` // jobs with a higher maximum cost wait for approval
	// ApproveWithin is how long a job waits for approval, in real time; 0: DefaultApproval.
	ApproveWithin time.Duration `json:"approve_within_ns,omitempty"`
	Warn          []float64     `json:"warn"` // shares of Dollars at which Notify is called
	Notify        string        `json:"notify,omitempty"`
}

// hookForm matches URLs that can be called; the rest of the URL is up to its owner.
var hookForm = regexp.MustCompile(`^https?://[^/?#\s]+[^\s]*$`)

// maxHours bounds GPU-hours; time.Duration holds at most about 2.56 million hours.
const maxHours = 2_000_000

// Name identifies the limit: a scope has one limit per window.
func (l Limit) Name() string { return string(l.Scope) + "/" + string(l.Window) }

// Queues reports whether jobs wait in the queue for the limit.
func (l Limit) Queues() bool {
	return l.Running != nil || l.GPUs != nil || l.Rate != nil || l.Wait && l.GPUHours != nil
}

// Check returns an error if the limit is invalid.
func (l Limit) Check() error {
	if _, err := ParseScope(string(l.Scope)); err != nil {
		return err
	}
	if !slices.Contains([]Window{Hour, Day, Week, Month, Total}, l.Window) {
		return fmt.Errorf("window %q: write day, week, month or total", l.Window)
	}
	others := l.limits()
	switch {
	case (l.Window == Hour) != (l.Rate != nil) || l.Rate != nil && others:
		return fmt.Errorf("%s: dollars an hour are a limit of their own, in the window hour: set them with scrimp budgets "+
			"rate, and other limits for a day, week, month or total", l.Name())
	case l.Rate != nil:
		return l.checkRate()
	case !others:
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

// limits reports whether anything besides the dollars an hour is limited.
func (l Limit) limits() bool {
	return l.Dollars != nil || l.GPUHours != nil || l.Jobs != nil || l.Approve != nil || l.Running != nil || l.GPUs != nil
}

// negative reports whether a limit is negative or NaN.
func (l Limit) negative() bool {
	below := func(n *int) bool { return n != nil && *n < 0 }
	return l.Dollars != nil && l.Dollars.Sign() < 0 || l.Approve != nil && l.Approve.Sign() < 0 ||
		l.GPUHours != nil && !(*l.GPUHours >= 0) || below(l.Jobs) || below(l.Running) || below(l.GPUs)
}

// checkTelling returns an error if the limit's warnings are invalid.
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

// Kind is how a job counts in dollars.
type Kind int

// Kinds.
const (
	Single Kind = iota
	Part        // takes its dollars from a Hold, and counts everywhere else
	Hold        // holds the dollars of its Parts; it is not a job itself
)

// Job holds the facts that a limit needs about a job that is unfinished or wants to start.
type Job struct {
	ID    string
	Kind  Kind
	Owner ledger.Owner
	User  string
	// Most is the maximum total cost; Bounded is set if it is known.
	Most    money.Amount
	Bounded bool
	// Spent is its cost so far, in all windows.
	Spent money.Amount
	// GPUMost and GPUSpent are the same in GPU-hours. A job without GPUs is bounded by 0.
	GPUMost, GPUSpent float64
	GPUBounded        bool
	// GPUs is the smallest number that it can run on.
	GPUs int
	// AwaitsApproval is set while it waits for approval and takes nothing.
	AwaitsApproval bool
	// Runs is set if it holds a machine now, with GPUsNow GPUs.
	Runs    bool
	GPUsNow int
}

// held is the amount held for the rest of the job, never negative.
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

// counts is 1 for a job and 0 for a Hold.
func (j Job) counts() int {
	if j.Kind == Hold {
		return 0
	}
	return 1
}

// Use holds the spent and the held amounts under a limit.
type Use struct {
	Spent    money.Amount `json:"spent"` // booked in the window, plus running costs
	Held     money.Amount `json:"held"`  // for unfinished jobs
	GPUSpent float64      `json:"gpu_hours_spent"`
	GPUHeld  float64      `json:"gpu_hours_held"`
	Jobs     int          `json:"jobs"`
	// AwaitingApproval counts jobs that wait for approval; no other field counts them.
	AwaitingApproval int    `json:"awaiting_approval"`
	Running          int    `json:"running"`             // jobs that hold a machine
	GPUs             int    `json:"gpus"`                // in use
	Unbounded        string `json:"unbounded,omitempty"` // an unfinished job with unknown maximum cost
	GPUOpen          string `json:"gpu_unbounded,omitempty"`

	needs int          // GPUs of the job being weighed
	asks  money.Amount // its maximum cost
}

// Accounts are the amounts spent in the current windows, by limit name, and the unfinished jobs: one by one in
// Live, or summed in Outstanding.
type Accounts struct {
	Limits      []Limit
	Spent       map[string]money.Amount
	GPUs        map[string]float64
	Live        []Job
	Outstanding map[string]Use // without the amounts spent
}

// Use sums the spent and the held amounts under a limit.
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

// room is the cost up to which a new job is admitted under the limit, in whole cents.
func (u Use) room(l Limit) money.Amount {
	left, _, ok := l.Dollars.Sub(u.Spent).Sub(u.Held).Micros()
	if !ok || left < 0 {
		return money.Amount{}
	}
	return money.FromMicros(left-left%10_000, 0)
}

// fix returns advice for a job that costs more than is left.
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

// Breach returns when spending reaches the limit at the current rate. It returns false if that is never, or not in
// the current window.
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

// Passed returns the shares of the limit that spending has reached, in increasing order: the warning shares, and 1
// for the limit itself.
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
