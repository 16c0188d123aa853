// Package step holds what the parts of the core share during one step: the event, the state, the outcome, and when
// the next step is due.
package step

import (
	"cmp"

	"scrimp/internal/decide/state"
)

// Context holds the data that the parts of the core share.
type Context struct {
	State  *state.State
	Event  *state.Event // event of the step; nil between steps
	Out    *Outcome     // likewise
	Faults Faults

	event   state.Event
	outcome Outcome
	onWork  func(*state.Job) // called with the job that a step works on next; may be nil

	Wakes   Wakes // times of job reviews
	Hours   Wakes // times of the next postings of running jobs
	Archive Wakes // times at which ended jobs are archived
}

// OnWork sets a function that is called with each job before a step works on it, so that the driver of the machine
// can tell which job made a step fail.
func (c *Context) OnWork(f func(*state.Job)) { c.onWork = f }

// Works reports that the step works on j.
func (c *Context) Works(j *state.Job) {
	if c.onWork != nil && j != nil {
		c.onWork(j)
	}
}

// Concerns returns the job that an event is mainly about, or "". It may be called after a failed step.
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
