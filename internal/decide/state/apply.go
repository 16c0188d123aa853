package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
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
	case StudyFlat:
		s.groups[f.Group].Study.Flat = &f.Gain
	case StudyPromotes:
		y := s.groups[f.Group].Study
		y.Promotes = new(len(y.Reports))
	case DependencyMet:
		s.applyDependency(f)
	case LimitReached:
		s.reached(f.Limit)
	case IncarnationSet:
		s.begins(e.Body.(IncarnationBegun))
	case ReconciliationBooked:
		s.reconciled = s.seq
	case ReserveSettled:
		s.stock(f.Offer).Settled = s.now
	case JobPlaced, JobPinned:
		s.applyRound(f)
	case JobPreempted:
		s.preempted(f)
	case JobArchived, JobRehydrated, GroupArchived, GroupRehydrated:
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

// shifted is t later by d, where it is known.
func shifted(t time.Time, d time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(d)
}

// touched is the job of that name, about to be changed.
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
	k := s.TaskOf(p.Owner.Task)
	switch {
	case p.Category == ledger.Fixed && p.Rule == ReservedRule:
		s.postReserved(p)
	case k != nil:
		s.postTask(k, p)
	default:
		if i := s.instances[p.Owner.Instance]; i != nil && p.Category == ledger.Overhead {
			s.postStray(i, costOf(p))
		}
		s.postIdle(p)
	}
}

// postReserved adds the cost of reserved machines that nobody uses to that of their offer. A posting of their bill adds
// no cost.
func (s *State) postReserved(p *ledger.Posting) {
	if !isCost(p.To) && !isCost(p.From) {
		return
	}
	st := s.stock(offerID(p.Owner.Instance))
	st.Idle = st.Idle.Add(costOf(p))
}

// postTask adds a posting to the sums of a task, and of its machine and its job.
func (s *State) postTask(k *Task, p *ledger.Posting) {
	a := k.attempt
	j := s.touched(a.r.Job)
	t := &k.r
	before := t.Posted.Add(t.Rules)
	t.uses(p)
	amount := costOf(p)
	switch {
	case p.Rule == ledger.DataRule: // no machine time, and no machine bills it
		t.Reads, t.Rules, t.Extras = t.Reads.Add(amount), t.Rules.Add(amount), t.Extras.Add(amount)
	case p.Phase == ledger.Accrued:
		t.Posted, t.Accrued = t.Posted.Add(amount), accrued(t.Accrued, p)
		if i := s.instances[t.Instance]; i != nil && i.had(a.r.ID) {
			i.r.Posted = i.r.Posted.Add(amount)
		}
	case p.Phase == ledger.Billed:
		t.Rules = t.Rules.Add(amount)
		if _, extra := ledger.Extra(p.Rule); extra {
			t.Extras = t.Extras.Add(amount)
		}
	}
	if t.Machine.Prepaid && p.Rule != ledger.DataRule {
		st := s.stock(t.Machine.Offer)
		st.Used = st.Used.Add(t.Machine.Owned(amount))
	}
	if r := j.runs(); slices.Contains(r.Attempts[:r.Closed], a) {
		r.Settled = r.Settled.Add(t.Posted.Add(t.Rules).Sub(before))
	}
}

// uses adds a posting to what the task has cost by use.
func (t *taskRecord) uses(p *ledger.Posting) {
	if t.Uses == nil {
		t.Uses = map[ledger.Use]money.Amount{}
	}
	if _, use, ok := p.To.IsCost(); ok {
		t.Uses[use] = t.Uses[use].Add(p.Amount)
	}
	if _, use, ok := p.From.IsCost(); ok {
		t.Uses[use] = t.Uses[use].Sub(p.Amount)
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
