package core

import (
	"cmp"
	"strconv"
	"strings"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
)

// SourceOf returns the job's facts about one of its postings: who pays, and how the machine was bought.
func SourceOf(j *Job, p *ledger.Posting) charge.Source {
	s := charge.Source{User: j.User(), Kind: cmp.Or(j.Terms().JobKind, "experiment"), Name: j.Terms().Name,
		Planned: planned(j)}
	k := taskOf(j, &p.Owner)
	if k == nil {
		return s
	}
	s = sourceOf(k.Machine(), s)
	s.Work = workOf(j, k)
	s.Billed, s.Shared = k.Billed(), k.Portion() != nil
	if s.Shared && p.End.After(p.Begin) {
		for _, piece := range k.Pieces(p.Begin, p.End) {
			s.Part, s.Whole = piece.Part, piece.Whole
		}
	}
	return s
}

// planned reports whether somebody approved the job, or gave it the tag planned.
func planned(j *Job) bool {
	a, tag := j.Approval(), j.Terms().Owner.Tags["planned"]
	return a != nil && a.Approved || tag != "" && tag != "no" && tag != "false"
}

// IdleSourceOf returns the instance's facts about a posting for its idle time. The instance may be unknown.
func IdleSourceOf(m *Machine, p *ledger.Posting) charge.Source {
	s := charge.Source{User: m.step.State.IdleUser(p.Owner.Task)}
	if i := m.step.State.Instance(p.Owner.Instance); i != nil {
		s = sourceOf(i.Machine(), s)
	}
	return s
}

func sourceOf(machine *state.Machine, s charge.Source) charge.Source {
	s.Capacity, s.Accelerators = machine.Capacity, machine.GPUs
	return s
}

// workOf is the number of hours of the job's work that the task does in an hour. It uses the job's stated work and
// measured pace if both are known, and otherwise the machine's speed.
func workOf(j *Job, k *Task) float64 {
	speed, nodes := k.Machine().Speed, k.Attempt().Nodes()
	if speed <= 0 {
		speed = 1
	}
	work, total, rate := j.Terms().Work, j.Total(), j.StepRate()
	if work <= 0 || total <= 0 || rate <= 0 {
		return speed
	}
	return work.Hours() * rate * speed / float64(total) / float64(nodes)
}

// taskOf returns the task that an owner names, or nil.
func taskOf(j *Job, o *ledger.Owner) *Task {
	rank, ok := strings.CutPrefix(o.Task, o.Attempt+"/")
	n, err := strconv.Atoi(rank)
	if !ok || err != nil {
		return nil
	}
	list := j.Attempts()
	for i := len(list) - 1; i >= 0; i-- { // the newest attempt has the newest postings
		if list[i].ID() == o.Attempt {
			return list[i].Rank(n)
		}
	}
	return nil
}
