package core

import (
	"errors"
	"fmt"

	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/study"
)

// Why a trial of a study is paused, or over.
const (
	PausedBySearch = "paused_by_search"  // it goes on when the searcher wants it
	Pruned         = "pruned"            // the searcher never comes back to it
	SearchOver     = "search_over"       // its search has ended, by whatever reason
	TrainedInFull  = "trained_in_full"   // it has come to the end of its fidelity
	ResumedFor     = "resumed_by_search" // the searcher wants it trained further
)

// checkStudy says what is wrong with the terms of a study.
func checkStudy(t *state.GroupTerms) error {
	if (t.Kind == groups.Study && t.Member != nil) != (t.Study != nil) {
		return errors.New("a study has a job and a search")
	}
	if t.Study == nil {
		return nil
	}
	if !t.HasBudget || t.Budget.IsZero() {
		return errors.New("a study needs a budget above zero")
	}
	if t.Study.Resumes() && !t.Member.Saves {
		return fmt.Errorf("the searcher %s comes back to trials: the job needs checkpoint.dir, or take the searcher "+
			"asha-stop", t.Study.Searcher)
	}
	field, err := t.Study.Check()
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

// bySearch reports whether the searcher of its study has paused a job: it holds no money until it is resumed.
func bySearch(j *Job) bool { return j.State() == Paused && j.Why() == PausedBySearch }

// outOfTime reports whether the wall clock of a study is over, and looks again when it will be.
func (m *Machine) outOfTime(g *state.Group) bool {
	if g.Study == nil || g.Terms.Study.Wall == 0 {
		return false
	}
	until := g.Opened.Add(g.Terms.Study.Wall)
	if m.now().Before(until) {
		m.proposals.again(g.Name, until)
		return false
	}
	return true
}

// outOfMoney ends a group whose budget leaves nothing for another member. Trials that train may leave something.
func (m *Machine) outOfMoney(g *state.Group) *Refusal {
	if g.Study != nil {
		if g.Study.Active() > 0 {
			return &Refusal{Why: GroupFull}
		}
		m.endGroup(g.Name, BudgetSpent, "", state.StopMembers)
		return nil
	}
	if g.Terms.Pipeline != nil && g.Open > 0 { // a stage that ends may leave something
		return &Refusal{Why: GroupFull}
	}
	m.endGroup(g.Name, BudgetSpent, fmt.Sprintf("%d of %d members have begun", g.Began, g.Members()), state.LetMembers)
	return nil
}

// shareOfTrial is what a trial that begins gets of what is left: as much as each other that may train beside it. Where
// that starts no machine, it gets what two starts cost; where not even that is left, nothing.
func (m *Machine) shareOfTrial(g *state.Group, left money.Amount) money.Amount {
	t, least, known := g.Terms.Member, money.Amount{}, false
	for _, l := range m.s.Sale() {
		if q := l.Quote(); q.Priced {
			cost := q.Rate.Until(max(t.Restart, l.Offer().Billing.Minimum) + t.Grace)
			if !known || cost.Cmp(least) < 0 {
				least, known = cost, true
			}
		}
	}
	least = least.Times(2)
	share := left.Over(max(1, g.Terms.AtOnce-g.Study.Active()))
	switch {
	case share.Cmp(least) >= 0:
		return share
	case left.Cmp(least) >= 0:
		return least
	}
	return money.Amount{}
}

// mayEndSooner reports whether a job may end before its work is done: by its metric, or by the search that it is of.
func (m *Machine) mayEndSooner(j *Job) bool {
	t := j.Terms()
	g, _ := m.s.StudyOf(j)
	return t.Metric.HasGoal || t.Metric.Patience > 0 || g != nil
}

// finishedBy is why a search ends, from what its planner says.
func finishedBy(why string) string {
	if why == BudgetSpent {
		return BudgetSpent
	}
	return SearchDone
}

// mayBegin reports whether a trial of that configuration may begin.
func (m *Machine) mayBegin(g *state.Group, v groups.Move) bool {
	spec := g.Terms.Study
	most := study.MaxTrials
	if spec.Trials > 0 {
		most = spec.Trials
	}
	return g.Began < most && v.Config >= 0 && v.Config < study.MaxTrials && !g.Study.Has(v.Config)
}

// movesTrial pauses, resumes or ends a trial, where it stands as the planner saw it.
func (m *Machine) movesTrial(w *weighing, g *state.Group, v groups.Move) bool {
	if g.Study == nil || v.Member < 0 || v.Member >= len(g.Study.Trials) {
		return false
	}
	j := m.s.Job(g.MemberID(v.Member))
	if j == nil {
		return false
	}
	phase := g.Study.Trials[v.Member].Phase
	if !j.Costs() && v.Do != groups.Resume { // the sums of the group are without a job that this step changes
		w.takes(g.Name, j.Spent(m.now()))
	}
	switch {
	case v.Do == groups.Pause && phase == groups.Open:
		m.works(j)
		m.pause(j, PausedBySearch, "")
		return true
	case v.Do == groups.Stop && (phase == groups.Open || phase == groups.Paused):
		m.works(j)
		if g.Study.Trials[v.Member].Unit >= g.Terms.Study.Units() && j.State() == Queued { // it lost its machine at the end
			m.finish(j, Succeeded, TrainedInFull, "")
			return true
		}
		m.end(j, true, Pruned, "")
		return true
	case v.Do == groups.Resume && bySearch(j) && g.Study.Active() < g.Terms.AtOnce:
		return m.resumesTrial(w, g, j)
	}
	return false
}

// resumesTrial lets a paused trial go on, with another share of what is left of the budget.
func (m *Machine) resumesTrial(w *weighing, g *state.Group, j *Job) bool {
	share := m.shareOf(w, g, j.Terms().Index)
	if share.IsZero() {
		return m.outOfMoney(g) == nil
	}
	most := j.Spent(m.now()).Add(share)
	if j.Costs() { // the sums of the group have what it has spent
		w.takes(g.Name, share)
	} else {
		w.takes(g.Name, most)
	}
	m.works(j)
	m.fact(state.JobQueued{Job: j.ID(), Why: ResumedFor, Bound: &most})
	if leaves(j) {
		return true
	}
	m.freed()
	m.enqueue(j)
	m.overAt(j)
	return true
}

// LooksAt has the planner of a group look at it again.
func (m *Machine) LooksAt(group string) { m.proposals.due(group) }

// Left lets the planner of a job's group know that the job is paused or over.
func (m *Machine) Left(j *Job) {
	if g, _ := m.s.StudyOf(j); g != nil {
		m.fact(state.TrialLeft{Job: j.ID(), Spent: state.Dollars(j.Spent(m.now()))})
	}
	m.proposals.due(j.Terms().Group)
	m.proposals.made()
}

// Judges ends a trial that is trained in full, and lets the searcher know of its values. It reports whether the
// trial ends.
func (m *Machine) Judges(j *Job, a *Attempt) bool {
	g, t := m.s.StudyOf(j)
	if g == nil {
		return false
	}
	m.proposals.due(g.Name)
	full := g.Terms.Study.Fidelity.Name != "" && t.Unit >= g.Terms.Study.Units()
	if j.Ending() != "" || !full || m.faults.Beyond || !t.Beyond && j.Total() <= j.Step() {
		return false // a program that trains no longer may still write its model
	}
	m.drain(j, a, TrainedInFull, Succeeded, "")
	return true
}

// takes counts what this step gives to members of a group.
func (w *weighing) takes(group string, a money.Amount) {
	if w.taken == nil {
		w.taken = map[string]money.Amount{}
	}
	w.taken[group] = w.taken[group].Add(a)
}
