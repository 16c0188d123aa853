package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
)

// Begin opens the next event and advances the clock to it. It panics if time runs backwards, which is a bug in the
// caller.
func (s *State) Begin(e *Event) {
	if e.At.Before(s.now) {
		panic(fmt.Sprintf("state: %s at %v, but it is %v already", e.Body.Kind(), e.At, s.now))
	}
	s.before, s.now, s.repriced = s.now, e.At, s.repriced[:0]
	s.seq++
}

// Forget closes an event that changed nothing, so the log does not keep it.
func (s *State) Forget() {
	s.now = s.before
	s.seq--
}

// Apply records a decision about the event. Besides Observe and Post it is the only way to change the state. It
// panics on a fact that the state machines do not allow, which is a bug in the rule that made it.
func (s *State) Apply(e *Event, f Fact) {
	switch f := f.(type) {
	case JobHeld, JobRefused, JobQueued, JobEnding, JobOver, JobSuspended, JobReopened, JobChanged, JobPriced, Decided,
		ProbeAsked, RungFailed:
		s.applyJob(e, f)
		if j := s.jobs[movedJob(f)]; j != nil {
			s.trialMoves(j)
		}
	case AllocationRequested, AllocationQueued, AllocationGranted, AllocationCancelling, AllocationClosed,
		AllocationReduced,
		AttemptBegan, BackedOff:
		s.applyAllocation(e, f)
	case TaskClaimed, TaskStarted, NoticeTaken, DrainRequested, TaskEnded, TimeSettled, TaskCut:
		s.applyTask(e, f)
	case StrayFound, InterruptionTaken,
		InstanceRegistered, InstanceReleased, InstanceMissing, InstanceListed, InstanceClosed,
		InstanceExtended, InstanceLeft, BillTaken, BillSplit, InstanceOwned, SeatLeft, SeatReleased,
		InstanceCleaned:
		s.applyInstance(e, f)
	case ConfigSet:
		s.cfg = e.Body.(Configured).Config
		s.closes()
	case RulesSet:
		s.setRules(e.Body.(BudgetsSet))
	case GroupGranted, GroupEnded, MembersEnding, GroupFinished, GroupWaits, StageSettled, RunSettled:
		s.applyGroup(e, f)
	case TrialLeft:
		s.trialLeft(f)
	case DependencyMet:
		s.applyDependency(f)
	case LimitReached:
		s.reached(f.Limit)
	case IncarnationSet:
		s.begins(e.Body.(IncarnationBegun))
	case ReserveSettled:
		s.stock(f.Offer).Settled = s.now
	case JobPlaced, JobPinned:
		s.applyRound(f)
	case JobArchived, JobRehydrated:
		s.applyArchive(e, f)
	default:
		panic(fmt.Sprintf("state: unknown fact %T", f))
	}
}

// closes marks the offers of providers that are no longer configured as unavailable, until the providers quote them
// again.
func (s *State) closes() {
	for _, l := range s.sale {
		if q := &l.r.Quote; !s.cfg.Sells(l.r.Offer.Provider) && (q.Available || q.Untried) {
			q.Available, q.Untried = false, false
			s.repriced = append(s.repriced, l)
		}
	}
}

// begins takes over the installation and incarnation. Running machines were rented by the previous incarnation, and
// stay disowned until somebody adopts or releases them.
func (s *State) begins(b IncarnationBegun) {
	s.installation, s.incarnation = b.Installation, b.Incarnation
	if b.Incarnation < 2 {
		return
	}
	for _, i := range s.instances {
		if i.r.Disowned = i.Live() && !i.r.Machine.Prepaid; i.r.Disowned {
			s.undecided[i.r.ID] = Undecided{Instance: i.r.ID, Offer: i.r.Machine.Offer, Job: i.r.Job}
		}
	}
}

// touch must be called before a job changes.
func (s *State) touch(j *Job) {
	if j.changed != s.seq || s.snapshot != nil {
		j.changed, s.parts[s.partOf(j)] = s.seq, s.seq
		s.spare(j)
	}
	if s.watch != nil {
		s.watch(j)
	}
}

// index updates whether the job is listed among those that hold or request a machine.
func (s *State) index(j *Job) {
	i, found := slices.BinarySearchFunc(s.running, j.r.ID, func(a *Job, id string) int { return cmp.Compare(a.r.ID, id) })
	switch holds := j.Holds(); {
	case holds && !found:
		s.running = slices.Insert(s.running, i, j)
	case !holds && found:
		s.running = slices.Delete(s.running, i, i+1)
	}
}

func (s *State) applyJob(e *Event, f Fact) {
	switch f := f.(type) {
	case JobHeld:
		s.held(e, f)
	case JobRefused: // changes nothing
	case JobQueued:
		s.queued(e, f)
	case JobEnding:
		j := s.touched(f.Job)
		j.runs().Ending, j.runs().EndingWhy = f.State, f.Why
		j.r.Detail = cmp.Or(f.Detail, j.r.Detail)
	case JobOver:
		j := s.touched(f.Job)
		if b, ok := e.Body.(JobReviewed); ok && j.r.State == Held {
			j.r.Approval = reviewed(j.r.Approval, e, b)
		}
		move(NextStatus, "job", j.r.ID, &j.r.State, f.State)
		j.r.Why, j.r.Detail, j.r.Finished, j.r.Waits = f.Why, f.Detail, s.now, nil
		s.memberEnds(j, 1)
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
				j.r.Run.MigratingTo = "" // the decision replaces the migration target
			}
		}
		if f.Foreseen != nil {
			j.r.Foreseen = f.Foreseen
		}
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
}

