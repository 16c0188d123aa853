package api

import (
	"time"

	"scrimp/internal/budget"
	"scrimp/internal/core"
	"scrimp/internal/ledger"
	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/plan"
	"scrimp/internal/policy"
)

// The user's side:
//
//	GET  /v1/server                       -> Server
//	POST /v1/server/stop       StopServer -> 204
//	GET  /v1/instances/undecided          -> []Undecided
//	POST /v1/instances/decide  Ownership  -> []Undecided, those that were decided
//	GET  /v1/market                       -> Market
//	GET  /v1/history                      -> History
//	POST /v1/jobs              Submission -> Job
//	GET  /v1/jobs                         -> []Job, newest last
//	GET  /v1/jobs/{id}                    -> Job
//	GET  /v1/jobs/{id}/watch              -> a Job a line, at each change, until it is closed
//	POST /v1/jobs/{id}/end     End        -> Job
//	PATCH /v1/jobs/{id}        Changes    -> Job
//	POST /v1/jobs/{id}/pause   Pause      -> Job
//	POST /v1/jobs/{id}/resume  Resume     -> Job
//	POST /v1/jobs/{id}/approve Review     -> Job
//	POST /v1/jobs/{id}/reject  Review     -> Job
//	GET  /v1/jobs/{id}/log?offset=N[&follow=1] -> text
//	GET  /v1/jobs/{id}/receipt            -> receipt.Receipt
//	GET  /v1/jobs/{id}/checkpoints        -> []Checkpoint, newest first
//	GET  /v1/jobs/{id}/checkpoints/{name} -> its files, as a tar file in gzip
//	DELETE /v1/jobs/{id}/checkpoints/{name} -> 204
//	GET  /v1/jobs/{id}/spec               -> the job file as it was validated
//	GET  /v1/jobs/{id}/explain            -> []Decision
//	POST /v1/jobs/{id}/exec    Exec       -> ExecResult
//	GET  /v1/ledger/verify                -> Verified

// Submission asks for a job to be done.
type Submission struct {
	Key  string `json:"key"`  // the same key submits once
	Spec Raw    `json:"spec"` // as spec.Job encodes it
	// work folder on the server's machine, copied at submission; of its owner only
	Folder  string            `json:"folder,omitempty"`
	Work    string            `json:"work,omitempty"`    // work folder that was sent before
	Secrets map[string]string `json:"secrets,omitempty"` // values by name; kept apart from the log
	Rerun   string            `json:"rerun,omitempty"`   // job whose work folder is taken instead of Folder
	// From is JOB or JOB@CHECKPOINT, from which it begins: the job's newest checkpoint, or that one
	From string `json:"from,omitempty"`
	// AcceptUnproven lets a run of more than two hours go on spot although no earlier run of its name was
	// seen to go on from a checkpoint
	AcceptUnproven bool `json:"accept_unproven,omitempty"`
}

// Checkpoint is one that a job has kept.
type Checkpoint struct {
	Name     string             `json:"name"`
	Attempt  string             `json:"attempt"`
	Step     int64              `json:"step"`
	Captured time.Time          `json:"captured"` // work up to then is in it
	Bytes    int64              `json:"bytes"`    // sum of its files
	Files    int                `json:"files"`
	Metrics  map[string]float64 `json:"metrics,omitempty"`
	Newest   bool               `json:"newest"`            // the job goes on from it
	Damaged  string             `json:"damaged,omitempty"` // why it cannot be read
}

// Work is a work folder that was sent. Its sender can submit jobs with it for a day.
type Work struct {
	Work string `json:"work"`
}

// End asks for a job to be over: Save keeps a checkpoint first.
type End struct {
	Save bool `json:"save"`
}

// Pause asks for a job to give up its machine until it is resumed. Force allows that where
// what it has done is in no checkpoint and is lost.
type Pause struct {
	Force bool `json:"force,omitempty"`
}

