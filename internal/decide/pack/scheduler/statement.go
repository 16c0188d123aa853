package scheduler

import (
	"slices"

	"scrimp/internal/decide/pack"
)

// Statement is a tentative plan for a view: moves can be rolled back to a mark, and only Commit returns a plan.
type Statement struct {
	v        *pack.View
	machines []seats // those of the view, then the opened ones
	on       []int   // by task: machine, or Waiting
	undo     []step
}

// seats is the state of a machine in a statement.
type seats struct {
	kind  int // index in View.Types
	room  pack.Size
	tasks []int
}

// step is one change, with what Rollback needs.
type step struct {
	task, from, to int // of a move; a task of -1 means that a machine was opened
	at             int // the task's index in the machine that it left
}

// NewStatement returns a statement without moves.
func NewStatement(v *pack.View) *Statement {
	s := &Statement{v: v, machines: make([]seats, len(v.Machines)), on: make([]int, len(v.Tasks))}
	for i, m := range v.Machines {
		room := v.Types[m.Type].Size
		for _, t := range m.Tasks {
			room = room.Sub(v.Tasks[t].Size)
		}
		s.machines[i] = seats{kind: m.Type, room: room, tasks: slices.Clone(m.Tasks)}
	}
	for i, t := range v.Tasks {
		s.on[i] = t.On
	}
	return s
}

// Open adds an empty machine of the type and returns its index.
func (s *Statement) Open(kind int) int {
	s.machines = append(s.machines, seats{kind: kind, room: s.v.Types[kind].Size})
	s.undo = append(s.undo, step{task: -1})
	return len(s.machines) - 1
}

// Move puts a task on a machine, or to Waiting. It does not check the room, because the caller may fill machines in
// any order; Commit panics if a machine is too full.
func (s *Statement) Move(task, to int) {
	from, at := s.on[task], -1
	if from == to {
		return
	}
	if from != pack.Waiting {
		m := &s.machines[from]
		at = slices.Index(m.tasks, task)
		m.tasks = slices.Delete(m.tasks, at, at+1)
		m.room = m.room.Add(s.v.Tasks[task].Size)
	}
	if to != pack.Waiting {
		m := &s.machines[to]
		m.tasks = append(m.tasks, task)
		m.room = m.room.Sub(s.v.Tasks[task].Size)
	}
	s.on[task] = to
	s.undo = append(s.undo, step{task: task, from: from, to: to, at: at})
}

// Mark returns a point that Rollback can return to.
func (s *Statement) Mark() int { return len(s.undo) }

// Rollback undoes every change since the mark, the newest first.
func (s *Statement) Rollback(mark int) {
	for len(s.undo) > mark {
		u := s.undo[len(s.undo)-1]
		s.undo = s.undo[:len(s.undo)-1]
		if u.task < 0 {
			s.machines = s.machines[:len(s.machines)-1]
			continue
		}
		size := s.v.Tasks[u.task].Size
		if u.to != pack.Waiting {
			m := &s.machines[u.to]
			m.tasks = m.tasks[:len(m.tasks)-1]
			m.room = m.room.Add(size)
		}
		if u.from != pack.Waiting {
			m := &s.machines[u.from]
			m.tasks = slices.Insert(m.tasks, u.at, u.task)
			m.room = m.room.Sub(size)
		}
		s.on[u.task] = u.from
	}
}

// Commit returns the plan. A machine without a task is released, or not launched at all.
func (s *Statement) Commit() (p pack.Plan) {
	present := len(s.v.Machines)
	index := make([]int, len(s.machines))
	for i, m := range s.machines {
		if !(pack.Size{}).Fits(m.room) {
			panic("scheduler: a machine has more tasks than room")
		}
		switch {
		case i < present && len(m.tasks) == 0:
			p.Releases = append(p.Releases, i)
		case i >= present && len(m.tasks) > 0:
			index[i] = present + len(p.Launches)
			p.Launches = append(p.Launches, m.kind)
		}
		if i < present {
			index[i] = i
		}
	}
	for t, to := range s.on {
		if to != pack.Waiting && to != s.v.Tasks[t].On {
			p.Moves = append(p.Moves, pack.Move{Task: t, To: index[to]})
		}
	}
	return p
}

// movable reports whether this round may move every task of a machine.
func (s *Statement) movable(machine int) bool {
	return !slices.ContainsFunc(s.machines[machine].tasks, func(t int) bool { return s.v.Tasks[t].Fixed })
}
