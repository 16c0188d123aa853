package admission

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// ErrStale refuses limits for which what they have spent was summed too long ago: sum
// it again.
var ErrStale = errors.New("set limits: more was spent since than is kept")

// Verdict is what the rules in force say of a job that is to be let in, or to have other
// terms. The zero value lets it in as it is.
type Verdict struct {
	Bound  *money.Amount           // the budget that it gets, since it has none
	Asking *budget.PendingApproval // what it waits for first
	Bounds []*money.Amount         // the same as bound, of parts that begin together
	No     *step.Refusal
}

// Weighing weighs jobs at one time, each with what those before it take.
type Weighing struct {
	m     *Admission
	T     time.Time
	Books *budget.Accounts // folded; nil: not summed yet

	Family *family                 // what holds have taken; nil: not summed yet
	Taken  map[string]money.Amount // what those before take of holds
}

// Weigher weighs at the time of the step.
func (ad *Admission) Weigher() *Weighing { return &Weighing{m: ad, T: ad.Now()} }

// Admit says why the events are not taken, all of them together; nil: they are. The next
// steps take them as they were weighed here, so that of jobs that are submitted together
// all are let in or none. It changes nothing else.
func (ad *Admission) Admit(events []state.Event) error {
	clear(ad.Weighed)
	w := Weighing{m: ad}
	for i := range events {
		e := &events[i]
		if b, ok := e.Body.(state.BudgetsSet); ok && ad.State.Stale(b) {
			return ErrStale
		}
		v, id := w.event(e)
		switch {
		case v.No != nil:
			clear(ad.Weighed)
			return v.No
		case id != "":
			ad.Weighed[id] = v
		}
	}
	return nil
}

// Refuses says why a job of the event is not let in as things are; nil: it is. It
// changes nothing.
func (ad *Admission) Refuses(e state.Event) *step.Refusal {
	w := Weighing{m: ad}
	v, _ := w.event(&e)
	return v.No
}

// Verdict is what the rules say of the job that the step's event is about.
func (ad *Admission) Verdict(job string) Verdict {
	v, ok := ad.Weighed[job]
	if delete(ad.Weighed, job); !ok {
		w := Weighing{m: ad}
		v, _ = w.event(ad.Event)
	}
	return v
}

// TurnDown records that the job of the event is not let in.
func (ad *Admission) TurnDown(no *step.Refusal) {
	f := state.JobRefused{Job: no.Job, Why: string(no.Why), Detail: no.Err.Error()}
	if no.Limit != nil {
		f.Limit = no.Limit.Limit.Name()
	}
	ad.Fact(f)
}

// event weighs the job of an event; id is "" where it is about none that is weighed.
func (w *Weighing) event(e *state.Event) (v Verdict, id string) {
	v, id = w.ruled(e)
	return w.m.broken(v), id
}

// ruled returns what the rules say about an event that asks for work, and the name of the job or group that it is
// about; "": the event asks for nothing that is possible now.
func (w *Weighing) ruled(e *state.Event) (v Verdict, id string) {
	m := w.m
	if w.T = e.At; w.T.Before(m.Now()) {
		w.T = m.Now()
	}
	user := cmp.Or(state.UserOf(e.Actor), state.Owner)
	switch b := e.Body.(type) {
	case state.JobSubmitted:
		if b.Job != "" && m.State.Job(b.Job) == nil {
			return w.Submission(&b, user), b.Job
		}
	case state.GroupOpened:
		if m.State.Group(b.Group) == nil {
			return w.Opening(&b, user), b.Group
		}
	case state.GroupReviewed:
		if h := m.State.Group(b.Group); h != nil && h.Phase == state.GroupAwaits && b.Approved {
			return Verdict{No: w.reviewedGroup(h)}, b.Group
		}
	case state.Spawn:
		if h := m.State.Group(b.Parent); h != nil {
			user = h.User()
		}
		return w.parts(&b, user), SpawnKey(b)
	default:
		return w.ruledJob(e.Body)
	}
	return v, ""
}

