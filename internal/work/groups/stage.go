package groups

import (
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/work/pipeline"
)

// StagePhase is the state of a pipeline stage.
//
//	Waiting ──> Running ──> Made ──> Done
//	   │           └──────────┴────> StageFailed
//	   └──> Reused, Skipped, StageFailed
type StagePhase string

// Phases of a stage.
const (
	Waiting     StagePhase = ""        // for others, or for its turn
	Running     StagePhase = "running" // its job is not over
	Made        StagePhase = "made"    // its job succeeded; its outputs are not checked yet
	Done        StagePhase = "done"    // its outputs exist
	Reused      StagePhase = "reused"  // its outputs were made before
	Skipped     StagePhase = "skipped" // it never starts
	StageFailed StagePhase = "failed"
)

// Good reports whether the outputs of the stage exist.
func (p StagePhase) Good() bool { return p == Done || p == Reused }

// Settled reports whether the phase is final.
func (p StagePhase) Settled() bool { return p.Good() || p == Skipped || p == StageFailed }

// Stage is the state of a pipeline stage.
type Stage struct {
	Phase  StagePhase         `json:"phase,omitempty"`
	Why    string             `json:"why,omitempty"`    // a sentence
	Key    string             `json:"key,omitempty"`    // identifies everything that its outputs depend on
	Inputs []pipeline.Content `json:"inputs,omitempty"` // covered by the key
	Job    string             `json:"job,omitempty"`    // that has its outputs; empty if none has run
	// Since is the event since which its outputs exist. Of a stage that failed after its job had begun it is the failure.
	Since uint64 `json:"since,omitempty"`
	// Ended is when its job succeeded; zero: it has not, or an older version ran it. Archived jobs do not say it.
	Ended time.Time `json:"ended,omitzero"`
	Judged
	Product
}

// Judged is what came of the gates of a stage, and of its drift, which share of the data a sample got, and what a
// warm start began with.
type Judged struct {
	// Taken of TakenOf rows or files are the data of a stage of a sample; 0 of 0: the stage reads no input that the
	// sample divides, or an older version began it.
	Taken   int64              `json:"taken,omitempty"`
	TakenOf int64              `json:"taken_of,omitempty"`
	Gates   []pipeline.Verdict `json:"gates,omitempty"`
	// Drift is the drift that the server has measured; nil: none.
	Drift *pipeline.DriftVerdict `json:"drift,omitempty"`
	// Warm is what a stage with a warm start began with; nil: it has none, has not begun, or was reused.
	Warm *pipeline.Warmed `json:"warm,omitempty"`
	// Spared is what a stage that a gate skipped had cost when it last ran; nil: it has not, its cost was not final, or no
	// gate skipped it.
	Spared *money.Amount `json:"spared,omitempty"`
}

// Product is what a stage has made.
type Product struct {
	Outs    []pipeline.Content `json:"outs,omitempty"`
	Bytes   int64              `json:"bytes,omitempty"`
	Metrics map[string]string  `json:"metrics,omitempty"` // by name, as written decimals
	// Wrong says why a metric that a gate asks for has no number, by its name; under "" which file could not be read.
	Wrong map[string]string `json:"wrong,omitempty"`
}

// StageMove is a proposal for a stage, completed by whoever examines the files.
type StageMove struct {
	Stage  int                `json:"stage"` // its position
	Key    string             `json:"key,omitempty"`
	Inputs []pipeline.Content `json:"inputs,omitempty"`
	From   string             `json:"from,omitempty"` // of reused outputs: the job that made them
	// Gated says that a gate skips the stage, its own or that of a stage that it needs.
	Gated bool `json:"gated,omitempty"`
	Judged
	Product
}

// Resolver completes a move about a stage, or about a run of a schedule, from files or conditions that the core does
// not know: it returns the move, or another one. now is the snapshot with the stages that earlier moves of the proposal
// have reused.
type Resolver func(now Snapshot, v Move) (Move, error)

// Reuse changes the stage as a move to reuse the outputs of an earlier run does.
func (x *Stage) Reuse(v Move) {
	x.Phase, x.Key, x.Inputs, x.Job, x.Product = Reused, v.Of.Key, v.Of.Inputs, v.Of.From, v.Of.Product
}
