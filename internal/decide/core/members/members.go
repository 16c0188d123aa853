package members

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/lifecycle"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/groups"
)

// membersAtOnce is the largest number of group members that one step ends.
const membersAtOnce = 64

// groupAgain is how long a group waits after a limit refused its next member.
const groupAgain = time.Minute

// Proposals tracks which groups need a planner and which planners have not answered. It is not part of the state:
// after a restart the core asks about each group that has not ended.
type Proposals struct {
	list  []string        // groups that changed, oldest change first
	in    map[string]bool // groups in the list
	asked map[string]bool // groups whose planner has not answered; true: the group changed after it was asked
	later laterGroups     // when to ask again
	// elsewhere lists pipelines that wait for outputs that another one makes.
	elsewhere []string
}

// laterGroups lists groups by the time at which they are due, the soonest first.
type laterGroups []laterProposals

type laterProposals struct {
	at    time.Time
	group string
	lost  bool // only if its planner has not answered by then
}

// NewProposals returns Proposals that track nothing.
func NewProposals() Proposals { return Proposals{in: map[string]bool{}, asked: map[string]bool{}} }

// due marks a group as changed: this step or the next one handles it.
func (p *Proposals) due(group string) {
	if group != "" && !p.in[group] {
		p.in[group], p.list = true, append(p.list, group)
	}
}

// awaits reports whether the planner of the group has not answered yet.
func (p *Proposals) awaits(group string) bool {
	_, is := p.asked[group]
	return is
}

// again marks the group as changed at t.
func (p *Proposals) again(group string, t time.Time) { p.looksAt(laterProposals{at: t, group: group}) }

// unlessAnswered marks the group as changed at t, unless its planner has answered by then.
func (p *Proposals) unlessAnswered(group string, t time.Time) {
	p.looksAt(laterProposals{at: t, group: group, lost: true})
}

func (p *Proposals) looksAt(x laterProposals) { p.later.add(x) }

// add adds x, unless it is there.
func (l *laterGroups) add(x laterProposals) {
	n, found := slices.BinarySearchFunc(*l, x, func(a, b laterProposals) int {
		c := cmp.Or(a.at.Compare(b.at), cmp.Compare(a.group, b.group))
		if c == 0 && a.lost != b.lost {
			return map[bool]int{true: 1, false: -1}[a.lost]
		}
		return c
	})
	if !found {
		*l = slices.Insert(*l, n, x)
	}
}

// TendGroups asks the planners of groups that changed, and ends the members of groups that are being ended.
func (ms *Members) TendGroups() {
	p := &ms.Proposals
	for len(p.later) > 0 && !p.later[0].at.After(ms.Now()) {
		x := p.later[0]
		p.later = p.later[1:]
		if x.lost && !p.awaits(x.group) {
			continue
		}
		delete(p.asked, x.group) // the request was lost
		p.due(x.group)
	}
	if ms.State.Undecided() || len(p.list) == 0 {
		return
	}
	names := p.list
	p.list = nil
	clear(p.in)
	for _, name := range names {
		if g := ms.State.Group(name); g != nil {
			ms.tendGroup(g)
		}
	}
}

func (ms *Members) tendGroup(g *state.Group) {
	p := &ms.Proposals
	switch {
	case g.Phase == state.GroupAwaits && !ms.Now().Before(g.Approval.Until):
		ms.endGroup(g.Name, step.ApprovalExpired, "", state.CancelMembers)
	case g.Phase == state.GroupAwaits:
		p.again(g.Name, g.Approval.Until)
	case g.Phase == state.GroupEnding:
		ms.endMembers(g)
	case g.Phase != state.GroupOpen || len(g.Waits) > 0 || !g.Terms.Kind.Planned():
	case ms.outOfTime(g):
		ms.endGroup(g.Name, step.TimeSpent, ms.used(g, step.TimeSpent, nil), state.StopMembers)
	case ms.outOfHours(g):
		ms.endGroup(g.Name, step.HoursSpent, ms.used(g, step.HoursSpent, nil), state.StopMembers)
	case p.awaits(g.Name):
		p.asked[g.Name] = true
	default:
		if y := g.Schedule; y != nil && y.Due.After(ms.Now()) {
			p.again(g.Name, y.Due)
		}
		p.asked[g.Name] = false
		p.unlessAnswered(g.Name, ms.Now().Add(lifecycle.RoundLost*ms.bids.RoundEvery()))
		ms.Out.Actions = append(ms.Out.Actions, step.Propose{Group: g.Name, Base: ms.State.Seq()})
	}
}

