package state

import (
	"cmp"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
)

// applyJob records a fact about a job, and the new phase of its trial if it has one.
func (s *State) applyJob(e *Event, f Fact) {
	switch f := f.(type) {
	case JobHeld:
		s.held(e, f)
	case JobRefused: // it changes nothing
	case JobQueued:
		s.queued(e, f)
	case JobEnding:
		j := s.touched(f.Job)
		j.runs().Ending, j.runs().EndingWhy = f.State, f.Why
		j.r.Detail = cmp.Or(f.Detail, j.r.Detail)
	case JobOver:
		s.over(e, f)
	case JobSuspended:
		j := s.touched(f.Job)
		move(NextStatus, "job", j.r.ID, &j.r.State, Paused)
		j.r.Why, j.r.Detail = f.Why, cmp.Or(f.Detail, j.r.Detail)
		r := j.runs()
		r.PausedSince, r.Ending, r.EndingWhy = s.now, "", ""
	case JobReopened:
		j := s.touched(f.Job)
		s.reopened(j)
		move(NextStatus, "job", j.r.ID, &j.r.State, Queued)
		j.r.Why = Resumed
	case JobChanged:
		s.changed(e, s.touched(f.Job))
	case JobPriced:
		r := &s.touched(f.Job).r
		r.OnDemand, r.OnDemandOffer = &f.OnDemand, f.Offer
	case Decided:
		s.decided(f)
	case ProbeAsked:
		r := s.touched(f.Job).runs()
		r.Probes++
		r.Probed, r.ProbeOf = s.now, f.Offer
	case RungFailed:
		r := s.touched(f.Job).runs()
		for len(r.Fallback) <= f.Rung {
			r.Fallback = append(r.Fallback, f.State)
			r.Fallback[len(r.Fallback)-1].Failures, r.Fallback[len(r.Fallback)-1].Rests = 0, time.Time{}
		}
		r.Fallback[f.Rung] = f.State
	}
	if j := s.jobs[movedJob(f)]; j != nil {
		s.trialMoves(j)
	}
}

// over records the end of a job.
func (s *State) over(e *Event, f JobOver) {
	j := s.touched(f.Job)
	if b, ok := e.Body.(JobReviewed); ok && j.r.State == Held {
		j.r.Approval = reviewed(j.r.Approval, e, b)
	}
	move(NextStatus, "job", j.r.ID, &j.r.State, f.State)
	j.r.Why, j.r.Detail, j.r.Finished, j.r.Waits = f.Why, f.Detail, s.now, nil
	s.memberEnds(j, 1)
	s.endTeam(j, 1)
}

// decided records the newest decision about a job.
func (s *State) decided(f Decided) {
	j := s.touched(f.Job)
	if f.SameRejected && j.r.Last != nil {
		f.Decision.Rejected, f.Decision.Counts = j.r.Last.Rejected, j.r.Last.Counts
	}
	d := f.Decision // not f, which is larger
	j.r.Last, j.r.Decided = s.sharedDecision(&d), s.now
	if j.r.State == Queued {
		if f.Decision.Take == "" && f.Decision.Probe == "" {
			j.r.Why = string(f.Decision.Why)
		}
		if j.r.Run != nil {
			j.r.Run.MigratingTo = "" // it was decided again where it goes
		}
	}
	if f.Foreseen != nil {
		j.r.Foreseen = f.Foreseen
	}
}

// Reasons why a job is held, and why an approved job waits.
const (
	WaitsForApproval = "waits_for_approval"
	Resumed          = "resumed"
)

// submit makes the job of the event.
func (s *State) submit(e *Event, b *JobSubmitted, bound *money.Amount) *Job {
	s.order++
	j := &Job{order: s.order, r: JobRecord{
		ID: b.Job, Tenant: e.Tenant, Terms: b.Terms, By: UserOf(e.Actor), Submitted: s.now, UnplacedSince: s.now,
		Event: s.seq, Waits: b.Terms.After, Stored: b.Stored,
	}}
	if j.r.Terms.Group == "" {
		j.r.Terms.Group = b.Terms.Parent
	}
	switch b := e.Body.(type) {
	case Spawn:
		j.r.By = s.groups[b.Parent].By
	case Proposed:
		g := s.groups[b.Group]
		j.r.By, j.r.Tenant, j.r.Event = g.By, g.Tenant, g.Event
	}
	if bound != nil {
		j.r.Terms.Budget, j.r.Terms.HasBudget = *bound, true
	}
	if f := b.From; f != nil {
		r := j.runs()
		r.Source, r.Learned.Step, r.Learned.SavedStep, r.Learned.HasSaved = f, f.Step, f.Step, true
	}
	s.shares(&j.r)
	s.jobs[j.r.ID] = j
	s.inOrder = append(s.inOrder, j)
	s.grow()
	s.touch(j)
	s.memberBegins(e, j)
	return j
}

