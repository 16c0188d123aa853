// Package api holds the wire types: what agents, command lines and pages exchange with the
// server. Those of agents are declared here, those of users in client; no type of the program's
// inside is among them: api/convert makes these of those. Fields are only ever added.
package api

import (
	"time"

	"scrimp/client"
)

// The agent's side. An agent calls the server and never the reverse:
//
//	POST /v1/agent/register Registration -> Registered  with the machine's bootstrap token, once
//	POST /v1/agent/pull     Pull         -> Pulled      signed with the machine's key; waits for tasks
//	POST /v1/agent/report   Report       -> Orders      with the attempt's token, about once a second
//	POST /v1/agent/logs?attempt=A[&node=R]&offset=N  body: bytes of the log -> LogEnd
//	GET  /v1/agent/logs?attempt=A[&node=R]           -> LogEnd: how much the server has of that machine's
//	POST /v1/agent/exec/{id} ExecResult -> 204
//	GET  /v1/agent/credentials       -> StoreCredentials, where Checkpoints.Lent says so
//
// Times on this wire are the agent's wall clock in UTC; the server turns them
// into market time where they enter as events.

// Wire is the version of the agent's protocol that this release speaks, in the
// header WireHeader of both sides; OldestWire is the oldest that a server still
// takes, to let what runs come to its end: tasks are for agents that speak Wire. An agent
// that names none speaks 1, which had one task for a machine and no key; 2 knew no gangs.
const (
	Wire       = 3
	OldestWire = 1
	WireHeader = "Scrimp-Wire"
)

// SessionInput is what was typed into a session from an offset on.
type SessionInput struct {
	Input    []byte    `json:"input,omitempty"`
	End      bool      `json:"end,omitempty"` // nothing follows
	Terminal *Terminal `json:"terminal,omitempty"`
}

// Shell is what a job gets of its submitter's shell without asking, where the machine shares the
// submitter's files: which programs, and which Python, the submitter would run.
var Shell = []string{"PATH", "VIRTUAL_ENV", "CONDA_PREFIX"}

