package state

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// Idle is a span in which a machine had no task: after one of its tasks, until the next job
// of the same user took it or it ended. Its cost is that of the task's owner, and no job's.
type Idle struct {
	Owner ledger.Owner `json:"owner"` // with the instance, and the span's number as its task
	User  string       `json:"user"`  // whose task it was, and whose job may take the machine
	After string       `json:"after"` // the attempt that left it
	From  time.Time    `json:"from"`
	Until time.Time    `json:"until,omitzero"` // zero: it goes on
	Keep  time.Time    `json:"keep"`           // the machine is given back then
	Most  money.Amount `json:"most"`           // held for the span
	Taken string       `json:"taken,omitempty"`
	// Clean is when its agent showed that nothing of an earlier task is left; zero: not yet.
	Clean  time.Time    `json:"clean,omitzero"`
	Posted money.Amount `json:"posted,omitzero"`
	// Settled is when its cost was posted last, and Accrued until when it is.
	Settled time.Time               `json:"settled,omitzero"`
	Accrued time.Time               `json:"accrued,omitzero"`
	Rules   money.Amount            `json:"rules,omitzero"` // what its part of the bill adds to that
	Bill    map[string]money.Amount `json:"bill,omitempty"` // its part of the newest bill; nil: none has come
}

// Idle is the span without a task that goes on; ok is false where a task has the machine, or
// it has ended.
func (i *Instance) Idle() (idle Idle, ok bool) {
	if p := i.idle(); p != nil {
		return *p, true
	}
	return idle, false
}

func (i *Instance) idle() *Idle {
	if n := len(i.r.Idles); n > 0 && i.r.Idles[n-1].Until.IsZero() {
		return &i.r.Idles[n-1]
	}
	return nil
}

// Idles are its spans without a task, in order.
func (i *Instance) Idles() []Idle { return i.r.Idles }

// Served are the attempts that had the machine and left it, in order.
func (i *Instance) Served() []string { return i.r.Served }

// Shared reports whether its cost is split, because it had a time without a task, or several
// tasks at once.
func (i *Instance) Shared() bool { return (len(i.r.Idles) > 0 || i.r.Several) && !i.r.Paid }

// Waiting are the machines without a task, by name.
func (s *State) Waiting() []*Instance { return s.waiting }

// left takes that a task of an instance is over and the machine stays: for others that have
// seats there, or for the next job.
func (s *State) left(f SeatLeft) {
	i := s.instance(f.Instance)
	a := s.seated(i)
	if f.Attempt != "" {
		a = s.attempt(f.Attempt)
	}
	j := s.jobs[a.r.Job]
	k := a.On(i.r.ID)
	t := &k.r
	t.Until, t.Cause, t.LastRate = s.now, Kept, k.Rate()
	t.LostTime += f.Lost
	if i.r.Phase == Draining && (f.Next != "" || f.Attempt == "") {
		move(NextInstance, "instance", i.r.ID, &i.r.Phase, Ready)
	}
	switch {
	case f.Next != "" || f.Attempt != "":
		if t.End == "" {
			t.End = "terminated"
		}
	default:
		i.r.Idles = append(slices.Clone(i.r.Idles), Idle{
			Owner: idleOwner(j, i, len(i.r.Idles)), User: j.User(), After: a.r.ID, From: s.now, Keep: f.Keep, Most: f.Most,
		})
	}
	i.r.Several = i.r.Several || f.Next != ""
	s.taskOver(j, k)
	s.rises(i, k)
	if f.Next != "" {
		s.follows(s.pending(f.Next), i, t.Rank)
	}
}

// follows gives a machine that an attempt has left to the next one of its job.
func (s *State) follows(a *Allocation, i *Instance, rank int) {
	a.gets(i, grant{Instance: i.r.ID, From: s.now, Rate: i.PresentRate(), Before: i.Cost(s.now), Rank: rank + 1,
		Warm: true})
	i.r.Seats = append(slices.Clone(i.r.Seats), Seat{Attempt: a.r.ID})
	i.r.Job = a.r.Job
	s.lists(i)
}

// Kept is the cause of the end of an attempt whose machine was kept for the next job.
const Kept = "kept"

