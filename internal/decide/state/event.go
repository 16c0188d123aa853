package state

import (
	"cmp"
	"encoding/json"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/place"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Schema is the version of the event form that this release writes.
const Schema = 1

// Event is something that happened, and when. All times in events are market time.
type Event struct {
	At     time.Time `json:"at"`
	Schema int       `json:"schema"`
	Tenant string    `json:"tenant"`
	Actor  string    `json:"actor,omitempty"` // who or what it comes from
	Cause  string    `json:"cause,omitempty"` // the key of the action it answers
	Key    string    `json:"key,omitempty"`   // idempotency key, unique within the tenant
	Body   Body      `json:"body"`
}

// Body is what happened.
type Body interface{ Kind() string }

// Terms is what the core needs to know of a job. It is made from the job file
// once, at submission, so that the core depends on no file format.
type Terms struct {
	Name    string       `json:"name"`
	Owner   ledger.Owner `json:"owner"`
	JobKind string       `json:"job_kind,omitempty"` // experiment, production, interactive, inference, data
	Variant string       `json:"variant,omitempty"`
	// Group is the job's group, and Index its index in an array. Parent is the group whose budget the job uses: the
	// same group, if that has a budget.
	Group  string `json:"group,omitempty"`
	Index  int    `json:"index,omitempty"`
	Parent string `json:"parent,omitempty"`
	Stage  string `json:"stage,omitempty"` // that the job is of its pipeline, where Index is the stage's position
	// After is what must be over before it may have a machine.
	After    []Dependency `json:"after,omitempty"`
	Priority int          `json:"priority,omitempty"` // 2 critical, 1 normal, 0 low
	// Nodes is how many machines it runs on at once, at most; LeastNodes how many at least, where
	// that is less. Its work and speed are those on all of them. 0: one.
	Nodes      int       `json:"nodes,omitempty"`
	LeastNodes int       `json:"least_nodes,omitempty"`
	Need       plan.Need `json:"need"`

	Deadline      time.Time      `json:"deadline,omitzero"`
	Promise       float64        `json:"promise,omitempty"` // share of such jobs that are in time
	Budget        money.Amount   `json:"budget,omitzero"`
	HasBudget     bool           `json:"has_budget,omitempty"`
	Currency      money.Currency `json:"currency"`
	GPUHours      float64        `json:"gpu_hours,omitempty"`
	WallClock     time.Duration  `json:"wall_clock_ns,omitempty"`
	DeadlineFirst bool           `json:"deadline_first,omitempty"`

	Steps   int64         `json:"steps,omitempty"`   // 0: unknown
	Work    time.Duration `json:"work_ns,omitempty"` // on a machine of speed 1; 0: unknown
	Restart time.Duration `json:"restart_ns"`        // expected until measured
	// Transfer is what taking the checkpoint to another region adds to a restart,
	// and Carry what it costs; 0 where the job cannot leave its region.
	Transfer time.Duration `json:"transfer_ns,omitempty"`
	Carry    money.Amount  `json:"carry,omitzero"`
	// Egress has the routes between regions that cost something else.
	Egress   place.Egress  `json:"egress,omitempty"`
	Grace    time.Duration `json:"grace_ns"`              // given to a drain
	Interval time.Duration `json:"interval_ns,omitempty"` // between checkpoints; 0: auto
	Saves    bool          `json:"saves,omitempty"`       // whether the job has a checkpoint folder

	Metric     policy.Metric `json:"metric,omitzero"`
	IdleLimit  time.Duration `json:"idle_limit_ns,omitempty"`
	MaxRetries int           `json:"max_retries,omitempty"`
	RetryCodes []int         `json:"retry_codes,omitempty"`
	Notify     bool          `json:"notify,omitempty"`
}

// Most is how many machines a job runs on at once at most, and Fewest at least.
func (t *Terms) Most() int { return max(1, t.Nodes) }

// Fewest is how many it needs.
func (t *Terms) Fewest() int { return cmp.Or(t.LeastNodes, t.Most()) }

// Source is a checkpoint of another job that was copied to a new one.
type Source struct {
	Job        string `json:"job"`
	Checkpoint string `json:"checkpoint"` // its name there
	Step       int64  `json:"step"`
}

// Changes are new terms of a job; what is nil stays as it is.
type Changes struct {
	Deadline  *time.Time     `json:"deadline,omitempty"`      // zero: none
	Budget    *money.Amount  `json:"budget,omitempty"`        // the most that it may cost in all
	NoBudget  bool           `json:"no_budget,omitempty"`     // it has none from now on
	GPUHours  *float64       `json:"gpu_hours,omitempty"`     // in all; 0: no limit
	WallClock *time.Duration `json:"wall_clock_ns,omitempty"` // in all, while it is neither paused nor over; 0: no limit
	Priority  *int           `json:"priority,omitempty"`      // 2 critical, 1 normal, 0 low
}

// Apply is t with the changes.
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
	return t
}