// ruledJob is ruled for an event about a job that the state has.
func (w *Weighing) ruledJob(body state.Body) (v Verdict, id string) {
	m := w.m
	switch b := body.(type) {
	case state.JobReviewed:
		if j := m.State.Job(b.Job); j != nil && j.State() == state.Held && b.Approved {
			return Verdict{No: w.approved(j)}, b.Job
		}
	case state.JobResumed:
		if j := m.State.Job(b.Job); j != nil && Resumes(j) {
			return w.resumption(j, &b), b.Job
		}
	case state.JobUpdated:
		if j := m.State.Job(b.Job); j != nil && !j.State().Over() {
			return w.update(j, b.Changes), b.Job
		}
	}
	return v, ""
}

// Submission weighs a new job. One that is let in under a limit of dollars, or above one
// that asks for approval, without a budget of its own gets one. One that waits for
// approval takes nothing.
func (w *Weighing) Submission(b *state.JobSubmitted, user string) (v Verdict) {
	rules, t := w.m.Rules(), b.Terms
	if v.No = w.m.noDependency(b.Job, t.After); v.No != nil {
		return v
	}
	if err := rules.Tags.Check(t.Owner); err != nil {
		v.No = &step.Refusal{Job: b.Job, Why: step.TagMissing, Err: err}
		return v
	}
	if !t.HasBudget && (t.Parent != "" || budget.Capped(rules.Limits, t.Owner, user)) {
		if most, known := budget.Bound(t.Work, w.m.highestRate(&t)*money.Rate(t.Most())); known {
			v.Bound, t.Budget, t.HasBudget = &most, most, true
		}
	}
	j := Weighed(b.Job, user, &t)
	if v.No = w.Weigh(j, &t); v.No != nil {
		return v
	}
	if t.Parent != "" { // approved with its hold
		v.No = w.part(j, &t, j.Most)
	} else {
		v.Asking = w.asks(j)
	}
	if v.No == nil && v.Asking == nil && b.Asking == nil {
		w.take(j)
	}
	return v
}

// asks says what a job must be approved for; nil: nothing.
func (w *Weighing) asks(j budget.Job) *budget.PendingApproval {
	if a, asks := budget.Approval(w.m.Rules().Limits, j, w.T, w.m.Config().Stretch); asks {
		return &a
	}
	return nil
}

// approved weighs a job that waited for approval: it took nothing meanwhile.
func (w *Weighing) approved(j *state.Job) *step.Refusal {
	is := w.now(j, j.Terms())
	no := w.Weigh(is, j.Terms())
	if no == nil {
		w.take(is)
	}
	return no
}

// now is a job with some terms as limits see it now.
func (w *Weighing) now(j *state.Job, t *state.Terms) budget.Job {
	v := Weighed(j.ID(), j.User(), t)
	v.Spent, v.GPUSpent = j.Spent(w.T), j.GPUServed().Hours()
	return v
}

// resumption weighs a job that goes on. One that is paused holds its money still.
func (w *Weighing) resumption(j *state.Job, b *state.JobResumed) (v Verdict) {
	rules := w.m.Rules()
	if j.State().Over() {
		if err := rules.Tags.Check(j.Terms().Owner); err != nil {
			v.No = &step.Refusal{Job: j.ID(), Why: step.TagMissing, Err: err}
			return v
		}
		t := b.Changes.Apply(*j.Terms())
		is := Weighed(j.ID(), j.User(), &t)
		if wants := w.asks(is); wants != nil && is.Kind != budget.Part && !approvedFor(j, is, wants) {
			v.Asking = wants
		}
	}
	if a := j.Approval(); a != nil && !a.Approved && v.Asking == nil && b.Asking == nil {
		v.No = &step.Refusal{Job: j.ID(), Why: step.NeverApproved, Err: errors.New("it was never approved")}
		return v
	}
	if h := w.m.State.Group(j.Terms().Parent); BySearch(j) && h.Phase == state.GroupOpen {
		v.No = &step.Refusal{Job: j.ID(), Why: step.NoGroup, Err: fmt.Errorf("the search of %s has paused it, and resumes "+
			"it where that pays", h.Name)}
		return v
	}
	v.No = w.changed(j, b.Changes)
	return v
}

