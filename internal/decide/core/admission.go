package core

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// Refusal is why something is not let in.
type Refusal struct {
	Job   string
	Why   RefusalReason
	Limit *budget.Refusal // where Why is LimitReached
	Err   error           // what is wrong, in words
}

// RefusalReason is why, in a word.
type RefusalReason string

// The reasons.
const (
	TagMissing    RefusalReason = "tag"
	LimitReached  RefusalReason = "limit"          // which one is in Limit
	NeedsApproval RefusalReason = "approval"       // for so much, and it runs without
	NoDependency  RefusalReason = "after"          // a job that it depends on does not exist, or did not succeed
	NoGroup       RefusalReason = "no_hold"        // it is not there, not open, or another's
	GroupFull     RefusalReason = "hold"           // it has no room for a part
	NeverApproved RefusalReason = "never_approved" // nobody has ever let it run
)

func (r *Refusal) Error() string {
	return fmt.Sprintf("job %s is not let in: %v", r.Job, r.Err)
}

func (r *Refusal) Unwrap() error { return r.Err }

// ErrStale refuses limits for which what they have spent was summed too long ago: sum
// it again.
var ErrStale = errors.New("set limits: more was spent since than is kept")

// verdict is what the rules in force say of a job that is to be let in, or to have other
// terms. The zero value lets it in as it is.
type verdict struct {
	bound  *money.Amount           // the budget that it gets, since it has none
	asking *budget.PendingApproval // what it waits for first
	bounds []*money.Amount         // the same as bound, of parts that begin together
	no     *Refusal
}

// weighing weighs jobs at one time, each with what those before it take.
type weighing struct {
	m     *Machine
	t     time.Time
	books *budget.Accounts // folded; nil: not summed yet

	family *family                 // what holds have taken; nil: not summed yet
	taken  map[string]money.Amount // what those before take of holds
}

// weigher weighs at the time of the step.
func (m *Machine) weigher() *weighing { return &weighing{m: m, t: m.now()} }

// Admit says why the events are not taken, all of them together; nil: they are. The next
// steps take them as they were weighed here, so that of jobs that are submitted together
// all are let in or none. It changes nothing else.
func (m *Machine) Admit(events []Event) error {
	clear(m.weighed)
	w := weighing{m: m}
	for i := range events {
		e := &events[i]
		if b, ok := e.Body.(BudgetsSet); ok && m.s.Stale(b) {
			return ErrStale
		}
		v, id := w.event(e)
		switch {
		case v.no != nil:
			clear(m.weighed)
			return v.no
		case id != "":
			m.weighed[id] = v
		}
	}
	return nil
}

// Refuses says why a job of the event is not let in as things are; nil: it is. It
// changes nothing.
func (m *Machine) Refuses(e Event) *Refusal {
	w := weighing{m: m}
	v, _ := w.event(&e)
	return v.no
}

// verdict is what the rules say of the job that the step's event is about.
func (m *Machine) verdict(job string) verdict {
	v, ok := m.weighed[job]
	if delete(m.weighed, job); !ok {
		w := weighing{m: m}
		v, _ = w.event(m.e)
	}
	return v
}

// turnDown records that the job of the event is not let in.
func (m *Machine) turnDown(no *Refusal) {
	f := state.JobRefused{Job: no.Job, Why: string(no.Why), Detail: no.Err.Error()}
	if no.Limit != nil {
		f.Limit = no.Limit.Limit.Name()
	}
	m.fact(f)
}

// event weighs the job of an event; id is "" where it is about none that is weighed.
func (w *weighing) event(e *Event) (v verdict, id string) {
	v, id = w.ruled(e)
	return w.m.broken(v), id
}

