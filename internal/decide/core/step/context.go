// Package step is one step of the core as its parts share it: the event, the state, what came of it, and when the
// next is due.
package step

import (
	"scrimp/internal/decide/state"
)

// Context is what the parts of the core share.
type Context struct {
	State  *state.State
	Event  *state.Event // of the step; nil between two
	Out    *Outcome     // likewise
	Faults Faults

	event   state.Event
	outcome Outcome
	onWork  func(*state.Job) // told of the job that a step works on next; nil: nobody is

	Wakes   Wakes // when a job is to be reviewed
	Hours   Wakes // when the next posting of a running job is due
	Archive Wakes // when jobs that are over are archived
}
