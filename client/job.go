package client

import (
	"encoding/json"
	"time"

	"scrimp/money"
)

// Raw is JSON that is passed through.
type Raw = json.RawMessage

// Submission asks for a job to be done.
type Submission struct {
	Key  string `json:"key"`  // the same key submits once
	Spec Raw    `json:"spec"` // the job file: an object with its words and short forms, or its YAML text as a string
	// work folder on the server's machine, copied at submission; of its owner only
	Folder  string            `json:"folder,omitempty"`
	Work    string            `json:"work,omitempty"`    // work folder that was sent before
	Secrets map[string]string `json:"secrets,omitempty"` // values by name; kept apart from the log
	// Shell is what of the submitter's shell goes to machines that share the submitter's files: PATH,
	// VIRTUAL_ENV, CONDA_PREFIX and what the job file names under inherit. It comes by the socket of the
	// server's data folder only, and is kept apart from the log.
	Shell map[string]string `json:"shell,omitempty"`
	Rerun string            `json:"rerun,omitempty"` // job whose work folder is taken instead of Folder
	// From is JOB or JOB@CHECKPOINT, from which it begins: the job's newest checkpoint, or that one
	From string `json:"from,omitempty"`
	// Array is FROM-TO, FROM-TO:STEP or either with %N behind it, of POST /v1/groups: the indexes of the members, of
	// which at most N are open at once
	Array string `json:"array,omitempty"`
	// Study is a search for the best configuration, of POST /v1/groups: what is submitted is a study, and no array
	Study *Study `json:"study,omitempty"`
	// Pipeline is stages that begin after each other, of POST /v1/groups.
	Pipeline *Pipeline `json:"pipeline,omitempty"`
	// After is what must be over before it may have a machine: JOB or GROUP, which must succeed, or either with :any
	// behind it
	After []string `json:"after,omitempty"`
	// AcceptUnproven lets a run of more than two hours go on spot although no earlier run of its name was
	// seen to go on from a checkpoint
	AcceptUnproven bool `json:"accept_unproven,omitempty"`
	// AcceptWait lets a job wait that asks for an accelerator which nothing for sale has
	AcceptWait bool `json:"accept_wait,omitempty"`
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

// Outputs are what a machine of a job has kept of its work folder.
type Outputs struct {
	Node  int       `json:"node"` // of which machine, from 0
	Kept  time.Time `json:"kept"` // wall time
	Files int       `json:"files"`
	Bytes int64     `json:"bytes"` // sum of its files
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
	Shell   map[string]string `json:"shell,omitempty"`   // as of Submission, of a job that was over
}

// Review is what somebody says of a job that waits for approval.
type Review struct {
	Reason string `json:"reason,omitempty"` // at most 1000 bytes; a rejection has one
}

// Approval is what a job waits for, or had to wait for, before it may run.
type Approval struct {
	Limits   []Threshold   `json:"limits"`   // that it is above, the lowest amount first
	Most     *money.Amount `json:"most"`     // that it can cost; null: nobody knows
	Until    time.Time     `json:"until"`    // whoever has not approved it by then never does
	At       *time.Time    `json:"at"`       // when it was reviewed; null: it waits
	Approved *bool         `json:"approved"` // null: it waits
	By       string        `json:"by,omitempty"`
	Reason   string        `json:"reason,omitempty"`
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
	Started        *time.Time     `json:"started"` // its first attempt; null: it had none yet
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
	Offer          string             `json:"offer,omitempty"`
	Nodes          []JobNode          `json:"nodes,omitempty"` // its machines by rank, where it has several
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
	Group          string             `json:"group,omitempty"`    // of which it is a member
	Index          *int               `json:"index,omitempty"`    // in an array
	Waits          []string           `json:"waits,omitempty"`    // jobs and groups that must be over first
}

// LogLine is a line of a job's output.
type LogLine struct {
	Node    int        `json:"node,omitempty"` // that has printed it
	Line    string     `json:"line"`           // without its end; what is no text is replaced
	Attempt int        `json:"attempt"`        // from 1
	At      *time.Time `json:"at"`             // when the server had it, to a second; null: nobody knows any more
}

// Exec asks the agent to run a command beside the program.
type Exec struct {
	ID      string   `json:"id"`
	Command []string `json:"command"`
	Node    int      `json:"node,omitempty"` // on which machine of a gang, from 0
	// Input asks for a session, to which input is sent, and whose output is followed, while it runs.
	Input    bool      `json:"input,omitempty"`
	Terminal *Terminal `json:"terminal,omitempty"` // of a session: it has one of its own
}

// Terminal is what a session's terminal is like.
type Terminal struct {
	Rows int    `json:"rows"`
	Cols int    `json:"cols"`
	Kind string `json:"kind,omitempty"` // as TERM has it
}

// ExecResult is what it printed, or the session that was begun.
type ExecResult struct {
	Output  []byte `json:"output"`
	Exit    int    `json:"exit"`
	Error   string `json:"error,omitempty"`
	Session string `json:"session,omitempty"`
}

// ExecOutput is a piece of a session's output, and at its end how it ended. One that is empty says that it lives.
type ExecOutput struct {
	Output []byte `json:"output,omitempty"`
	Over   bool   `json:"over,omitempty"`
	Exit   int    `json:"exit,omitempty"`
	Error  string `json:"error,omitempty"`
}

// ExecInput is what is typed into a session.
type ExecInput struct {
	Input    []byte    `json:"input,omitempty"`
	End      bool      `json:"end,omitempty"`      // nothing follows
	Terminal *Terminal `json:"terminal,omitempty"` // it has another size from now on
}

// MetricValues are what a job's programs said of the metric that it is judged by: every value,
// in order. Of a job that names none it is as much of its loss as the log still has.
type MetricValues struct {
	Metric string        `json:"metric"`
	Values []MetricValue `json:"values"`
}

// MetricValue is one of them.
type MetricValue struct {
	Attempt  string    `json:"attempt"`
	At       time.Time `json:"at"`
	MarketAt time.Time `json:"market_at"`
	Step     int64     `json:"step"`
	Epoch    float64   `json:"epoch,omitempty"`
	Value    *float64  `json:"value"` // null: it was no finite number
}

// JobNode is a machine of a job that has several at once.
type JobNode struct {
	Node    int          `json:"node"` // its rank
	Machine string       `json:"machine"`
	Phase   string       `json:"phase"` // of its program: assigned, starting, running, ended
	Rate    money.Rate   `json:"rate"`  // of an hour
	Cost    money.Amount `json:"cost"`  // in this attempt
	Taken   bool         `json:"interrupted,omitempty"`
}
