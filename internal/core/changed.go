package core

import "strings"

// ChangedAt returns the number of the last event that may have changed j; 0 where
// none has since the machine was restored. A shell that shows only what is durable
// need not wait for events that are being written and have nothing to do with j.
func (m *Machine) ChangedAt(j *Job) uint64 { return j.changed }

// mark notes that this event may change j, before it does.
func (m *Machine) mark(j *Job) {
	j.changed, m.parts[m.partOf(j)] = m.seq, m.seq
	m.unsum(j)
}

// partOf is the part of a snapshot that j is in.
func (m *Machine) partOf(j *Job) int { return int(j.place.order-1) / m.part }

// grow makes room for the newest job's part.
func (m *Machine) grow() {
	if len(m.inOrder) > len(m.parts)*m.part {
		m.parts = append(m.parts, 0)
	}
}

// marks notes which jobs the event is about. A job that waits is marked where it is
// taken from its place in the queue.
func (m *Machine) marks(b Body) {
	switch b := b.(type) {
	case JobEnded:
		m.marked(b.Job)
	case JobReviewed:
		m.marked(b.Job)
	case LaunchDone:
		m.ofAttempt(b.Launch)
	case LaunchRefused:
		m.ofAttempt(b.Launch)
	case InstanceEnded:
		for _, a := range []*Attempt{m.rented[b.Instance], m.given[b.Instance]} {
			if a != nil {
				m.marked(a.Job)
			}
		}
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
	case JobSubmitted, Tick, Audited, IdentityChanged, BudgetsSet: // of a job that is marked where it is made, or of none
	default: // of whatever holds a machine, as what the market shows
		for _, a := range m.attempts {
			m.marked(a.Job)
		}
		for _, a := range m.given {
			m.marked(a.Job)
		}
	}
}

func (m *Machine) marked(job string) {
	if j := m.jobs[job]; j != nil {
		m.mark(j)
	}
}

func (m *Machine) ofAttempt(id string) {
	if dot := strings.LastIndexByte(id, '.'); dot > 0 {
		m.marked(id[:dot])
	}
}
