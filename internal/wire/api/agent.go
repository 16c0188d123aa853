// Package api holds the wire types that agents, command lines and pages exchange with the server. It declares those
// of agents; package client declares those of users. It contains no internal types of the program: package
// view/convert converts between the two. Fields are only ever added.
package api

import (
	"time"

	"scrimp/client"
	"scrimp/internal/lib/money"
)

// The agent's side. An agent calls the server and never the reverse:
//
//	POST /v1/agent/register Registration -> Registered  with the machine's bootstrap token, once
//	POST /v1/agent/pull     Pull         -> Pulled      signed with the machine's key; waits for tasks
//	POST /v1/agent/report   Report       -> Orders      with the attempt's token, about once a second
//	POST /v1/agent/logs?attempt=A[&node=R]&offset=N  body: bytes of the log -> LogEnd
//	GET  /v1/agent/logs?attempt=A[&node=R]           -> LogEnd: how much of that machine's log the server has
//	POST /v1/agent/exec/{id} ExecResult -> 204
//	GET  /v1/agent/credentials       -> StoreCredentials, if Checkpoints.Lent is set
//
// Times in these types are the agent's wall clock in UTC; the server converts them to market time when they become
// events.

// Wire is the version of the agent protocol in this release, in the header WireHeader of both sides. OldestWire is
// the oldest version that a server still accepts, so that running programs can finish; it gives tasks only to agents
// that speak Wire. An agent without the header speaks version 1, which had one task per machine and no key; version
// 2 had no gangs, and version 3 no sessions.
const (
	Wire       = 4
	OldestWire = 1
	WireHeader = "Scrimp-Wire"
)

// SessionInput is the input of a session from an offset on.
type SessionInput struct {
	Input    []byte    `json:"input,omitempty"`
	End      bool      `json:"end,omitempty"` // end of the input
	Terminal *Terminal `json:"terminal,omitempty"`
}

// Shell lists the variables of the submitter's shell that a job always gets on machines that share the submitter's
// files: they decide which programs, and which Python, it runs.
var Shell = []string{"PATH", "VIRTUAL_ENV", "CONDA_PREFIX"}

