package core

import (
	"strings"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/lib/quantity"
)

// quota is a limit that the queue keeps: what runs at once, and GPU-hours that a
// job waits for until the next window.
type quota struct {
	budget.Limit
	begin, end time.Time     // of the window that is open, where GPU-hours wait for the next
	used       time.Duration // GPU time in it of attempts that are gone
	n          int           // its place among the quotas
}

// tally is what a quota has running.
type tally struct {
	running, gpus int
	past          time.Duration // used in the window
	hours         time.Duration // that, and held for what runs
	open          string        // a job that runs, and of which nobody knows how many GPU-hours it can use
	openTeam      string        // the team of that job
}

// setQuotas takes the limits in force. Jobs that run go on; those that wait are put in
// the classes that the new quotas make.
func (m *Machine) setQuotas() {
	m.era++
	m.quotas = nil
	if rules := m.s.Rules(); rules != nil {
		for _, l := range rules.Limits {
			if !l.Queues() {
				continue
			}
			q := &quota{Limit: l, n: len(m.quotas)}
			if l.Wait {
				q.begin = l.Window.Begin(m.now())
				q.end, _ = l.Window.End(m.now())
			}
			m.quotas = append(m.quotas, q)
		}
	}
	m.sumLimits()
	m.regroup()
	for _, j := range m.s.Running() {
		m.classOf(j)
	}
	m.recount()
	m.queue.changed()
}

// regroup puts what waits into the classes that the quotas make: each group as it
// stands, what is loose job by job.
func (m *Machine) regroup() {
	old := m.queue.classes
	m.queue.classes = nil
	for _, c := range old {
		for _, p := range c.subqueues {
			sides := p.sides
			if p.sides[overQuota] = nil; p.group.key == loose {
				p.sides = [3]urgency{}
			}
			for side, u := range sides {
				if p.group.key != loose && side != overQuota {
					continue
				}
				m.queue.waiting -= len(u)
				for _, j := range u {
					at(j).subqueue = nil
				}
			}
			if p.group.key != loose {
				m.moveSubqueue(p, sides[overQuota])
			}
			for side, u := range sides {
				for _, j := range u {
					switch {
					case side == overQuota:
						m.classOf(j)
						m.queue.add(j)
					case p.group.key == loose:
						m.classOf(j)
						m.queue.seat(j, side)
					}
				}
			}
		}
	}
}

// moveSubqueue puts a subqueue, or where it is empty those that were over quota in it, into the class of now.
func (m *Machine) moveSubqueue(p *subqueue, others urgency) {
	for _, u := range [...]urgency{p.sides[0], p.sides[1], others} {
		if len(u) > 0 {
			p.move(m.classBy(u[0]))
			return
		}
	}
}

// recount takes over what attempts that are gone have used of the windows that are
// open: quotas are limits, and what these have taken is summed.
func (m *Machine) recount() {
	for _, q := range m.quotas {
		for _, u := range m.usage {
			if q.Wait && u.Name() == q.Name() {
				q.used = u.gpus
			}
		}
	}
}

// servedGPUs counts the GPU time of a task that is gone.
func (m *Machine) servedGPUs(j *Job, k *Task, from, until time.Time) {
	for _, q := range m.classOf(j).quotas {
		if q.Wait {
			q.used = quantity.Add(q.used, quantity.Times(overlap(from, until, q.begin), k.GPUs()))
		}
	}
}

// overlap is how much of the span lies after begin.
func overlap(from, until, begin time.Time) time.Duration {
	if from.Before(begin) {
		from = begin
	}
	return max(0, until.Sub(from))
}

// classOf is the class of the quotas that j is under now.
func (m *Machine) classOf(j *Job) *class {
	if p := at(j).subqueue; p != nil {
		return p.class
	}
	if c := at(j).class; c == nil || c.era != m.era {
		at(j).class = m.classBy(j)
	}
	return at(j).class
}

// classBy is the class of the quotas that hold j.
func (m *Machine) classBy(j *Job) *class {
	var key strings.Builder
	var quotas []*quota
	for _, q := range m.quotas {
		if q.Scope.Holds(j.Terms().Owner, j.User()) {
			quotas = append(quotas, q)
			key.WriteString(q.Name() + "\n")
		}
	}
	return m.queue.class(key.String(), quotas, m.era)
}

// openWindows opens the windows whose time has come.
func (m *Machine) openWindows() {
	m.openLimitWindows()
	for _, q := range m.quotas {
		if q.Wait && !q.end.IsZero() && !m.now().Before(q.end) {
			q.begin, q.used = q.Window.Begin(m.now()), 0
			q.end, _ = q.Window.End(m.now())
			m.queue.loosen(q)
			m.queue.changed()
		}
	}
}

// tallies sums what runs under each quota at t.
func (m *Machine) tallies(t time.Time) []tally {
	sums := make([]tally, len(m.quotas))
	for i, q := range m.quotas {
		sums[i].past, sums[i].hours = q.used, q.used
	}
	for _, j := range m.s.Running() {
		c := m.classOf(j)
		if len(c.quotas) == 0 {
			continue
		}
		gpus, all := 0, j.GPUServed()
		if a := j.Asked(); a != nil {
			gpus += a.Machine().GPUs * a.Nodes()
		}
		for _, a := range j.Open() {
			if a.Live() {
				gpus += a.GPUs() - m.keepsGPUs(j, a)
				all = quantity.Add(all, gpuTime(a, t, time.Time{}))
			}
		}
		most, bounded := gpuMost(j.Terms())
		for _, q := range c.quotas {
			s := &sums[q.n]
			s.running++
			s.gpus += gpus
			if !q.Wait {
				continue
			}
			for _, a := range j.Open() {
				if a.Live() {
					used := gpuTime(a, t, q.begin)
					s.past, s.hours = quantity.Add(s.past, used), quantity.Add(s.hours, used)
				}
			}
			s.hours = quantity.Add(s.hours, max(0, most-all))
			if !bounded && (s.open == "" || j.ID() < s.open) {
				s.open, s.openTeam = j.ID(), j.Terms().Owner.Team
			}
		}
	}
	return sums
}