// update weighs new terms of a job that is not over. Of one that waits for approval another
// budget is what is asked for from then on; it needs none where that is not above any threshold.
func (w *Weighing) update(j *state.Job, c state.Changes) (v Verdict) {
	if j.State() != state.Held || c.Budget == nil && !c.NoBudget {
		v.No = w.changed(j, c)
		return v
	}
	t := c.Apply(*j.Terms())
	is := w.now(j, &t)
	if v.No = w.Weigh(is, &t); v.No != nil {
		return v
	}
	if v.Asking = w.asks(is); v.Asking == nil {
		w.take(is)
	} else {
		v.Asking.Until = j.Approval().Until
	}
	return v
}

// changed weighs a job with new terms, in the place of those it has.
func (w *Weighing) changed(j *state.Job, c state.Changes) *step.Refusal {
	if len(w.m.Rules().Limits) == 0 && j.Terms().Parent == "" {
		return nil
	}
	t := c.Apply(*j.Terms())
	was, is := w.now(j, j.Terms()), w.now(j, &t)
	was.AwaitsApproval = j.State() == state.Held
	if no := w.asksAnew(j, was, is); no != nil {
		return no
	}
	if !j.State().Over() || j.Costs() {
		books := w.accounts().Without(was)
		w.Books = &books
	}
	no := w.Weigh(is, &t)
	if more := most(is).Sub(claimOf(j, w.T)); no == nil && t.Parent != "" && (more.Sign() > 0 || !is.Bounded) {
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
func (w *Weighing) asksAnew(j *state.Job, was, is budget.Job) *step.Refusal {
	wants := w.asks(is)
	less := is.Bounded && (!was.Bounded || is.Most.Cmp(was.Most) <= 0) || !is.Bounded && !was.Bounded
	if wants == nil || less || is.Kind == budget.Part ||
		j.State().Over() || j.State() == state.Held || approvedFor(j, is, wants) {
		return nil
	}
	return &step.Refusal{Job: j.ID(), Why: step.NeedsApproval, Err: errors.New(wants.String())}
}

// approvedFor reports whether the job was approved for as much.
func approvedFor(j *state.Job, is budget.Job, wants *budget.PendingApproval) bool {
	a := j.Approval()
	if a == nil || !a.Approved || a.Bounded && (!is.Bounded || is.Most.Cmp(a.Most) > 0) {
		return false
	}
	return !slices.ContainsFunc(wants.Limits, func(t budget.Threshold) bool { return !a.Of(t.Limit) })
}

// accounts are what is spent and held, with what the jobs before take.
func (w *Weighing) accounts() *budget.Accounts {
	if w.Books == nil {
		b, _ := w.m.Books(w.T)
		b = b.Folded()
		w.Books = &b
	}
	return w.Books
}

// Weigh says which limit does not let a job in.
func (w *Weighing) Weigh(j budget.Job, t *state.Terms) *step.Refusal {
	if len(w.m.Rules().Limits) == 0 {
		return nil
	}
	no := w.accounts().Admit(j)
	if no == nil {
		return nil
	}
	if t.HasBudget && t.DeadlineFirst && no.Why == budget.NoBudget {
		no.Fix = "write first: budget in the job file, so that its budget holds"
	}
	no.Fix += w.m.heldIdle(no, w.T)
	return &step.Refusal{Job: j.ID, Why: step.LimitReached, Limit: no, Err: no}
}

// take counts a job that is let in.
func (w *Weighing) take(j budget.Job) {
	if len(w.m.Rules().Limits) > 0 {
		w.accounts().Take(j)
	}
}

// highestRate is the highest price at which a machine may be rented for a job, as far as is
// known now.
func (ad *Admission) highestRate(t *state.Terms) money.Rate {
	if t.Need.MaxRate > 0 {
		return t.Need.MaxRate
	}
	most := money.Rate(0)
	for _, l := range ad.State.Sale() {
		if q := l.Quote(); q.Priced {
			most = max(most, q.Rate)
		}
	}
	return most
}
