package core

import (
	"reflect"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// usage is what the jobs of a limit have taken of it, kept up to date by the events
// that change it: a million jobs that wait are not gone through for one that is new.
// It is made again from the jobs at a restart and where the limits change, so no
// snapshot has it.
type usage struct {
	budget.Limit
	begin, end  time.Time          // of the window that is open; end is zero where it never ends
	outstanding budget.Outstanding // jobs that are not over and hold no machine
	gpus        time.Duration      // GPU time in the window of attempts that are gone
	guard       guarded
}

// summed says whether a job is among what it is under.
type summed int8

const (
	unsummed summed = iota // new
	isSummed
	changing // it is summed again at the end of the step
)

// sumUsage sums anew what all limits have taken, and what else is kept by job.
func (m *Machine) sumUsage() {
	m.usage, m.unsummed, m.accounts, m.history = nil, nil, map[accountKey]*Account{}, newHistory()
	m.sumParts()
	for _, j := range m.s.Jobs() {
		m.sum(j, nil)
	}
	m.sumArchive()
	m.sumLimits()
}

// sumLimits sums anew what all limits have taken.
func (m *Machine) sumLimits() {
	s := m.soon
	if m.soon = nil; s == nil || !s.holds(m) {
		s = m.newSums()
	}
	m.usage = s.usage
	for _, j := range state.After(m.s.Jobs(), s.upTo) {
		m.sumIn(s.usage, j)
	}
}

// sums are what limits have taken of the first so many jobs.
type sums struct {
	rules *budget.Rules
	usage []*usage
	upTo  uint64 // order of the last job that is summed
}

// newSums are those of no job under the rules in force.
func (m *Machine) newSums() *sums { return m.usageSums(m.s.Rules()) }

func (m *Machine) usageSums(rules *budget.Rules) *sums {
	s := &sums{rules: rules}
	if rules == nil {
		return s
	}
	for _, l := range rules.Limits {
		u := &usage{Limit: l, begin: l.Window.Begin(m.now())}
		u.end, _ = l.Window.End(m.now())
		u.gpus = m.s.ArchivedGPUs(l.Scope.Holds, u.begin)
		s.usage = append(s.usage, u)
	}
	return s
}

// holds reports whether the sums are those of the rules in force, in the windows of now.
func (s *sums) holds(m *Machine) bool {
	if !sameLimits(s.rules, m.s.Rules()) {
		return false
	}
	for _, u := range s.usage {
		if !u.begin.Equal(u.Window.Begin(m.now())) {
			return false
		}
	}
	return true
}

func sameLimits(a, b *budget.Rules) bool {
	return a != nil && b != nil && reflect.DeepEqual(a.Limits, b.Limits)
}

// Prepare sums so many jobs, between two steps, under limits that will be set, so
// that the step that sets them has few left to sum. It changes nothing else: what is not prepared
// is summed then. It reports whether jobs are left.
func (m *Machine) Prepare(rules *budget.Rules, most int) (more bool) {
	if m.soon == nil || !sameLimits(m.soon.rules, rules) {
		m.soon = m.usageSums(rules)
	}
	s := m.soon
	left := state.After(m.s.Jobs(), s.upTo)
	for _, j := range left[:min(most, len(left))] {
		m.sumIn(s.usage, j)
		s.upTo = j.Order()
	}
	return len(left) > most
}

// sumIn adds j where it is not being changed: then it is added at the end of the step.
func (m *Machine) sumIn(list []*usage, j *Job) {
	if *sumOf(j) == isSummed {
		m.weighIn(list, j, (*budget.Outstanding).Add)
	}
	for _, a := range j.Attempts() {
		for _, k := range a.Tasks() {
			if !k.Until().IsZero() {
				sumGPUs(list, j, k, k.From(), k.Until())
			}
		}
	}
}

// unsum takes j out of what it is under, before it changes.
func (m *Machine) unsum(j *Job) {
	if *sumOf(j) == changing {
		return
	}
	c := change{job: j}
	if *sumOf(j) == isSummed {
		m.weigh(j, (*budget.Outstanding).Remove)
		m.weighPart(j, -1)
		m.account(j, -1)
		if rests(j) {
			m.history.were = append(m.history.were, recordOf(j))
			c.was = len(m.history.were)
		}
	}
	*sumOf(j) = changing
	m.unsummed = append(m.unsummed, c)
}

// sumOf is whether j is summed.
func sumOf(j *Job) *summed { return slot[summed](j, ofAdmission) }

// change is a job that the step changes, and what of it is in the past until the step ends.
type change struct {
	job *Job
	was int // place in history.were, from 1; 0: nothing
}

// sumAgain counts the jobs that the step has changed.
func (m *Machine) sumAgain() {
	for _, c := range m.unsummed {
		m.price(c.job)
		if c.was > 0 {
			m.sum(c.job, &m.history.were[c.was-1])
		} else {
			m.sum(c.job, nil)
		}
		m.closes(c.job)
	}
	m.history.were = m.history.were[:0]
	clear(m.unsummed)
	m.unsummed = m.unsummed[:0]
}

func (m *Machine) sum(j *Job, was *record) {
	m.weigh(j, (*budget.Outstanding).Add)
	m.weighPart(j, 1)
	m.account(j, 1)
	m.pass(j, was)
	*sumOf(j) = isSummed
}

// weigh does that with j where it is not over and holds no machine.
func (m *Machine) weigh(j *Job, do func(*budget.Outstanding, budget.Limit, budget.Job)) {
	m.weighIn(m.usage, j, do)
	if s := m.soon; s != nil && j.Order() <= s.upTo {
		m.weighIn(s.usage, j, do)
	}
}

func (m *Machine) weighIn(list []*usage, j *Job, do func(*budget.Outstanding, budget.Limit, budget.Job)) {
	if len(list) == 0 || j.State().Over() || j.Costs() {
		return
	}
	v := m.asLimitsSee(j)
	v.AwaitsApproval, v.Spent, v.GPUSpent = j.State() == Held, j.Spent(m.now()), j.GPUServed().Hours()
	for _, u := range list {
		if u.Scope.Holds(v.Owner, v.User) {
			do(&u.outstanding, u.Limit, v)
		}
	}
}

// asLimitsSee is a job as limits see it.
func (m *Machine) asLimitsSee(j *Job) budget.Job {
	v := Weighed(j.ID(), j.User(), j.Terms())
	if m.faults.Twice {
		v.Kind = budget.Single
	}
	return v
}

// Weighed is a job as limits see it: its budget is the most that it can cost.
func Weighed(id, user string, t *Terms) budget.Job {
	kind := budget.Single
	if t.Parent != "" {
		kind = budget.Part
	}
	return budget.Job{
		ID: id, Owner: t.Owner, User: user, Kind: kind, Most: t.Budget, Bounded: t.HasBudget && !t.DeadlineFirst,
		GPUMost: t.GPUHours, GPUBounded: t.GPUHours > 0 || t.Need.LeastGPUs() == 0, GPUs: leastGPUs(t),
	}
}

// sumGPUs counts the GPU time of an attempt that is gone.
func (m *Machine) sumGPUs(j *Job, a *Task, from, until time.Time) {
	sumGPUs(m.usage, j, a, from, until)
	if s := m.soon; s != nil && j.Order() <= s.upTo {
		sumGPUs(s.usage, j, a, from, until)
	}
}

func sumGPUs(list []*usage, j *Job, a *Task, from, until time.Time) {
	if a.GPUs() == 0 || a.Instance() == "" {
		return
	}
	for _, u := range list {
		if u.Scope.Holds(j.Terms().Owner, j.User()) {
			u.gpus = quantity.Add(u.gpus, quantity.Times(overlap(from, until, u.begin), a.GPUs()))
		}
	}
}

// openLimitWindows opens the windows whose time has come.
func (m *Machine) openLimitWindows() {
	for _, u := range m.usage {
		if !u.end.IsZero() && !m.now().Before(u.end) {
			u.begin, u.gpus, u.guard = u.Window.Begin(m.now()), 0, guarded{}
			u.end, _ = u.Window.End(m.now())
		}
	}
}

// Books are what the limits have taken by t, which is not before the last event, and
// what an hour of the machines that run costs, by limit. Jobs that hold a machine are in
// Live, the others are summed.
func (m *Machine) Books(t time.Time) (b budget.Accounts, burn map[string]money.Rate) {
	b = budget.Accounts{Spent: map[string]money.Amount{}, GPUs: map[string]float64{}, Outstanding: map[string]budget.Use{}}
	burn = map[string]money.Rate{}
	if m.s.Rules() != nil {
		b.Limits = m.s.Rules().Limits
	}
	for _, u := range m.usage {
		b.Outstanding[u.Name()], b.Spent[u.Name()] = u.outstanding.Use(), m.s.Spent(u.Limit, t).Amount
		if u.begin.Equal(u.Window.Begin(t)) {
			b.GPUs[u.Name()] = u.gpus.Hours()
		}
	}
	if len(m.usage) == 0 {
		return b, burn
	}
	for j := range m.costing() {
		b.Live = append(b.Live, m.runs(b, burn, j, t))
	}
	m.idles(&b, burn, t)
	m.held(&b, t)
	return b, burn
}

// idles adds the machines that wait: what they cost that is not booked yet, and what is held
// for them.
func (m *Machine) idles(b *budget.Accounts, burn map[string]money.Rate, t time.Time) {
	for _, i := range m.s.Waiting() {
		idle, _ := i.Idle()
		open := i.Cost(t).Sub(i.Posted())
		v := m.idleJob(i, &idle, t)
		b.Live = append(b.Live, v)
		for _, l := range b.Limits {
			if l.Scope.Holds(v.Owner, v.User) {
				b.Spent[l.Name()] = b.Spent[l.Name()].Add(open)
				burn[l.Name()] = quantity.Add(burn[l.Name()], i.PresentRate())
			}
		}
	}
}

// runs adds what the machines of j have cost that is not booked yet.
func (m *Machine) runs(b budget.Accounts, burn map[string]money.Rate, j *Job, t time.Time) budget.Job {
	v := m.asLimitsSee(j)
	v.Spent = j.Spent(t)
	gpus := j.GPUServed()
	for _, a := range j.Open() {
		if !a.Live() || a.Instance() == "" {
			continue
		}
		v.Runs, v.GPUsNow = true, v.GPUsNow+a.GPUs()
		gpus = quantity.Add(gpus, gpuTime(a, t, time.Time{}))
		for _, l := range b.Limits {
			if !l.Scope.Holds(v.Owner, v.User) {
				continue
			}
			n := l.Name()
			b.GPUs[n] += gpuTime(a, t, l.Window.Begin(t)).Hours()
			b.Spent[n] = b.Spent[n].Add(a.Cost(t).Sub(a.Posted()))
			if a.Until().IsZero() {
				burn[n] = quantity.Add(burn[n], a.Rate())
			}
		}
	}
	for _, a := range j.Wanted() { // gangs that are not complete
		for _, l := range b.Limits {
			if l.Scope.Holds(v.Owner, v.User) {
				b.Spent[l.Name()] = b.Spent[l.Name()].Add(a.Cost(t))
				burn[l.Name()] = quantity.Add(burn[l.Name()], a.PresentRate())
			}
		}
	}
	v.GPUSpent = gpus.Hours()
	return v
}
