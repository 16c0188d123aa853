package client

import (
	"time"

	"scrimp/money"
)

// Costs is what was spent up to a moment, including running machines. Times are market time.
type Costs struct {
	By    string     `json:"by"`    // team, project, user, kind, provider, region, sku, category, job or tag:KEY
	Since *time.Time `json:"since"` // null: from the beginning
	Until time.Time  `json:"until"`
	Lines []CostLine `json:"lines"` // most expensive first
}

// Use is the use of paid time.
type Use string

// Paid time is Open until its use is known: a checkpoint makes it useful, an interruption without one makes it lost.
const (
	Open    Use = "open"
	Useful  Use = "useful"
	Lost    Use = "lost"
	StartUp Use = "start-up"
	Idle    Use = "idle"
)

// CostLine is the cost of one name in one currency: postings within the span, and costs of running machines that are
// not posted yet. Uses add up to Spent. Within a span, Open can be negative: time that was booked before the span
// became useful or lost in it.
type CostLine struct {
	Name     string               `json:"name"` // "": no name
	Currency money.Currency       `json:"currency"`
	Spent    money.Amount         `json:"spent"`
	Uses     map[Use]money.Amount `json:"uses"`
	Jobs     int                  `json:"jobs"` // jobs that held a machine
	Live     int                  `json:"live"` // of these, not ended yet

	// Spent is Billed + Accrued + Unbooked; Billed and Accrued are null by sku and category, where they are unknown.
	Billed   *money.Amount `json:"billed"`   // by the providers
	Accrued  *money.Amount `json:"accrued"`  // booked, and not billed yet
	Unbooked money.Amount  `json:"unbooked"` // estimate for machines that run, since their last booking

	// For the jobs that succeeded and whose last machine ended within the span:
	Estimated *money.Amount `json:"estimated"` // expected cost at the first decision; null: of none
	Actual    *money.Amount `json:"actual"`    // actual cost of these, without tax, credits and commitments of bills
	Foreseen  int           `json:"foreseen"`  // number of these
	OnDemand  *money.Amount `json:"on_demand"` // on-demand cost of the useful work; null: unknown
	Saved     *money.Amount `json:"saved"`     // OnDemand less the actual cost, likewise; negative: it cost more
	Compared  int           `json:"compared"`  // number of these
}

// Limit is what the jobs of a scope may use in a window. Null fields are unlimited.
type Limit struct {
	Scope    string        `json:"scope"`  // all, team:NAME, project:NAME, user:NAME or tag:KEY=VALUE
	Window   string        `json:"window"` // day, week, month or total, market time; hour with a rate
	Dollars  *money.Amount `json:"dollars"`
	GPUHours *float64      `json:"gpu_hours"`
	Jobs     *int          `json:"jobs"`    // unfinished jobs, at any time
	Running  *int          `json:"running"` // jobs that hold a machine at once; others wait in the queue
	GPUs     *int          `json:"gpus"`    // GPUs in use at once; others wait in the queue
	// Rate limits the dollars an hour of all machines at once, in the window hour and without other limits; other jobs
	// wait in the queue.
	Rate *money.Rate `json:"rate,omitempty"`
	// Wait lets a job wait for the next window if this one has too few GPU-hours left; otherwise the job is refused.
	Wait    bool          `json:"wait,omitempty"`
	Approve *money.Amount `json:"approve"` // jobs that can cost more than this wait for approval
	// ApproveWithin is how long a job waits for approval, in wall time; 0: a week.
	ApproveWithin time.Duration `json:"approve_within_ns,omitempty"`
	Warn          []float64     `json:"warn"` // shares of Dollars at which Notify is called
	Notify        string        `json:"notify,omitempty"`
}

// Name returns the name of the limit: a scope has one limit per window.
func (l Limit) Name() string { return l.Scope + "/" + l.Window }

// LimitUse is what a limit has spent and held.
type LimitUse struct {
	Spent    money.Amount `json:"spent"` // booked in the window, and costs of running machines
	Held     money.Amount `json:"held"`  // for unfinished jobs
	GPUSpent float64      `json:"gpu_hours_spent"`
	GPUHeld  float64      `json:"gpu_hours_held"`
	Jobs     int          `json:"jobs"`
	// jobs that wait for approval; the other fields leave them out
	AwaitingApproval int    `json:"awaiting_approval"`
	Running          int    `json:"running"`             // jobs that hold a machine
	GPUs             int    `json:"gpus"`                // in use
	Unbounded        string `json:"unbounded,omitempty"` // an unfinished job without an upper bound of its cost
	GPUOpen          string `json:"gpu_unbounded,omitempty"`
}

