package client

import (
	"time"

	"scrimp/money"
)

// Pipeline holds stages that run one after the other, for POST /v1/groups. The job file beside it has the name, the
// owner and the budget of the whole; each stage has a job file of its own.
type Pipeline struct {
	Stages []PipelineStage `json:"stages"`
	AtOnce int             `json:"at_once"` // stages that run at once, at most
	// Schedule runs the pipeline at set times. The budget of the job file is then for one run.
	Schedule *Schedule `json:"schedule,omitempty"`
	// Sample runs the stages on a part of the data first, within the same budget.
	Sample *PipelineSample `json:"sample,omitempty"`
}

// PipelineSample is a run of the stages on one or two parts of the data before the run on all of it.
type PipelineSample struct {
	Parts []string `json:"parts"`          // decimals from 0.0001 to 0.5, the smaller first
	Data  []string `json:"data,omitempty"` // paths of which it takes a part; none: inputs that look like data
	// Gates have min and max. The run on all of the data begins only if the metrics of the last part pass.
	Gates []PipelineGate `json:"gates,omitempty"`
}

// Schedule says when a pipeline runs. Times are market time.
type Schedule struct {
	Cron   string       `json:"cron"`           // minute, hour, day of month, month, day of week
	Zone   string       `json:"zone,omitempty"` // IANA time zone; "": UTC
	Budget money.Amount `json:"budget"`         // for all runs together
	Runs   int          `json:"runs,omitempty"` // highest number of runs; 0: no limit
	Until  *time.Time   `json:"until,omitempty"`
	// NoCatchUp skips runs that were due while the server was down. Otherwise one run makes up for all of them.
	NoCatchUp bool `json:"no_catch_up,omitempty"`
	// Notify is a webhook that gets the comparison of each week. It may name secrets, as notify of a job does.
	Notify string `json:"notify,omitempty"`
	ScheduleConditions
}

// ScheduleConditions must all hold before a due run begins. A run that a condition does not let begin is skipped; for a
// price it waits.
type ScheduleConditions struct {
	OnData     *ScheduleData  `json:"on_data,omitempty"`
	NotBefore  *SchedulePrice `json:"not_before,omitempty"`
	WhenItPays *SchedulePays  `json:"when_it_pays,omitempty"`
}

// ScheduleData asks for objects that are newer than what the last run has seen.
type ScheduleData struct {
	Path    string `json:"path"` // a folder of the server, or a bucket with its prefix
	AtLeast int    `json:"at_least"`
}

// SchedulePrice asks for an hour's price of at most Most. A run that has waited for By begins at any price.
type SchedulePrice struct {
	Most money.Rate    `json:"most"`
	By   time.Duration `json:"by_ns"`
}

// SchedulePays asks that the expected gain of a metric is worth at least the expected cost of the run.
type SchedulePays struct {
	Value  money.Amount `json:"value_of_point"`
	Metric string       `json:"metric"`           // STAGE.NAME
	Point  string       `json:"point,omitempty"`  // how much of the metric a point is, a decimal; "": 0.01
	Goal   string       `json:"goal,omitempty"`   // maximize or minimize; "": maximize
	Runs   int          `json:"runs,omitempty"`   // earlier gains that an estimate needs; 0: three
	Latest int          `json:"latest,omitempty"` // days after the last run at which the next begins anyway; 0: never
}

// ScheduleCheck is what a condition compared, and whether it lets the run begin.
type ScheduleCheck struct {
	Condition string              `json:"condition"` // on_data, not_before or when_it_pays
	Pass      bool                `json:"pass"`
	Why       string              `json:"why"` // a sentence with the figures
	Data      *ScheduleDataCheck  `json:"data,omitempty"`
	Price     *SchedulePriceCheck `json:"price,omitempty"`
	Pays      *SchedulePaysCheck  `json:"pays,omitempty"`
}

// ScheduleDataCheck has the figures of on_data.
type ScheduleDataCheck struct {
	New     int        `json:"new_objects"`
	AtLeast int        `json:"at_least"`
	Newest  *time.Time `json:"newest"` // time of the newest object; null: unknown
}

// SchedulePriceCheck has the figures of not_before.
type SchedulePriceCheck struct {
	Price *money.Rate `json:"price"` // null: nothing for sale fits
	Most  money.Rate  `json:"most_price"`
	Offer string      `json:"offer,omitempty"`
	Until time.Time   `json:"until"` // market time at which the run begins at any price
}

// SchedulePaysCheck has the figures of when_it_pays. Gains are in units of the metric, as decimals rounded to six
// places.
type SchedulePaysCheck struct {
	Gains     int           `json:"gains"`               // of earlier runs
	Estimator string        `json:"estimator,omitempty"` // "": too few runs for an estimate
	Gain      string        `json:"expected_gain,omitempty"`
	Low       string        `json:"lowest_gain,omitempty"` // of the earlier runs
	High      string        `json:"highest_gain,omitempty"`
	Worth     *money.Amount `json:"worth"`         // of the expected gain
	Cost      *money.Amount `json:"expected_cost"` // the average of the earlier runs
	LeastCost *money.Amount `json:"lowest_cost"`
	MostCost  *money.Amount `json:"highest_cost"`
}

