package client

import (
	"time"

	"scrimp/money"
)

// Pipeline is stages that begin after each other, of POST /v1/groups. The job file beside it says the name, the owner
// and the budget of the whole; each stage has a job file of its own.
type Pipeline struct {
	Stages []PipelineStage `json:"stages"`
	AtOnce int             `json:"at_once"` // stages that run at once, at most
	// Schedule runs the stages by the clock. The budget of the job file is then that of one run.
	Schedule *Schedule `json:"schedule,omitempty"`
}

// Schedule says when a pipeline runs. Times are those of the market.
type Schedule struct {
	Cron   string       `json:"cron"`           // minute, hour, day of month, month, day of week
	Zone   string       `json:"zone,omitempty"` // a name of the IANA database; "": UTC
	Budget money.Amount `json:"budget"`         // of all runs together
	Runs   int          `json:"runs,omitempty"` // at most so many; 0: without end
	Until  *time.Time   `json:"until,omitempty"`
	// NoCatchUp skips what was due while the server was down. Else one run makes up for all of it.
	NoCatchUp bool `json:"no_catch_up,omitempty"`
}

// ScheduleState is how a schedule stands.
type ScheduleState struct {
	Cron      string        `json:"cron"`
	Zone      string        `json:"zone"`
	Each      money.Amount  `json:"each"`           // the budget of one run
	Limit     int           `json:"runs,omitempty"` // at most so many; 0: without end
	Until     *time.Time    `json:"until,omitempty"`
	NoCatchUp bool          `json:"no_catch_up,omitempty"`
	Due       *time.Time    `json:"due"` // of the next run; null: none is to come, or nobody has found out yet
	DueMarket *time.Time    `json:"due_market"`
	Begun     int           `json:"begun"`
	Skipped   int           `json:"skipped"`
	Saved     money.Amount  `json:"saved"`     // by stages of the runs below that were not run again
	Runs      []ScheduleRun `json:"last_runs"` // at most a hundred, the newest last
}

// ScheduleRun is a run of a schedule that has begun or was skipped.
type ScheduleRun struct {
	Due       time.Time    `json:"due"`
	DueMarket time.Time    `json:"due_market"`
	Group     string       `json:"group,omitempty"`  // that it is; "": it was skipped
	State     string       `json:"state"`            // skipped, open, ending, over
	Succeeded bool         `json:"succeeded"`        // it is over, and no stage has failed
	Why       string       `json:"why,omitempty"`    // a sentence
	Missed    int          `json:"missed,omitempty"` // earlier due times that passed while the server was down
	Stages    int          `json:"stages"`
	Ran       int          `json:"ran"`    // stages whose job has begun
	Reused    int          `json:"reused"` // stages that were not run again
	Cost      money.Amount `json:"cost"`
}

// PipelineStage is a job of a pipeline. Paths are below the work folder.
type PipelineStage struct {
	Name    string            `json:"name"`
	Job     Raw               `json:"job"`             // its job file
	After   []string          `json:"after,omitempty"` // stages that come before it, besides those whose outputs it reads
	Deps    []string          `json:"deps,omitempty"`  // what it reads; none: the whole work folder
	Outs    []string          `json:"outs,omitempty"`  // what it makes
	Metrics []string          `json:"metrics,omitempty"`
	Params  map[string]string `json:"params,omitempty"` // values that it reads besides, each as JSON writes it
	Always  bool              `json:"always,omitempty"` // it runs each time
	Gate    *PipelineGate     `json:"gate,omitempty"`
	// Gates are the gates of a stage that has several; all of them must pass. Gate is then left out.
	Gates []PipelineGate `json:"gates,omitempty"`
	// Examples is the file of Outs with the value that each example has for the metrics: CSV or JSON lines.
	Examples string `json:"examples,omitempty"`
	// Deploy says that the stage puts a version of the model in place. Without it the stage named deploy does.
	Deploy bool `json:"deploy,omitempty"`
}