// Assignment is the task of an agent: one attempt.
type Assignment struct {
	Job          string `json:"job"`
	Name         string `json:"name"`
	Attempt      string `json:"attempt"`
	Epoch        int    `json:"epoch"` // number of the attempt within its job, from 1; fences older ones
	AttemptToken string `json:"attempt_token"`
	Part         *Part  `json:"part,omitempty"` // the task's part of the machine; nil: the whole machine

	Node      int      `json:"node"`                // rank of this machine in the gang of the attempt, from 0
	Nodes     int      `json:"nodes"`               // number of machines of the gang; 0: one
	Addresses []string `json:"addresses,omitempty"` // the gang's machines by rank, as they registered
	// MasterPort is the port of the gang's rendezvous, at Addresses[0]; see the function MasterPort. 0, for a single
	// machine only: the agent takes a free port.
	MasterPort int `json:"master_port,omitempty"`

	Setup   string   `json:"setup,omitempty"`
	Command string   `json:"command"` // run with sh -c, unless Args is given
	Args    []string `json:"args,omitempty"`
	Workdir string   `json:"workdir"` // source of the work folder (scrimp:work or a store), which the agent copies
	// WorkLent means that the work folder may be in the bucket for which the server lends credentials; GET
	// /v1/agent/work/blob tells where.
	WorkLent bool              `json:"work_lent,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	Secrets  map[string]string `json:"secrets,omitempty"` // for the environment; masked in the log; never written
	// Session is shell or notebook if the agent starts the program of a session instead of Command or Args. Idle is
	// the wall time without use after which the server saves and stops it; 0: no limit.
	Session string        `json:"session,omitempty"`
	Idle    time.Duration `json:"idle_ns,omitempty"`
	// Shell holds variables of the submitter's shell, on a machine that shares the submitter's files.
	Shell    map[string]string `json:"shell,omitempty"`
	Withheld []string          `json:"withheld,omitempty"` // requested shell variables that it does not get here

	Data       []Input     `json:"data,omitempty"` // inputs that the agent brings before the program starts
	Checkpoint Checkpoints `json:"checkpoint"`
	Outputs    []string    `json:"outputs,omitempty"`     // folders below the work folder, or OutputsWritten
	OutputsURL string      `json:"outputs_url,omitempty"` // store, in the form of Checkpoints.URL
	// of the job within that store
	OutputsPrefix string        `json:"outputs_prefix,omitempty"`
	Signal        string        `json:"signal"`           // signal for a drain: TERM
	SignalLead    time.Duration `json:"signal_lead_ns"`   // how long before the end to send it; 0: at once
	Grace         time.Duration `json:"grace_ns"`         // wall time between the signal and SIGKILL
	Progress      Progressing   `json:"progress"`         // how to read progress, besides the helper library
	Total         int64         `json:"total,omitempty"`  // steps of the whole job, 0 unknown
	Epochs        float64       `json:"epochs,omitempty"` // of the whole job, 0 unknown
	Anew          bool          `json:"anew,omitempty"`   // its counter restarts each epoch, as an earlier attempt showed
	// Metric judges the job: the agent reports each of its values (Step.Values); "": none.
	Metric string `json:"metric,omitempty"`
	// GPUs means that the job requested GPUs, so that their use decides whether its machine is idle.
	GPUs      bool          `json:"gpus,omitempty"`
	Retryable []int         `json:"retryable,omitempty"`
	Report    time.Duration `json:"report_ns"`    // interval between reports, wall time
	Silence   time.Duration `json:"silence_ns"`   // without a response for this wall time: save, stop, switch off
	Speed     float64       `json:"market_speed"` // market seconds per wall second
	Deadline  time.Time     `json:"deadline"`     // wall time; zero: none
}

// Input is an input that the agent brings to the machine.
type Input struct {
	Name     string      `json:"name"`
	Variable string      `json:"variable"`           // environment variable with its folder
	Path     string      `json:"path"`               // file:///folder, s3://bucket/prefix, gs://…, azblob://…
	Region   string      `json:"region,omitempty"`   // of the bucket; "": unknown
	Stream   bool        `json:"stream,omitempty"`   // the variable has the URL of a view, and not a folder
	Gigabyte *money.Rate `json:"gigabyte,omitempty"` // price of reading 1e9 bytes on this machine; nil: unknown
}

// Brought describes how the agent brought an input to the machine.
type Brought struct {
	Name     string        `json:"name"`
	Files    int64         `json:"files"`
	Bytes    int64         `json:"bytes"`
	Hits     int64         `json:"hits"`      // files that the machine's cache had
	HitBytes int64         `json:"hit_bytes"` // bytes of these
	Fetched  int64         `json:"fetched_bytes"`
	Requests int64         `json:"requests"`         // to the store
	Took     time.Duration `json:"took_ns"`          // wall time
	Digest   string        `json:"digest,omitempty"` // of the content; "": unknown
}

// Part is the part of a machine that a task has, if the machine serves several at once.
type Part struct {
	CPUs    int   `json:"cpus"`
	Memory  int64 `json:"memory_bytes"`
	Devices []int `json:"devices"` // accelerators, by index from 0
}

// Checkpoints says where a program saves and where the agent stores its checkpoints.
type Checkpoints struct {
	// folder that the program writes, absolute or below the work folder; "": none
	Dir      string        `json:"dir"`
	URL      string        `json:"url"`         // store: scrimp:, s3://bucket?…, file:///…
	Prefix   string        `json:"prefix"`      // of the job's keys within the store
	Interval time.Duration `json:"interval_ns"` // how often the program should save, wall time; 0: as it likes
	KeepLast int           `json:"keep_last"`
	KeepBest bool          `json:"keep_best,omitempty"`
	KeepNth  int           `json:"keep_nth,omitempty"`
	Metric   string        `json:"metric,omitempty"` // metric for KeepBest
	Goal     string        `json:"goal,omitempty"`   // minimize or maximize
	Seeded   bool          `json:"seeded,omitempty"` // the job starts from a checkpoint of another job
	// Lent means that the server lends credentials for the store: GET /v1/agent/credentials.
	Lent bool `json:"lent,omitempty"`
	// AllRanks means that each rank's folder is a part of the checkpoint and is restored to that rank. Without it,
	// rank 0 saves and every rank restores that.
	AllRanks bool `json:"all_ranks,omitempty"`
}

// Progressing says how an unmodified program reports its progress.
type Progressing struct {
	Pattern string `json:"pattern,omitempty"` // regexp with named groups step, total, epoch; any other group is a metric
	Saved   string `json:"saved,omitempty"`   // regexp for the line after a complete save; group step is optional
	File    string `json:"file,omitempty"`    // file of JSON lines {"step":…, "loss":…}
}

// Report carries what happened since the agent's last report. Messages have a sequence number that counts from 1
// within the attempt, separately on each machine of a gang. The server applies each once, and answers with the
// highest number that is durable and the highest that it has heard. The agent keeps those in between, and repeats
// them only to a server that has heard less, for example after a restart.
type Report struct {
	Attempt  string    `json:"attempt"`
	Node     int       `json:"node,omitempty"` // Assignment.Node
	Now      time.Time `json:"now"`
	Messages []Message `json:"messages,omitempty"` // without gaps
	First    int64     `json:"first,omitempty"`    // the oldest that the agent keeps; 0: it keeps none that was heard
	LogEnd   int64     `json:"log_end"`
	Trouble  string    `json:"trouble,omitempty"` // present problem on the machine, a sentence; empty: none
	// Telemetry holds the telemetry since the time in the server's orders; nil: none.
	Telemetry *Measurements `json:"telemetry,omitempty"`
}

// Message is an event on the machine. Exactly one of the pointers is set.
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

// Started reports that the program runs, and from which checkpoint.
type Started struct {
	Restored string        `json:"restored,omitempty"` // manifest; "": none
	Step     int64         `json:"step"`               // step of that manifest
	Took     time.Duration `json:"took_ns"`            // duration of the restore, wall time
	Data     []Brought     `json:"data,omitempty"`     // inputs that the agent brought
}

// Step is progress. A report has only the newest step, but each value of the metric that judges the job.
type Step struct {
	Step    int64              `json:"step"`
	Total   int64              `json:"total,omitempty"`
	Epoch   float64            `json:"epoch,omitempty"`
	Anew    bool               `json:"anew,omitempty"`    // its counter restarts each epoch; Total is the job's or 0
	Metrics map[string]float64 `json:"metrics,omitempty"` // NaN and infinities are in Broken
	Broken  []string           `json:"broken,omitempty"`  // metrics that are not a finite number
	Values  []Value            `json:"values,omitempty"`  // values of Assignment.Metric since the last report, in order
}

// Value is a value of the metric that judges the job.
type Value struct {
	At     time.Time `json:"at"`
	Step   int64     `json:"step"`
	Epoch  float64   `json:"epoch,omitempty"`
	Value  float64   `json:"value"`
	Broken bool      `json:"broken,omitempty"` // not a finite number
}

// Saved reports that a checkpoint is published and verified.
type Saved struct {
	Manifest string        `json:"manifest"`
	Step     int64         `json:"step"`
	Bytes    int64         `json:"bytes"`           // size of the checkpoint
	Uploaded int64         `json:"uploaded"`        // bytes that were new to the store
	Captured time.Time     `json:"captured"`        // wall time of the state in the checkpoint
	Took     time.Duration `json:"took_ns"`         // from the program's save to the published manifest, wall time
	Lacks    string        `json:"lacks,omitempty"` // contents of the folder that could not be copied, and why; "": none
}

// Unsaved reports that the checkpoint folder could not be copied or stored. The agent reports it once, until that
// works again.
type Unsaved struct {
	Why string `json:"why"`
}

// Refused reports that a checkpoint failed verification and was skipped.
type Refused struct {
	Manifest string `json:"manifest"`
	Why      string `json:"why"`
}

// Noticed reports that the provider will reclaim the machine.
type Noticed struct {
	Source string    `json:"source"` // aws, gcp, azure, signal
	Until  time.Time `json:"until"`  // wall time
}

// Usage is the resource usage of the machine since the last measurement.
type Usage struct {
	CPU       float64 `json:"cpu"`        // cores in use, on average
	Memory    int64   `json:"memory"`     // bytes resident
	DiskRead  int64   `json:"disk_read"`  // bytes
	DiskWrite int64   `json:"disk_write"` // bytes
	Processes int     `json:"processes"`
	// GPU is the highest use among the task's GPUs, as a share of time, if its job requested GPUs; nil: it did not,
	// or unknown.
	GPU *float64 `json:"gpu,omitempty"`
	// InUse reports whether anybody or anything uses a session; nil: the job is none.
	InUse *bool `json:"in_use,omitempty"`
}

// Measurements is the telemetry of a machine since the server's last acknowledgement.
type Measurements struct {
	Head    *MeasuredMachine `json:"head,omitempty"` // constant properties; nil: unchanged
	Buckets []Measurement    `json:"buckets"`        // in order of time
}

// MeasuredMachine holds the properties of a machine that stay constant.
type MeasuredMachine struct {
	Cores  int           `json:"cores"`
	Memory int64         `json:"memory_bytes"`
	GPUs   []MeasuredGPU `json:"gpus,omitempty"` // GPUs of the task, in the order of their values
	Driver string        `json:"driver,omitempty"`
}

// MeasuredGPU is a GPU of a task.
type MeasuredGPU struct {
	Index  int     `json:"index"` // on its machine
	Name   string  `json:"name"`
	Memory int64   `json:"memory_bytes,omitempty"`      // 0: unknown
	Power  float64 `json:"power_limit_watts,omitempty"` // 0: unknown
}

// Measurement is the telemetry of ten seconds.
type Measurement struct {
	Start   int64                 `json:"start"`   // Unix seconds, wall time; a multiple of ten
	Covered float64               `json:"covered"` // seconds with telemetry
	Values  map[string][]*float64 `json:"values"`  // by metric, one value per core or GPU if it is theirs; null: unknown
}

// EndReason is why the program no longer runs.
type EndReason string

// The ends of an attempt, as the agent sees them.
const (
	EndCompleted EndReason = "completed" // exit status 0 without a drain
	EndFailed    EndReason = "failed"    // any other exit without a drain
	EndDrained   EndReason = "drained"   // after the signal for a drain, whatever the exit
	EndSetup     EndReason = "setup"     // setup or restore failed; the program never ran
)

// Ended reports that the program no longer runs and that all its results are stored.
type Ended struct {
	Reason  EndReason `json:"reason"`
	Exit    int       `json:"exit"`              // exit status; 128+n for signal n
	Step    int64     `json:"step"`              // last step seen
	Saved   bool      `json:"saved"`             // the newest checkpoint was taken after the program's end
	Outputs string    `json:"outputs,omitempty"` // where the outputs are
	// OutputsDigest identifies the content of the outputs: format.Manifest.Digest.
	OutputsDigest string `json:"outputs_digest,omitempty"`
	Error         string `json:"error,omitempty"`
	// SetupStatus is the exit status of the setup command if that failed, else 0.
	SetupStatus int `json:"setup_status,omitempty"`
	// Keeping is the wall time since the program's end, during which its results were stored.
	Keeping time.Duration `json:"keeping_ns,omitempty"`
	// Data lists the inputs that the agent brought, if the program never ran.
	Data []Brought `json:"data,omitempty"`
}

// Orders is the server's response to a report.
type Orders struct {
	Ack    int64  `json:"ack"`             // highest message that is durable or superseded by a newer one
	Heard  int64  `json:"heard,omitempty"` // highest message that the server has; the agent keeps those above Ack
	LogEnd int64  `json:"log_end"`         // bytes of output that the server has
	Drain  *Drain `json:"drain,omitempty"` // save, end, report, switch off
	Save   bool   `json:"save,omitempty"`  // ask the program for a checkpoint now
	// Fenced means that another attempt has the task: stop at once, publish nothing, take no other task. Together
	// with Drain, it is for the rest of a broken gang: end the program within that grace, publish nothing, and take
	// the next task.
	Fenced bool `json:"fenced,omitempty"`
	Off    bool `json:"off,omitempty"` // everything is reported: switch off

	Interval       time.Duration `json:"interval_ns"`           // between checkpoints, wall time; adapts to measurements
	Spent          string        `json:"spent"`                 // decimal
	BudgetLeft     string        `json:"budget_left,omitempty"` // decimal; "": no budget
	Currency       string        `json:"currency"`
	TimeToDeadline time.Duration `json:"time_to_deadline_ns"` // wall time; 0: no deadline
	// interval for reports and output from now on, wall time: longer while many agents report; 0: as assigned
	Report time.Duration `json:"report_ns,omitempty"`
	Exec   []Exec        `json:"exec,omitempty"`
	// Telemetry is the time up to which the server has, or does not want, telemetry, in Unix seconds; 0: none.
	Telemetry int64 `json:"telemetry,omitempty"`
}

// Drain requests that the program saves and ends.
type Drain struct {
	Why   string        `json:"why"`
	Grace time.Duration `json:"grace_ns"` // wall time
}

// LogEnd is the number of bytes of output that the server has of an attempt, or of one machine of a gang.
type LogEnd struct {
	Offset int64 `json:"offset"`
}

// Problem is an RFC 9457 error with its fix.
type Problem = client.Problem
