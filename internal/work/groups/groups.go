// Package groups holds what a planner sees of a group of jobs, and what it proposes. A planner runs beside the core on
// a snapshot; the core holds each of its moves against the newest state.
package groups

import (
	"time"

	"scrimp/internal/work/pipeline"
	"scrimp/internal/work/schedule"
	"scrimp/internal/work/study"
)

// Kind is what a group is.
type Kind string

// The kinds of groups. Jobs of an array are the same but for their index, trials of a study but for their parameters.
// Stages of a pipeline are jobs of their own.
const (
	Array    Kind = "array"
	Study    Kind = "study"
	Pipeline Kind = "pipeline"
	Schedule Kind = "schedule"
)

// Kinds are all of them.
var Kinds = []Kind{Array, Study, Pipeline, Schedule}

// Planned reports whether there is a planner for such groups.
func (k Kind) Planned() bool { return k == Array || k == Study || k == Pipeline || k == Schedule }

// Snapshot is a group as it stood after the event Base.
type Snapshot struct {
	Group string
	Kind  Kind
	Base  uint64
	// Members is how many jobs it has in all, of which the first Began have begun and Open are not over.
	Members, Began, Open int
	AtOnce               int // how many of them may be open at once

	// Of a study:
	Study   *study.Spec
	Budget  float64  // in dollars
	Trials  []Trial  // in the order in which they began
	Reports []Report // in the order in which they came; a later snapshot only has more

	// Of a pipeline:
	Pipeline *pipeline.Spec
	Stages   []Stage // by their positions
	Folder   string  // the group whose work folder it has
	Deployed *pipeline.Deployed

	// Of a schedule:
	Schedule *schedule.Spec
	Due      time.Time // of its next run; zero: nobody has found out
	Now      time.Time
	Runs     int // that have begun; of these Open are not over
}

// Phase is where a trial stands.
type Phase string

// The phases of a trial.
const (
	Open    Phase = "open"    // it waits for a machine, or trains
	Leaving Phase = "leaving" // it saves, and is then paused or over
	Paused  Phase = "paused"
	Over    Phase = "over"
)

// Trial is a member of a study.
type Trial struct {
	Config int     `json:"config"` // its configuration, by the number in the pool
	Phase  Phase   `json:"phase"`
	Unit   int     `json:"unit,omitempty"`   // that it has trained
	Values int     `json:"values,omitempty"` // how many of its values are kept
	Last   float64 `json:"last,omitempty"`   // the newest of them
	Best   float64 `json:"best,omitempty"`   // the best of them
	At     int     `json:"at,omitempty"`     // the unit of the best
	Step   int64   `json:"step,omitempty"`   // of the newest value
	Beyond bool    `json:"beyond,omitempty"` // it is trained in full and reports more
	Broken bool    `json:"broken,omitempty"` // a value was no finite number
	Waits  bool    `json:"-"`                // it has no machine; told of those that are trained in full
}

// Report is news of a trial: a value of the metric, or that it is paused or over.
type Report struct {
	Trial int     `json:"trial"`          // its position among those that have begun, from 0
	Unit  int     `json:"unit,omitempty"` // that it had trained
	Value float64 `json:"value,omitempty"`
	Spent float64 `json:"spent,omitempty"` // that the trial had cost, in dollars
	Phase Phase   `json:"phase,omitempty"` // it is paused, or over; "": the report has a value
	Bad   bool    `json:"bad,omitempty"`   // the value is no finite number, or the trial has failed
	Cut   bool    `json:"cut,omitempty"`   // the trial was stopped before it was trained in full
}

// Do is what a move does.
type Do string

// The moves.
const (
	Start  Do = "start"  // a member begins
	Pause  Do = "pause"  // a trial saves and gives its machine up; it may go on later
	Resume Do = "resume" // a paused trial goes on
	Stop   Do = "stop"   // a trial ends for good
	Finish Do = "finish" // the group is over: all of its members are; a study ends those that are left
	Reuse  Do = "reuse"  // a stage takes what was made before
	Keep   Do = "keep"   // what a stage has made is there
	Fail   Do = "fail"   // a stage has not made what it says, or nothing judges its gate
	Skip   Do = "skip"   // a stage, or a run of a schedule, never begins
	Await  Do = "await"  // a schedule learns when it is due
)

// Move is one thing that a planner proposes, and why.
type Move struct {
	Do     Do     `json:"do"`
	Member int    `json:"member,omitempty"` // its position, from 0
	Config int    `json:"config,omitempty"` // of a trial that begins
	Why    string `json:"why,omitempty"`
	// Of is the stage that the move is about.
	Of *StageMove `json:"of,omitempty"`
	// Run is the run of a schedule that begins or is skipped.
	Run *RunMove `json:"run,omitempty"`
}
