// Package groups defines what a planner sees of a group of jobs, and what it proposes. A planner runs beside the core
// on a snapshot; the core checks each of its moves against the newest state.
package groups

import (
	"time"

	"scrimp/internal/work/pipeline"
	"scrimp/internal/work/schedule"
	"scrimp/internal/work/study"
)

// Kind is the kind of a group.
type Kind string

// The kinds of groups. The jobs of an array differ only in their index, the trials of a study only in their parameters.
// The stages of a pipeline are different jobs.
const (
	Array    Kind = "array"
	Study    Kind = "study"
	Pipeline Kind = "pipeline"
	Schedule Kind = "schedule"
)

// Kinds lists all kinds.
var Kinds = []Kind{Array, Study, Pipeline, Schedule}

// Planned reports whether such groups have a planner.
func (k Kind) Planned() bool { return k == Array || k == Study || k == Pipeline || k == Schedule }

// Snapshot is a group after the event Base.
type Snapshot struct {
	Group string
	Kind  Kind
	Base  uint64
	// Members is the total number of its jobs. The first Began of them have started, and Open are not over.
	Members, Began, Open int
	AtOnce               int // how many may be open at once

	// Of a study:
	Study   *study.Spec
	Budget  float64  // in dollars
	Trials  []Trial  // in start order
	Reports []Report // in the order of arrival; later snapshots only append
	// Promotes is the number of reports after which the money for the proxy's trials was spent; nil: it is not.
	Promotes *int

	// Of a pipeline:
	Pipeline *pipeline.Spec
	Stages   []Stage // by position
	Folder   string  // the group whose work folder it uses
	Deployed *pipeline.Deployed

	// Of a schedule:
	Schedule *schedule.Spec
	Due      time.Time // of its next run; zero if not computed yet
	Since    time.Time // when the run was due that waits for a price; zero: none waits
	Now      time.Time
	Runs     int // started runs; Open of them are not over
}

// Phase is the state of a trial.
type Phase string

// Phases of a trial.
const (
	Open    Phase = "open"    // it waits for a machine, or trains
	Leaving Phase = "leaving" // it saves, and is then paused or over
	Paused  Phase = "paused"
	Over    Phase = "over"
)

// Trial is a member of a study.
type Trial struct {
	Config int     `json:"config"` // its configuration, by its number in the pool
	Phase  Phase   `json:"phase"`
	Unit   int     `json:"unit,omitempty"`   // that it has trained
	Values int     `json:"values,omitempty"` // number of its stored values
	Last   float64 `json:"last,omitempty"`   // the newest of them
	Best   float64 `json:"best,omitempty"`   // the best of them
	At     int     `json:"at,omitempty"`     // the unit of the best
	Step   int64   `json:"step,omitempty"`   // of the newest value
	Beyond bool    `json:"beyond,omitempty"` // it is fully trained and reports more
	Broken bool    `json:"broken,omitempty"` // a value was not a finite number
	Waits  bool    `json:"-"`                // it has no machine; set only for fully trained ones
	// Promoted: it trains in full a configuration that was best on the study's proxy.
	Promoted bool `json:"promoted,omitempty"`
	// Since is when it started, resumed or last reported, after its study opened.
	Since time.Duration `json:"since_ns,omitempty"`
}

// Report is news of a trial: a value of the metric, or a new phase.
type Report struct {
	Trial int     `json:"trial"`          // its position among the started ones, from 0
	Unit  int     `json:"unit,omitempty"` // that it had trained
	Value float64 `json:"value,omitempty"`
	Spent float64 `json:"spent,omitempty"` // the trial's cost so far, in dollars
	Phase Phase   `json:"phase,omitempty"` // Paused or Over; empty for a value
	Bad   bool    `json:"bad,omitempty"`   // the value is not a finite number, or the trial has failed
	Cut   bool    `json:"cut,omitempty"`   // the trial was stopped before it was fully trained
	// GPUHours is what the trial has used so far. At is the time since the study opened, and Took the part of it since
	// the trial started, resumed or last reported.
	GPUHours float64       `json:"gpu_hours,omitempty"`
	At       time.Duration `json:"at_ns,omitempty"`
	Took     time.Duration `json:"took_ns,omitempty"`
	// Rate is the live price of the trial's machine at that time, in dollars per hour; 0: it has none, or costs nothing.
	Rate float64 `json:"rate_usd,omitempty"`
}

// Do is the action of a move.
type Do string

// Actions of moves.
const (
	Start  Do = "start"  // a member starts
	Pause  Do = "pause"  // a trial saves and gives up its machine; it may resume later
	Resume Do = "resume" // a paused trial resumes
	Stop   Do = "stop"   // a trial ends for good
	Finish Do = "finish" // the group is over because its members are; a study ends the remaining ones
	Reuse  Do = "reuse"  // a stage uses earlier outputs
	Keep   Do = "keep"   // a stage's outputs exist
	Fail   Do = "fail"   // a stage lacks its outputs, or its gate has no metric
	Skip   Do = "skip"   // a stage or a scheduled run never starts
	Await  Do = "await"  // a schedule learns its next due time, or a due run waits for a price
)

// Move is one action that a planner proposes, with the reason.
type Move struct {
	Do     Do  `json:"do"`
	Member int `json:"member,omitempty"` // its position, from 0
	Config int `json:"config,omitempty"` // of a trial to start
	// Promoted: the trial to start trains in full, without the study's proxy.
	Promoted bool `json:"promoted,omitempty"`
	// Among is how many trials, this one included, are to share what is left of the budget; 0: as many as may train at
	// once.
	Among int    `json:"among,omitempty"`
	Why   string `json:"why,omitempty"`
	// Gain is the expected gain per dollar at which a search that flattens ends.
	Gain float64 `json:"gain_per_usd,omitempty"`
	// Short says why a search ends before one of its limits is used up.
	Short *Shortage `json:"short,omitempty"`
	// Of is the affected stage.
	Of *StageMove `json:"of,omitempty"`
	// Run is the run of a schedule that starts or is skipped.
	Run *RunMove `json:"run,omitempty"`
}

// A Shortage is what a search lacks of a limit: dollars, GPU-hours or hours, as the reason of its end says.
type Shortage struct {
	Left  float64 `json:"left"`           // of the limit, without Kept
	Kept  float64 `json:"kept,omitempty"` // for training the best trial in full at the end
	Needs float64 `json:"needs"`          // by the next unit, or by a full training, with a margin; 0: unknown
	Full  bool    `json:"full,omitempty"` // a full training of a promoted configuration needs it
}