// endMembers ends the members of a group that is being ended, a few in each step, and the group with the last.
func (ms *Members) endMembers(g *state.Group) {
	left, why := membersAtOnce, g.Why
	if g.Study != nil && g.Why != step.ClosedByUser { // the spent budget is that of the search, not of the trial
		why = step.SearchOver
	}
	for _, j := range slices.Clone(ms.State.OpenMembers(g.Name)) {
		if g.Ends == state.LetMembers || left == 0 {
			break
		}
		if j.Ending() == state.Cancelled || g.Ends == state.StopMembers && j.Ending() != "" && j.Ending() != state.Paused {
			continue // it is being ended
		}
		ms.Works(j)
		ms.jobs.End(j, g.Ends == state.StopMembers, why, g.Detail)
		left--
	}
	switch {
	case left == 0:
		ms.Proposals.due(g.Name)
	case g.Open == 0 && (g.Schedule == nil || ms.openRuns(g) == 0):
		ms.groupOver(g, "")
	}
}

// groupOver finishes a group whose members have all ended.
func (ms *Members) groupOver(g *state.Group, why string) {
	ms.Fact(state.GroupFinished{Group: g.Name, Why: why})
	ms.archiveAt(g)
	ms.Proposals.due(g.Terms.Parent)
	ms.Settled(g.Name)
}

// take applies the moves of a planner's proposal that are still valid, and counts the others as stale.
func (p *Proposals) take(m *Members, b state.Proposed) {
	g := m.State.Group(b.Group)
	if p.asked[b.Group] { // the planner did not see that change
		p.due(b.Group)
	}
	delete(p.asked, b.Group)
	if g == nil {
		return
	}
	w := m.admission.Weigher()
	for _, v := range b.Moves {
		done, refused := false, false
		if g.Phase == state.GroupOpen && len(g.Waits) == 0 {
			done, refused = m.moves(w, g, v, b.Base)
		}
		switch {
		case refused:
			return
		case done:
			m.Out.Moved++
		default:
			m.Out.Stale++
		}
	}
	if m.Out.Moved > 0 {
		p.due(b.Group)
	}
}

// moves applies one move if it is still valid. refused is set if a limit refuses the next member, so that no later move
// of the proposal can begin one.
func (ms *Members) moves(w *admission.Weighing, g *state.Group, v groups.Move, base uint64) (done, refused bool) {
	if g.Schedule != nil {
		return ms.movesSchedule(g, v), false
	}
	switch v.Do {
	case groups.Start:
		no := ms.starts(w, g, v, base)
		if no != nil && no.Job != "" {
			if ms.notYet(g, no); no.Why != MadeElsewhere && no.Why != DeployedElsewhere {
				return false, true
			}
			ms.Proposals.elsewhere = append(ms.Proposals.elsewhere, g.Name) // other stages of it may begin
		}
		return no == nil, false
	case groups.Pause, groups.Resume, groups.Stop:
		return ms.movesTrial(w, g, v), false
	case groups.Reuse:
		no := ms.mayReuse(g, v)
		if no != nil && no.Job != "" {
			ms.notYet(g, no)
			ms.Proposals.elsewhere = append(ms.Proposals.elsewhere, g.Name)
		}
		return no == nil && ms.settlesStage(g, v, base), false
	case groups.Keep, groups.Fail, groups.Skip:
		return ms.settlesStage(g, v, base), false
	case groups.Finish:
		return ms.finishes(g, v), false
	case groups.Await: // of a schedule
	}
	return false, false
}

// finishes ends a group that has nothing left to do.
func (ms *Members) finishes(g *state.Group, v groups.Move) bool {
	over := g.Began == g.Members() && g.Open == 0
	switch {
	case g.Terms.Pipeline != nil:
		over = stagesOver(g)
	case g.Study != nil:
		if v.Why == step.Plateau && g.Terms.Study.Plateau != nil {
			ms.flattens(g, v.Gain)
			return true
		}
		why := finishedBy(v.Why)
		ms.endGroup(g.Name, why, ms.used(g, why, v.Short), state.StopMembers)
		return true
	}
	if over {
		ms.groupOver(g, step.AllOver)
	}
	return over
}

// finishedBy returns why a search ends, from its planner's reason.
func finishedBy(why string) string {
	switch why {
	case step.BudgetSpent, step.HoursSpent, step.TimeSpent, step.NoValues:
		return why
	}
	return step.SearchDone
}

// starts starts a member of a group, or returns why it does not. A refusal without a job means that the proposal
// came too late.
func (ms *Members) starts(w *admission.Weighing, g *state.Group, v groups.Move, base uint64) *step.Refusal {
	b, no := ms.mayStart(g, v, base)
	if no != nil {
		return no
	}
	if g.Terms.HasBudget {
		if b.Terms.Budget, b.Terms.HasBudget = ms.shareOf(w, g, b.Terms.Index, v), true; b.Terms.Budget.IsZero() &&
			(b.Terms.Work != 0 || g.Terms.Kind != groups.Array) {
			return ms.outOfMoney(g, v.Promoted)
		}
	}
	one := w.Submission(b, g.User())
	if one.No == nil && one.Asking != nil && g.Approval == nil { // the limit was set later
		one.No = &step.Refusal{Job: b.Job, Why: step.NeedsApproval, Err: fmt.Errorf("%s: submit the array again, so that "+
			"it is approved as a whole", one.Asking)}
	}
	if one.No != nil {
		return one.No
	}
	bound := one.Bound
	if g.Terms.HasBudget {
		bound = &b.Terms.Budget
	}
	ms.Fact(state.JobQueued{Job: b.Job, Bound: bound})
	ms.jobs.Enqueue(ms.State.Job(b.Job))
	return nil
}