// Threshold is an amount above which a limit requires approval.
type Threshold struct {
	Limit string       `json:"limit"`
	Scope string       `json:"scope"`
	Above money.Amount `json:"above"`
}

// Outlook is the forecast of a limit's dollars with the present jobs.
type Outlook struct {
	// By is the end of the window; null if it never ends.
	By *time.Time `json:"by"`
	// Spent is the expected spending by then, Least and Most its 5 % and 95 % quantiles. With jobs of unknown
	// duration, Most assumes that they go on; null: no upper bound.
	Spent money.Amount  `json:"spent"`
	Least money.Amount  `json:"least"`
	Most  *money.Amount `json:"most"`
	// Chance is the probability of reaching the limit in this window. Breach is the median time of that, if Chance
	// is at least one half. Earliest and Latest are the 5 % and 95 % quantiles of that time; null if the limit is
	// reached too rarely for them.
	Chance   float64    `json:"chance"`
	Breach   *time.Time `json:"breach"`
	Earliest *time.Time `json:"earliest"`
	Latest   *time.Time `json:"latest"`
	// Jobs lists the jobs that are expected to spend the most from now until the limit is reached, most expensive
	// first; More is the number of others.
	Jobs []Spender `json:"jobs"`
	More int       `json:"more,omitempty"`
	// Unknown lists the first few jobs by name of unknown duration, and UnknownJobs is their number. All fields
	// above, except Most, leave them out. Open is when the limit is reached if they go on; null: not in this window.
	Unknown     []string   `json:"unknown"`
	UnknownJobs int        `json:"unknown_jobs,omitempty"`
	Open        *time.Time `json:"open"`
	// Beyond reports that more jobs wait than were considered, and that they start before the end of the window:
	// their cost is not included.
	Beyond bool `json:"beyond,omitempty"`
}

// Spender is a job with its expected spending from now until the limit is reached.
type Spender struct {
	Job  string       `json:"job"`
	Cost money.Amount `json:"cost"`
}

// Budgets holds the limits that the caller may see, and the tags that jobs must have.
type Budgets struct {
	Limits   []BudgetLine        `json:"limits"`
	Tags     map[string][]string `json:"tags"`   // allowed values by tag; none: any
	Shares   []string            `json:"shares"` // teams whose members may use each other's machines
	Currency money.Currency      `json:"currency"`
}

// BudgetLine is a limit, its use in the current window, and the forecast of when it is reached, in market time.
type BudgetLine struct {
	Limit Limit      `json:"limit"`
	Use   LimitUse   `json:"use"`
	Burn  money.Rate `json:"burn"` // dollars per hour
	// forecast from the jobs that run and wait, or now if already reached; null: not in this window
	Breach *time.Time `json:"breach"`
	// AtRate is when the limit is reached at the present rate; null: not in this window.
	AtRate *time.Time `json:"at_rate"`
	// Outlook is the forecast with the jobs that run and wait; null: dollars are not limited.
	Outlook *Outlook `json:"outlook"`
}

// SetBudget creates or changes a limit, removes one by name, requires a tag, or lets the members of a team use each
// other's machines. Exactly one of these is set.
type SetBudget struct {
	Limit  *Limit   `json:"limit,omitempty"`
	Remove string   `json:"remove,omitempty"` // SCOPE/WINDOW
	Tag    string   `json:"tag,omitempty"`
	Values []string `json:"values,omitempty"` // values that the tag may have; none: any
	Free   bool     `json:"free,omitempty"`   // the tag is no longer required
	Share  string   `json:"share,omitempty"`  // a team
	Off    bool     `json:"off,omitempty"`    // its members may no longer use each other's machines
}

// BudgetWarning is the body of a call to a limit's webhook.
type BudgetWarning struct {
	Budget  string       `json:"budget"`
	Share   float64      `json:"share"` // share spent; at 1 the server saves and stops the jobs
	Spent   money.Amount `json:"spent"`
	Held    money.Amount `json:"held"`
	Dollars money.Amount `json:"dollars"`
	// Breach is the expected time at which the limit is reached, in market time, with its probability and the main
	// jobs; omitted in a warning about a share.
	Breach *time.Time `json:"breach,omitempty"`
	Chance float64    `json:"chance,omitempty"`
	Jobs   []Spender  `json:"jobs,omitempty"`
}
