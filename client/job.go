package client

import (
	"encoding/json"
	"time"

	"scrimp/money"
)

// Raw is JSON that the client passes through.
type Raw = json.RawMessage

// Submission is a request to run a job.
type Submission struct {
	Key  string `json:"key"`  // a key is accepted once
	Spec Raw    `json:"spec"` // the job file: an object, with short forms, or YAML text as a string
	// work folder on the server's host, copied at submission; for the owner of the server only
	Folder  string            `json:"folder,omitempty"`
	Work    string            `json:"work,omitempty"`    // an uploaded work folder
	Secrets map[string]string `json:"secrets,omitempty"` // values by name; kept apart from the log
	// Shell holds variables of the submitter's shell for machines that share the submitter's files: PATH,
	// VIRTUAL_ENV, CONDA_PREFIX and the names under inherit in the job file. The server accepts it through the
	// socket of its data folder only, and keeps it apart from the log.
	Shell map[string]string `json:"shell,omitempty"`
	Rerun string            `json:"rerun,omitempty"` // job whose work folder to use instead of Folder
	// From is the checkpoint from which the job starts: JOB for the newest of that job, or JOB@CHECKPOINT.
	From string `json:"from,omitempty"`
	// Array is FROM-TO or FROM-TO:STEP, with an optional %N, for POST /v1/groups: the indexes of the members. At most
	// N members are open at once.
	Array string `json:"array,omitempty"`
	// Study is a search for the best configuration, for POST /v1/groups; it excludes Array.
	Study *Study `json:"study,omitempty"`
	// Pipeline holds stages that run one after the other, for POST /v1/groups.
	Pipeline *Pipeline `json:"pipeline,omitempty"`
	// After lists what must end before the job may get a machine: JOB or GROUP, which must succeed, or JOB:any or
	// GROUP:any.
	After []string `json:"after,omitempty"`
	// AcceptUnproven lets a run of more than two hours use spot although no earlier run of its name has resumed from
	// a checkpoint.
	AcceptUnproven bool `json:"accept_unproven,omitempty"`
	// AcceptWait lets a job wait for an accelerator that no present offer has.
	AcceptWait bool `json:"accept_wait,omitempty"`
	// Proposal makes the job wait until somebody approves it, for POST /v1/jobs.
	Proposal *Proposing `json:"proposal,omitempty"`
}

// Checkpoint describes a checkpoint of a job.
type Checkpoint struct {
	Name     string             `json:"name"`
	Attempt  string             `json:"attempt"`
	Step     int64              `json:"step"`
	Captured time.Time          `json:"captured"` // time of the state that it holds
	Bytes    int64              `json:"bytes"`    // total size of its files
	Files    int                `json:"files"`
	Metrics  map[string]float64 `json:"metrics,omitempty"`
	Newest   bool               `json:"newest"`            // the job will resume from it
	Damaged  string             `json:"damaged,omitempty"` // why it cannot be read
}

// Outputs describes the stored outputs of one machine of a job.
type Outputs struct {
	Node  int       `json:"node"` // of the machine, from 0
	Kept  time.Time `json:"kept"` // wall time
	Files int       `json:"files"`
	Bytes int64     `json:"bytes"` // total size of its files
}

// Work is an uploaded work folder. Its sender can submit jobs with it for a day.
type Work struct {
	Work string `json:"work"`
}

// End is a request to end a job. With Save, the job saves a checkpoint first.
type End struct {
	Save bool `json:"save"`
}

// Pause is a request to release a job's machine until the job is resumed. Force allows that although work that no
// checkpoint has is lost.
type Pause struct {
	Force bool `json:"force,omitempty"`
}

// Changes holds new terms of a job in the notation of a job file. "none" removes a term; missing fields change
// nothing.
type Changes struct {
	Deadline  *string `json:"deadline,omitempty"`   // a time with its zone, or "in 6h"
	Budget    *string `json:"budget,omitempty"`     // such as $25.00, the most that it may cost in total
	GPUHours  *string `json:"gpu_hours,omitempty"`  // such as 40, in total
	WallClock *string `json:"wall_clock,omitempty"` // such as 12h in total, without time paused or ended
	Priority  *string `json:"priority,omitempty"`   // critical, normal or low
	// AcceptLate accepts a deadline that the job misses at its pace, and that moves it to on-demand machines.
	AcceptLate bool `json:"accept_late,omitempty"`
}

