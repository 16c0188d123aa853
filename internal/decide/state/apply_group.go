package state

import (
	"cmp"
	"slices"

	"scrimp/internal/work/groups"
)

func (s *State) applyGroup(e *Event, f Fact) {
	switch f := f.(type) {
	case GroupGranted:
		if g := s.groups[f.Group]; g != nil { // it was approved
			move(NextGroup, "group", g.Name, &g.Phase, GroupOpen)
			g.Approval = reviewedGroup(g.Approval, e)
			return
		}
		g := s.opens(e, f)
		if f.Asking != nil {
			move(NextGroup, "group", g.Name, &g.Phase, GroupAwaits)
			g.Approval = &Approval{PendingApproval: *f.Asking}
			return
		}
		move(NextGroup, "group", g.Name, &g.Phase, GroupOpen)
	case GroupEnded:
		g := s.groups[f.Group]
		move(NextGroup, "group", g.Name, &g.Phase, GroupEnding)
		g.Why, g.Detail, g.Ends, g.Waits = f.Why, f.Detail, f.Members, nil
		if g.Approval != nil {
			g.Approval = reviewedGroup(g.Approval, e)
		}
	case MembersEnding:
		s.groups[f.Group].Ends = f.Members
	case GroupFinished:
		g := s.groups[f.Group]
		move(NextGroup, "group", g.Name, &g.Phase, GroupOver)
		if g.Finished = s.now; f.Why != "" {
			g.Why, g.Detail = f.Why, ""
		}
		s.abandonsStages(g)
	case GroupWaits:
		g := s.groups[f.Group]
		g.Why, g.Detail = f.Why, f.Detail
	case StageSettled:
		s.settlesStage(e, f)
	case RunSettled:
		s.settlesRun(e, f)
	}
}

func (s *State) opens(e *Event, f GroupGranted) *Group {
	b := s.opening(e, f.Group)
	g := &Group{Name: f.Group, Tenant: e.Tenant, By: UserOf(e.Actor), Terms: b.Terms, Worst: f.Worst, Opened: s.now,
		Event: s.seq, Waits: b.Terms.After, Stored: b.Stored}
	if of := s.groups[b.Terms.Parent]; of != nil && of.Schedule != nil { // the schedule has the job files
		g.Tenant, g.By, g.Event = of.Tenant, of.By, of.Event
	}
	if b.Terms.Study != nil {
		g.Study = &Study{}
	}
	if p := b.Terms.Pipeline; p != nil {
		g.Stages = make([]groups.Stage, len(p.Stages))
		s.listsModel(g)
	}
	if b.Terms.Schedule != nil {
		g.Schedule = &Schedule{}
	}
	if f.Budget != nil {
		g.Terms.Budget, g.Terms.HasBudget = *f.Budget, true
	}
	s.groups[f.Group] = g
	return g
}

// memberBegins counts a new member of its group.
func (s *State) memberBegins(e *Event, j *Job) {
	g := s.groups[j.r.Terms.Group]
	if g == nil {
		return
	}
	s.trialBegins(g, e, j)
	s.stageBegins(g, e, j)
	g.Began++
	if g.Phase == GroupOpen {
		g.Why, g.Detail = "", ""
	}
	s.memberOpens(j)
}

// memberOpens counts a member that has not ended.
func (s *State) memberOpens(j *Job) {
	g := s.groups[j.r.Terms.Group]
	if g == nil {
		return
	}
	g.Open++
	s.listsMember(j)
}

func (s *State) listsMember(j *Job) {
	list := s.members[j.r.Terms.Group]
	n, _ := slices.BinarySearchFunc(list, j.order, func(a *Job, o uint64) int { return cmp.Compare(a.order, o) })
	s.members[j.r.Terms.Group] = slices.Insert(list, n, j)
}

// memberEnds counts a member that has ended, or one that continues (by is -1).
func (s *State) memberEnds(j *Job, by int) {
	g := s.groups[j.r.Terms.Group]
	if g == nil {
		return
	}
	s.stageEnds(j, by)
	if g.Ended.add(j.r.State, by); by < 0 {
		s.memberOpens(j)
		return
	}
	g.Open--
	list := s.members[g.Name]
	n, _ := slices.BinarySearchFunc(list, j.order, func(a *Job, o uint64) int { return cmp.Compare(a.order, o) })
	if list = slices.Delete(list, n, n+1); len(list) == 0 {
		delete(s.members, g.Name)
	} else {
		s.members[g.Name] = list
	}
}

// reviewedGroup returns the approval with the review of the event, if the event is one.
func reviewedGroup(was *Approval, e *Event) *Approval {
	b, ok := e.Body.(GroupReviewed)
	if !ok || was == nil {
		return was
	}
	return reviewed(was, e, JobReviewed{Approved: b.Approved, Reason: b.Reason})
}
