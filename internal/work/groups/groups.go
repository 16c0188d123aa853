// Package groups holds what a planner sees of a group of jobs, and what it proposes. A planner runs beside the core on
// a snapshot; the core holds each of its moves against the newest state.
package groups

// Kind is what a group is.
type Kind string

// The kinds of groups. Jobs of an array are the same but for their index.
const (
	Array    Kind = "array"
	Study    Kind = "study"
	Pipeline Kind = "pipeline"
	Schedule Kind = "schedule"
)

// Kinds are all of them.
var Kinds = []Kind{Array, Study, Pipeline, Schedule}

// Snapshot is a group as it stood after the event Base.
type Snapshot struct {
	Group string
	Kind  Kind
	Base  uint64
	// Members is how many jobs it has in all, of which the first Began have begun and Open are not over.
	Members, Began, Open int
	AtOnce               int // how many of them may be open at once
}

// Do is what a move does.
type Do string

// The moves.
const (
	Start  Do = "start"  // a member begins
	Finish Do = "finish" // the group is over: all of its members are
)

// Move is one thing that a planner proposes, and why.
type Move struct {
	Do     Do     `json:"do"`
	Member int    `json:"member,omitempty"` // that begins: its position, from 0
	Why    string `json:"why,omitempty"`
}
