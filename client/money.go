package client

import (
	"time"

	"scrimp/money"
)

// Costs is what was spent until a moment, the seconds that run included. Times are market time.
type Costs struct {
	By    string     `json:"by"`    // team, project, user, kind, provider, region, sku, category, job or tag:KEY
	Since *time.Time `json:"since"` // null: from the beginning
	Until time.Time  `json:"until"`
	Lines []CostLine `json:"lines"` // the dearest first
}

// Use is what became of the time that was paid for.
type Use string

// Time that is paid for is Open until it is known what became of it: a
// checkpoint makes it useful, an interruption before one makes it lost.
const (
	Open    Use = "open"
	Useful  Use = "useful"
	Lost    Use = "lost"
	StartUp Use = "start-up"
	Idle    Use = "idle"
)

// CostLine is the cost of one name in one currency: what was booked in the span,
// and of what runs what is not booked yet. Uses add up to Spent; within
// a span Open may be below zero: what was booked before it became useful or lost in it.
type CostLine struct {
	Name     string               `json:"name"` // "": belongs to none
	Currency money.Currency       `json:"currency"`
	Spent    money.Amount         `json:"spent"`
	Uses     map[Use]money.Amount `json:"uses"`
	Jobs     int                  `json:"jobs"` // that held a machine
	Live     int                  `json:"live"` // of them, not over yet

	// Of the jobs that succeeded and whose last machine ended within the span:
	Estimated *money.Amount `json:"estimated"` // expected cost at the first decision; null: of none
	Actual    *money.Amount `json:"actual"`    // what these have cost
	Foreseen  int           `json:"foreseen"`  // how many these are
	OnDemand  *money.Amount `json:"on_demand"` // what the useful work would have cost there; null: nobody can say
	Saved     *money.Amount `json:"saved"`     // against that; below zero: it cost more
	Compared  int           `json:"compared"`  // how many these are
}

// Limit is what the jobs of a scope may use in a window. What is null is not limited.
type Limit struct {
	Scope    string        `json:"scope"`  // all, team:NAME, project:NAME, user:NAME or tag:KEY=VALUE
	Window   string        `json:"window"` // day, week, month or total, market time
	Dollars  *money.Amount `json:"dollars"`
	GPUHours *float64      `json:"gpu_hours"`
	Jobs     *int          `json:"jobs"`    // that are not over, at any time
	Running  *int          `json:"running"` // jobs that hold a machine at once; more wait in the queue
	GPUs     *int          `json:"gpus"`    // that are in use at once; more wait in the queue
	// Wait lets a job wait for the next window where the GPU-hours of this one do
	// not suffice; else it is not let in.
	Wait    bool          `json:"wait,omitempty"`
	Approve *money.Amount `json:"approve"` // jobs that can cost more wait for approval
	// ApproveWithin is how long a job waits for it, on the wall; 0: a week.
	ApproveWithin time.Duration `json:"approve_within_ns,omitempty"`
	Warn          []float64     `json:"warn"` // shares of Dollars at which Notify is told
	Notify        string        `json:"notify,omitempty"`
}

// Name is what the limit is called: one scope has one limit for a window.
func (l Limit) Name() string { return l.Scope + "/" + l.Window }

// LimitUse is what a limit has spent and held.
type LimitUse struct {
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
}

// Threshold is an amount above which a limit asks for approval.
type Threshold struct {
	Limit string       `json:"limit"`
	Scope string       `json:"scope"`
	Above money.Amount `json:"above"`
}

// Outlook is what a limit's dollars will come to by the jobs that are there now.
type Outlook struct {
	// By is the end of the window; null where it never ends.
	By *time.Time `json:"by"`
	// Spent is what is expected to be spent by then, Least and Most what it is below and
	// above once in twenty. With jobs of which nobody knows how long they run, Most is
	// what it is where they go on; null: there is no most.
	Spent money.Amount  `json:"spent"`
	Least money.Amount  `json:"least"`
	Most  *money.Amount `json:"most"`
	// Chance is that of reaching the limit in this window. Breach is when, where it is
	// at least one half: as likely before as after. Earliest and Latest are its range,
	// outside which it is once in twenty to each side; null where it is not reached so often.
	Chance   float64    `json:"chance"`
	Breach   *time.Time `json:"breach"`
	Earliest *time.Time `json:"earliest"`
	Latest   *time.Time `json:"latest"`
	// Jobs are those that are expected to spend the most from now until the limit is
	// reached, the dearest first; More is how many others do.
	Jobs []Spender `json:"jobs"`
	More int       `json:"more,omitempty"`
	// Unknown are the first few jobs by name of which nobody knows how long they run, and
	// UnknownJobs how many there are. What is said above, but for Most, is without them;
	// Open is when the limit is reached where they go on, null: not in this window.
	Unknown     []string   `json:"unknown"`
	UnknownJobs int        `json:"unknown_jobs,omitempty"`
	Open        *time.Time `json:"open"`
	// Beyond says that more jobs wait than were looked at, and that before the end of this
	// they have their turn: what they cost is not in it.
	Beyond bool `json:"beyond,omitempty"`
}

// Spender is a job and what it spends from now until the limit is reached, as expected.
type Spender struct {
	Job  string       `json:"job"`
	Cost money.Amount `json:"cost"`
}

// Budgets are the limits that the caller may know of, and the tags that a job must have.
type Budgets struct {
	Limits   []BudgetLine        `json:"limits"`
	Tags     map[string][]string `json:"tags"`   // values that are allowed, by tag; none: any
	Shares   []string            `json:"shares"` // teams whose members may use each other's machines
	Currency money.Currency      `json:"currency"`
}

// BudgetLine is a limit, what is used of it in the window that is open, and
// when it will be reached, market time.
type BudgetLine struct {
	Limit Limit      `json:"limit"`
	Use   LimitUse   `json:"use"`
	Burn  money.Rate `json:"burn"` // dollars an hour
	// as expected of the jobs that run and wait, or, where it is reached already, now; null: not by these in this window
	Breach *time.Time `json:"breach"`
	// AtRate is when it would be reached if as much ran on as runs now; null: not in this window.
	AtRate *time.Time `json:"at_rate"`
	// Outlook is what the jobs that run and wait are expected to make of it; null: dollars are not limited.
	Outlook *Outlook `json:"outlook"`
}

// SetBudget makes or changes a limit, removes one by name, requires a tag, or lets the members of
// a team use each other's machines. One of them is given.
type SetBudget struct {
	Limit  *Limit   `json:"limit,omitempty"`
	Remove string   `json:"remove,omitempty"` // SCOPE/WINDOW
	Tag    string   `json:"tag,omitempty"`
	Values []string `json:"values,omitempty"` // that the tag may have; none: any
	Free   bool     `json:"free,omitempty"`   // the tag is not required any more
	Share  string   `json:"share,omitempty"`  // a team
	Off    bool     `json:"off,omitempty"`    // its members may not use each other's machines any more
}

// BudgetWarning is what the webhook of a limit gets.
type BudgetWarning struct {
	Budget  string       `json:"budget"`
	Share   float64      `json:"share"` // that spending has reached; at 1 jobs are saved and stopped
	Spent   money.Amount `json:"spent"`
	Held    money.Amount `json:"held"`
	Dollars money.Amount `json:"dollars"`
	// Breach is when the limit is expected to be reached, market time, with what chance and
	// by which jobs; left out of a warning that a share is reached.
	Breach *time.Time `json:"breach,omitempty"`
	Chance float64    `json:"chance,omitempty"`
	Jobs   []Spender  `json:"jobs,omitempty"`
}