// What can happen.
type (
	// JobSubmitted: somebody wants a job done. Spec is the job file as it was validated.
	JobSubmitted struct {
		Job   string          `json:"job"`
		Terms Terms           `json:"terms"`
		Spec  json.RawMessage `json:"spec,omitempty"`
		// Asking says that the job waits for approval first, and for what, whatever the limits
		// in force say; they may ask for it too.
		Asking *budget.PendingApproval `json:"asking,omitempty"`
		// From is the checkpoint that it begins from; nil: it begins from nothing.
		From *Source `json:"from,omitempty"`
	}
	// JobReviewed: a job that waits for approval has it, or never gets it.
	JobReviewed struct {
		Job      string `json:"job"`
		Approved bool   `json:"approved"`
		Reason   string `json:"reason,omitempty"`
	}
	// JobEnded: somebody wants a job over; Save keeps a checkpoint first (stop), otherwise it ends at once (cancel).
	JobEnded struct {
		Job   string `json:"job"`
		Save  bool   `json:"save"`
		Limit string `json:"limit,omitempty"` // that is spent, which is why; "": somebody wants it over
	}
	// JobPaused: somebody wants a job to give up its machine, once it has saved, and its place
	// in the queue, until it is resumed. Cause: the server sets it aside, since a step that worked on it failed.
	JobPaused struct {
		Job   string `json:"job"`
		Cause string `json:"cause,omitempty"`
	}
	// JobResumed: somebody wants a job to go on that is paused, or over and did not succeed.
	// Asking says that one that was over waits for approval first, and for what, whatever the
	// limits in force say; they may ask for it too. Spec is
	// its job file from now on; empty: the one it had.
	JobResumed struct {
		Job     string                  `json:"job"`
		Changes Changes                 `json:"changes,omitzero"`
		Spec    json.RawMessage         `json:"spec,omitempty"`
		Asking  *budget.PendingApproval `json:"asking,omitempty"`
	}
	// JobUpdated: somebody wants other terms for a job that is not over.
	JobUpdated struct {
		Job     string  `json:"job"`
		Changes Changes `json:"changes"`
	}
	// MarketSeen: what is for sale and at what price. Offers that are not named stay as they were.
	MarketSeen struct {
		Offers []market.Offer `json:"offers,omitempty"`
		Quotes []market.Quote `json:"quotes,omitempty"`
	}
	// Audited: somebody did something, or tried to. No rule reads it.
	Audited struct {
		Act identity.Act `json:"act"`
	}
	// IdentityChanged: who may do what has changed. No rule reads it; the server does.
	IdentityChanged struct {
		Change identity.Change `json:"change"`
	}
	// BudgetsSet: the limits and the tags that jobs must have, from now on, as a whole.
	// Base is what limits have spent in their windows, by name, of the postings up to the
	// event AsOf; it counts for those that are new. AsOf 0: whoever sets them does not say.
	BudgetsSet struct {
		Rules budget.Rules     `json:"rules"`
		Base  map[string]Spent `json:"base,omitempty"`
		AsOf  uint64           `json:"as_of,omitempty"`
	}
	// Tick: time passed.
	Tick struct{}
	// Configured: the limits by which the machine works from now on.
	Configured struct {
		Config Config `json:"config"`
	}
	// LaunchDone: an instance was rented for a Launch.
	LaunchDone struct {
		Launch   string         `json:"launch"`
		Instance string         `json:"instance"`
		Offer    market.OfferID `json:"offer"`
		Rate     money.Rate     `json:"rate"`
		From     time.Time      `json:"from"` // billed from
	}
	// LaunchPending: the provider has the request in its queue and answers later.
	LaunchPending struct {
		Launch string `json:"launch"`
		Detail string `json:"detail,omitempty"`
	}
	// LaunchRefused: it was not.
	LaunchRefused struct {
		Launch string        `json:"launch"`
		Reason string        `json:"reason"` // no_capacity, quota, price, throttled, not_for_sale, image, error
		Detail string        `json:"detail,omitempty"`
		Scope  Scope         `json:"scope,omitempty"`   // what was refused; "" is the offer
		Wait   time.Duration `json:"wait_ns,omitempty"` // that the provider asks for; 0: it says nothing
	}
	// LaunchExpired: the provider gave the request up. LaunchCancelled: it did so because we asked.
	LaunchExpired struct {
		Launch string `json:"launch"`
	}
	LaunchCancelled struct {
		Launch string `json:"launch"`
	}
	// InstanceEnded: an instance is billed no longer.
	InstanceEnded struct {
		Instance string        `json:"instance"`
		Until    time.Time     `json:"until"`               // billed until
		Cause    string        `json:"cause"`               // terminated, interrupted, stopped
		Notice   time.Duration `json:"notice_ns,omitempty"` // wall time; a fact for the receipt, which no rule reads
		Launch   string        `json:"launch,omitempty"`    // the allocation that it was rented for, where that is known
		// Announced: its provider had said that it would interrupt it, however it ended.
		Announced bool `json:"announced,omitempty"`
	}
	// InterruptionAnnounced: a provider says that it will interrupt an instance, and when.
	// What a program or its agent says of that is NoticeGiven, and concerns its job only.
	InterruptionAnnounced struct {
		Instance string    `json:"instance"`
		At       time.Time `json:"at"`
	}
	// BillReceived: what the provider charges for an instance in all, as far as it knows
	// now. It may come at any time after its end was told, and again: the newest bill
	// holds. One that comes before is not whole and not booked; it is to be sent again.
	BillReceived struct {
		Instance string     `json:"instance"`
		Launch   string     `json:"launch,omitempty"`
		Lines    []BillLine `json:"lines"`
	}
	// InventorySeen: all that runs at a provider under our tag.
	InventorySeen struct {
		Provider string    `json:"provider"`
		Running  []Rented  `json:"running,omitempty"`
		AsOf     time.Time `json:"as_of"` // instances rented later may be missing
	}
	// IncarnationBegun: this log is the installation's from now on. A log that was made
	// new is incarnation 1; one that was restored or copied begins the next.
	IncarnationBegun struct {
		Installation string `json:"installation"`
		Incarnation  int    `json:"incarnation"`
	}
	// OwnershipDecided: somebody says whether machines of an earlier incarnation are ours
	// (adopt) or not (release); Instance "" is all of them.
	OwnershipDecided struct {
		Instance string `json:"instance,omitempty"`
		Adopt    bool   `json:"adopt"`
	}
	// TableReady: a policy's table that a decision asked for is in the cache.
	TableReady struct {
		Table   string `json:"table"` // its inputs, as a key
		Version string `json:"version"`
		Hash    string `json:"hash"`
	}
	// AgentClaimed: the agent on an instance has its task.
	AgentClaimed struct {
		Attempt string `json:"attempt"`
		Node    int    `json:"node,omitempty"` // rank of whoever says so
		By      string `json:"by,omitempty"`   // who: a hash of what only that machine has; "" from agents that made none
	}
	// AttemptStarted: the program runs.
	AttemptStarted struct {
		Attempt  string        `json:"attempt"`
		Node     int           `json:"node,omitempty"` // rank of whoever says so
		Message  int64         `json:"message"`
		Restored string        `json:"restored,omitempty"`
		Step     int64         `json:"step"`
		Took     time.Duration `json:"took_ns"`
	}
	// Progressed: the program got on. Step, Epoch and Metrics are the newest of what it said;
	// Values is all that it said of the metric that its job is judged by, since the event before.
	Progressed struct {
		Attempt string             `json:"attempt"`
		Message int64              `json:"message"`
		Step    int64              `json:"step"`
		Total   int64              `json:"total,omitempty"`
		Epoch   float64            `json:"epoch,omitempty"`
		Anew    bool               `json:"anew,omitempty"` // the program's counter begins anew each epoch; 0 is no total
		Metrics map[string]float64 `json:"metrics,omitempty"`
		Broken  []string           `json:"broken,omitempty"`
		Values  policy.Values      `json:"values,omitempty"`
	}
	// NoticeGiven: the provider will take the machine.
	NoticeGiven struct {
		Attempt string    `json:"attempt"`
		Node    int       `json:"node,omitempty"` // rank of whoever says so
		Message int64     `json:"message"`
		Source  string    `json:"source"`
		Until   time.Time `json:"until"`
	}
	// UsageSeen: what the machine did since the last one.
	UsageSeen struct {
		Attempt string  `json:"attempt"`
		Node    int     `json:"node,omitempty"` // rank of whoever says so
		Message int64   `json:"message"`
		CPU     float64 `json:"cpu"`
		Memory  int64   `json:"memory"`
		// GPU is the highest share of time in which one of the GPUs that the job asks for was in use; nil: it
		// asks for none, or nobody knows.
		GPU *float64 `json:"gpu,omitempty"`
	}
	// AttemptEnded: the program runs no longer and what it left is kept.
	AttemptEnded struct {
		Attempt string `json:"attempt"`
		Node    int    `json:"node,omitempty"` // rank of whoever says so
		Message int64  `json:"message"`
		Reason  string `json:"reason"` // completed, failed, drained, setup
		Exit    int    `json:"exit"`
		Step    int64  `json:"step"`
		Saved   bool   `json:"saved"`
		Outputs string `json:"outputs,omitempty"`
		Error   string `json:"error,omitempty"`
		// SetupStatus is that of the set-up command, where it is what failed; 0: another thing did, or nothing.
		SetupStatus int           `json:"setup_status,omitempty"`
		Keeping     time.Duration `json:"keeping_ns,omitempty"` // how long the program had been over; 0: nobody says
	}
	// AgentSilent: nothing was heard of an attempt's agent for too long.
	AgentSilent struct {
		Attempt string    `json:"attempt"`
		Node    int       `json:"node,omitempty"` // rank of whoever says so
		Since   time.Time `json:"since"`
	}
)

