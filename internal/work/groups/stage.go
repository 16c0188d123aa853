package groups

import (
	"scrimp/internal/lib/money"
	"scrimp/internal/work/pipeline"
)

// StagePhase is where a stage of a pipeline stands.
//
//	Waiting ──> Running ──> Made ──> Done
//	   │           └──────────┴────> StageFailed
//	   └──> Reused, Skipped, StageFailed
type StagePhase string

// The phases of a stage.
const (
	Waiting     StagePhase = ""        // for others, or for its turn
	Running     StagePhase = "running" // its job is not over
	Made        StagePhase = "made"    // its job has succeeded, and what it made was not looked at
	Done        StagePhase = "done"    // what it made is there
	Reused      StagePhase = "reused"  // what it would make was made before
	Skipped     StagePhase = "skipped" // it never begins
	StageFailed StagePhase = "failed"
)

// Good reports whether the outputs of the stage are there.
func (p StagePhase) Good() bool { return p == Done || p == Reused }

// Settled reports whether nothing more becomes of the stage.
func (p StagePhase) Settled() bool { return p.Good() || p == Skipped || p == StageFailed }

// Stage is how a stage of a pipeline stands.
type Stage struct {
	Phase  StagePhase         `json:"phase,omitempty"`
	Why    string             `json:"why,omitempty"`    // a sentence
	Key    string             `json:"key,omitempty"`    // names all that its outputs are made of
	Inputs []pipeline.Content `json:"inputs,omitempty"` // that the key is of
	Job    string             `json:"job,omitempty"`    // that has its outputs; "": none has run
	Since  uint64             `json:"since,omitempty"`  // the event since which its outputs are there
	Judged
	Product
}

// Judged is what came of the gates of a stage.
type Judged struct {
	Gates []pipeline.Verdict `json:"gates,omitempty"`
	// Spared is what a stage that a gate skipped had cost when it last ran; nil: it has not, or no gate skipped it.
	Spared *money.Amount `json:"spared,omitempty"`
}

// Product is what a stage has made.
type Product struct {
	Outs    []pipeline.Content `json:"outs,omitempty"`
	Bytes   int64              `json:"bytes,omitempty"`
	Metrics map[string]string  `json:"metrics,omitempty"` // by name, as written decimals
}

// StageMove is what a planner, and who looked at the files, propose for a stage.
type StageMove struct {
	Stage  int                `json:"stage"` // its position
	Key    string             `json:"key,omitempty"`
	Inputs []pipeline.Content `json:"inputs,omitempty"`
	From   string             `json:"from,omitempty"` // of what is reused: the job that has made it
	// Gated says that a gate skips the stage, its own or that of a stage that it needs.
	Gated bool `json:"gated,omitempty"`
	Judged
	Product
}
