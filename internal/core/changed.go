package core

import "strings"

// ChangedAt returns the number of the last event that may have changed j; 0 where
// none has since the machine was restored. A shell that shows only what is durable
// need not wait for events that are being written and have nothing to do with j.
func (m *Machine) ChangedAt(j *Job) uint64 {
	if len(j.Attempts) > 0 {
		return max(j.changed, m.swept)
	}
	return j.changed
}

// mark notes which jobs the event is about. A job that waits is marked where it
// is taken from its place in the queue, one that is decided about here.
func (m *Machine) mark(b Body) {
	switch b := b.(type) {
	case MarketSeen, InventorySeen, InstanceEnded, Configured:
		m.swept = m.seq
	case JobEnded:
		m.marked(b.Job)
	case LaunchDone:
		m.ofAttempt(b.Launch)
	case LaunchRefused:
		m.ofAttempt(b.Launch)
	case AgentClaimed:
		m.ofAttempt(b.Attempt)
	case AttemptStarted:
		m.ofAttempt(b.Attempt)
	case Progressed:
		m.ofAttempt(b.Attempt)
	case CheckpointSaved:
		m.ofAttempt(b.Attempt)
	case CheckpointRefused:
		m.ofAttempt(b.Attempt)
	case NoticeGiven:
		m.ofAttempt(b.Attempt)
	case UsageSeen:
		m.ofAttempt(b.Attempt)
	case AttemptEnded:
		m.ofAttempt(b.Attempt)
	case AgentSilent:
		m.ofAttempt(b.Attempt)
	case JobSubmitted, Tick, Audited, IdentityChanged: // of a job that is marked where it is made, or of none
	default: // of a kind that came later
		m.swept = m.seq
	}
}

func (m *Machine) marked(job string) {
	if j := m.jobs[job]; j != nil {
		j.changed = m.seq
	}
}

func (m *Machine) ofAttempt(id string) {
	if dot := strings.LastIndexByte(id, '.'); dot > 0 {
		m.marked(id[:dot])
	}
}