// Assignment is what an agent has to do: one attempt at one task.
type Assignment struct {
	Job          string `json:"job"`
	Name         string `json:"name"`
	Attempt      string `json:"attempt"`
	Epoch        int    `json:"epoch"` // counts the attempts of the job from 1; fences older ones
	AttemptToken string `json:"attempt_token"`
	Part         *Part  `json:"part,omitempty"` // that the task has of the machine; nil: all

	Node      int      `json:"node"`                // rank of this machine in the gang that runs the attempt, from 0
	Nodes     int      `json:"nodes"`               // how many machines the gang has; 0 is 1
	Addresses []string `json:"addresses,omitempty"` // of the machines by rank, as they registered; for a gang only
	// MasterPort is where the gang's programs meet, at Addresses[0]; see the function of that
	// name. 0, which is for one machine only: the agent takes one that is free.
	MasterPort int `json:"master_port,omitempty"`

	Setup   string   `json:"setup,omitempty"`
	Command string   `json:"command"` // for sh -c, unless Args is given
	Args    []string `json:"args,omitempty"`
	Workdir string   `json:"workdir"` // copied from here (scrimp:work or a store) to the machine's own
	// WorkLent says that the work folder may be in the bucket for which the server lends credentials: GET
	// /v1/agent/work/blob says where.
	WorkLent bool              `json:"work_lent,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	Secrets  map[string]string `json:"secrets,omitempty"` // into the environment; masked in the log; never written
	// Shell is what the job gets of its submitter's shell, on a machine that shares the submitter's files.
	Shell    map[string]string `json:"shell,omitempty"`
	Withheld []string          `json:"withheld,omitempty"` // what it names of that shell and does not get here

	Checkpoint Checkpoints `json:"checkpoint"`
	Outputs    []string    `json:"outputs,omitempty"`     // folders below the work folder, or OutputsWritten
	OutputsURL string      `json:"outputs_url,omitempty"` // store, as of Checkpoints.URL
	// of the job within that store
	OutputsPrefix string        `json:"outputs_prefix,omitempty"`
	Signal        string        `json:"signal"`           // sent to ask for a save and an end: TERM
	SignalLead    time.Duration `json:"signal_lead_ns"`   // how long before the end it is sent; 0: at once
	Grace         time.Duration `json:"grace_ns"`         // wall time between the signal and SIGKILL
	Progress      Progressing   `json:"progress"`         // how progress is read besides the helper
	Total         int64         `json:"total,omitempty"`  // steps of the whole job, 0 unknown
	Epochs        float64       `json:"epochs,omitempty"` // of the whole job, 0 unknown
	Anew          bool          `json:"anew,omitempty"`   // it counts anew each epoch, as an attempt before has shown
	// Metric is what the job is judged by: each of its values is told (Step.Values). "" is none.
	Metric string `json:"metric,omitempty"`
	// GPUs says that the job asks for GPUs, so that they say whether its machine is idle.
	GPUs      bool          `json:"gpus,omitempty"`
	Retryable []int         `json:"retryable,omitempty"`
	Report    time.Duration `json:"report_ns"`    // how often to report, wall
	Silence   time.Duration `json:"silence_ns"`   // without an answer for this long (wall): save, stop, switch off
	Speed     float64       `json:"market_speed"` // market seconds a wall second
	Deadline  time.Time     `json:"deadline"`     // wall time; zero is none
}

// Part is what a task has of a machine that serves several at once.
type Part struct {
	CPUs    int   `json:"cpus"`
	Memory  int64 `json:"memory_bytes"`
	Devices []int `json:"devices"` // accelerators, by index from 0
}

// Checkpoints says where a program saves and where the agent keeps it.
type Checkpoints struct {
	// folder the program writes, absolute or below the work folder; "" for none
	Dir      string        `json:"dir"`
	URL      string        `json:"url"`         // store: scrimp:, s3://bucket?…, file:///…
	Prefix   string        `json:"prefix"`      // of the job within the store
	Interval time.Duration `json:"interval_ns"` // how often the program should save, wall; 0: as it likes
	KeepLast int           `json:"keep_last"`
	KeepBest bool          `json:"keep_best,omitempty"`
	KeepNth  int           `json:"keep_nth,omitempty"`
	Metric   string        `json:"metric,omitempty"` // that KeepBest looks at
	Goal     string        `json:"goal,omitempty"`   // minimize or maximize
	Seeded   bool          `json:"seeded,omitempty"` // it begins from a checkpoint that was copied from another job
	// Lent says that the server lends the credentials for the store: GET /v1/agent/credentials.
	Lent bool `json:"lent,omitempty"`
	// AllRanks says that each rank's folder is a part of the checkpoint, and that each gets its own
	// back; without it rank 0 saves and every rank gets what it saved.
	AllRanks bool `json:"all_ranks,omitempty"`
}

// Progressing says how an unmodified program shows its progress.
type Progressing struct {
	Pattern string `json:"pattern,omitempty"` // regexp with named groups step, total, epoch; any other group is a metric
	Saved   string `json:"saved,omitempty"`   // regexp of the line that says a save is complete; group step is optional
	File    string `json:"file,omitempty"`    // of JSON lines {"step":…, "loss":…}
}

// Report is what the agent has to say since its last report. Messages carry a
// sequence number that counts from 1 within the attempt, on each machine of a gang for itself; the server applies
// each once and answers with the highest that it has made durable, and with the
// highest that it has heard: those between are kept, and sent again only to a server
// that has heard less, as one that was started again has.
type Report struct {
	Attempt  string    `json:"attempt"`
	Node     int       `json:"node,omitempty"` // Assignment.Node
	Now      time.Time `json:"now"`
	Messages []Message `json:"messages,omitempty"` // without a hole
	First    int64     `json:"first,omitempty"`    // the first that the agent keeps; 0: it keeps none that was heard
	LogEnd   int64     `json:"log_end"`
	Trouble  string    `json:"trouble,omitempty"` // what goes wrong on the machine now, in a sentence; empty: nothing does
	// Telemetry is what was measured since the time that the server says in its orders; nil: nothing new.
	Telemetry *Measurements `json:"telemetry,omitempty"`
}

// Message is one thing that happened on the machine. Exactly one of the pointers is set.
type Message struct {
	Seq     int64     `json:"seq"`
	At      time.Time `json:"at"`
	Started *Started  `json:"started,omitempty"`
	Step    *Step     `json:"step,omitempty"`
	Saved   *Saved    `json:"saved,omitempty"`
	Refused *Refused  `json:"refused,omitempty"`
	Unsaved *Unsaved  `json:"unsaved,omitempty"`
	Noticed *Noticed  `json:"noticed,omitempty"`
	Usage   *Usage    `json:"usage,omitempty"`
	Ended   *Ended    `json:"ended,omitempty"`
}

// Started says that the program runs, and what it began from.
type Started struct {
	Restored string        `json:"restored,omitempty"` // manifest; "" for none
	Step     int64         `json:"step"`               // that the manifest holds
	Took     time.Duration `json:"took_ns"`            // restore, wall
}

// Step is progress. The agent keeps the newest of each report, but of the metric that the
// job is judged by it keeps each value.
type Step struct {
	Step    int64              `json:"step"`
	Total   int64              `json:"total,omitempty"`
	Epoch   float64            `json:"epoch,omitempty"`
	Anew    bool               `json:"anew,omitempty"`    // its counter begins anew each epoch; Total is the job's or 0
	Metrics map[string]float64 `json:"metrics,omitempty"` // NaN and infinities travel in Broken
	Broken  []string           `json:"broken,omitempty"`  // metrics that are not a finite number
	Values  []Value            `json:"values,omitempty"`  // of Assignment.Metric since the last report, in order
}

// Value is one value of the metric that the job is judged by.
type Value struct {
	At     time.Time `json:"at"`
	Step   int64     `json:"step"`
	Epoch  float64   `json:"epoch,omitempty"`
	Value  float64   `json:"value"`
	Broken bool      `json:"broken,omitempty"` // it was no finite number
}

// Saved says that a checkpoint is published and verified.
type Saved struct {
	Manifest string        `json:"manifest"`
	Step     int64         `json:"step"`
	Bytes    int64         `json:"bytes"`           // size of the checkpoint
	Uploaded int64         `json:"uploaded"`        // what was new in the store
	Captured time.Time     `json:"captured"`        // wall time up to which work is in it
	Took     time.Duration `json:"took_ns"`         // from the program's save to the published manifest, wall
	Lacks    string        `json:"lacks,omitempty"` // what the folder held and cannot be copied, and why; "": nothing
}

// Unsaved says that the checkpoint folder could not be copied or kept. The agent says it once, until it can be.
type Unsaved struct {
	Why string `json:"why"`
}

// Refused says that a checkpoint did not verify and was passed over.
type Refused struct {
	Manifest string `json:"manifest"`
	Why      string `json:"why"`
}

// Noticed says that the provider will take the machine.
type Noticed struct {
	Source string    `json:"source"` // aws, gcp, azure, signal
	Until  time.Time `json:"until"`  // wall
}

// Usage is a measurement of the machine over the time since the last one.
type Usage struct {
	CPU       float64 `json:"cpu"`        // cores in use
	Memory    int64   `json:"memory"`     // bytes resident
	DiskRead  int64   `json:"disk_read"`  // bytes
	DiskWrite int64   `json:"disk_write"` // bytes
	Processes int     `json:"processes"`
	// GPU is the highest share of time in which one of the task's GPUs was in use, where its job asks for some;
	// nil: it does not, or nobody knows.
	GPU *float64 `json:"gpu,omitempty"`
}

// Measurements are what a machine was measured to do since the server last took some.
type Measurements struct {
	Head    *MeasuredMachine `json:"head,omitempty"` // what does not change; nil: as it was
	Buckets []Measurement    `json:"buckets"`        // in order of time
}

// MeasuredMachine is what does not change of a machine while it is measured.
type MeasuredMachine struct {
	Cores  int           `json:"cores"`
	Memory int64         `json:"memory_bytes"`
	GPUs   []MeasuredGPU `json:"gpus,omitempty"` // that the task has, in the order of their values
	Driver string        `json:"driver,omitempty"`
}

// MeasuredGPU is a GPU.
type MeasuredGPU struct {
	Index  int     `json:"index"` // on its machine
	Name   string  `json:"name"`
	Memory int64   `json:"memory_bytes,omitempty"`      // 0: unknown
	Power  float64 `json:"power_limit_watts,omitempty"` // 0: unknown
}

// Measurement is what was measured in ten seconds.
type Measurement struct {
	Start   int64                 `json:"start"`   // seconds of Unix' time, wall; a multiple of ten
	Covered float64               `json:"covered"` // seconds in which something was measured
	Values  map[string][]*float64 `json:"values"`  // by metric, of each core or GPU where it is of those; null: unknown
}

// EndReason is why the program is no longer running.
type EndReason string

// How an attempt ends, as the agent sees it.
const (
	EndCompleted EndReason = "completed" // exit 0 that nobody asked for
	EndFailed    EndReason = "failed"    // any other exit that nobody asked for
	EndDrained   EndReason = "drained"   // after our signal, whatever the exit
	EndSetup     EndReason = "setup"     // set-up or restore failed, the program never ran
)

// Ended says that the program is no longer running and that all it left is kept.
type Ended struct {
	Reason  EndReason `json:"reason"`
	Exit    int       `json:"exit"`              // status; 128+n for signal n
	Step    int64     `json:"step"`              // last that was seen
	Saved   bool      `json:"saved"`             // whether the newest checkpoint was taken after the program's end
	Outputs string    `json:"outputs,omitempty"` // where they are kept
	Error   string    `json:"error,omitempty"`
	// SetupStatus is that of the set-up command, where it is what failed; 0: another thing did, or nothing.
	SetupStatus int `json:"setup_status,omitempty"`
	// Keeping is for how long, wall, the program had been over when this was said: what it left was being kept.
	Keeping time.Duration `json:"keeping_ns,omitempty"`
}

// Orders is the server's answer to a report.
type Orders struct {
	Ack    int64  `json:"ack"`             // highest message that is durable, or that a newer one makes up for
	Heard  int64  `json:"heard,omitempty"` // highest that the server has; what is above Ack is to be kept
	LogEnd int64  `json:"log_end"`         // bytes of the log that the server has
	Drain  *Drain `json:"drain,omitempty"` // save, end, report, switch off
	Save   bool   `json:"save,omitempty"`  // ask the program for a checkpoint now
	// Fenced says that another attempt has the task: stop at once, publish nothing, take no other
	// task. With Drain beside it, for what is left of a gang: end the program within that grace,
	// publish nothing, and take what comes next.
	Fenced bool `json:"fenced,omitempty"`
	Off    bool `json:"off,omitempty"` // all is said: switch off

	Interval       time.Duration `json:"interval_ns"`           // checkpoint interval, wall; it changes as it is measured
	Spent          string        `json:"spent"`                 // decimal
	BudgetLeft     string        `json:"budget_left,omitempty"` // decimal; "" where there is no budget
	Currency       string        `json:"currency"`
	TimeToDeadline time.Duration `json:"time_to_deadline_ns"` // wall; 0 where there is none
	// how often to report and to send output from now on, wall: longer where many agents do; 0: as assigned
	Report time.Duration `json:"report_ns,omitempty"`
	Exec   []Exec        `json:"exec,omitempty"`
	// Telemetry is up to when what was measured is kept, or not wanted, in seconds of Unix' time; 0: nothing is.
	Telemetry int64 `json:"telemetry,omitempty"`
}

// Drain asks for a save and an end.
type Drain struct {
	Why   string        `json:"why"`
	Grace time.Duration `json:"grace_ns"` // wall
}

// LogEnd is how many bytes of an attempt's log the server has, of one machine's where a gang runs it.
type LogEnd struct {
	Offset int64 `json:"offset"`
}

// Problem is an error as RFC 9457 describes it, with what fixes it beside it.
type Problem = client.Problem