func (s *State) held(e *Event, f JobHeld) {
	var j *Job
	var asking *budget.PendingApproval
	switch b := e.Body.(type) {
	case JobSubmitted:
		j, asking = s.submit(e, &b, f.Bound), b.Asking
	case JobResumed:
		j, asking = s.touched(f.Job), b.Asking
		s.reopened(j)
	case JobUpdated:
		j = s.touched(f.Job)
	}
	asking = cmp.Or(f.Asking, asking)
	move(NextStatus, "job", j.r.ID, &j.r.State, Held)
	if r := j.r.Run; r != nil && !r.Began.IsZero() && r.PausedSince.IsZero() {
		r.PausedSince = s.now // the wait for an approval is not part of the job's time
	}
	j.r.Why, j.r.Detail = WaitsForApproval, asking.String()
	j.r.Approval = &Approval{PendingApproval: *asking}
}

// reopened opens an ended job again: what the job has learned and cost stays, and the reason of its end goes.
func (s *State) reopened(j *Job) {
	s.memberEnds(j, -1)
	s.endTeam(j, -1)
	since := j.r.Finished
	if paused := j.PausedSince(); !paused.IsZero() { // it ended while it was paused
		since = paused
	}
	j.r.Finished, j.r.OnDemand, j.r.OnDemandOffer, j.r.Detail, j.r.UnplacedSince = time.Time{}, nil, "", "", s.now
	j.r.Waits = j.r.Terms.After
	r := j.runs()
	r.Reopened++
	r.Ending, r.EndingWhy, r.Retries, r.UnsavedLosses, r.Fallback, r.MigratingTo = "", "", 0, 0, nil, ""
	r.Learned.Failures, r.Learned.SetUp, r.Learned.Seen = 0, setUps{}, policy.Seen{}
	r.PausedSince, r.Began = time.Time{}, shifted(r.Began, s.now.Sub(since))
}

// changed applies new terms to a job.
func (s *State) changed(e *Event, j *Job) {
	switch b := e.Body.(type) {
	case JobResumed:
		j.r.Terms = b.Changes.Apply(j.r.Terms)
		if len(b.Spec) > 0 {
			j.runs().SpecEvent = s.seq
		}
	case JobUpdated:
		j.r.Terms = b.Changes.Apply(j.r.Terms)
	}
}

func (s *State) queued(e *Event, f JobQueued) {
	j := s.jobs[f.Job]
	if j == nil {
		j = s.submit(e, s.submission(e, f.Job), f.Bound)
	} else {
		s.touch(j)
	}
	if j.r.State.Over() {
		panic("state: job " + f.Job + " is over: it is reopened or stays so")
	}
	if j.r.State == Held {
		j.r.Approval, j.r.UnplacedSince = letIn(j.r.Approval, e), s.now
	}
	if since := j.PausedSince(); !since.IsZero() {
		j.r.UnplacedSince = s.now
		r := j.runs()
		r.PausedSince, r.Began = time.Time{}, shifted(r.Began, s.now.Sub(since))
	}
	if _, resumes := e.Body.(Proposed); resumes && f.Bound != nil { // a trial that goes on has another share
		j.r.Terms.Budget, j.r.Terms.HasBudget = *f.Bound, true
	}
	move(NextStatus, "job", j.r.ID, &j.r.State, Queued)
	j.r.Why, j.r.Detail = f.Why, f.Detail
	if f.Retried {
		j.runs().Retries++
	}
	if f.Failed {
		j.runs().Learned.Failures++
	}
	if j.r.UnplacedSince.IsZero() {
		j.r.UnplacedSince = s.now
	}
}