// ruled is what the rules say of the job of an event.
func (w *weighing) ruled(e *Event) (v verdict, id string) {
	m := w.m
	if w.t = e.At; w.t.Before(m.now()) {
		w.t = m.now()
	}
	user := cmp.Or(state.UserOf(e.Actor), Owner)
	switch b := e.Body.(type) {
	case JobSubmitted:
		if b.Job != "" && m.s.Job(b.Job) == nil {
			return w.submission(&b, user), b.Job
		}
	case GroupOpened:
		if m.s.Group(b.Group) == nil {
			return w.opening(&b, user), b.Group
		}
	case GroupReviewed:
		if h := m.s.Group(b.Group); h != nil && h.Phase == state.GroupAwaits && b.Approved {
			return verdict{no: w.reviewedGroup(h)}, b.Group
		}
	case Spawn:
		if h := m.s.Group(b.Parent); h != nil {
			user = h.User()
		}
		return w.parts(&b, user), spawnKey(b)
	case JobReviewed:
		if j := m.s.Job(b.Job); j != nil && j.State() == Held && b.Approved {
			return verdict{no: w.approved(j)}, b.Job
		}
	case JobResumed:
		if j := m.s.Job(b.Job); j != nil && resumes(j) {
			return w.resumption(j, &b), b.Job
		}
	case JobUpdated:
		if j := m.s.Job(b.Job); j != nil && !j.State().Over() {
			return w.update(j, b.Changes), b.Job
		}
	}
	return v, ""
}

// submission weighs a new job. One that is let in under a limit of dollars, or above one
// that asks for approval, without a budget of its own gets one. One that waits for
// approval takes nothing.
func (w *weighing) submission(b *JobSubmitted, user string) (v verdict) {
	rules, t := w.m.rules(), b.Terms
	if v.no = w.m.noDependency(b.Job, t.After); v.no != nil {
		return v
	}
	if err := rules.Tags.Check(t.Owner); err != nil {
		v.no = &Refusal{Job: b.Job, Why: TagMissing, Err: err}
		return v
	}
	if !t.HasBudget && (t.Parent != "" || budget.Capped(rules.Limits, t.Owner, user)) {
		if most, known := budget.Bound(t.Work, w.m.highestRate(&t)*money.Rate(t.Most())); known {
			v.bound, t.Budget, t.HasBudget = &most, most, true
		}
	}
	j := Weighed(b.Job, user, &t)
	if v.no = w.weigh(j, &t); v.no != nil {
		return v
	}
	if t.Parent != "" { // approved with its hold
		v.no = w.part(j, &t, j.Most)
	} else {
		v.asking = w.asks(j)
	}
	if v.no == nil && v.asking == nil && b.Asking == nil {
		w.take(j)
	}
	return v
}

// asks says what a job must be approved for; nil: nothing.
func (w *weighing) asks(j budget.Job) *budget.PendingApproval {
	if a, asks := budget.Approval(w.m.rules().Limits, j, w.t, w.m.cfg().Stretch); asks {
		return &a
	}
	return nil
}

// approved weighs a job that waited for approval: it took nothing meanwhile.
func (w *weighing) approved(j *Job) *Refusal {
	is := w.now(j, j.Terms())
	no := w.weigh(is, j.Terms())
	if no == nil {
		w.take(is)
	}
	return no
}

// now is a job with some terms as limits see it now.
func (w *weighing) now(j *Job, t *Terms) budget.Job {
	v := Weighed(j.ID(), j.User(), t)
	v.Spent, v.GPUSpent = j.Spent(w.t), j.GPUServed().Hours()
	return v
}

// resumption weighs a job that goes on. One that is paused holds its money still.
func (w *weighing) resumption(j *Job, b *JobResumed) (v verdict) {
	rules := w.m.rules()
	if j.State().Over() {
		if err := rules.Tags.Check(j.Terms().Owner); err != nil {
			v.no = &Refusal{Job: j.ID(), Why: TagMissing, Err: err}
			return v
		}
		t := b.Changes.Apply(*j.Terms())
		is := Weighed(j.ID(), j.User(), &t)
		if wants := w.asks(is); wants != nil && is.Kind != budget.Part && !approvedFor(j, is, wants) {
			v.asking = wants
		}
	}
	if a := j.Approval(); a != nil && !a.Approved && v.asking == nil && b.Asking == nil {
		v.no = &Refusal{Job: j.ID(), Why: NeverApproved, Err: errors.New("it was never approved")}
		return v
	}
	if h := w.m.s.Group(j.Terms().Parent); bySearch(j) && h.Phase == state.GroupOpen {
		v.no = &Refusal{Job: j.ID(), Why: NoGroup, Err: fmt.Errorf("the search of %s has paused it, and resumes "+
			"it where that pays", h.Name)}
		return v
	}
	v.no = w.changed(j, b.Changes)
	return v
}

