package lifecycle

import (
	"cmp"
	"math"
	"slices"
	"time"

	"scrimp/internal/decide/core/placement"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// effort counts the reviews of a step so far.
type effort struct{ reviews, weighed int }

func (e effort) enough() bool {
	return e.reviews >= placement.ReviewsAtOnce || e.weighed >= placement.WeighedAtOnce
}

// reviewWithin reviews a job and adds the effort.
func (ts *Attempts) reviewWithin(j *state.Job, e *effort) {
	decided := ts.Out.Decided
	ts.reviewJob(j)
	if e.reviews++; ts.Out.Decided > decided {
		e.weighed += ts.market.Class(j).Weighed()
	}
}

// Reviews continues the pass, or starts the next one if it is due. Sorting many jobs takes a step of its own.
func (ts *Attempts) Reviews() {
	r := &ts.market.Review
	if _, ok := ts.Event.Body.(state.MarketSeen); ok && len(r.Jobs) == 0 && len(r.Next) > manyTurns {
		return // finding so many took enough time
	}
	for e := (effort{}); !e.enough(); {
		if len(r.Jobs) == 0 {
			r.Jobs, r.Next = ts.turns(r.Next), nil
			if len(r.Jobs) == 0 || len(r.Jobs) > manyTurns {
				return
			}
		}
		j := r.Jobs[0]
		r.Jobs = r.Jobs[1:]
		placement.LookoutOf(j).Due = false
		ts.reviewWithin(j, &e)
	}
}

// manyTurns is the number of jobs above which sorting them takes milliseconds.
const manyTurns = 1000

// soon is how near the guard of a job must be for a review before the others.
const soon = 10 * time.Minute

// turns sorts jobs for review: first those whose guard is near, then those that may share a table side by side,
// then by ID.
func (ts *Attempts) turns(list []*state.Job) []*state.Job {
	if len(list) < 2 {
		return list
	}
	limit := ts.Now().Add(soon)
	type turn struct {
		job *state.Job
		key int64 // negative: by its guard
		n   int
	}
	turns := make([]turn, len(list))
	for i, j := range list {
		p := placement.LookoutOf(j)
		turns[i] = turn{j, p.TableKey, i}
		if !p.Guard.IsZero() && p.Guard.Before(limit) {
			turns[i].key = math.MinInt64 + max(0, p.Guard.UnixNano())
		}
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.n, b.n)) })
	for i := range turns {
		list[i] = turns[i].job
	}
	return list
}

// reviewJob decides whether a job with a machine must stop, and whether it should be elsewhere.
func (ts *Attempts) reviewJob(j *state.Job) {
	ts.Works(j)
	if asked := j.Asked(); asked != nil {
		ts.launches.reviewAsked(j, asked)
		return
	}
	a := j.Live()
	if a == nil || a.Disowned() || a.Releasing() {
		return
	}
	step.TimesOf(j).Wake = time.Time{} // as in try
	if ts.overdue(j, a) {
		return
	}
	if ts.limits(j, a) || !a.Noticed().IsZero() || ts.decider.Awaits(j) {
		return // it is saving, or waits for an answer
	}
	if ts.expires(j, a) {
		return
	}
	ts.moves(j, a)
}

// bootLimit is when an attempt's program must run. The time for inputs and the set-up counts once the agents of all its
// machines have claimed their tasks: a machine whose agent is not heard of is of no use.
func (ts *Attempts) bootLimit(a *state.Attempt) time.Time {
	limit := a.Full().Add(ts.market.TimingOf(a.Machine()).BootLimit + a.Transfer())
	if slices.ContainsFunc(a.Tasks(), func(k *state.Task) bool { return k.Claimed().IsZero() }) {
		return limit
	}
	return limit.Add(ts.State.Job(a.Job()).Terms().Bringing)
}

// endDrain terminates a machine that takes too long to save, or that no money is left for.
func (ts *Attempts) endDrain(j *state.Job, a *state.Attempt) {
	broke, limited := ts.admission.BrokeAt(j)
	switch {
	case !ts.Now().Before(a.DrainBy()):
		ts.jobs.release(a, "drain_overdue", "")
	case limited && !ts.Now().Before(broke):
		ts.jobs.release(a, "drain_unpaid", "")
	default:
		ts.WakeAt(j, a.DrainBy())
		if limited {
			ts.WakeAt(j, broke)
		}
	}
}

// overdue terminates a machine that takes too long to start or to end. It reports whether there is nothing else to
// decide.
func (ts *Attempts) overdue(j *state.Job, a *state.Attempt) bool {
	switch {
	case a.Draining() || a.Task() == state.Ended:
		ts.endDrain(j, a)
		return true
	case a.Task() == state.TaskRunning:
		return false
	}
	limit := ts.bootLimit(a)
	if !ts.Now().Before(limit) {
		if a.Nodes() > 1 {
			ts.neverBegan(a, "boot_limit")
		} else {
			ts.jobs.release(a, "boot_limit", "silent")
		}
		return true
	}
	if at, limited := ts.admission.BrokeAt(j); limited {
		if !at.After(ts.Now()) {
			ts.jobs.release(a, "budget_spent", "moved")
			return true
		}
		ts.WakeAt(j, at)
	}
	ts.WakeAt(j, limit)
	return false
}