// Objective is what the event says of the metric that the job is judged by, in order.
// Who sends no values says one with each report.
func (b Progressed) Objective(m policy.Metric) policy.Values {
	if len(b.Values) > 0 {
		return b.Values
	}
	return m.Of(time.Time{}, b.Step, b.Epoch, b.Metrics, b.Broken)
}

// BillLine is one line of a provider's bill for an instance. Credits are negative.
type BillLine struct {
	Rule     string          `json:"rule,omitempty"`     // "" for plain seconds
	Category ledger.Category `json:"category,omitempty"` // "": time of the machine
	SKU      string          `json:"sku,omitempty"`      // "": the machine's
	Rate     money.Rate      `json:"rate,omitempty"`     // of an hour of it; 0: not known
	Amount   money.Amount    `json:"amount"`
	Currency money.Currency  `json:"currency"`
	From     time.Time       `json:"from,omitzero"` // the period that the line is for; zero: that of the instance
	To       time.Time       `json:"to,omitzero"`
}

// Scope says what a refusal is about: all that it names is left alone for a while.
type Scope string

// The scopes of a refusal, from the narrowest.
const (
	OfferScope   Scope = "offer"
	ZoneScope    Scope = "zone"
	PoolScope    Scope = "pool" // a provider's machines of one type and capacity
	AccountScope Scope = "account"
)

// Rented is an instance that a provider shows as running.
type Rented struct {
	Instance string         `json:"instance"`
	Launch   string         `json:"launch"` // the key it was rented with
	Offer    market.OfferID `json:"offer"`
	Rate     money.Rate     `json:"rate"`
	From     time.Time      `json:"from"`
}