// idleOwner is whose a span without a task is: the job's owner, but for the job.
func idleOwner(j *Job, i *Instance, n int) ledger.Owner {
	o := j.r.Terms.Owner
	o.Tenant, o.Job, o.Attempt = j.r.Tenant, "", ""
	o.Instance, o.Task = i.r.ID, fmt.Sprintf("%s/idle.%d", i.r.ID, n+1)
	return o
}

// idleOf is the span that a posting without a job is about, or nil.
func (s *State) idleOf(task string) (*Instance, *Idle) {
	name, _, ok := strings.Cut(task, "/idle.")
	if !ok {
		return nil, nil
	}
	i := s.instances[name]
	if i == nil {
		return nil, nil
	}
	for n := range i.r.Idles {
		if i.r.Idles[n].Owner.Task == task {
			return i, &i.r.Idles[n]
		}
	}
	return nil, nil
}

// idleTask is the span without a task that a posting is of; "": none.
func (s *State) idleTask(p *ledger.Posting) string {
	if !p.Idles() {
		return ""
	}
	return p.Owner.Task
}

// IdleUser is the user of a span without a task, by its name; "": it is not known.
func (s *State) IdleUser(task string) string {
	if _, idle := s.idleOf(task); idle != nil {
		return idle.User
	}
	return ""
}

// seats reports whether the attempt has a seat on it.
func (i *Instance) seats(attempt string) bool {
	return slices.ContainsFunc(i.r.Seats, func(s Seat) bool { return s.Attempt == attempt })
}

// had reports whether the attempt has a seat on it, or had one.
func (i *Instance) had(attempt string) bool {
	return i.seats(attempt) || slices.Contains(i.r.Served, attempt)
}

// postIdle counts a posting about a span without a task.
func (s *State) postIdle(p *ledger.Posting) {
	i, idle := s.idleOf(p.Owner.Task)
	if idle == nil {
		return
	}
	amount := costOf(p)
	if p.Phase == ledger.Accrued {
		idle.Posted, i.r.Posted = idle.Posted.Add(amount), i.r.Posted.Add(amount)
		idle.Settled, idle.Accrued = s.now, accrued(idle.Accrued, p)
	} else {
		idle.Rules = idle.Rules.Add(amount)
	}
}

// split keeps the parts of the newest bill of a machine that was shared.
func (s *State) split(f BillSplit) {
	i := s.instance(f.Instance)
	for _, p := range f.Parts {
		if a := s.AttemptOf(p.Attempt); a != nil {
			s.touched(a.r.Job)
			a.On(i.r.ID).r.Bill = p.Bill
			continue
		}
		if _, idle := s.idleOf(p.Task); idle != nil {
			idle.Bill = p.Bill
		}
	}
	i.r.Billed = true
}

// clone is a copy of the record that later changes leave alone.
func (r instanceRecord) clone() instanceRecord {
	r.Bill, r.Idles, r.Spans = maps.Clone(r.Bill), slices.Clone(r.Idles), slices.Clone(r.Spans)
	return r
}

// Demand is when a user's jobs asked for a machine after another of theirs had ended.
type Demand struct {
	Left time.Time       `json:"left,omitzero"` // when a machine of theirs was left last; zero: it was asked for one since
	Gaps []time.Duration `json:"gaps,omitempty"`
}

// gapsKept is how many gaps are kept of a user.
const gapsKept = 16

func (s *State) demand(user string) *Demand {
	d := s.demands[user]
	if d == nil {
		d = &Demand{}
		s.demands[user] = d
	}
	return d
}

// Gaps are the newest times from the end of a task of the user's until they asked for a
// machine again.
func (s *State) Gaps(user string) []time.Duration {
	if d := s.demands[user]; d != nil {
		return d.Gaps
	}
	return nil
}

// asksAgain learns how long after the end of a task the user asks for a machine.
func (s *State) asksAgain(user string) {
	d := s.demands[user]
	if d == nil || d.Left.IsZero() {
		return
	}
	d.Gaps = append(slices.Clone(d.Gaps), s.now.Sub(d.Left))
	if n := len(d.Gaps) - gapsKept; n > 0 {
		d.Gaps = d.Gaps[n:]
	}
	d.Left = time.Time{}
}