// update weighs new terms of a job that is not over. Of one that waits for approval another
// budget is what is asked for from then on; it needs none where that is not above any threshold.
func (w *weighing) update(j *Job, c Changes) (v verdict) {
	if j.State() != Held || c.Budget == nil && !c.NoBudget {
		v.no = w.changed(j, c)
		return v
	}
	t := c.Apply(*j.Terms())
	is := w.now(j, &t)
	if v.no = w.weigh(is, &t); v.no != nil {
		return v
	}
	if v.asking = w.asks(is); v.asking == nil {
		w.take(is)
	} else {
		v.asking.Until = j.Approval().Until
	}
	return v
}

// changed weighs a job with new terms, in the place of those it has.
func (w *weighing) changed(j *Job, c Changes) *Refusal {
	if len(w.m.rules().Limits) == 0 && j.Terms().Parent == "" {
		return nil
	}
	t := c.Apply(*j.Terms())
	was, is := w.now(j, j.Terms()), w.now(j, &t)
	was.AwaitsApproval = j.State() == Held
	if no := w.asksAnew(j, was, is); no != nil {
		return no
	}
	if !j.State().Over() || j.Costs() {
		books := w.accounts().Without(was)
		w.books = &books
	}
	no := w.weigh(is, &t)
	if more := most(is).Sub(claimOf(j, w.t)); no == nil && t.Parent != "" && (more.Sign() > 0 || !is.Bounded) {
		no = w.part(is, &t, more)
	}
	if no == nil {
		is.AwaitsApproval = was.AwaitsApproval
		w.take(is)
	}
	return no
}

// asksAnew refuses terms that would have to be approved, of a job that runs with others: less
// than it has it may always cost.
func (w *weighing) asksAnew(j *Job, was, is budget.Job) *Refusal {
	wants := w.asks(is)
	less := is.Bounded && (!was.Bounded || is.Most.Cmp(was.Most) <= 0) || !is.Bounded && !was.Bounded
	if wants == nil || less || is.Kind == budget.Part ||
		j.State().Over() || j.State() == Held || approvedFor(j, is, wants) {
		return nil
	}
	return &Refusal{Job: j.ID(), Why: NeedsApproval, Err: errors.New(wants.String())}
}

// approvedFor reports whether the job was approved for as much.
func approvedFor(j *Job, is budget.Job, wants *budget.PendingApproval) bool {
	a := j.Approval()
	if a == nil || !a.Approved || a.Bounded && (!is.Bounded || is.Most.Cmp(a.Most) > 0) {
		return false
	}
	return !slices.ContainsFunc(wants.Limits, func(t budget.Threshold) bool { return !a.Of(t.Limit) })
}

// accounts are what is spent and held, with what the jobs before take.
func (w *weighing) accounts() *budget.Accounts {
	if w.books == nil {
		b, _ := w.m.Books(w.t)
		b = b.Folded()
		w.books = &b
	}
	return w.books
}

// weigh says which limit does not let a job in.
func (w *weighing) weigh(j budget.Job, t *Terms) *Refusal {
	if len(w.m.rules().Limits) == 0 {
		return nil
	}
	no := w.accounts().Admit(j)
	if no == nil {
		return nil
	}
	if t.HasBudget && t.DeadlineFirst && no.Why == budget.NoBudget {
		no.Fix = "write first: budget in the job file, so that its budget holds"
	}
	no.Fix += w.m.heldIdle(no, w.t)
	return &Refusal{Job: j.ID, Why: LimitReached, Limit: no, Err: no}
}

// take counts a job that is let in.
func (w *weighing) take(j budget.Job) {
	if len(w.m.rules().Limits) > 0 {
		w.accounts().Take(j)
	}
}

// highestRate is the highest price at which a machine may be rented for a job, as far as is
// known now.
func (m *Machine) highestRate(t *Terms) money.Rate {
	if t.Need.MaxRate > 0 {
		return t.Need.MaxRate
	}
	most := money.Rate(0)
	for _, l := range m.s.Sale() {
		if q := l.Quote(); q.Priced {
			most = max(most, q.Rate)
		}
	}
	return most
}
