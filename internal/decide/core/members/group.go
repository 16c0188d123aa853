package members

import (
	"slices"

	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// TakeGroup handles an event about a group.
func (ms *Members) TakeGroup(b state.Body) {
	switch b := b.(type) {
	case state.GroupOpened:
		ms.openGroup(b)
	case state.GroupReviewed:
		ms.reviewGroup(b)
	case state.GroupClosed:
		ms.endGroup(b.Group, step.ClosedByUser, "", b.Members)
	case state.Proposed:
		ms.Proposals.take(ms, b)
	case state.Spawn:
		ms.spawn(b)
	}
}

// openGroup opens an array, a study, a pipeline or a schedule if there is room for its worst case.
func (ms *Members) openGroup(b state.GroupOpened) {
	if ms.State.Group(b.Group) != nil {
		return
	}
	v := ms.admission.Verdict(b.Group)
	if v.No != nil {
		ms.admission.TurnDown(v.No)
		return
	}
	ms.opens(&b, v)
}

// opens opens a group that was weighed.
func (ms *Members) opens(b *state.GroupOpened, v admission.Verdict) {
	t := b.Terms
	if v.Bound != nil {
		t.Budget, t.HasBudget = *v.Bound, true
	}
	ms.Fact(state.GroupGranted{Group: b.Group, Worst: ms.admission.WorstOf(t), Budget: v.Bound, Asking: v.Asking})
	ms.admission.Parts[b.Group] = &admission.Parts{}
	if p := ms.admission.Parts[b.Terms.Parent]; p != nil {
		p.Holds = append(p.Holds, b.Group)
	}
	ms.jobs.DependOn(b.Group, b.Terms.After)
	ms.Proposals.due(b.Group)
}

// reviewGroup opens a group that waits for approval, or closes it.
func (ms *Members) reviewGroup(b state.GroupReviewed) {
	g := ms.State.Group(b.Group)
	if g == nil || g.Phase != state.GroupAwaits {
		return
	}
	switch v := ms.admission.Verdict(b.Group); {
	case !ms.Now().Before(g.Approval.Until):
		ms.endGroup(b.Group, step.ApprovalExpired, "", state.CancelMembers)
	case !b.Approved:
		ms.endGroup(b.Group, step.Rejected, b.Reason, state.CancelMembers)
	case v.No != nil:
		ms.admission.TurnDown(v.No)
	default:
		ms.Fact(state.GroupGranted{Group: b.Group})
		ms.Proposals.due(b.Group)
	}
}

// endGroup closes a group and those that use its budget: they get no more members, and the hold for future members
// is released. Existing members end as ends says.
func (ms *Members) endGroup(name, why, detail string, ends state.EndMembers) {
	g := ms.State.Group(name)
	if g == nil || g.Phase == state.GroupOver ||
		g.Phase == state.GroupEnding && (ends == g.Ends || ends == state.LetMembers) {
		return
	}
	if g.Phase == state.GroupEnding { // its members continued, or were saving
		ms.Fact(state.MembersEnding{Group: name, Members: ends})
	} else {
		ms.Fact(state.GroupEnded{Group: name, Why: why, Detail: detail, Members: ends})
	}
	ms.Proposals.due(name)
	for _, child := range ms.admission.Parts[name].Holds {
		ms.endGroup(child, why, detail, ends)
	}
}

// spawn starts members of a group, all or none.
func (ms *Members) spawn(b state.Spawn) {
	v := ms.admission.Verdict(admission.SpawnKey(b))
	if v.No != nil {
		ms.admission.TurnDown(v.No)
		return
	}
	for i, p := range b.Parts {
		ms.Fact(state.JobQueued{Job: p.Job, Bound: v.Bounds[i]})
		ms.jobs.Enqueue(ms.State.Job(p.Job))
	}
}

// owes returns what the machines of a member that has ended or is paused may still cost: what their minimum charges
// bill, and for those that are being terminated at least the grace that the member's budget kept back. The cost of the
// member includes it once the machines have ended.
func (ms *Members) owes(j *state.Job) money.Amount {
	leaving, held := ms.admission.MinimumDue(j)
	due, grace := leaving.Add(held), money.Amount{}
	for _, a := range j.Open() {
		if a.Live() {
			grace = grace.Add(a.Rate().Until(j.Terms().Grace))
		}
	}
	if due.Cmp(grace) < 0 {
		return grace
	}
	return due
}

// terminating reports whether a machine of a member that has ended or is paused may still cost something.
func (ms *Members) terminating(g *state.Group) bool {
	for n := range g.Began {
		j := ms.State.Job(g.MemberID(n))
		if j != nil && (j.State().Over() || admission.BySearch(j)) && slices.ContainsFunc(j.Open(), (*state.Attempt).Live) {
			return true
		}
	}
	return false
}
