package admission

import (
	"reflect"
	"slices"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core/accounting"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// Usage is what the jobs of a limit have taken from it. Events keep it up to date, so that a new job needs no pass
// over a million waiting ones. It is recomputed from the jobs at a restart and when limits change, so no snapshot
// has it.
type Usage struct {
	budget.Limit
	Begin, End  time.Time          // of the current window; End is zero if it never ends
	Outstanding budget.Outstanding // jobs that have not ended and have no machine
	Gpus        time.Duration      // GPU time in the window of attempts that have ended
	Guard       guarded
}

// summed records whether the sums include a job.
type summed int8

// Values of summed.
const (
	unsummed summed = iota // new
	IsSummed               // the sums include it
	changing               // it is added again at the end of the step
)

// SumUsage recomputes what all limits have taken, and the other sums over jobs.
func (ad *Admission) SumUsage() {
	ad.Usage, ad.unsummed = nil, nil
	ad.books.ByTeam, ad.books.Past = map[accounting.AccountKey]*accounting.Account{}, accounting.NewPast()
	ad.sumParts()
	for _, j := range ad.State.Jobs() {
		ad.sum(j, nil)
	}
	ad.books.SumArchive()
	ad.SumLimits()
}

// SumLimits recomputes what all limits have taken.
func (ad *Admission) SumLimits() {
	s := ad.Soon
	if ad.Soon = nil; s == nil || !s.holds(ad) {
		s = ad.newSums()
	}
	ad.Usage = s.Usage
	for _, j := range state.After(ad.State.Jobs(), s.UpTo) {
		ad.sumIn(s.Usage, j)
	}
}

// Sums is what limits have taken from the first jobs, in the order of submission.
type Sums struct {
	rules *budget.Rules
	Usage []*Usage
	UpTo  uint64 // order of the last job in the sums
}

// newSums returns the sums of no jobs under the rules in force.
func (ad *Admission) newSums() *Sums { return ad.usageSums(ad.State.Rules()) }

func (ad *Admission) usageSums(rules *budget.Rules) *Sums {
	s := &Sums{rules: rules}
	if rules == nil {
		return s
	}
	for _, l := range rules.Limits {
		u := &Usage{Limit: l, Begin: l.Window.Begin(ad.Now())}
		u.End, _ = l.Window.End(ad.Now())
		u.Gpus = ad.State.ArchivedGPUs(l.Scope.Holds, u.Begin)
		s.Usage = append(s.Usage, u)
	}
	return s
}

// holds reports whether the sums are for the rules in force and their current windows.
func (s *Sums) holds(m *Admission) bool {
	if !sameLimits(s.rules, m.State.Rules()) {
		return false
	}
	return !slices.ContainsFunc(s.Usage, func(u *Usage) bool { return !u.Begin.Equal(u.Window.Begin(m.Now())) })
}

func sameLimits(a, b *budget.Rules) bool {
	return a != nil && b != nil && reflect.DeepEqual(a.Limits, b.Limits)
}

// Prepare sums up to most jobs, between two steps, under limits that are to be set, so that the step that sets them has
// few left to sum. It changes nothing else. That step sums the rest. Prepare reports whether jobs are left.
func (ad *Admission) Prepare(rules *budget.Rules, most int) (more bool) {
	if ad.Soon == nil || !sameLimits(ad.Soon.rules, rules) {
		ad.Soon = ad.usageSums(rules)
	}
	s := ad.Soon
	left := state.After(ad.State.Jobs(), s.UpTo)
	for _, j := range left[:min(most, len(left))] {
		ad.sumIn(s.Usage, j)
		s.UpTo = j.Order()
	}
	return len(left) > most
}

// sumIn adds j, unless it is being changed: then the end of the step adds it.
func (ad *Admission) sumIn(list []*Usage, j *state.Job) {
	if *SumOf(j) == IsSummed {
		ad.weighIn(list, j, (*budget.Outstanding).Add)
	}
	for _, a := range j.Attempts() {
		for _, k := range a.Tasks() {
			if !k.Until().IsZero() {
				sumGPUs(list, j, k, k.From(), k.Until())
			}
		}
	}
}

// Unsum removes j from all sums before it changes.
func (ad *Admission) Unsum(j *state.Job) {
	if *SumOf(j) == changing {
		return
	}
	c := Change{job: j}
	if *SumOf(j) == IsSummed {
		ad.weigh(j, (*budget.Outstanding).Remove)
		ad.WeighPart(j, -1)
		ad.books.Account(j, -1)
		if accounting.Rests(j) {
			ad.books.Past.Were = append(ad.books.Past.Were, accounting.RecordOf(j))
			c.was = len(ad.books.Past.Were)
		}
	}
	*SumOf(j) = changing
	ad.unsummed = append(ad.unsummed, c)
}

// SumOf returns whether the sums include j.
func SumOf(j *state.Job) *summed { return step.Slot[summed](j, step.OfAdmission) }

// Change is a job that the step changes, and its former history record until the step ends.
type Change struct {
	job *state.Job
	was int // position in Past.Were, from 1; 0: none
}

// SumAgain adds the jobs that the step has changed to the sums again.
func (ad *Admission) SumAgain() {
	for _, c := range ad.unsummed {
		ad.books.Price(c.job)
		if c.was > 0 {
			ad.sum(c.job, &ad.books.Past.Were[c.was-1])
		} else {
			ad.sum(c.job, nil)
		}
		ad.Closes(c.job)
	}
	ad.books.Past.Were = ad.books.Past.Were[:0]
	clear(ad.unsummed)
	ad.unsummed = ad.unsummed[:0]
}

func (ad *Admission) sum(j *state.Job, was *accounting.Record) {
	ad.weigh(j, (*budget.Outstanding).Add)
	ad.WeighPart(j, 1)
	ad.books.Account(j, 1)
	ad.books.Pass(j, was)
	*SumOf(j) = IsSummed
}

// weigh applies do to j unless it has ended or has a machine.
func (ad *Admission) weigh(j *state.Job, do func(*budget.Outstanding, budget.Limit, budget.Job)) {
	ad.weighIn(ad.Usage, j, do)
	if s := ad.Soon; s != nil && j.Order() <= s.UpTo {
		ad.weighIn(s.Usage, j, do)
	}
}

func (ad *Admission) weighIn(list []*Usage, j *state.Job, do func(*budget.Outstanding, budget.Limit, budget.Job)) {
	if len(list) == 0 || j.State().Over() || j.Costs() {
		return
	}
	v := ad.asLimitsSee(j)
	v.AwaitsApproval, v.Spent, v.GPUSpent = j.State() == state.Held, j.Spent(ad.Now()), j.GPUServed().Hours()
	for _, u := range list {
		if u.Scope.Holds(v.Owner, v.User) {
			do(&u.Outstanding, u.Limit, v)
		}
	}
}

// asLimitsSee returns a job as limits see it.
func (ad *Admission) asLimitsSee(j *state.Job) budget.Job {
	v := Weighed(j.ID(), j.User(), j.Terms())
	if ad.Faults.Twice {
		v.Kind = budget.Single
	}
	return v
}

// Weighed returns a job as limits see it: its budget is its maximum cost.
func Weighed(id, user string, t *state.Terms) budget.Job {
	kind := budget.Single
	if t.Parent != "" {
		kind = budget.Part
	}
	return budget.Job{
		ID: id, Owner: t.Owner, User: user, Kind: kind, Most: t.Budget, Bounded: t.HasBudget && !t.DeadlineFirst,
		GPUMost: t.GPUHours, GPUBounded: t.GPUHours > 0 || t.Need.LeastGPUs() == 0, GPUs: LeastGPUs(t),
	}
}

// SumGPUs counts the GPU time of an ended task.
func (ad *Admission) SumGPUs(j *state.Job, a *state.Task, from, until time.Time) {
	sumGPUs(ad.Usage, j, a, from, until)
	if s := ad.Soon; s != nil && j.Order() <= s.UpTo {
		sumGPUs(s.Usage, j, a, from, until)
	}
}

func sumGPUs(list []*Usage, j *state.Job, a *state.Task, from, until time.Time) {
	if a.GPUs() == 0 || a.Instance() == "" {
		return
	}
	for _, u := range list {
		if u.Scope.Holds(j.Terms().Owner, j.User()) {
			u.Gpus = quantity.Add(u.Gpus, quantity.Times(Overlap(from, until, u.Begin), a.GPUs()))
		}
	}
}

// OpenLimitWindows opens the windows that are due.
func (ad *Admission) OpenLimitWindows() {
	for _, u := range ad.Usage {
		if !u.End.IsZero() && !ad.Now().Before(u.End) {
			u.Begin, u.Gpus, u.Guard = u.Window.Begin(ad.Now()), 0, guarded{}
			u.End, _ = u.Window.End(ad.Now())
		}
	}
}

// Books returns what the limits have taken up to t, which must not be before the last event, and the hourly cost of
// running machines by limit. Live has the jobs with a machine; the others are summed.
func (ad *Admission) Books(t time.Time) (b budget.Accounts, burn map[string]money.Rate) {
	b = budget.Accounts{Spent: map[string]money.Amount{}, GPUs: map[string]float64{}, Outstanding: map[string]budget.Use{}}
	burn = map[string]money.Rate{}
	if ad.State.Rules() != nil {
		b.Limits = ad.State.Rules().Limits
	}
	for _, u := range ad.Usage {
		b.Outstanding[u.Name()], b.Spent[u.Name()] = u.Outstanding.Use(), ad.State.Spent(u.Limit, t).Amount
		if u.Begin.Equal(u.Window.Begin(t)) {
			b.GPUs[u.Name()] = u.Gpus.Hours()
		}
	}
	if len(ad.Usage) == 0 {
		return b, burn
	}
	for j := range ad.books.Costing() {
		b.Live = append(b.Live, ad.runs(b, burn, j, t))
	}
	ad.idles(&b, burn, t)
	ad.held(&b, t)
	return b, burn
}

// idles adds the idle machines: their unbooked cost, and their holds.
func (ad *Admission) idles(b *budget.Accounts, burn map[string]money.Rate, t time.Time) {
	for _, i := range ad.State.Waiting() {
		idle, _ := i.Idle()
		open := i.Cost(t).Sub(i.Posted())
		v := ad.books.IdleJob(i, &idle, t)
		b.Live = append(b.Live, v)
		for _, l := range b.Limits {
			if l.Scope.Holds(v.Owner, v.User) {
				b.Spent[l.Name()] = b.Spent[l.Name()].Add(open)
				burn[l.Name()] = quantity.Add(burn[l.Name()], i.PresentRate())
			}
		}
	}
}

// runs adds the cost of the machines of j that is not booked yet.
func (ad *Admission) runs(b budget.Accounts, burn map[string]money.Rate, j *state.Job, t time.Time) budget.Job {
	v := ad.asLimitsSee(j)
	v.Spent = j.Spent(t)
	gpus := j.GPUServed()
	for _, a := range j.Open() {
		if !a.Live() || a.Instance() == "" {
			continue
		}
		v.Runs, v.GPUsNow = true, v.GPUsNow+a.GPUs()
		gpus = quantity.Add(gpus, GPUTime(a, t, time.Time{}))
		for _, l := range b.Limits {
			if !l.Scope.Holds(v.Owner, v.User) {
				continue
			}
			n := l.Name()
			b.GPUs[n] += GPUTime(a, t, l.Window.Begin(t)).Hours()
			b.Spent[n] = b.Spent[n].Add(a.Cost(t).Sub(a.Posted()))
			if a.Until().IsZero() {
				burn[n] = quantity.Add(burn[n], a.Rate())
			}
		}
	}
	for _, a := range j.Wanted() { // incomplete gangs
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