// Changes are new terms of a job, each as a job file writes it; "none" takes one away, and
// what is not there stays as it is.
type Changes struct {
	Deadline  *string `json:"deadline,omitempty"`   // a time with its zone, or in 6h from now
	Budget    *string `json:"budget,omitempty"`     // $25.00, the most that it may cost in all
	GPUHours  *string `json:"gpu_hours,omitempty"`  // 40, in all
	WallClock *string `json:"wall_clock,omitempty"` // 12h, in all; neither paused nor over counts
	Priority  *string `json:"priority,omitempty"`   // critical, normal or low
}

// Resume asks for a job to go on that is paused, or is over and did not succeed.
type Resume struct {
	Changes
	Env     []string          `json:"env,omitempty"`     // NAME=VALUE, set or replaced in its environment
	Secrets map[string]string `json:"secrets,omitempty"` // of a job that was over: they were forgotten then
}

// Review is what somebody says of a job that waits for approval.
type Review struct {
	Reason string `json:"reason,omitempty"` // at most 1000 bytes; a rejection has one
}

// Approval is what a job waits for, or had to wait for, before it may run.
type Approval struct {
	Limits   []budget.Threshold `json:"limits"`   // that it is above, the lowest amount first
	Most     *money.Amount      `json:"most"`     // that it can cost; null: nobody knows
	Until    time.Time          `json:"until"`    // whoever has not approved it by then never does
	At       *time.Time         `json:"at"`       // when it was reviewed; null: it waits
	Approved *bool              `json:"approved"` // null: it waits
	By       string             `json:"by,omitempty"`
	Reason   string             `json:"reason,omitempty"`
}

// StopServer asks the server to leave. Now also gives back all machines and
// stops the market; otherwise both go on and the next server adopts them.
type StopServer struct {
	Now bool `json:"now"`
}

// Server says who answers.
type Server struct {
	Version string      `json:"version"`
	Build   string      `json:"build"` // hash of the program
	PID     int         `json:"pid"`
	Dir     string      `json:"dir"`
	Started time.Time   `json:"started"`
	Market  MarketClock `json:"market"`
	Jobs    int         `json:"jobs"`
	Live    int         `json:"live"` // jobs that wait or run
	Events  uint64      `json:"events"`
	Shared  bool        `json:"shared,omitempty"` // serves others too, and was not started by a command
	// machines of an earlier incarnation that wait for scrimp adopt or scrimp release
	Undecided int `json:"undecided,omitempty"`
}

// Undecided is a machine that an earlier incarnation of the log rented: the log was
// restored or copied since, so that another server may have it.
type Undecided struct {
	Instance string         `json:"instance"`
	Offer    market.OfferID `json:"offer"`
	Job      string         `json:"job,omitempty"` // that runs on it; "": none is known

	// Ended says that it has ended by itself: what its job does next is still open.
	Ended    bool           `json:"ended,omitempty"`
	Since    time.Time      `json:"since,omitzero"` // it is billed; zero where it has ended
	Cost     *money.Amount  `json:"cost,omitempty"` // so far; nil where it has ended
	Currency money.Currency `json:"currency,omitempty"`
}

// Ownership says whether machines of an earlier incarnation are this server's (adopt) or
// another's (release).
type Ownership struct {
	Instance string `json:"instance,omitempty"` // empty: all that wait
	Adopt    bool   `json:"adopt"`
}

// MarketClock is the market and how its time runs.
type MarketClock struct {
	Name  string    `json:"name"`
	Speed float64   `json:"speed"` // market seconds a wall second
	Now   time.Time `json:"now"`   // market time
}

// Market is what is for sale.
type Market struct {
	Clock  MarketClock `json:"clock"`
	Offers []Listing   `json:"offers"`
}

// History is what the server saw of its market, and the jobs that it finished
// there: what simulations of other policies begin from.
type History struct {
	Opened time.Time    `json:"opened"` // market time of the trace's beginning
	Trace  market.Trace `json:"trace"`
	Jobs   []PastJob    `json:"jobs"`
	Others int          `json:"others,omitempty"` // that are over and did not succeed
}