// sumUp is tallies of now, kept until something runs or ends.
func (m *Machine) sumUp() []tally {
	if m.sums == nil {
		m.sums = m.tallies(m.now())
	}
	return m.sums
}

// keepsGPUs is how many of an attempt's GPUs the next one of its job has that is being asked for.
func (m *Machine) keepsGPUs(j *Job, a *Attempt) (n int) {
	if m.keeping != j {
		return 0
	}
	for _, k := range m.keeps {
		if k.Attempt() == a {
			n += k.GPUs()
		}
	}
	return n
}

// gpuTime is the GPU time of an attempt from begin to t.
func gpuTime(a *Attempt, t, begin time.Time) (d time.Duration) {
	for _, k := range a.Tasks() {
		d = quantity.Add(d, quantity.Times(billed(k, t, begin), k.GPUs()))
	}
	return d
}

// billed is for how long the task is billed from begin to t.
func billed(a *Task, t, begin time.Time) time.Duration {
	if a.From().IsZero() {
		return 0
	}
	if !a.Until().IsZero() && t.After(a.Until()) {
		t = a.Until()
	}
	return overlap(a.From(), t, begin)
}

// gpuMost is the GPU time that a job can use in all, or false where nobody knows.
func gpuMost(t *Terms) (time.Duration, bool) {
	return quantity.GPUTime(min(t.GPUHours, 5e5)), t.GPUHours > 0 || t.Need.LeastGPUs() == 0
}

// blocked is what the quotas say of a job.
type blocked struct {
	by    *quota // has no room for it; nil: all have
	keeps bool   // by keeps its room for the job: nothing else is in its way
	never bool   // there is no room for it though nothing runs, until the next window
}

// blocks returns what says whether the quotas have room for a job.
func (m *Machine) blocks() func(*Job) blocked { return m.blocksBy(nil) }

// blocksBy is blocks by the sums, or by those of what runs now, which are made when
// they are first asked for.
func (m *Machine) blocksBy(sums []tally) func(*Job) blocked {
	return func(j *Job) (b blocked) {
		quotas := m.classOf(j).quotas
		if len(quotas) == 0 {
			return b
		}
		if sums == nil {
			sums = m.sumUp()
		}
		for _, q := range quotas {
			if q.lacks(&sums[q.n], j) == hasRoom {
				continue
			}
			b.keeps = b.by == nil
			b.never = b.never || q.lacks(&tally{hours: sums[q.n].past}, j) != hasRoom && !q.shut()
			b.by = q
		}
		return b
	}
}

// shut reports whether nothing may begin at all.
func (q *quota) shut() bool { return q.Running != nil && *q.Running == 0 }

// want is what a quota has too little of for a job.
type want int

const (
	hasRoom want = iota
	wantsPlace
	wantsGPUs
	wantsHours
	wantsMost      // nobody knows how many GPU-hours the job can use
	wantsOtherMost // nobody knows how many one that runs can use
)

// lacks says what the quota has too little of for j. A job that asks for a machine, or whose
// last one is still being given back, counts among what runs, and not against itself.
func (q *quota) lacks(s *tally, j *Job) want {
	running, rest, gpus := s.running, time.Duration(0), s.gpus
	most, bounded := gpuMost(j.Terms())
	if asked := j.Asked(); asked != nil {
		gpus -= asked.Machine().GPUs * asked.Nodes()
	}
	if j.Holds() && running > 0 {
		running--
	} else {
		rest = max(0, most-j.GPUServed())
	}
	least := leastGPUs(j.Terms())
	switch {
	case q.Running != nil && running >= *q.Running:
		return wantsPlace
	case q.GPUs != nil && gpus+least > *q.GPUs && least > 0:
		return wantsGPUs
	case !q.Wait || q.GPUHours == nil || most == 0 && bounded:
		return hasRoom
	case !bounded:
		return wantsMost
	case s.open != "" && s.open != j.ID():
		return wantsOtherMost
	case quantity.Add(s.hours, rest) > quantity.GPUTime(*q.GPUHours):
		return wantsHours
	}
	return hasRoom
}

// leastGPUs is how many GPUs a job takes at least, on all its machines.
func leastGPUs(t *Terms) int { return t.Need.LeastGPUs() * t.Fewest() }

// gpuRoom is how many GPUs a machine may have that j takes, or false: any number.
func (m *Machine) gpuRoom(j *Job) (room int, limited bool) {
	for _, q := range m.classOf(j).quotas {
		if q.GPUs == nil {
			continue
		}
		free := *q.GPUs - m.sumUp()[q.n].gpus
		switch a, asked := j.Live(), j.Asked(); {
		case asked != nil:
			free += asked.Machine().GPUs * asked.Nodes()
		case a != nil && j.State() == Running:
			free += a.GPUs() // it is given back before there is another
		}
		if !limited || free < room {
			room, limited = max(0, free), true
		}
	}
	return room, limited
}
