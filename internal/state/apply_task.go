package state

func (s *State) applyTask(e *Event, f Fact) {
	switch f := f.(type) {
	case TaskClaimed:
		a := s.attempt(f.Attempt)
		b := e.Body.(AgentClaimed)
		move(NextTask, "task", a.r.ID, &a.r.Task.Phase, Starting)
		a.r.Task.Claimed, a.r.Task.By = s.now, b.By
		s.spoke(a)
	case TaskStarted:
		s.started(e, f)
	case NoticeTaken:
		a := s.attempt(f.Attempt)
		a.r.Noticed, a.r.TakenAt = s.now, e.Body.(NoticeGiven).Until
		if i := a.instance; i != nil {
			i.r.Noticed = s.now
		}
	case DrainRequested:
		a := s.attempt(f.Attempt)
		a.r.Draining, a.r.DrainWhy, a.r.DrainBy = true, f.Why, f.By
		if f.MigratesTo != "" {
			s.jobs[a.r.Job].runs().MigratingTo = f.MigratesTo
		}
		if i := a.instance; i != nil && i.r.Phase == Ready && len(i.r.Seats) == 1 {
			move(NextInstance, "instance", i.r.ID, &i.r.Phase, Draining)
		}
	case TaskEnded:
		s.ended(e, f)
	case TimeSettled:
		a := s.attempt(f.Attempt)
		a.r.Task.Settled = f.Until
		if f.Until.After(a.r.Task.Learned.Kept) {
			a.r.Task.Learned.Kept = f.Until
		}
	}
}

// attempt is the attempt of that name, and its job about to be changed.
func (s *State) attempt(id string) *Attempt {
	a := s.AttemptOf(id)
	if a == nil {
		panic("state: a fact about attempt " + id + ", which is not known")
	}
	s.touched(a.r.Job)
	return a
}

// spoke notes that the agent of an instance has been heard of.
func (s *State) spoke(a *Attempt) {
	if i := a.instance; i != nil && i.r.Phase == Provisioning {
		move(NextInstance, "instance", i.r.ID, &i.r.Phase, Ready)
	}
}

func (s *State) started(e *Event, f TaskStarted) {
	a := s.attempt(f.Attempt)
	j := s.jobs[a.r.Job]
	b := e.Body.(AttemptStarted)
	move(NextTask, "task", a.r.ID, &a.r.Task.Phase, TaskRunning)
	a.r.Task.Started, a.r.Task.Restored = s.now, b.Restored
	j.runs().Learned.SavedWork = f.Work
	for _, l := range f.Lost {
		s.attempt(l.Attempt).r.Task.LostTime = l.Lost
	}
	s.spoke(a)
}

func (s *State) ended(e *Event, f TaskEnded) {
	a := s.attempt(f.Attempt)
	b := e.Body.(AttemptEnded)
	t := &a.r.Task
	move(NextTask, "task", a.r.ID, &t.Phase, Ended)
	t.Over, t.End, t.Exit = s.now, b.Reason, b.Exit
	t.LostTime += f.Lost
	a.r.DrainBy = s.now // it is given back at once
	j := s.jobs[a.r.Job]
	if s.cfg.TimingOf(t.Machine.Provider).Idle > 0 {
		s.demand(j.User()).Left = s.now
	}
	r := j.runs()
	if b.Outputs != "" {
		r.Outputs = b.Outputs
	}
	if !j.r.State.Over() {
		r.Exit = b.Exit
		if b.Error != "" || r.Ending == "" {
			j.r.Detail = b.Error
		}
	}
}
