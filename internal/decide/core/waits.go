package core

import (
	"fmt"
	"slices"
	"time"
)

// why is that in a sentence; "" where there is room.
func (q *quota) why(s *tally, j *Job) string {
	switch q.lacks(s, j) {
	case wantsPlace:
		verb := "run"
		if s.running == 1 {
			verb = "runs"
		}
		return fmt.Sprintf("%s lets %s run at once, and %d %s", q.Name(), count(*q.Running, "job"), s.running, verb)
	case wantsGPUs:
		return fmt.Sprintf("%s lets %s be in use at once, %d are, and the job needs %d", q.Name(), count(*q.GPUs, "GPU"),
			s.gpus, leastGPUs(j.Terms()))
	case wantsHours:
		most, _ := gpuMost(j.Terms())
		return fmt.Sprintf("of the %g GPU-hours of %s, %.4g are used or held, and the job can use %.4g: it waits for "+
			"what runs, or for the next %s",
			*q.GPUHours, q.Name(), s.hours.Hours(), max(0, most-j.GPUServed()).Hours(), q.Window)
	case wantsMost:
		return fmt.Sprintf("%s has a limit of %g GPU-hours, and the most that the job can use is unknown", q.Name(),
			*q.GPUHours)
	case wantsOtherMost:
		other := "a job of another team"
		if s.openTeam == j.Terms().Owner.Team {
			other = "job " + s.open
		}
		return fmt.Sprintf("%s has a limit of %g GPU-hours, and the most that %s can use is unknown", q.Name(),
			*q.GPUHours, other)
	case hasRoom:
	}
	return ""
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// room reports whether one more job may hold a machine.
func (m *Machine) room() bool {
	_, _, full := m.Full()
	return !full && !m.s.Undecided()
}

// Full says how many jobs hold machines, of how many that may, and whether that is all of them: none that waits is
// looked at then.
func (m *Machine) Full() (running, most int, full bool) {
	running, most = len(m.s.Running()), m.cfg().MaxRunning
	return running, most, running >= most
}

// Waits says which quota a job waits for, in a sentence; ok is false where it
// waits for none. A job waits too where a quota keeps its room for a more urgent one.
func (m *Machine) Waits(j *Job) (limit, detail string, ok bool) {
	if j.State() != Queued || !at(j).waits || len(m.classOf(j).quotas) == 0 {
		return "", "", false
	}
	sums := m.tallies(m.now())
	own := m.classOf(j)
	mine := own.quotas
	for _, q := range mine {
		if detail = q.why(&sums[q.n], j); detail != "" {
			return q.Name(), detail, true
		}
	}
	blocks := m.blocksBy(sums)
	for _, c := range m.queue.classes {
		if !slices.ContainsFunc(mine, func(q *quota) bool { return slices.Contains(c.quotas, q) }) {
			continue
		}
		for other := range c.upTo(j, tries) {
			if b := blocks(other); b.by != nil && !b.never && (b.keeps || c == own) && slices.Contains(mine, b.by) {
				if other.Terms().Owner.Team != j.Terms().Owner.Team { // whose submitter need not know of it
					return b.by.Name(), b.by.Name() + " keeps its room for a job of another team, which is more urgent", true
				}
				return b.by.Name(), b.by.why(&sums[b.by.n], other) + " (that is job " + other.ID() + ", which is more urgent)", true
			}
		}
	}
	return "", "", false
}

// Waiting counts the jobs that wait for a quota, by limit; limits that none waits for
// are there with 0. Each job counts once, for the first by name that has no room.
func (m *Machine) Waiting() map[string]int {
	sums, counts := m.tallies(m.now()), map[string]int{}
	for _, q := range m.quotas {
		counts[q.Name()] = 0
	}
	for _, c := range m.queue.classes {
		for side := range overQuota + 1 {
			n, j := 0, (*Job)(nil)
			for _, p := range c.subqueues {
				if u := p.sides[side]; len(u) > 0 {
					if n += len(u); j == nil || before(u[0], j) {
						j = u[0]
					}
				}
			}
			for _, q := range c.quotas {
				if j != nil && q.lacks(&sums[q.n], j) != hasRoom {
					counts[q.Name()] += n
					break
				}
			}
		}
	}
	return counts
}

// wakeForQuotas is when a window opens for which jobs may wait; zero: none does.
func (m *Machine) wakeForQuotas() time.Time {
	var at time.Time
	for _, q := range m.quotas {
		if q.Wait && !q.end.IsZero() && (at.IsZero() || q.end.Before(at)) {
			at = q.end
		}
	}
	if m.queue.Len() == 0 {
		return time.Time{}
	}
	return at
}
