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
	"slices"
	"strings"
	"time"

	"scrimp/internal/ledger"
	"scrimp/internal/money"
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
		return Scope(text), nil
	case kind == "tag":
		if key, value, ok := strings.Cut(name, "="); ok && key != "" && value != "" {
			return Scope(text), nil
		}
	}
	return "", fmt.Errorf("scope %q: write all, team:NAME, project:NAME, user:NAME or tag:KEY=VALUE", text)
}

// Holds reports whether a job of that owner and user is in the scope.
func (s Scope) Holds(o ledger.Owner, user string) bool {
	kind, name, _ := strings.Cut(string(s), ":")
	switch kind {
	case "all":
		return true
	case "team":
		return o.Team == name
	case "project":
		return o.Project == name
	case "user":
		return user == name
	case "tag":
		key, value, _ := strings.Cut(name, "=")
		return o.Tags[key] == value
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
	Approve  *money.Amount `json:"approve"` // jobs that can cost more wait for an admin
	Warn     []float64     `json:"warn"`    // shares of Dollars at which Notify is told
	Notify   string        `json:"notify,omitempty"`
}

// Name is what the limit is called: one scope has one limit for a window.
func (l Limit) Name() string { return string(l.Scope) + "/" + string(l.Window) }

// Check says what is wrong with the limit.
func (l Limit) Check() error {
	if _, err := ParseScope(string(l.Scope)); err != nil {
		return err
	}
	if !slices.Contains([]Window{Day, Week, Month, Total}, l.Window) {
		return fmt.Errorf("window %q: write day, week, month or total", l.Window)
	}
	switch {
	case l.Dollars == nil && l.GPUHours == nil && l.Jobs == nil && l.Approve == nil:
		return fmt.Errorf("%s limits nothing: give dollars, GPU-hours, jobs or an amount from which on jobs are approved", l.Name())
	case l.Dollars != nil && l.Dollars.Sign() < 0, l.GPUHours != nil && !(*l.GPUHours >= 0), l.Jobs != nil && *l.Jobs < 0, l.Approve != nil && l.Approve.Sign() < 0:
		return fmt.Errorf("%s is below zero: give zero to allow nothing", l.Name())
	case l.Dollars == nil && len(l.Warn) > 0:
		return fmt.Errorf("%s warns of dollars that are not limited: give dollars too", l.Name())
	}
	for _, w := range l.Warn {
		if !(w > 0 && w <= 1) {
			return fmt.Errorf("%s warns at %g: write shares above 0 and up to 1", l.Name(), w)
		}
	}
	return nil
}

// Job is what a limit needs to know of a job that is not over, or asks to begin.
type Job struct {
	ID    string
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
}

// held is what is set aside for the rest of the job: never below zero.
func (j Job) held() money.Amount {
	if h := j.Most.Sub(j.Spent); h.Sign() > 0 {
		return h
	}
	return money.Amount{}
}

// Use is what a limit has spent and held.
type Use struct {
	Spent     money.Amount `json:"spent"` // booked in the window, and what runs
	Held      money.Amount `json:"held"`  // for what is not over
	GPUSpent  float64      `json:"gpu_hours_spent"`
	GPUHeld   float64      `json:"gpu_hours_held"`
	Jobs      int          `json:"jobs"`
	Unbounded string       `json:"unbounded,omitempty"` // a job that is not over, and for which nobody knows the most
	GPUOpen   string       `json:"gpu_unbounded,omitempty"`
}

// Books are what was spent by limit, by name, in the windows that are open, and the jobs that are not over.
type Books struct {
	Limits []Limit
	Spent  map[string]money.Amount
	GPUs   map[string]float64
	Live   []Job
}

// Use sums what a limit has spent and held.
func (b Books) Use(l Limit) Use {
	u := Use{Spent: b.Spent[l.Name()], GPUSpent: b.GPUs[l.Name()]}
	for _, j := range b.Live {
		if !l.Scope.Holds(j.Owner, j.User) {
			continue
		}
		u.Jobs++
		u.Held = u.Held.Add(j.held())
		u.GPUHeld += max(0, j.GPUMost-j.GPUSpent)
		if !j.Bounded {
			u.Unbounded = smaller(u.Unbounded, j.ID)
		}
		if !j.GPUBounded {
			u.GPUOpen = smaller(u.GPUOpen, j.ID)
		}
	}
	return u
}

// smaller keeps the answer free of the order of jobs.
func smaller(a, b string) string {
	if a == "" || b < a {
		return b
	}
	return a
}

// Reason is why a job is not admitted.
type Reason string

// The reasons.
const (
	NoBudget    Reason = "no_budget"    // nobody knows what the job can cost
	OtherOpen   Reason = "other_open"   // nobody knows what another job in the scope can cost
	Dollars     Reason = "dollars"      // the limit would be passed
	NoGPUBudget Reason = "no_gpu_hours" // nobody knows how many GPU-hours the job can use
	GPUOpen     Reason = "other_gpu_open"
	GPUHours    Reason = "gpu_hours"
	TooMany     Reason = "jobs"
)

// Refusal says which limit a job does not pass, and what mends it.
type Refusal struct {
	Why   Reason `json:"why"`
	Limit Limit  `json:"limit"`
	Use   Use    `json:"use"`
	Mend  string `json:"mend"`
}

func (r Refusal) Error() string {
	l, u := r.Limit, r.Use
	usd := func(a money.Amount) string { return money.Format(a, money.USD, 2) }
	switch r.Why {
	case NoBudget:
		return fmt.Sprintf("budget %s has a limit of %s, and nobody can say what the job costs at most", l.Name(), usd(*l.Dollars))
	case OtherOpen:
		return fmt.Sprintf("budget %s has a limit of %s, and nobody can say what job %s costs at most", l.Name(), usd(*l.Dollars), u.Unbounded)
	case Dollars:
		return fmt.Sprintf("budget %s: of %s, %s is spent and %s held", l.Name(), usd(*l.Dollars), usd(u.Spent), usd(u.Held))
	case NoGPUBudget:
		return fmt.Sprintf("budget %s has a limit of %g GPU-hours, and nobody can say how many the job uses at most", l.Name(), *l.GPUHours)
	case GPUOpen:
		return fmt.Sprintf("budget %s has a limit of %g GPU-hours, and nobody can say how many job %s uses at most", l.Name(), *l.GPUHours, u.GPUOpen)
	case GPUHours:
		return fmt.Sprintf("budget %s: of %g GPU-hours, %.4g are used and %.4g held", l.Name(), *l.GPUHours, u.GPUSpent, u.GPUHeld)
	case TooMany:
		return fmt.Sprintf("budget %s: %d of %d jobs wait or run", l.Name(), u.Jobs, *l.Jobs)
	}
	return string(r.Why)
}

// Admit checks a new job against every limit of its scopes. It returns nil where all pass.
func (b Books) Admit(j Job) *Refusal {
	for _, l := range b.Limits {
		if !l.Scope.Holds(j.Owner, j.User) {
			continue
		}
		u := b.Use(l)
		no := func(why Reason, mend string) *Refusal { return &Refusal{why, l, u, mend} }
		switch {
		case l.Dollars == nil:
		case !j.Bounded:
			return no(NoBudget, "give the job a budget")
		case u.Unbounded != "":
			return no(OtherOpen, "end job "+u.Unbounded+", or wait until it is over")
		case u.Spent.Add(u.Held).Add(j.held()).Cmp(*l.Dollars) > 0:
			return no(Dollars, "give the job a smaller budget, wait until jobs are over, or ask an admin for scrimp budgets set")
		}
		switch {
		case l.GPUHours == nil:
		case !j.GPUBounded:
			return no(NoGPUBudget, "give the job budget.gpu_hours")
		case u.GPUOpen != "":
			return no(GPUOpen, "end job "+u.GPUOpen+", or wait until it is over")
		case u.GPUSpent+u.GPUHeld+j.GPUMost > *l.GPUHours:
			return no(GPUHours, "give the job a smaller budget.gpu_hours, or wait until jobs are over")
		}
		if l.Jobs != nil && u.Jobs >= *l.Jobs {
			return no(TooMany, "wait until a job is over, or end one")
		}
	}
	return nil
}

// Capped reports whether a job of that owner is under a limit of dollars, so that it needs a most.
func Capped(limits []Limit, o ledger.Owner, user string) bool {
	return slices.ContainsFunc(limits, func(l Limit) bool { return l.Dollars != nil && l.Scope.Holds(o, user) })
}

// Approval returns the lowest amount above which a job of that owner waits for approval.
func Approval(limits []Limit, o ledger.Owner, user string) (least money.Amount, by Limit, ok bool) {
	for _, l := range limits {
		if l.Approve != nil && l.Scope.Holds(o, user) && (!ok || l.Approve.Cmp(least) < 0) {
			least, by, ok = *l.Approve, l, true
		}
	}
	return least, by, ok
}

// Bound is what work can cost at most where no machine is rented above rate and
// none is slower than speed 1: half again as long, for starts and what is lost.
// A bound is no promise of nature: the job gets it as its budget, which stops it.
func Bound(work time.Duration, rate money.Rate) (money.Amount, bool) {
	if work <= 0 || rate <= 0 || work > 1<<62 {
		return money.Amount{}, false
	}
	return rate.Until(work + work/2), true
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

// Rules are what an admin has set: the limits, sorted by name, and the tags that jobs must have.
type Rules struct {
	Limits []Limit `json:"limits"`
	Tags   Tags    `json:"tags,omitempty"`
}

// Tags are the tags that a job must have, with the values that are allowed; none: any.
type Tags map[string][]string

// Check names the first tag, by name, that is missing or has a value that is not allowed.
func (t Tags) Check(has map[string]string) error {
	var names []string
	for name := range t {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		value, ok := has[name]
		allowed := t[name]
		switch {
		case !ok || value == "":
			return fmt.Errorf("tag %s is missing: %s", name, choices(allowed))
		case len(allowed) > 0 && !slices.Contains(allowed, value):
			return fmt.Errorf("tag %s is %q: %s", name, value, choices(allowed))
		}
	}
	return nil
}

func choices(allowed []string) string {
	if len(allowed) == 0 {
		return "write any value"
	}
	return "write " + strings.Join(allowed, ", ")
}
