package members

import (
	"fmt"
	"time"

	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/lifecycle"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/study"
)

// outOfTime reports whether the wall-clock limit of a group is reached. If not, it schedules the next check.
func (ms *Members) outOfTime(g *state.Group) bool {
	wall, _ := g.Terms.Limits()
	if wall == 0 {
		return false
	}
	until := g.Opened.Add(wall)
	if ms.Now().Before(until) {
		ms.Proposals.again(g.Name, until)
		return false
	}
	return true
}

// outOfHours reports whether a group must end so that its members can save within its limit on GPU-hours. If not, it
// schedules the next check.
func (ms *Members) outOfHours(g *state.Group) bool {
	_, hours := g.Terms.Limits()
	if hours == 0 || ms.Faults.Endless {
		return false
	}
	used, gpus := ms.GPUTime(g, ms.Now())
	saves := quantity.Times(g.Terms.Grace, gpus)
	left := quantity.Sub(quantity.GPUTime(hours), quantity.Add(used, saves))
	if left <= 0 {
		return true
	}
	if gpus > 0 {
		ms.Proposals.again(g.Name, ms.Now().Add(left/time.Duration(gpus)+1))
	}
	return false
}

// flattens ends a study because another dollar is not expected to gain enough.
func (ms *Members) flattens(g *state.Group, gain float64) {
	spec := g.Terms.Study
	during := "15 % of the spend"
	if n := spec.Plateau.Patience; n > 0 {
		during = step.Count(n, "report")
	}
	ms.Fact(state.StudyFlat{Group: g.Name, Gain: gain})
	ms.endGroup(g.Name, step.Plateau, fmt.Sprintf("another dollar is expected to gain %.3g %s, and has been below %.3g "+
		"for %s", gain, spec.Metric, spec.Plateau.Least(), during), state.StopMembers)
}

// GPUTime returns the GPU time that the members of a group have used by t, and how many GPUs they have now.
func (ms *Members) GPUTime(g *state.Group, t time.Time) (used time.Duration, gpus int) {
	used = g.Used
	for n := range g.Began {
		if j := ms.State.Job(g.MemberID(n)); j != nil {
			d, now := j.GPUTime(t)
			used, gpus = quantity.Add(used, d), gpus+now
		}
	}
	return used, gpus
}

// Uses checks the limit on GPU-hours of a job's group again, because the job uses more than it did.
func (ms *Members) Uses(j *state.Job) {
	if g := ms.State.Group(j.Terms().Group); g != nil {
		if _, hours := g.Terms.Limits(); hours > 0 {
			ms.Proposals.due(g.Name)
		}
	}
}

// outOfMoney ends a group whose budget leaves nothing for another member. Running trials may leave something, and so
// may machines that are being terminated.
func (ms *Members) outOfMoney(g *state.Group, promoted bool) *step.Refusal {
	if ms.terminating(g) {
		ms.Proposals.again(g.Name, ms.Now().Add(groupAgain))
		return &step.Refusal{Why: step.GroupFull}
	}
	if g.Study != nil {
		if g.Study.Active() > 0 {
			return &step.Refusal{Why: step.GroupFull}
		}
		if g.Terms.Study.Proxy != nil && !promoted {
			ms.promotes(g)
			return &step.Refusal{Why: step.GroupFull}
		}
		ms.endGroup(g.Name, step.BudgetSpent, ms.used(g, step.BudgetSpent, nil), state.StopMembers)
		return nil
	}
	if g.Terms.Pipeline != nil && g.Open > 0 { // a stage that ends may leave something
		return &step.Refusal{Why: step.GroupFull}
	}
	detail := fmt.Sprintf("%d of %d members have begun", g.Began, g.Members())
	ms.endGroup(g.Name, step.BudgetSpent, detail, state.LetMembers)
	return nil
}

// LeastOfTrial is the smallest budget with which a trial begins: what it costs to start the cheapest machine for sale
// and to save on it, a few times. Zero: nothing for sale has a price.
func (ms *Members) LeastOfTrial(t *state.Terms) money.Amount {
	least, known := money.Amount{}, false
	for _, l := range ms.State.Sale() {
		if q := l.Quote(); q.Priced {
			cost := q.Rate.Until(max(t.Restart, l.Offer().Billing.Minimum) + t.Grace)
			if !known || cost.Cmp(least) < 0 {
				least, known = cost, true
			}
		}
	}
	return least.Times(study.LeastStarts)
}

// shareOfTrial is the budget of a trial that starts: an equal share, among the trials that may train at once or those
// that its planner names, of what is left. If that does not start a machine, the trial gets the cost of two starts; if
// even that is not left, nothing. A trial of a proxy gets nothing of what is reserved for promoted trials.
func (ms *Members) shareOfTrial(g *state.Group, left money.Amount, v groups.Move) money.Amount {
	least, among := ms.LeastOfTrial(g.Terms.Member), max(1, g.Terms.AtOnce-g.Study.Active())
	if v.Among > 0 {
		among = min(among, v.Among)
	}
	if !v.Promoted && !ms.Faults.Unreserved {
		left = left.Sub(g.Terms.Study.Reserved(g.Terms.Budget))
	}
	share := left.Over(among)
	switch {
	case share.Cmp(least) >= 0:
		return share
	case left.Cmp(least) >= 0:
		return least
	}
	return money.Amount{}
}

// mayBegin reports whether a trial of that configuration may start.
func (ms *Members) mayBegin(g *state.Group, v groups.Move) bool {
	spec, y := g.Terms.Study, g.Study
	if v.Promoted {
		return spec.Proxy != nil && y.Promoted() < spec.Proxy.Promote && y.Has(v.Config, false) && !y.Has(v.Config, true)
	}
	most := study.MaxTrials
	if spec.Trials > 0 {
		most = spec.Trials
	}
	return g.Began < most && v.Config >= 0 && v.Config < study.MaxTrials && !y.Has(v.Config, false) && y.Promotes == nil
}

