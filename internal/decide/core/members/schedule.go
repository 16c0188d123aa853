package members

import (
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
	"scrimp/internal/work/groups"
)

// NoMoreRuns is why a schedule ends that has run as often, or as long, as it should.
const NoMoreRuns = "no_more_runs"

// openRuns is the number of runs of a schedule that have not ended.
func (ms *Members) openRuns(g *state.Group) (n int) {
	for _, run := range ms.holds(g) {
		if ms.State.Group(run).Phase != state.GroupOver {
			n++
		}
	}
	return n
}

// Runs returns a group, archived or not, and the groups in memory that use its budget.
func (ms *Members) Runs(g *state.Group) []*state.Group {
	list := []*state.Group{g}
	for _, run := range ms.holds(g) {
		list = append(list, ms.Runs(ms.State.Group(run))...)
	}
	return list
}

// holds returns the groups in memory that use the budget of a group; none if it is archived.
func (ms *Members) holds(g *state.Group) []string {
	if p := ms.admission.Parts[g.Name]; p != nil {
		return p.Holds
	}
	return nil
}

// movesSchedule applies a move of a schedule, if the schedule is still due as the planner saw it.
func (ms *Members) movesSchedule(g *state.Group, v groups.Move) bool {
	y, r := g.Schedule, v.Run
	if v.Do == groups.Finish {
		if ms.openRuns(g) > 0 {
			return false
		}
		ms.groupOver(g, NoMoreRuns)
		return true
	}
	if r == nil || !r.Saw.Equal(y.Due) || !r.Next.After(y.Due) {
		return false
	}
	switch due := ms.isDue(y, r); {
	case v.Do == groups.Start && due && ms.mayRun(g):
		ms.startsRun(g)
	case v.Do == groups.Skip && due, v.Do == groups.Await && r.Due.IsZero() && (y.Due.IsZero() || ms.mayWait(g, r)):
		ms.Fact(state.RunSettled{Group: g.Name})
	default:
		return false
	}
	return true
}

// isDue reports whether the run of a move is due now, and not before the next one of its schedule.
func (ms *Members) isDue(y *state.Schedule, r *groups.RunMove) bool {
	return !y.Due.IsZero() && !r.Due.IsZero() && !r.Due.After(ms.Now()) && !r.Due.Before(y.Due)
}

// mayWait reports whether a due run may wait for a price: it has been due since the time that the schedule knows, and
// the planner checks the price again before the run must begin.
func (ms *Members) mayWait(g *state.Group, r *groups.RunMove) bool {
	y, price := g.Schedule, g.Terms.Schedule.When.Price
	since := y.Since
	if since.IsZero() {
		since = y.Due
	}
	if price == nil || !ms.mayRun(g) || y.Due.After(ms.Now()) || r.Since.Before(since) || r.Since.After(ms.Now()) {
		return false
	}
	if !y.Since.IsZero() && !r.Since.Equal(y.Since) {
		return false
	}
	return r.Next.After(ms.Now()) && !r.Next.After(r.Since.Add(price.By))
}

// mayRun reports whether a schedule may begin another run: no run is open, and the schedule has runs left.
func (ms *Members) mayRun(g *state.Group) bool {
	if ms.openRuns(g) > 0 && !ms.Faults.Overlaps {
		return false
	}
	most := g.Terms.Schedule.Runs
	return most <= 0 || g.Schedule.Begun < most
}

// startsRun starts the next run of a schedule, or ends the schedule if its budget does not pay for another.
func (ms *Members) startsRun(g *state.Group) {
	b := g.NextRun()
	w := ms.admission.Weigher()
	v := w.Opening(b, g.User())
	switch {
	case v.No == nil && v.Asking == nil:
		ms.opens(b, v)
		ms.Fact(state.RunSettled{Group: g.Name, Run: b.Group})
	case v.No != nil && v.No.Why == step.GroupFull:
		ms.Fact(state.RunSettled{Group: g.Name, Skipped: v.No.Err.Error()})
		ms.endGroup(g.Name, step.BudgetSpent, v.No.Err.Error(), state.LetMembers)
	default:
		why := "it would need an approval of its own"
		if v.No != nil {
			why = v.No.Err.Error()
		}
		ms.Fact(state.RunSettled{Group: g.Name, Skipped: why})
	}
}
