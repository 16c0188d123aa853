package state

import (
	"fmt"
	"slices"
)

func (s *State) applyTask(e *Event, f Fact) {
	switch f := f.(type) {
	case TaskClaimed:
		b := e.Body.(AgentClaimed)
		t := s.task(f.Attempt, b.Node)
		move(NextTask, "task", t.Name(), &t.r.Phase, Starting)
		t.r.Claimed, t.r.By = s.now, b.By
		s.spoke(t)
	case TaskStarted:
		s.started(e, f)
	case NoticeTaken:
		b := e.Body.(NoticeGiven)
		t := s.task(f.Attempt, b.Node)
		t.r.Noticed, t.r.TakenAt = s.now, b.Until
		if i := t.instance; i != nil {
			i.r.Noticed = s.now
		}
	case DrainRequested:
		a := s.attempt(f.Attempt)
		a.r.Draining, a.r.DrainWhy, a.r.DrainBy = true, f.Why, f.By
		if f.MigratesTo != "" {
			s.jobs[a.r.Job].runs().MigratingTo = f.MigratesTo
		}
		if !f.Rests.IsZero() {
			s.jobs[a.r.Job].runs().Placing.Rests = f.Rests
		}
		if f.Keeps != nil {
			s.keep(s.jobs[a.r.Job], *f.Keeps)
		}
		for _, t := range a.tasks {
			if i := t.instance; i != nil && i.r.Phase == Ready && len(i.r.Seats) == 1 {
				move(NextInstance, "instance", i.r.ID, &i.r.Phase, Draining)
			}
		}
	case TaskEnded:
		s.ended(e, f)
	case TimeSettled:
		t := s.task(f.Attempt, f.Node)
		t.r.Settled = f.Until
		if f.Until.After(t.r.Learned.Kept) {
			t.r.Learned.Kept = f.Until
		}
	case TaskCut:
		t := s.task(f.Attempt, f.Node)
		s.cutOff(e, t, SeatEnd{Lost: f.Lost}, t.instance.r.Lost)
	}
}

// attempt returns the attempt with the given ID, and marks its job as about to change.
func (s *State) attempt(id string) *Attempt {
	a := s.AttemptOf(id)
	if a == nil {
		panic("state: a fact about unknown attempt " + id)
	}
	s.touched(a.r.Job)
	return a
}

// task returns a rank of the attempt with the given ID, and marks its job as about to change.
func (s *State) task(attempt string, node int) *Task {
	t := s.attempt(attempt).Rank(node)
	if t == nil {
		panic(fmt.Sprintf("state: a fact about missing rank %d of attempt %s", node, attempt))
	}
	return t
}

// spoke records that the agent of the task's instance has reported.
func (s *State) spoke(t *Task) {
	if i := t.instance; i != nil && i.r.Phase == Provisioning {
		move(NextInstance, "instance", i.r.ID, &i.r.Phase, Ready)
	}
}

func (s *State) started(e *Event, f TaskStarted) {
	b := e.Body.(AttemptStarted)
	t := s.task(f.Attempt, b.Node)
	move(NextTask, "task", t.Name(), &t.r.Phase, TaskRunning)
	t.r.Started, t.r.Restored, t.r.Data = s.now, b.Restored, b.Data
	if b.Node == 0 {
		s.jobs[t.attempt.r.Job].runs().Learned.SavedWork = f.Work
	}
	for _, l := range f.Lost {
		s.task(l.Attempt, l.Node).r.LostTime = l.Lost
	}
	s.spoke(t)
}

func (s *State) ended(e *Event, f TaskEnded) {
	b, reported := e.Body.(AttemptEnded)
	if !reported { // the task ended without a report
		b = AttemptEnded{Node: e.Body.(TaskGone).Node, Reason: "terminated"}
	}
	k := s.task(f.Attempt, b.Node)
	a, t := k.attempt, &k.r
	move(NextTask, "task", k.Name(), &t.Phase, Ended)
	t.Over, t.End, t.Exit = s.now, b.Reason, b.Exit
	t.LostTime += f.Lost
	t.Data = append(slices.Clip(t.Data), b.Data...) // streams, or what an agent could not report before
	if a.Task() == Ended {
		a.r.DrainBy = s.now // terminate it at once
	}
	j := s.jobs[a.r.Job]
	if s.cfg.TimingOf(t.Machine.Provider).Idle > 0 {
		s.demand(j.User()).Left = s.now
	}
	r := j.runs()
	if b.Outputs != "" {
		r.Outputs = b.Outputs
		if b.Node == 0 { // a gang's machines keep outputs of their own, and stages read those of the first
			r.OutputsDigest = b.OutputsDigest
		}
	}
	if j.r.State.Over() {
		return
	}
	r.Exit = a.Exit()
	r.Learned.SetUp = r.Learned.SetUp.failed(f.Attempt, b.SetupStatus)
	switch gang := len(a.tasks) > 1; {
	case gang && a.explaining() == k && b.Error != "":
		j.r.Detail = fmt.Sprintf("node %d: %s", b.Node, b.Error)
	case !gang && (b.Error != "" || r.Ending == ""):
		j.r.Detail = b.Error
	}
}