// PastJob is a job that is over, as a simulation needs it.
type PastJob struct {
	ID        string        `json:"id"`
	Name      string        `json:"name"`
	Terms     core.Terms    `json:"terms"` // Steps and Work as they turned out
	Submitted time.Time     `json:"submitted"`
	Restart   time.Duration `json:"restart_ns"` // measured; 0: unknown
	Save      time.Duration `json:"save_ns"`    // measured; 0: unknown
	Cost      money.Amount  `json:"cost"`
	Known     bool          `json:"known"` // whether its work is: it was measured
}

// Listing is an offer with its price and what was seen of its interruptions.
type Listing struct {
	Offer  market.Offer  `json:"offer"`
	Quote  market.Quote  `json:"quote"`
	Hazard policy.Hazard `json:"hazard"`
}

// Job is a job as people see it. Times are wall time unless they say market.
type Job struct {
	ID             string         `json:"id"`
	Name           string         `json:"name"`
	State          string         `json:"state"`
	Why            string         `json:"why,omitempty"`    // machine-readable
	Detail         string         `json:"detail,omitempty"` // a sentence
	Closed         bool           `json:"closed"`           // over, and nothing of it costs anything any more
	Submitted      time.Time      `json:"submitted"`
	Finished       *time.Time     `json:"finished"`
	Deadline       *time.Time     `json:"deadline"`
	DeadlineMarket *time.Time     `json:"deadline_market"`
	TimeLeft       *float64       `json:"time_left_s"` // market seconds until the deadline
	Odds           *float64       `json:"odds"`        // of the deadline, 0 to 1; null: no deadline, or nobody can say
	Currency       money.Currency `json:"currency"`
	Spent          money.Amount   `json:"spent"`
	Budget         *money.Amount  `json:"budget"`
	Rate           *money.Rate    `json:"rate"` // of an hour, while a machine is held
	Step           int64          `json:"step"`
	// steps an hour of useful time on a machine of speed 1; null: not measured yet
	StepRate       *float64           `json:"step_rate"`
	StepSpread     *float64           `json:"step_spread"` // of that from minute to minute, a share of it; null as well
	Total          *int64             `json:"total"`
	Metrics        map[string]float64 `json:"metrics,omitempty"`
	StepsPerSecond *float64           `json:"steps_per_second"`  // on the wall
	Machine        string             `json:"machine,omitempty"` // instance
	Offer          market.OfferID     `json:"offer,omitempty"`
	Phase          string             `json:"phase,omitempty"` // of the attempt
	Attempts       int                `json:"attempts"`
	Interruptions  int                `json:"interruptions"`
	SavedStep      int64              `json:"saved_step"`
	Speed          float64            `json:"market_speed"`
	Outputs        string             `json:"outputs,omitempty"`
	Exit           int                `json:"exit"`
	Tags           map[string]string  `json:"tags,omitempty"`
	Team           string             `json:"team,omitempty"`
	Project        string             `json:"project,omitempty"`
	User           string             `json:"user,omitempty"`     // who submitted it
	Quota          string             `json:"quota,omitempty"`    // limit for whose quota it waits
	Approval       *Approval          `json:"approval,omitempty"` // that it waits for, or had to wait for
}

// Decision is one line of `scrimp explain`.
type Decision struct {
	At       time.Time `json:"at"` // wall
	MarketAt time.Time `json:"market_at"`
	Event    uint64    `json:"event"`
	Cause    string    `json:"cause"` // kind of the event that led to it
	Version  string    `json:"version"`
	plan.Decision
}

// Verified is the outcome of a check of the ledger.
type Verified struct {
	OK       bool           `json:"ok"`
	Problem  string         `json:"problem,omitempty"`
	Events   uint64         `json:"events"`
	Postings int            `json:"postings"`
	Head     ledger.Hash    `json:"head"`
	Jobs     int            `json:"jobs"`
	Cost     money.Amount   `json:"cost"`
	Currency money.Currency `json:"currency"`
}