// Resume is a request to continue a job that is paused, or that has ended without success.
type Resume struct {
	Changes
	Idle    *string           `json:"idle,omitempty"`    // of a session: its span without use, such as 20m
	Env     []string          `json:"env,omitempty"`     // NAME=VALUE to set in its environment
	Secrets map[string]string `json:"secrets,omitempty"` // for a job that had ended, since the server forgets them then
	Shell   map[string]string `json:"shell,omitempty"`   // as in Submission, for a job that had ended
}

// Review is a decision about a job that waits for approval.
type Review struct {
	Reason string `json:"reason,omitempty"` // at most 1000 bytes; required for a rejection
}

// Approval is an approval that a job needs or needed to run.
type Approval struct {
	Limits   []Threshold   `json:"limits"`   // exceeded thresholds, lowest amount first
	Most     *money.Amount `json:"most"`     // the most that the job can cost; null: unknown
	Until    time.Time     `json:"until"`    // the job is given up if not approved by then
	At       *time.Time    `json:"at"`       // time of the review; null: it waits
	Approved *bool         `json:"approved"` // null: it waits
	By       string        `json:"by,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Proposal bool          `json:"proposal,omitempty"` // the submission itself asks for it, with a proposal
}

// Job is a job as users see it. Times are wall time unless their names say market.
type Job struct {
	ID             string     `json:"id"`
	Name           string     `json:"name"`
	State          string     `json:"state"`
	Why            string     `json:"why,omitempty"`    // machine-readable
	Detail         string     `json:"detail,omitempty"` // a sentence
	Closed         bool       `json:"closed"`           // it has ended and can no longer cost anything
	Submitted      time.Time  `json:"submitted"`
	Started        *time.Time `json:"started"` // start of the first attempt; null: none yet
	Finished       *time.Time `json:"finished"`
	Deadline       *time.Time `json:"deadline"`
	DeadlineMarket *time.Time `json:"deadline_market"`
	TimeLeft       *float64   `json:"time_left_s"` // market seconds until the deadline
	Odds           *float64   `json:"odds"`        // chance to meet the deadline, 0 to 1; null: none or unknown
	// Outlook is what a running job still takes, by simulation; null: unknown.
	Outlook *JobOutlook `json:"outlook,omitempty"`
	// Estimate is what a job that waits for its turn is expected to cost, and when it starts; null: unknown.
	Estimate *JobEstimate   `json:"estimate,omitempty"`
	Currency money.Currency `json:"currency"`
	Spent    money.Amount   `json:"spent"`
	Budget   *money.Amount  `json:"budget"`
	Rate     *money.Rate    `json:"rate"` // per hour, while it holds a machine
	Step     int64          `json:"step"`
	// steps per hour of useful time on a machine of speed 1; null: not measured yet
	StepRate       *float64           `json:"step_rate"`
	StepSpread     *float64           `json:"step_spread"` // its variation per minute, a share; null as well
	Total          *int64             `json:"total"`
	Metrics        map[string]float64 `json:"metrics,omitempty"`
	StepsPerSecond *float64           `json:"steps_per_second"`  // in wall time
	Machine        string             `json:"machine,omitempty"` // instance
	Offer          string             `json:"offer,omitempty"`
	Nodes          []JobNode          `json:"nodes,omitempty"` // its machines by rank, if several
	// Reads is the cost of reading its inputs from another region on its present machines. Spent does not include it.
	// null: nothing.
	Reads         *money.Amount     `json:"reads,omitempty"`
	Phase         string            `json:"phase,omitempty"` // of the attempt
	Attempts      int               `json:"attempts"`
	Interruptions int               `json:"interruptions"`
	SavedStep     int64             `json:"saved_step"`
	Speed         float64           `json:"market_speed"`
	Outputs       string            `json:"outputs,omitempty"`
	OutputsDigest string            `json:"outputs_digest,omitempty"` // identifies what the outputs hold: SHA-256
	Exit          int               `json:"exit"`
	Tags          map[string]string `json:"tags,omitempty"`
	Team          string            `json:"team,omitempty"`
	Project       string            `json:"project,omitempty"`
	User          string            `json:"user,omitempty"`     // who submitted it
	Quota         string            `json:"quota,omitempty"`    // quota that it waits for
	Approval      *Approval         `json:"approval,omitempty"` // approval that it needs or needed
	Group         string            `json:"group,omitempty"`    // group that it belongs to
	Index         *int              `json:"index,omitempty"`    // in an array
	Waits         []string          `json:"waits,omitempty"`    // jobs and groups that must end first
	// Preempted is the newest time that a critical job got the job's seat; null: none did.
	Preempted *Preempted `json:"preempted,omitempty"`
	// Preempts lists the jobs that leave, or left, their seats to this critical job.
	Preempts []string `json:"preempts,omitempty"`
	// PreemptCost is what these preemptions are expected to cost together; null: Preempts is empty.
	PreemptCost *money.Amount `json:"preempt_cost,omitempty"`
	// PreemptsNobody is why a critical job that waits preempts no running job; empty: it does, or is not critical or
	// does not wait. Only the answer for one job has it.
	PreemptsNobody string `json:"preempts_nobody,omitempty"`
	// Session is shell or notebook if the job is a session.
	Session string `json:"session,omitempty"`
	// IdleSince is the time since when nobody has used its machines, and IdleLimit how long they may be idle before
	// the job is saved and stopped, in wall time; null: in use or not running, or no limit.
	IdleSince *time.Time `json:"idle_since"`
	IdleLimit *float64   `json:"idle_limit_s"`
	// Undelivered lists the reports of notify that a receiver did not get. Only the answer for one job has it.
	Undelivered []Undelivered `json:"undelivered,omitempty"`
	// Notices lists all reports of notify, for each receiver. Only the answer for one job has it.
	Notices []Notice `json:"notices,omitempty"`
}

// States of a Notice.
const (
	Delivered = "delivered"
	Retrying  = "retrying"
	Waiting   = "waiting" // this server does not send e-mail; the next one with scrimp serve --smtp does
	Refused   = "refused" // the receiver refuses it, or the tries have ended
)

// Notice is a report of notify to one receiver.
type Notice struct {
	Job   string     `json:"job"`   // "": the report is about an anomaly
	Event string     `json:"event"` // done, failed, late or over_budget; week of a schedule; anomaly, anomaly_end or test
	By    string     `json:"by"`    // email or webhook; slack or pagerduty for an anomaly
	To    string     `json:"to"`    // an e-mail address, or the host of a webhook
	State string     `json:"state"` // delivered, retrying, waiting or refused
	Tries int        `json:"tries"` // made so far
	Error string     `json:"error,omitempty"`
	At    time.Time  `json:"at"`   // of the last try
	Next  *time.Time `json:"next"` // of the next try; null: none is planned
	// Alert and Anomaly are set in a report about an anomaly: the alert that asks for it, and the anomaly's name.
	Alert   string `json:"alert,omitempty"`
	Anomaly string `json:"anomaly,omitempty"`
	// Week is the Monday of the week that a weekly report is about, such as 2026-10-12; "": the report is not weekly.
	Week string `json:"week,omitempty"`
}

// Undelivered is a report that a receiver refused, or that could not be sent.
type Undelivered struct {
	Event string    `json:"event"` // done, failed, late or over_budget
	To    string    `json:"to"`    // an e-mail address, or the host of a webhook
	Error string    `json:"error"`
	At    time.Time `json:"at"`
}

// Preempted is a preemption: a critical job got the seat of this job, which saved and waits or has gone on since.
type Preempted struct {
	// By is the critical job; empty: a job of another team.
	By      string       `json:"by,omitempty"`
	Attempt string       `json:"attempt"` // that had the seat
	At      time.Time    `json:"at"`
	Cost    money.Amount `json:"cost"`      // expected: what it repeats, and its next start, at the price of the seat
	Lost    float64      `json:"lost_s"`    // expected work to repeat, in market seconds
	Restart float64      `json:"restart_s"` // expected time of the next start, in market seconds
	Times   int          `json:"times"`     // preemptions of the job so far
	Waits   bool         `json:"waits"`     // the job waits until the critical job has the seat
}

// JobOutlook is the rest of a job over simulated runs: 10 %, median and 90 %. It is an estimate.
type JobOutlook struct {
	Cost    [3]float64 `json:"cost"`     // in the job's currency, besides what is spent
	FinishS [3]float64 `json:"finish_s"` // from now on, in market seconds
}

// JobEstimate is what the rest of a waiting job is expected to cost, by the simulation that scrimp plan makes, and when
// it starts: 10 %, median and 90 %.
type JobEstimate struct {
	Cost [3]float64 `json:"cost"` // in the job's currency, besides what is spent
	// StartS is the time until it gets its first machine, in market seconds: its turn in the queue, and the time until
	// its machine is for sale; null: unknown.
	StartS *[3]float64 `json:"start_s"`
}

// LogLine is a line of a job's output.
type LogLine struct {
	Node    int        `json:"node,omitempty"` // rank that printed it
	Line    string     `json:"line"`           // without its end; invalid UTF-8 is replaced
	Attempt int        `json:"attempt"`        // from 1
	At      *time.Time `json:"at"`             // when the server received it, to the second; null: no longer known
}

// Exec is a request to run a command beside the program.
type Exec struct {
	ID      string   `json:"id"`
	Command []string `json:"command"`
	Node    int      `json:"node,omitempty"` // machine of a gang, from 0
	// Input requests a session: it accepts input and streams output while the command runs.
	Input    bool      `json:"input,omitempty"`
	Terminal *Terminal `json:"terminal,omitempty"` // of a session: gives it a terminal
	// Attach connects to the terminal of a job that is a session, instead of running a command.
	Attach bool `json:"attach,omitempty"`
	// Forward carries connections to ports of the machine's 127.0.0.1, instead of running a command.
	Forward bool `json:"forward,omitempty"`
}

// Terminal describes the terminal of a session.
type Terminal struct {
	Rows int    `json:"rows"`
	Cols int    `json:"cols"`
	Kind string `json:"kind,omitempty"` // value of TERM
}

// ExecResult is the output of a command, or the session that was started.
type ExecResult struct {
	Output  []byte `json:"output"`
	Exit    int    `json:"exit"`
	Error   string `json:"error,omitempty"`
	Session string `json:"session,omitempty"`
}

// ExecOutput is a piece of a session's output, or at its end the result. An empty one is a heartbeat.
type ExecOutput struct {
	Output []byte `json:"output,omitempty"`
	Over   bool   `json:"over,omitempty"`
	Exit   int    `json:"exit,omitempty"`
	Error  string `json:"error,omitempty"`
}

// ExecInput is input for a session.
type ExecInput struct {
	Input    []byte    `json:"input,omitempty"`
	End      bool      `json:"end,omitempty"`      // end of the input
	Terminal *Terminal `json:"terminal,omitempty"` // new size of the terminal
}

// MetricValues holds the values that a job's programs reported for the metric that judges it, in order. For a job
// without a metric, it holds the values of its loss that the log still has.
type MetricValues struct {
	Metric string        `json:"metric"`
	Values []MetricValue `json:"values"`
}

// MetricValue is one value of a metric.
type MetricValue struct {
	Attempt  string    `json:"attempt"`
	At       time.Time `json:"at"`
	MarketAt time.Time `json:"market_at"`
	Step     int64     `json:"step"`
	Epoch    float64   `json:"epoch,omitempty"`
	Value    *float64  `json:"value"` // null: not a finite number
}

// Curves holds a sample of the values of each metric that a job's programs reported: first the one that judges the job,
// the others by name.
type Curves struct {
	Curves []Curve `json:"curves"`
	More   int     `json:"more,omitempty"` // metrics that are left out: those with the last names
}

// Curve is a sample of a metric's values, in order.
type Curve struct {
	Metric string       `json:"metric"`
	Judges bool         `json:"judges,omitempty"` // the job is judged by it
	Points []CurvePoint `json:"points"`
}

// CurvePoint is a value of a metric.
type CurvePoint struct {
	MarketAt time.Time `json:"market_at"`
	Step     int64     `json:"step"`
	Value    float64   `json:"value"`
}

// JobNode is one machine of a job that has several at once.
type JobNode struct {
	Node    int          `json:"node"` // its rank
	Machine string       `json:"machine"`
	Phase   string       `json:"phase"` // of its program: assigned, starting, running, ended
	Rate    money.Rate   `json:"rate"`  // per hour
	Cost    money.Amount `json:"cost"`  // in this attempt
	Taken   bool         `json:"interrupted,omitempty"`
}
