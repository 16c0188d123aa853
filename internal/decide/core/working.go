package core

// OnWork has f called with each job that a step works on by itself, before it does: who drives the machine can then
// say which job made a step fail.
func (m *Machine) OnWork(f func(*Job)) { m.onWork = f }

func (m *Machine) works(j *Job) {
	if m.onWork != nil && j != nil {
		m.onWork(j)
	}
}

// Concerns is the job that an event is about first; "": on none that is known by it. It may be called after a step
// that has failed.
func Concerns(b Body) string {
	switch b := b.(type) {
	case JobSubmitted:
		return b.Job
	case JobReviewed:
		return b.Job
	case JobEnded:
		return b.Job
	case JobPaused:
		return b.Job
	case JobResumed:
		return b.Job
	case JobUpdated:
		return b.Job
	case LaunchDone:
		return ofLaunch(b.Launch)
	case LaunchPending:
		return ofLaunch(b.Launch)
	case LaunchRefused:
		return ofLaunch(b.Launch)
	case LaunchExpired:
		return ofLaunch(b.Launch)
	case LaunchCancelled:
		return ofLaunch(b.Launch)
	case BillReceived:
		return ofLaunch(b.Launch)
	case AgentClaimed:
		return ofLaunch(b.Attempt)
	case AttemptStarted:
		return ofLaunch(b.Attempt)
	case Progressed:
		return ofLaunch(b.Attempt)
	case CheckpointSaved:
		return ofLaunch(b.Attempt)
	case CheckpointFailed:
		return ofLaunch(b.Attempt)
	case CheckpointRefused:
		return ofLaunch(b.Attempt)
	case NoticeGiven:
		return ofLaunch(b.Attempt)
	case UsageSeen:
		return ofLaunch(b.Attempt)
	case AttemptEnded:
		return ofLaunch(b.Attempt)
	case AgentSilent:
		return ofLaunch(b.Attempt)
	}
	return ""
}