// promotes records that the money for the trials of a study's proxy is spent.
func (ms *Members) promotes(g *state.Group) {
	if g.Study.Promotes == nil {
		ms.Fact(state.StudyPromotes{Group: g.Name})
		ms.Proposals.due(g.Name)
	}
}

// owed returns what the machines of the members that have ended or are paused may still cost. The moves of a proposal
// share that sum, because a study may have thousands of trials; movesTrial keeps it up to date.
func (ms *Members) owed(w *admission.Weighing, g *state.Group) (sum money.Amount) {
	if w.Owed != nil && g.Study != nil {
		return *w.Owed
	}
	for n := range g.Began {
		if j := ms.State.Job(g.MemberID(n)); j != nil {
			sum = sum.Add(ms.owedBy(j))
		}
	}
	w.Owed = &sum
	return sum
}

// owedBy is owes for a member that has ended or that its search has paused, and zero for any other.
func (ms *Members) owedBy(j *state.Job) money.Amount {
	if j.State().Over() || admission.BySearch(j) {
		return ms.owes(j)
	}
	return money.Amount{}
}

// movesTrial pauses, resumes or ends a trial, if the trial is still as the planner saw it.
func (ms *Members) movesTrial(w *admission.Weighing, g *state.Group, v groups.Move) bool {
	if g.Study == nil || v.Member < 0 || v.Member >= len(g.Study.Trials) {
		return false
	}
	j := ms.State.Job(g.MemberID(v.Member))
	if j == nil {
		return false
	}
	before := ms.owedBy(j)
	done := ms.movesJob(w, g, j, v)
	if w.Owed != nil {
		sum := w.Owed.Add(ms.owedBy(j)).Sub(before)
		w.Owed = &sum
	}
	return done
}

// movesJob applies a move of a trial that changes its job.
func (ms *Members) movesJob(w *admission.Weighing, g *state.Group, j *state.Job, v groups.Move) bool {
	phase := g.Study.Trials[v.Member].Phase
	if !j.Costs() && v.Do != groups.Resume { // the sums of the group omit a job that this step changes
		w.Takes(g.Name, j.Spent(ms.Now()))
	}
	switch {
	case v.Do == groups.Pause && phase == groups.Open:
		ms.Works(j)
		ms.jobs.Pause(j, step.PausedBySearch, "")
		return true
	case v.Do == groups.Stop && (phase == groups.Open || phase == groups.Paused):
		ms.Works(j)
		t := &g.Study.Trials[v.Member]
		ms.stopsTrial(j, t.Unit >= g.Terms.Study.Length(t.Promoted).Units())
		return true
	case v.Do == groups.Resume && admission.BySearch(j) && g.Study.Active() < g.Terms.AtOnce:
		return ms.resumesTrial(w, g, j, v)
	}
	return false
}

// stopsTrial ends the job of a trial. A trial that has trained in full and then lost its machine has succeeded.
func (ms *Members) stopsTrial(j *state.Job, full bool) {
	if full && j.State() == state.Queued {
		ms.jobs.Finish(j, state.Succeeded, step.TrainedInFull, "")
		return
	}
	ms.jobs.End(j, true, step.Pruned, "")
}

// resumesTrial resumes a paused trial with another share of the remaining budget.
func (ms *Members) resumesTrial(w *admission.Weighing, g *state.Group, j *state.Job, v groups.Move) bool {
	v.Promoted = g.Study.Trials[v.Member].Promoted
	share := ms.shareOf(w, g, j.Terms().Index, v)
	if share.IsZero() {
		return ms.outOfMoney(g, v.Promoted) == nil
	}
	most := j.Spent(ms.Now()).Add(share)
	if j.Costs() { // the sums of the group include its cost so far
		w.Takes(g.Name, share)
	} else {
		w.Takes(g.Name, most)
	}
	ms.Works(j)
	ms.Fact(state.JobQueued{Job: j.ID(), Why: step.ResumedFor, Bound: &most})
	if lifecycle.Leaves(j) {
		return true
	}
	ms.jobs.Freed()
	ms.jobs.Enqueue(j)
	ms.launches.OverAt(j)
	return true
}

// LooksAt marks a group as changed, so that its planner runs again.
func (ms *Members) LooksAt(group string) { ms.Proposals.due(group) }

// Left tells the planner of a job's group that the job is paused or has ended.
func (ms *Members) Left(j *state.Job) {
	if g, _ := ms.State.StudyOf(j); g != nil {
		ms.Fact(state.TrialLeft{Job: j.ID(), Spent: state.Dollars(j.Spent(ms.Now()))})
	}
	ms.Proposals.due(j.Terms().Group)
	ms.Proposals.made()
}

// Judges ends a trial that has trained in full, and otherwise passes its values to the searcher. It reports whether the
// trial ends.
func (ms *Members) Judges(j *state.Job, a *state.Attempt) bool {
	g, t := ms.State.StudyOf(j)
	if g == nil {
		return false
	}
	ms.Proposals.due(g.Name)
	full := g.Terms.Study.Fidelity.Name != "" && t.Unit >= g.Terms.Study.Length(t.Promoted).Units()
	if j.Ending() != "" || !full || ms.Faults.Beyond || !t.Beyond && j.Total() <= j.Step() {
		return false // a program that has finished training may still write its model
	}
	ms.jobs.Drain(j, a, step.TrainedInFull, state.Succeeded, "")
	return true
}
