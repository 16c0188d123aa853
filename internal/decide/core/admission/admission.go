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

// ErrStale refuses limits whose base sums are too old: the caller must sum the postings again.
var ErrStale = errors.New("set limits: the postings since the base sums are no longer kept")

// Verdict is the result of the rules for a job that is to be admitted or to get other terms. The zero value admits
// it unchanged.
type Verdict struct {
	Bound  *money.Amount           // budget for a job that has none
	Asking *budget.PendingApproval // approval that it must wait for
	Bounds []*money.Amount         // the same as Bound for parts that start together
	No     *step.Refusal
}

// Weighing weighs several jobs at one time. Each job counts the amounts of the jobs before it.
type Weighing struct {
	m     *Admission
	T     time.Time
	Books *budget.Accounts // folded; nil: not summed yet

	Family *family                 // what groups with a budget have taken; nil: not summed yet
	Taken  map[string]money.Amount // what earlier jobs take from such groups
	Owed   *money.Amount           // by settled trials of the study whose moves are weighed; nil: not summed yet
}

// Weigher returns a Weighing at the time of the step.
func (ad *Admission) Weigher() *Weighing { return &Weighing{m: ad, T: ad.Now()} }

// Admit returns why the events, taken together, are refused, or nil. The next steps use the verdicts found here, so
// that jobs submitted together are all admitted or none. It changes nothing else.
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

// Refuses returns why a job of the event is refused in the current state, or nil. It changes nothing.
func (ad *Admission) Refuses(e state.Event) *step.Refusal {
	w := Weighing{m: ad}
	v, _ := w.event(&e)
	return v.No
}

// Verdict returns the verdict for the job of the step's event.
func (ad *Admission) Verdict(job string) Verdict {
	v, ok := ad.Weighed[job]
	if delete(ad.Weighed, job); !ok {
		w := Weighing{m: ad}
		v, _ = w.event(ad.Event)
	}
	return v
}

// TurnDown records that the job of the event is refused.
func (ad *Admission) TurnDown(no *step.Refusal) {
	f := state.JobRefused{Job: no.Job, Why: string(no.Why), Detail: no.Err.Error()}
	if no.Limit != nil {
		f.Limit = no.Limit.Limit.Name()
	}
	ad.Fact(f)
}

// event weighs the job of an event. id is empty if the event has no job to weigh.
func (w *Weighing) event(e *state.Event) (v Verdict, id string) {
	v, id = w.ruled(e)
	return w.m.broken(v), id
}

// ruled returns the verdict on an event that asks for work, and the name of its job or group; "": the event asks for
// nothing that is possible now.
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

// ruledJob is ruled for an event about a job in the state.
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

// Submission weighs a new job. A job without a budget gets one if it is under a limit in dollars or above an
// approval threshold. A job that waits for approval takes nothing.
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
		if most, known := w.m.Bound(&t); known {
			v.Bound, t.Budget, t.HasBudget = &most, most, true
		}
	}
	j := Weighed(b.Job, user, &t)
	if v.No = w.Weigh(j, &t); v.No != nil {
		return v
	}
	if t.Parent != "" { // approved together with its group
		v.No = w.part(j, &t, j.Most)
	} else {
		v.Asking = budget.Asking(w.asks(j), b.Asking, j)
	}
	if v.No == nil && v.Asking == nil && b.Asking == nil {
		w.take(j)
	}
	return v
}

// asks returns the approval that a job needs, or nil.
func (w *Weighing) asks(j budget.Job) *budget.PendingApproval {
	if a, asks := budget.Approval(w.m.Rules().Limits, j, w.T, w.m.Config().Stretch); asks {
		return &a
	}
	return nil
}

// approved weighs a job that waited for approval. It took nothing meanwhile.
func (w *Weighing) approved(j *state.Job) *step.Refusal {
	is := w.now(j, j.Terms())
	no := w.Weigh(is, j.Terms())
	if no == nil {
		w.take(is)
	}
	return no
}

// now returns a job with the given terms as limits see it now.
func (w *Weighing) now(j *state.Job, t *state.Terms) budget.Job {
	v := Weighed(j.ID(), j.User(), t)
	v.Spent, v.GPUSpent = j.Spent(w.T), j.GPUServed().Hours()
	return v
}

// resumption weighs a job that is resumed. A paused job still has its hold.
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
		v.No = &step.Refusal{Job: j.ID(), Why: step.NeverApproved, Err: errors.New("nobody approved it")}
		return v
	}
	if h := w.m.State.Group(j.Terms().Parent); BySearch(j) && h.Phase == state.GroupOpen {
		v.No = &step.Refusal{Job: j.ID(), Why: step.NoGroup, Err: fmt.Errorf("the search of %s paused it, and resumes "+
			"it if that pays", h.Name)}
		return v
	}
	v.No = w.changed(j, b.Changes)
	return v
}

// update weighs new terms of a job that has not ended. If the job waits for approval, the request becomes one for
// the new budget. It needs no approval if the new budget is below all thresholds, unless it is a proposal.
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
	if v.Asking = budget.Asking(w.asks(is), &j.Approval().PendingApproval, is); v.Asking == nil {
		w.take(is)
	} else {
		v.Asking.Until = j.Approval().Until
	}
	return v
}

// changed weighs a job with new terms in place of its current ones.
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

// asksAnew refuses new terms that would need an approval, for a job that already runs. Terms that lower its cost
// are always allowed.
func (w *Weighing) asksAnew(j *state.Job, was, is budget.Job) *step.Refusal {
	wants := w.asks(is)
	less := is.Bounded && (!was.Bounded || is.Most.Cmp(was.Most) <= 0) || !is.Bounded && !was.Bounded
	if wants == nil || less || is.Kind == budget.Part ||
		j.State().Over() || j.State() == state.Held || approvedFor(j, is, wants) {
		return nil
	}
	return &step.Refusal{Job: j.ID(), Why: step.NeedsApproval, Err: errors.New(wants.String())}
}

// approvedFor reports whether the job was approved for that amount.
func approvedFor(j *state.Job, is budget.Job, wants *budget.PendingApproval) bool {
	a := j.Approval()
	if a == nil || !a.Approved || a.Bounded && (!is.Bounded || is.Most.Cmp(a.Most) > 0) {
		return false
	}
	return !slices.ContainsFunc(wants.Limits, func(t budget.Threshold) bool { return !a.Of(t.Limit) })
}

// accounts returns the spent and held amounts, including those of earlier jobs.
func (w *Weighing) accounts() *budget.Accounts {
	if w.Books == nil {
		b, _ := w.m.Books(w.T)
		b = b.Folded()
		w.Books = &b
	}
	return w.Books
}

// Weigh returns the refusal of the limit that has no room for a job, or nil.
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

// take counts an admitted job.
func (w *Weighing) take(j budget.Job) {
	if len(w.m.Rules().Limits) > 0 {
		w.accounts().Take(j)
	}
}