// moves decides where the job should be.
func (ts *Attempts) moves(j *state.Job, a *state.Attempt) {
	switch d := ts.decider.Decide(j); {
	case d.Probe != "":
		ts.probe(j, d.Probe)
	case d.Take == a.Offer() && ts.decider.Grows(j, a):
		ts.jobs.Drain(j, a, "grow", "", "")
	case d.Take == a.Offer() && ts.consolidates(j, a):
	case d.Take == a.Offer():
		ts.WakeAt(j, d.Again)
		ts.decider.ClosesAt(j)
		ts.decider.RungAt(j)
		if at, ok := ts.expiry(a, j); ok && a.Task() == state.TaskRunning {
			ts.WakeAt(j, at)
		}
	case a.Task() == state.TaskRunning && d.Take == "" && d.Why == plan.OutOfMoney:
		ts.jobs.Drain(j, a, string(policy.BudgetShort), state.Stopped, "")
	case d.Why == plan.Closed && a.Task() == state.TaskRunning:
		ts.jobs.Drain(j, a, string(d.Why), "", "")
	case d.Why == plan.Closed:
		ts.jobs.release(a, string(d.Why), "moved")
	case a.Task() == state.TaskRunning:
		ts.jobs.Drain(j, a, "move_"+string(d.Why), "", d.Take)
	default: // it has nothing to save
		ts.jobs.release(a, "move_"+string(d.Why), "moved")
	}
}

// consolidates makes a job leave a machine that it has alone if a seat beside others saves more than the move costs,
// and reports whether it did. The seat is kept for it until it must have left its machine.
func (ts *Attempts) consolidates(j *state.Job, a *state.Attempt) bool {
	c, ok := ts.decider.Consolidates(j)
	if ok {
		ts.decider.Decided(j, c.Decision)
		by := ts.Now().Add(j.Terms().Grace + 2*ts.Config().Patience + 2*ts.market.TimingOf(a.Machine()).Detect)
		ts.jobs.drains(j, a, state.DrainRequested{Why: placement.MoveConsolidates, MigratesTo: c.Decision.Take,
			Rests: c.Rests, Keeps: &state.Keep{Instance: c.Decision.Instance, Portion: c.Portion, By: by}})
		ts.instances.kept = append(ts.instances.kept, ts.State.Instance(c.Decision.Instance).Keeps()[0])
	}
	return ok
}

// expiry is when a job leaves a machine with a longest lifetime: early enough to save twice, because the end is
// known in advance.
func (ts *Attempts) expiry(a *state.Attempt, j *state.Job) (time.Time, bool) {
	l := ts.State.Listing(a.Offer())
	if l == nil {
		return time.Time{}, false
	}
	o := l.Offer()
	margin := j.Terms().Grace + 2*j.SaveCost() + ts.market.TimingOf(a.Machine()).Detect
	if o.Reserved.Count > 0 {
		return o.Reserved.Until.Add(-margin), true
	}
	if o.MaxLifetime <= 0 || margin >= o.MaxLifetime/2 { // the job would leave as soon as it makes progress
		return time.Time{}, false
	}
	return a.Rented().Add(o.MaxLifetime - margin), true
}

// expires makes a job leave a machine whose lifetime ends, in time to lose no work.
func (ts *Attempts) expires(j *state.Job, a *state.Attempt) bool {
	at, ok := ts.expiry(a, j)
	if !ok || a.Task() != state.TaskRunning || ts.Now().Before(at) {
		return false
	}
	ts.jobs.Drain(j, a, "lifetime_ends", "", "")
	return true
}

// probe probes an offer that nobody has tried. The answer brings the job back here.
func (ts *Attempts) probe(j *state.Job, offer market.OfferID) {
	ts.Fact(state.ProbeAsked{Job: j.ID(), Offer: offer})
	ts.WakeAt(j, ts.Now().Add(ts.decider.AnswerTime(offer)))
}

// limits ends a job that has used up its budget or another limit, and reports whether it did.
func (ts *Attempts) limits(j *state.Job, a *state.Attempt) bool {
	if a.Task() != state.TaskRunning || a.Draining() {
		return false
	}
	why, stop := ts.admission.Exhausted(j, a)
	if stop {
		ts.jobs.Drain(j, a, string(why), state.Stopped, "")
	}
	return stop
}

// gotOn reviews a job that made progress: its limits, and whether it is so slow that the guard applies. The market is
// unchanged, so nothing else can have changed.
func (ts *Attempts) gotOn(j *state.Job, a *state.Attempt) {
	if ts.limits(j, a) || a.Draining() || !a.Noticed().IsZero() || !placement.IsSpot(a) || a.Task() != state.TaskRunning {
		return
	}
	if at, ok := ts.decider.Progress(j, j.Last().Speed).GuardAt(true); ok {
		ts.WakeAt(j, at)
	}
	if ts.admission.Strained(j, a) {
		ts.WakeAt(j, ts.Now().Add(ts.market.TimingOf(a.Machine()).Detect))
	}
}