// mayStart returns the member that a move starts, or why it may not start.
func (ms *Members) mayStart(g *state.Group, v groups.Move, base uint64) (*state.JobSubmitted, *step.Refusal) {
	open, may := g.Open, v.Member == g.Began && v.Member < g.Members()
	if g.Study != nil {
		open, may = g.Study.Active(), v.Member == g.Began && ms.mayBegin(g, v)
	}
	if g.Terms.Pipeline != nil {
		if no := ms.stageMayBegin(g, v, base); no != nil {
			return nil, no
		}
		may = true
	}
	if !may || open >= g.Terms.AtOnce && !ms.Faults.Crowded {
		return nil, &step.Refusal{Why: step.NoGroup}
	}
	if g.Terms.Pipeline != nil {
		return g.Stage(v.Of.Stage), nil
	}
	return g.Member(v.Member), nil
}

// shareOf is the budget of the next member, by its index. For an array that is what is left of the group's budget,
// divided by the number of members that have not started. For a study, v is the move that begins or resumes a trial.
func (ms *Members) shareOf(w *admission.Weighing, g *state.Group, index int, v groups.Move) money.Amount {
	if w.Family == nil {
		w.Family = ms.admission.Family(w.T)
	}
	_, taken := w.Family.Sums(g.Name)
	taken = taken.Add(ms.owed(w, g))
	left := g.Terms.Budget.Sub(taken.Add(w.Taken[g.Name]))
	switch {
	case left.Sign() <= 0:
		return money.Amount{}
	case g.Study != nil:
		return ms.shareOfTrial(g, left, v)
	case g.Terms.Pipeline != nil:
		return ms.shareOfStage(g, index, left)
	}
	return left.Over(g.Members() - g.Began)
}

// notYet records why the next member may not start, and tries it again later.
func (ms *Members) notYet(g *state.Group, no *step.Refusal) {
	if detail := no.Err.Error(); g.Why != string(no.Why) || g.Detail != detail {
		ms.Fact(state.GroupWaits{Group: g.Name, Why: string(no.Why), Detail: detail})
	}
	ms.Proposals.again(g.Name, ms.Now().Add(groupAgain))
}

// WakeForGroups is when a group must be handled; zero: something has to change first.
func (ms *Members) WakeForGroups() time.Time {
	p := &ms.Proposals
	switch {
	case ms.State.Undecided():
	case len(p.list) > 0:
		return ms.Now()
	case len(p.later) > 0:
		return p.later[0].at
	}
	return time.Time{}
}

// GroupSnapshot returns the view of a group for a planner.
func (ms *Members) GroupSnapshot(name string) (s groups.Snapshot, ok bool) {
	g := ms.State.Group(name)
	if g == nil {
		return s, false
	}
	s = groups.Snapshot{Group: name, Kind: g.Terms.Kind, Base: ms.State.Seq(), Members: g.Members(), Began: g.Began,
		Open: g.Open, AtOnce: g.Terms.AtOnce, Folder: state.Submitted(name)}
	if y := g.Schedule; y != nil {
		s.Schedule, s.Due, s.Now, s.Runs, s.Open = g.Terms.Schedule, y.Due, ms.Now(), y.Begun, ms.openRuns(g)
		s.Since = y.Since
	}
	if s.Pipeline = g.Terms.Pipeline; s.Pipeline != nil {
		s.Stages, s.Deployed = slices.Clone(g.Stages), ms.State.DeployedOf(g)
	}
	if y := g.Study; y != nil {
		s.Study, s.Budget, s.Trials = g.Terms.Study, g.Terms.Budget.Float(), slices.Clone(y.Trials)
		s.Reports, s.Promotes = y.Reports[:len(y.Reports):len(y.Reports)], y.Promotes
		for n := range s.Trials {
			if t := &s.Trials[n]; t.Phase == groups.Open && t.Unit >= s.Study.Length(t.Promoted).Units() {
				j := ms.State.Job(g.MemberID(n))
				t.Waits = j != nil && j.State() == state.Queued
			}
		}
	}
	return s, true
}

// GroupSpent returns the cost of the members and runs of a group, archived or not, up to t.
func (ms *Members) GroupSpent(g *state.Group, t time.Time) money.Amount {
	spent := g.Archived
	for n := range g.Began {
		if j := ms.State.Job(g.MemberID(n)); j != nil {
			spent = spent.Add(j.Spent(t))
		}
	}
	for _, run := range ms.holds(g) {
		spent = spent.Add(ms.GroupSpent(ms.State.Group(run), t))
	}
	return spent
}