// ScheduleWeek sums up the runs of a schedule that were due in a week.
type ScheduleWeek struct {
	Begin   time.Time    `json:"begin"` // its Monday, market time
	Runs    int          `json:"runs"`
	Skipped int          `json:"skipped"`
	Cost    money.Amount `json:"cost"`
	// CostOpen says that Cost is not final.
	CostOpen bool `json:"cost_open,omitempty"`
	// OnDemand is what the work would have cost on on-demand machines; null: unknown.
	OnDemand *money.Amount `json:"on_demand"`
	// Gain is how much better the metric of when_it_pays is after the week than before it; "": unknown.
	Gain string `json:"gain,omitempty"`
}

// ScheduleState is the state of a schedule.
type ScheduleState struct {
	Cron      string        `json:"cron"`
	Zone      string        `json:"zone"`
	Each      money.Amount  `json:"each"`           // budget of one run
	Limit     int           `json:"runs,omitempty"` // highest number of runs; 0: no limit
	Until     *time.Time    `json:"until,omitempty"`
	NoCatchUp bool          `json:"no_catch_up,omitempty"`
	Due       *time.Time    `json:"due"` // time of the next run; null: none, or not computed yet
	DueMarket *time.Time    `json:"due_market"`
	Begun     int           `json:"begun"`
	Skipped   int           `json:"skipped"`
	Saved     money.Amount  `json:"saved"`     // saved by reused stages of the runs below
	Runs      []ScheduleRun `json:"last_runs"` // up to a hundred, newest last
	ScheduleConditions
	// WaitsSince is when a run was due that waits for a price, in market time, and Waits what it waits for.
	WaitsSince *time.Time      `json:"waits_since,omitempty"`
	Waits      []ScheduleCheck `json:"waits,omitempty"`
	// Reports are the weekly reports to the webhook, with the outcome of each.
	Reports []Notice       `json:"reports,omitempty"`
	Weeks   []ScheduleWeek `json:"weeks"` // of the last runs, newest last; a schedule without conditions has them too
}

// ScheduleRun is a run of a schedule that started or was skipped.
type ScheduleRun struct {
	Due       time.Time    `json:"due"`
	DueMarket time.Time    `json:"due_market"`
	Group     string       `json:"group,omitempty"`  // group of the run; "": skipped
	State     string       `json:"state"`            // skipped, open, ending or over
	Succeeded bool         `json:"succeeded"`        // it has ended and no stage failed
	Why       string       `json:"why,omitempty"`    // a sentence
	Missed    int          `json:"missed,omitempty"` // earlier due times that passed while the server was down
	Stages    int          `json:"stages"`
	Ran       int          `json:"ran"`    // stages whose job has started
	Reused    int          `json:"reused"` // reused stages
	Cost      money.Amount `json:"cost"`
	// Checks are what the conditions of the schedule compared.
	Checks []ScheduleCheck `json:"checks,omitempty"`
	// Same counts the skipped runs of the same day before this one that the same condition skipped.
	Same int `json:"same,omitempty"`
}

// PipelineStage is a job of a pipeline. Paths are relative to the work folder.
type PipelineStage struct {
	Name    string            `json:"name"`
	Job     Raw               `json:"job"`             // its job file
	After   []string          `json:"after,omitempty"` // stages that must come first, besides those whose outputs it reads
	Deps    []string          `json:"deps,omitempty"`  // inputs; none: the whole work folder
	Outs    []string          `json:"outs,omitempty"`  // outputs
	Metrics []string          `json:"metrics,omitempty"`
	Params  map[string]string `json:"params,omitempty"` // other values that it reads, as JSON text
	Always  bool              `json:"always,omitempty"` // never reuse it
	Gate    *PipelineGate     `json:"gate,omitempty"`
	// Gates are the gates of a stage that has several; all of them must pass. Gate is then left out.
	Gates []PipelineGate `json:"gates,omitempty"`
	// Examples is the file of Outs with the value that each example has for the metrics: CSV or JSON lines.
	Examples string `json:"examples,omitempty"`
	// Deploy says that the stage puts a version of the model in place. Without it the stage named deploy does.
	Deploy bool `json:"deploy,omitempty"`
	// OnDrift lets the stage begin only if a file has drifted from a reference.
	OnDrift *PipelineDrift `json:"on_drift,omitempty"`
	// WarmStart lets the stage begin with an output of the deployed version of the pipeline.
	WarmStart *PipelineWarm `json:"warm_start,omitempty"`
}

// PipelineWarm names what a stage begins with: an output of the deployed version, which the server puts at To. While no
// version is deployed, the stage begins with what the work folder has there.
type PipelineWarm struct {
	From string `json:"from"` // an output of a stage before the one that deploys
	To   string `json:"to"`   // a path that the stage reads and that no stage makes
}

