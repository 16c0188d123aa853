// Package step holds what the parts of the core share during one step: the event, the state, the outcome, and when
// the next step is due.
package step

import (
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
	case state.LaunchDone:
		return OfLaunch(b.Launch)
	case state.LaunchPending:
		return OfLaunch(b.Launch)
	case state.LaunchRefused:
		return OfLaunch(b.Launch)
	case state.LaunchExpired:
		return OfLaunch(b.Launch)
	case state.LaunchCancelled:
		return OfLaunch(b.Launch)
	case state.BillReceived:
		return OfLaunch(b.Launch)
	case state.AgentClaimed:
		return OfLaunch(b.Attempt)
	case state.AttemptStarted:
		return OfLaunch(b.Attempt)
	case state.Progressed:
		return OfLaunch(b.Attempt)
	case state.CheckpointSaved:
		return OfLaunch(b.Attempt)
	case state.CheckpointFailed:
		return OfLaunch(b.Attempt)
	case state.CheckpointRefused:
		return OfLaunch(b.Attempt)
	case state.NoticeGiven:
		return OfLaunch(b.Attempt)
	case state.UsageSeen:
		return OfLaunch(b.Attempt)
	case state.AttemptEnded:
		return OfLaunch(b.Attempt)
	case state.AgentSilent:
		return OfLaunch(b.Attempt)
	}
	return ""
}