// PipelineGate lets a stage begin only if a metric of an earlier stage is good enough.
type PipelineGate struct {
	Metric string `json:"metric"`        // STAGE.NAME
	Min    string `json:"min,omitempty"` // a decimal; a value at the bound passes
	Max    string `json:"max,omitempty"`
	// MinGain is how much better than Against the metric must be, at least: a decimal in units of the metric, or a
	// percentage. A gain of exactly MinGain passes.
	MinGain string `json:"min_gain,omitempty"`
	Against string `json:"against,omitempty"` // deployed, or a decimal; "" with MinGain: deployed
	Goal    string `json:"goal,omitempty"`    // maximize or minimize; "": maximize
	// Relative makes MinGain a percentage of the value compared with. Otherwise 1% is 0.01.
	Relative bool `json:"relative,omitempty"`
	// Confidence is such as 95%: the lower bound of the gain's interval counts. "": the gain itself does.
	Confidence string `json:"confidence,omitempty"`
}

// GateVerdict is what a gate compared with what, and what came of it. Numbers are written decimals.
type GateVerdict struct {
	Stage    string        `json:"stage"`  // that reported the metric
	Metric   string        `json:"metric"` // its name there
	Pass     bool          `json:"pass"`
	Why      string        `json:"why"`   // a sentence
	Value    string        `json:"value"` // of the metric in this run
	Min      string        `json:"min,omitempty"`
	Max      string        `json:"max,omitempty"`
	Against  string        `json:"against,omitempty"` // deployed or a decimal; "": nothing but Min and Max
	Version  int           `json:"version,omitempty"` // that was deployed; 0: none was, or Against is a number
	Run      string        `json:"run,omitempty"`     // that deployed it
	Base     string        `json:"base,omitempty"`    // the value compared with
	Gain     string        `json:"gain,omitempty"`    // how much better Value is than Base
	Limit    string        `json:"limit,omitempty"`   // the least gain that passes, in units of the metric
	Goal     string        `json:"goal,omitempty"`
	Interval *GateInterval `json:"interval,omitempty"` // of the gain; null: the gate has no confidence or compared nothing
}

// GateInterval is where a gain lies, from resampled examples.
type GateInterval struct {
	Confidence string `json:"confidence"` // such as 95%
	Low        string `json:"low"`
	High       string `json:"high"`
	Examples   int    `json:"examples"`      // of this run
	Others     int    `json:"others"`        // of the version compared with; 0: Against is a number
	Paired     bool   `json:"paired"`        // both name the same examples
	Resamples  int    `json:"resamples"`     // that were drawn
	Seed       uint64 `json:"resample_seed"` // that they were drawn with
}

// PipelineState is how a pipeline stands.
type PipelineState struct {
	Stages []StageState `json:"stages"` // each after those that it needs
	// Saved is what the stages that were not run again have cost when they ran.
	Saved money.Amount `json:"saved"`
}

// StageState is how a stage stands.
type StageState struct {
	Name string `json:"name"`
	// State is waiting, running, keeping, done, reused, skipped or failed. What is reused was made by From.
	State   string            `json:"state"`
	Why     string            `json:"why,omitempty"` // a sentence
	Job     string            `json:"job,omitempty"` // that has run it, or that has made what is reused
	Needs   []string          `json:"needs,omitempty"`
	Key     string            `json:"key,omitempty"` // names all that its outputs are made of
	Inputs  []StageContent    `json:"inputs,omitempty"`
	Params  map[string]string `json:"params,omitempty"`  // each as JSON writes it
	Program string            `json:"program,omitempty"` // the digest of its command, environment, image and set-up
	Outs    []StageContent    `json:"outs,omitempty"`
	Bytes   int64             `json:"bytes,omitempty"`   // of its outputs
	Metrics map[string]string `json:"metrics,omitempty"` // decimals
	Cost    money.Amount      `json:"cost"`              // of its job; of what is reused: nothing
	Saved   *money.Amount     `json:"saved,omitempty"`   // of what is reused: what it has cost when it ran
	// Gates are what the gates of the stage compared, once they have.
	Gates []GateVerdict `json:"gates,omitempty"`
	// Spared is what a stage that a gate skipped would have cost, by its last run; nil: it has not run before, or no gate
	// skipped it. Spared does not count as Saved: it is an estimate.
	Spared   *money.Amount `json:"spared,omitempty"`
	Started  *time.Time    `json:"started"`
	Finished *time.Time    `json:"finished"`
}

// StageContent is what lies at a path: its digest, or "" where nothing is there.
type StageContent struct {
	Path   string `json:"path"`
	Digest string `json:"digest"`
}