// WarmStart is what a stage began with.
type WarmStart struct {
	PipelineWarm
	Version int    `json:"version,omitempty"` // of the model; 0: what the work folder had, for no version was deployed
	Run     string `json:"run,omitempty"`     // that deployed it
	Digest  string `json:"digest,omitempty"`  // of what the server put there
	Why     string `json:"why"`               // a sentence
}

// PipelineDrift lets a stage begin only if a column of a CSV file has drifted from that of a reference by more than
// Above. The server measures it without a machine.
type PipelineDrift struct {
	File      string   `json:"file"`              // of the work folder, or an output of another stage
	Reference string   `json:"reference"`         // likewise
	Test      string   `json:"test"`              // psi or ks
	Above     string   `json:"above"`             // a decimal; a value equal to it does not let the stage begin
	Columns   []string `json:"columns,omitempty"` // none: all of the reference
}

// DriftVerdict is a measured drift, and whether it lets the stage begin.
type DriftVerdict struct {
	PipelineDrift
	Pass   bool          `json:"pass"`
	Why    string        `json:"why"`    // a sentence
	Values []ColumnDrift `json:"values"` // largest first, at most twenty
}

// ColumnDrift is the drift of a column, a decimal.
type ColumnDrift struct {
	Column string `json:"column"`
	Drift  string `json:"drift"`
}

// PipelineGate lets a stage start only if a metric of an earlier stage is within bounds.
type PipelineGate struct {
	Metric string `json:"metric"`        // STAGE.NAME
	Min    string `json:"min,omitempty"` // a decimal; a value equal to the bound passes
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

// GateVerdict is the comparison that a gate made, and its result. Numbers are written decimals.
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
	Failed   string        `json:"failed,omitempty"`  // the run whose deploy stage failed after that; "": none
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

// PipelineState is the state of a pipeline.
type PipelineState struct {
	GroupLimits
	Stages []StageState `json:"stages"` // each after those that it needs
	// Saved is the original cost of the reused stages.
	Saved money.Amount `json:"saved"`
}

// StageState is the state of a stage.
type StageState struct {
	Name string `json:"name"`
	// State is waiting, running, keeping, done, reused, skipped or failed; not_begun if its pipeline ended before.
	State   string            `json:"state"`
	Why     string            `json:"why,omitempty"` // a sentence
	Job     string            `json:"job,omitempty"` // job that ran it, or that made the reused outputs
	Needs   []string          `json:"needs,omitempty"`
	Key     string            `json:"key,omitempty"` // identifies everything that determines its outputs
	Inputs  []StageContent    `json:"inputs,omitempty"`
	Params  map[string]string `json:"params,omitempty"`  // as JSON text
	Program string            `json:"program,omitempty"` // digest of its command, environment, image and setup
	Outs    []StageContent    `json:"outs,omitempty"`
	Bytes   int64             `json:"bytes,omitempty"`   // total size of its outputs
	Metrics map[string]string `json:"metrics,omitempty"` // decimals
	Cost    money.Amount      `json:"cost"`              // of its job, so far; 0 for a reused stage
	// CostOpen says that Cost is not final: its job runs, or a machine of it is not billed yet.
	CostOpen bool          `json:"cost_open,omitempty"`
	Saved    *money.Amount `json:"saved,omitempty"` // for a reused stage: its original cost, once that is final
	// Gates are the verdicts of the stage's gates, once they have compared.
	Gates []GateVerdict `json:"gates,omitempty"`
	// Drift is the drift that the server has measured; null: the stage has no on_drift, or its turn has not come.
	Drift *DriftVerdict `json:"drift,omitempty"`
	// WarmStart is what the stage began with; null: it has no warm_start, has not begun, or was reused.
	WarmStart *WarmStart `json:"warm_start,omitempty"`
	// Spared estimates what a stage that a gate skipped would have cost: the cost of its last run. It is nil if the stage
	// never ran, if the cost of that run was not final, or if no gate skipped the stage. Saved does not include it.
	Spared   *money.Amount `json:"spared,omitempty"`
	Started  *time.Time    `json:"started"`
	Finished *time.Time    `json:"finished"`
	// Sample is the part of the data that the stage works on, a decimal; "": all of it. Of is then the stage whose sample
	// it is.
	Sample string `json:"sample,omitempty"`
	Of     string `json:"of,omitempty"`
	// Taken of TakenOf rows or files are the data of a stage of a sample, which rounding makes another share than Sample;
	// 0 of 0: the stage reads no input that the sample divides.
	Taken   int64 `json:"taken,omitempty"`
	TakenOf int64 `json:"taken_of,omitempty"`
}

// StageContent is a path with the digest of its content; "": nothing is there.
type StageContent struct {
	Path   string `json:"path"`
	Digest string `json:"digest"`
}
