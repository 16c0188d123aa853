// Package step is one step of the core as its parts share it: the event, the state, what came of it, and when the
// next is due.
package step

import (
	"cmp"

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

// OnWork has f called with each job that a step works on by itself, before it does: who drives the machine can then
// say which job made a step fail.
func (c *Context) OnWork(f func(*state.Job)) { c.onWork = f }

// Works tells whoever asked to know that the step works on j.
func (c *Context) Works(j *state.Job) {
	if c.onWork != nil && j != nil {
		c.onWork(j)
	}
}

// Concerns is the job that an event is about first; "": on none that is known by it. It may be called after a step
// that has failed.
func Concerns(b state.Body) string {
	return cmp.Or(namedJob(b), OfLaunch(launchIn(b)), OfLaunch(attemptIn(b)))
}

// namedJob is the job that a request of a user names, or "".
func namedJob(b state.Body) string {
	switch b := b.(type) {
	case state.JobSubmitted:
		return b.Job
	case state.JobReviewed:
		return b.Job
	case state.JobEnded:
		return b.Job
	case state.JobPaused:
		return b.Job
	case state.JobResumed:
		return b.Job
	case state.JobUpdated:
		return b.Job
	}
	return ""
}

// launchIn is the launch that an answer of a provider is about, or "".
func launchIn(b state.Body) string {
	switch b := b.(type) {
	case state.LaunchDone:
		return b.Launch
	case state.LaunchPending:
		return b.Launch
	case state.LaunchRefused:
		return b.Launch
	case state.LaunchExpired:
		return b.Launch
	case state.LaunchCancelled:
		return b.Launch
	case state.BillReceived:
		return b.Launch
	}
	return ""
}

// attemptIn is the attempt that a message of an agent is about, or "".
func attemptIn(b state.Body) string {
	switch b := b.(type) {
	case state.AgentClaimed:
		return b.Attempt
	case state.AttemptStarted:
		return b.Attempt
	case state.Progressed:
		return b.Attempt
	case state.CheckpointSaved:
		return b.Attempt
	case state.CheckpointFailed:
		return b.Attempt
	case state.CheckpointRefused:
		return b.Attempt
	case state.NoticeGiven:
		return b.Attempt
	case state.UsageSeen:
		return b.Attempt
	case state.AttemptEnded:
		return b.Attempt
	case state.AgentSilent:
		return b.Attempt
	}
	return ""
}