// Reasons: a held job waits for approval; a job was resumed.
const (
	WaitsForApproval = "waits_for_approval"
	Resumed          = "resumed"
)

// submit creates the job of the event.
func (s *State) submit(e *Event, b *JobSubmitted, bound *money.Amount) *Job {
	s.order++
	j := &Job{order: s.order, r: JobRecord{
		ID: b.Job, Tenant: e.Tenant, Terms: b.Terms, By: UserOf(e.Actor), Submitted: s.now, UnplacedSince: s.now,
		Event: s.seq, Waits: b.Terms.After,
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
	j.r.Why, j.r.Detail = WaitsForApproval, asking.String()
	j.r.Approval = &Approval{PendingApproval: *asking}
}

// reopened reopens a job that has ended. What it learned and cost stays; what ended it no longer counts.
func (s *State) reopened(j *Job) {
	s.memberEnds(j, -1)
	since := j.r.Finished
	if paused := j.PausedSince(); !paused.IsZero() { // it ended while paused
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

// shifted returns t moved later by d, or the zero time if t is zero.
func shifted(t time.Time, d time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(d)
}

func (s *State) queued(e *Event, f JobQueued) {
	j := s.jobs[f.Job]
	if j == nil {
		j = s.submit(e, s.submission(e, f.Job), f.Bound)
	} else {
		s.touch(j)
	}
	if j.r.State.Over() {
		panic("state: job " + f.Job + " is finished, and nothing reopened it")
	}
	if j.r.State == Held {
		j.r.Approval, j.r.UnplacedSince = letIn(j.r.Approval, e), s.now
	}
	if since := j.PausedSince(); !since.IsZero() {
		j.r.UnplacedSince = s.now
		r := j.runs()
		r.PausedSince, r.Began = time.Time{}, shifted(r.Began, s.now.Sub(since))
	}
	if _, resumes := e.Body.(Proposed); resumes && f.Bound != nil { // a resumed trial has a new share of the budget
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

// touched returns the job with the given ID for a change, and panics if it is unknown.
func (s *State) touched(id string) *Job {
	j := s.jobs[id]
	if j == nil {
		panic("state: a fact about unknown job " + id)
	}
	s.touch(j)
	return j
}

// Post records a posting: it updates the sums of what was spent, on what and under which limits.
func (s *State) Post(p *ledger.Posting) {
	s.heads[p.Owner.Tenant] = p.Hash
	s.spend(p)
	if p.Category == ledger.Fixed && p.Rule == ReservedRule {
		if !isCost(p.To) && !isCost(p.From) {
			return // its bill
		}
		st := s.stock(offerID(p.Owner.Instance))
		st.Idle = st.Idle.Add(costOf(p))
		return
	}
	k := s.TaskOf(p.Owner.Task)
	if k == nil {
		if i := s.instances[p.Owner.Instance]; i != nil && p.Category == ledger.Overhead {
			s.postStray(i, costOf(p))
		}
		s.postIdle(p)
		return
	}
	a := k.attempt
	j := s.touched(a.r.Job)
	t := &k.r
	before := t.Posted.Add(t.Rules)
	if t.Uses == nil {
		t.Uses = map[ledger.Use]money.Amount{}
	}
	if _, use, ok := p.To.IsCost(); ok {
		t.Uses[use] = t.Uses[use].Add(p.Amount)
	}
	if _, use, ok := p.From.IsCost(); ok {
		t.Uses[use] = t.Uses[use].Sub(p.Amount)
	}
	amount := costOf(p)
	switch p.Phase {
	case ledger.Accrued:
		t.Posted, t.Accrued = t.Posted.Add(amount), accrued(t.Accrued, p)
		if i := s.instances[t.Instance]; i != nil && i.had(a.r.ID) {
			i.r.Posted = i.r.Posted.Add(amount)
		}
	case ledger.Billed:
		t.Rules = t.Rules.Add(amount)
	case ledger.Estimated:
	}
	if t.Machine.Prepaid {
		st := s.stock(t.Machine.Offer)
		st.Used = st.Used.Add(t.Machine.Owned(amount))
	}
	if r := j.runs(); slices.Contains(r.Attempts[:r.Closed], a) {
		r.Settled = r.Settled.Add(t.Posted.Add(t.Rules).Sub(before))
	}
}

// Replay applies an event of the log with its recorded facts and postings, and runs no rule. Sequence numbers may
// have gaps where samples were dropped.
func (s *State) Replay(seq uint64, e Event, facts []Fact, postings []ledger.Posting) {
	s.seq = seq - 1
	s.Begin(&e)
	s.Observe(&e)
	for _, f := range facts {
		s.Apply(&e, f)
	}
	for i := range postings {
		s.Post(&postings[i])
	}
}
