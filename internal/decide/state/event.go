package state

import (
	"cmp"
	"encoding/json"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/zonechoice"
	"scrimp/internal/lib/hours"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Schema is the version of the event format that this release writes.
const Schema = 1

// Event records that something happened, and when. All times in events are market time.
type Event struct {
	At     time.Time `json:"at"`
	Schema int       `json:"schema"`
	Tenant string    `json:"tenant"`
	Actor  string    `json:"actor,omitempty"` // user or component that the event comes from
	Cause  string    `json:"cause,omitempty"` // key of the action that the event answers
	Key    string    `json:"key,omitempty"`   // idempotency key, unique within the tenant
	Body   Body      `json:"body"`
}

// Body is the content of an event.
type Body interface{ Kind() string }

// Terms are the parts of a job file that the core needs. They are derived once, at submission, so the core depends
// on no file format.
type Terms struct {
	Name    string       `json:"name"`
	Owner   ledger.Owner `json:"owner"`
	JobKind string       `json:"job_kind,omitempty"` // experiment, production, interactive, inference, data
	// Session is shell or notebook if the job is a session, which ends as stopped when its program exits; "": no
	// session.
	Session string `json:"session,omitempty"`
	Variant string `json:"variant,omitempty"`
	// Group is the job's group, and Index its index in an array. Parent is the group whose budget the job uses; it
	// is the same group if that one has a budget.
	Group  string `json:"group,omitempty"`
	Index  int    `json:"index,omitempty"`
	Parent string `json:"parent,omitempty"`
	Stage  string `json:"stage,omitempty"` // stage of its pipeline; Index is then the position of the stage
	// After lists the jobs and groups that must end before the job may have a machine.
	After    []Dependency `json:"after,omitempty"`
	Priority int          `json:"priority,omitempty"` // 2 critical, 1 normal, 0 low
	// Nodes is the largest number of machines it runs on at once, and LeastNodes the smallest, if less. Work and
	// speed count all of them. 0 means one.
	Nodes      int       `json:"nodes,omitempty"`
	LeastNodes int       `json:"least_nodes,omitempty"`
	Need       plan.Need `json:"need"`

	Deadline      time.Time      `json:"deadline,omitzero"`
	Promise       float64        `json:"promise,omitempty"` // share of such jobs that must finish in time
	Window        hours.Window   `json:"window,omitzero"`   // hours of the day in which it may have a machine
	Budget        money.Amount   `json:"budget,omitzero"`
	HasBudget     bool           `json:"has_budget,omitempty"`
	Currency      money.Currency `json:"currency"`
	GPUHours      float64        `json:"gpu_hours,omitempty"`
	WallClock     time.Duration  `json:"wall_clock_ns,omitempty"`
	DeadlineFirst bool           `json:"deadline_first,omitempty"`

	Steps   int64         `json:"steps,omitempty"`   // 0: unknown
	Work    time.Duration `json:"work_ns,omitempty"` // on a machine of speed 1; 0: unknown
	Restart time.Duration `json:"restart_ns"`        // expected, until measured
	// Transfer is the time that copying the checkpoint to another region adds to a restart, and Carry the cost of
	// the copy. Both are 0 if the job cannot leave its region.
	Transfer time.Duration `json:"transfer_ns,omitempty"`
	Carry    money.Amount  `json:"carry,omitzero"`
	// Bringing is the longest that a machine may take to bring the job's inputs and set up before its program starts.
	Bringing time.Duration `json:"bringing_ns,omitempty"`
	// Streams names the inputs that the program reads while they arrive. Agents report them at its end.
	Streams []string `json:"streams,omitempty"`
	// Egress lists the routes between regions with another cost.
	Egress   zonechoice.Egress `json:"egress,omitempty"`
	Grace    time.Duration     `json:"grace_ns"`              // longest time for a drain
	Interval time.Duration     `json:"interval_ns,omitempty"` // between checkpoints; 0: auto
	Saves    bool              `json:"saves,omitempty"`       // whether the job has a checkpoint folder

	Metric     policy.Metric `json:"metric,omitzero"`
	IdleLimit  time.Duration `json:"idle_limit_ns,omitempty"`
	MaxRetries int           `json:"max_retries,omitempty"`
	RetryCodes []int         `json:"retry_codes,omitempty"`
	Notify     bool          `json:"notify,omitempty"`
	// Unpreemptible is set if no critical job may take the job's seat.
	Unpreemptible bool `json:"unpreemptible,omitempty"`
}

// Most returns the largest number of machines the job runs on at once.
func (t *Terms) Most() int { return max(1, t.Nodes) }

// Fewest returns the smallest number of machines the job can run on.
func (t *Terms) Fewest() int { return cmp.Or(t.LeastNodes, t.Most()) }

// Source is a checkpoint of another job that was copied to a new job.
type Source struct {
	Job        string `json:"job"`
	Checkpoint string `json:"checkpoint"` // name of the checkpoint in that job
	Step       int64  `json:"step"`
}

// Changes are new terms of a job; nil fields stay unchanged.
type Changes struct {
	Deadline  *time.Time     `json:"deadline,omitempty"`      // zero: none
	Budget    *money.Amount  `json:"budget,omitempty"`        // maximum total cost
	NoBudget  bool           `json:"no_budget,omitempty"`     // removes the budget
	GPUHours  *float64       `json:"gpu_hours,omitempty"`     // in total; 0: no limit
	WallClock *time.Duration `json:"wall_clock_ns,omitempty"` // in total, while neither paused nor ended; 0: no limit
	Priority  *int           `json:"priority,omitempty"`      // 2 critical, 1 normal, 0 low
	IdleLimit *time.Duration `json:"idle_limit_ns,omitempty"` // market time without use; only as a job is resumed
}

// Apply returns t with the changes.
func (c Changes) Apply(t Terms) Terms {
	if c.Deadline != nil {
		t.Deadline = *c.Deadline
	}
	switch {
	case c.NoBudget:
		t.Budget, t.HasBudget = money.Amount{}, false
	case c.Budget != nil:
		t.Budget, t.HasBudget = *c.Budget, true
	}
	if c.GPUHours != nil {
		t.GPUHours = *c.GPUHours
	}
	if c.WallClock != nil {
		t.WallClock = *c.WallClock
	}
	if c.Priority != nil {
		t.Priority = *c.Priority
	}
	if c.IdleLimit != nil {
		t.IdleLimit = *c.IdleLimit
	}
	return t
}

// Events.
type (
	// JobSubmitted: a user submits a job. Spec is the validated job file.
	JobSubmitted struct {
		Job   string          `json:"job"`
		Terms Terms           `json:"terms"`
		Spec  json.RawMessage `json:"spec,omitempty"`
		// Asking is set if the job must wait for approval whatever the limits say. The limits may require an
		// approval too.
		Asking *budget.PendingApproval `json:"asking,omitempty"`
		// From is the checkpoint of another job that the job starts from; nil: none.
		From *Source `json:"from,omitempty"`
		// Stored is nil in events of older releases, which stored the content under the job's name.
		Stored *Stored `json:"stored,omitempty"`
	}
	// JobReviewed: somebody approves or rejects a job that waits for approval.
	JobReviewed struct {
		Job      string `json:"job"`
		Approved bool   `json:"approved"`
		Reason   string `json:"reason,omitempty"`
	}
	// JobEnded: somebody ends a job. With Save it writes a checkpoint first (stop), otherwise it ends at once
	// (cancel).
	JobEnded struct {
		Job   string `json:"job"`
		Save  bool   `json:"save"`
		Limit string `json:"limit,omitempty"` // spent limit that ends the job; empty: a user does
	}
	// JobPaused: a job gives up its machine, once it has saved, and its place in the queue until it is resumed.
	// Cause is set if the server sets the job aside because a step that worked on it failed.
	JobPaused struct {
		Job   string `json:"job"`
		Cause string `json:"cause,omitempty"`
	}
	// JobResumed: a user resumes a job that is paused, or that ended without success. Asking is set if an ended job
	// must wait for approval whatever the limits say; the limits may require an approval too. Spec replaces its job
	// file unless it is empty.
	JobResumed struct {
		Job     string                  `json:"job"`
		Changes Changes                 `json:"changes,omitzero"`
		Spec    json.RawMessage         `json:"spec,omitempty"`
		Asking  *budget.PendingApproval `json:"asking,omitempty"`
	}
	// JobUpdated: a user changes the terms of a job that has not ended.
	JobUpdated struct {
		Job     string  `json:"job"`
		Changes Changes `json:"changes"`
	}
	// MarketSeen: the offers for sale and their prices. Offers that it does not name stay unchanged.
	MarketSeen struct {
		Offers []market.Offer `json:"offers,omitempty"`
		Quotes []market.Quote `json:"quotes,omitempty"`
	}
	// Audited: somebody did something, or tried to. No rule reads it.
	Audited struct {
		Act identity.Act `json:"act"`
	}
	// IdentityChanged: users, roles or tokens changed. Only the server reads it; no rule does.
	IdentityChanged struct {
		Change identity.Change `json:"change"`
	}
	// BudgetsSet replaces all limits and required tags. Base has the dollars that each limit has spent in its
	// window, from the postings up to event AsOf; only new limits use it. AsOf is 0 if the sender does not know.
	BudgetsSet struct {
		Rules budget.Rules     `json:"rules"`
		Base  map[string]Spent `json:"base,omitempty"`
		AsOf  uint64           `json:"as_of,omitempty"`
	}
	// Tick: time passed.
	Tick struct{}
	// Configured: replaces the settings of the core.
	Configured struct {
		Config Config `json:"config"`
	}
	// LaunchDone: an instance was rented for a launch.
	LaunchDone struct {
		Launch   string         `json:"launch"`
		Instance string         `json:"instance"`
		Offer    market.OfferID `json:"offer"`
		Rate     money.Rate     `json:"rate"`
		From     time.Time      `json:"from"` // billed from
	}
	// LaunchPending: the provider has queued the request and answers later.
	LaunchPending struct {
		Launch string `json:"launch"`
		Detail string `json:"detail,omitempty"`
	}
	// LaunchRefused: the provider refused the launch.
	LaunchRefused struct {
		Launch string        `json:"launch"`
		Reason string        `json:"reason"` // no_capacity, quota, price, throttled, not_for_sale, image, error
		Detail string        `json:"detail,omitempty"`
		Scope  Scope         `json:"scope,omitempty"`   // the refused scope; empty: the offer
		Wait   time.Duration `json:"wait_ns,omitempty"` // delay that the provider asks for; 0: none stated
	}
	// LaunchExpired: the provider dropped the request. LaunchCancelled: it did so because scrimp asked.
	LaunchExpired struct {
		Launch string `json:"launch"`
	}
	LaunchCancelled struct {
		Launch string `json:"launch"`
	}
	// InstanceEnded: the provider stops billing an instance.
	InstanceEnded struct {
		Instance string        `json:"instance"`
		Until    time.Time     `json:"until"`               // billed until
		Cause    string        `json:"cause"`               // terminated, interrupted, stopped
		Notice   time.Duration `json:"notice_ns,omitempty"` // real time; only the receipt reads it
		Launch   string        `json:"launch,omitempty"`    // allocation that it was rented for, if known
		// Announced is set if the provider had announced an interruption, however the instance ended.
		Announced bool `json:"announced,omitempty"`
	}
	// InterruptionAnnounced: a provider announces that it will interrupt an instance, and when. An announcement by
	// a program or agent is a NoticeGiven and concerns only its job.
	InterruptionAnnounced struct {
		Instance string    `json:"instance"`
		At       time.Time `json:"at"`
	}
	// InventorySeen: everything that runs at a provider under scrimp's tag.
	InventorySeen struct {
		Provider string    `json:"provider"`
		Running  []Rented  `json:"running,omitempty"`
		AsOf     time.Time `json:"as_of"` // instances rented later may be missing
	}
	// IncarnationBegun: the log belongs to the installation from now on. A new log is incarnation 1; a restored or
	// copied one begins the next.
	IncarnationBegun struct {
		Installation string `json:"installation"`
		Incarnation  int    `json:"incarnation"`
	}
	// OwnershipDecided: a user adopts or releases machines of an earlier incarnation; an empty Instance means all
	// of them.
	OwnershipDecided struct {
		Instance string `json:"instance,omitempty"`
		Adopt    bool   `json:"adopt"`
	}
	// TableReady: the cache has the policy table that a decision needs.
	TableReady struct {
		Table   string `json:"table"` // key of the table's inputs
		Version string `json:"version"`
		Hash    string `json:"hash"`
	}
	// AgentClaimed: the agent on an instance has received its task.
	AgentClaimed struct {
		Attempt string `json:"attempt"`
		Node    int    `json:"node,omitempty"` // rank of the sender
		// sender: a hash of a secret that only that machine has; empty from agents that made none
		By string `json:"by,omitempty"`
	}
	// AttemptStarted: the program runs.
	AttemptStarted struct {
		Attempt  string        `json:"attempt"`
		Node     int           `json:"node,omitempty"` // rank of the sender
		Message  int64         `json:"message"`
		Restored string        `json:"restored,omitempty"`
		Step     int64         `json:"step"`
		Took     time.Duration `json:"took_ns"`
		Data     []DataRead    `json:"data,omitempty"` // inputs that the agent brought before
	}
	// Progressed: the program made progress. Step, Epoch and Metrics are the newest that it reported. Values are
	// all reports, since the previous event, of the metric that the job is judged by.
	Progressed struct {
		Attempt string  `json:"attempt"`
		Message int64   `json:"message"`
		Step    int64   `json:"step"`
		Total   int64   `json:"total,omitempty"`
		Epoch   float64 `json:"epoch,omitempty"`
		// the program restarts its counter each epoch, so Total is 0
		Anew    bool               `json:"anew,omitempty"`
		Metrics map[string]float64 `json:"metrics,omitempty"`
		Broken  []string           `json:"broken,omitempty"`
		Values  policy.Values      `json:"values,omitempty"`
	}
	// NoticeGiven: the provider will interrupt the machine.
	NoticeGiven struct {
		Attempt string    `json:"attempt"`
		Node    int       `json:"node,omitempty"` // rank of the sender
		Message int64     `json:"message"`
		Source  string    `json:"source"`
		Until   time.Time `json:"until"`
	}
	// UsageSeen: the resource use of the machine since the previous report.
	UsageSeen struct {
		Attempt string  `json:"attempt"`
		Node    int     `json:"node,omitempty"` // rank of the sender
		Message int64   `json:"message"`
		CPU     float64 `json:"cpu"`
		Memory  int64   `json:"memory"`
		// GPU is the utilization of the busiest GPU that the job requests; nil if it requests none, or if unknown.
		GPU *float64 `json:"gpu,omitempty"`
		// InUse reports whether anybody or anything uses a session; nil if the job is none.
		InUse *bool `json:"in_use,omitempty"`
	}
	// AttemptEnded: the program has ended and its outputs are stored.
	AttemptEnded struct {
		Attempt string `json:"attempt"`
		Node    int    `json:"node,omitempty"` // rank of the sender
		Message int64  `json:"message"`
		Reason  string `json:"reason"` // completed, failed, drained, setup
		Exit    int    `json:"exit"`
		Step    int64  `json:"step"`
		Saved   bool   `json:"saved"`
		Outputs string `json:"outputs,omitempty"`
		// OutputsDigest identifies what the outputs hold, with the contents of all files; "": unknown
		OutputsDigest string `json:"outputs_digest,omitempty"`
		Error         string `json:"error,omitempty"`
		// SetupStatus is the exit status of the set-up command if that failed; 0 otherwise.
		SetupStatus int `json:"setup_status,omitempty"`
		// time since the program ended, spent on storing; 0: unknown
		Keeping time.Duration `json:"keeping_ns,omitempty"`
		Data    []DataRead    `json:"data,omitempty"` // inputs that the agent brought, if the program never ran
	}
	// AgentSilent: an attempt's agent has not reported for too long.
	AgentSilent struct {
		Attempt string    `json:"attempt"`
		Node    int       `json:"node,omitempty"` // rank of the silent agent
		Since   time.Time `json:"since"`
	}
)

// Objective returns the reports of the metric that the job is judged by, in order. A sender without Values reports
// one with each event.
func (b Progressed) Objective(m policy.Metric) policy.Values {
	if len(b.Values) > 0 {
		return b.Values
	}
	return m.Of(time.Time{}, b.Step, b.Epoch, b.Metrics, b.Broken)
}

// Scope is what a refusal covers. Scrimp backs off from everything in the scope for a while.
type Scope string

// Scopes, from the narrowest to the widest.
const (
	OfferScope   Scope = "offer"
	ZoneScope    Scope = "zone"
	PoolScope    Scope = "pool" // a provider's machines of one type and capacity
	AccountScope Scope = "account"
)

// Rented is an instance that a provider lists as running.
type Rented struct {
	Instance string         `json:"instance"`
	Launch   string         `json:"launch"` // launch key that it was rented with
	Offer    market.OfferID `json:"offer"`
	Rate     money.Rate     `json:"rate"`
	From     time.Time      `json:"from"`
}
