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

// Idle is a span in which a machine has no task: from the end of one task until the next job of the same user takes
// the machine, or it ends. The owner of the task pays for the span; no job does.
type Idle struct {
	Owner ledger.Owner `json:"owner"` // with the instance, and the name of the span as its task
	User  string       `json:"user"`  // user of the task, whose next job may take the machine
	After string       `json:"after"` // attempt that left the machine
	From  time.Time    `json:"from"`
	Until time.Time    `json:"until,omitzero"` // zero: still idle
	Keep  time.Time    `json:"keep"`           // time at which the machine is terminated
	Most  money.Amount `json:"most"`           // amount held for the span
	Taken string       `json:"taken,omitempty"`
	// Clean is when the agent showed that earlier tasks left nothing behind; zero: not yet.
	Clean  time.Time    `json:"clean,omitzero"`
	Posted money.Amount `json:"posted,omitzero"`
	// Settled is when its cost was last posted, and Accrued the time up to which it is posted.
	Settled time.Time               `json:"settled,omitzero"`
	Accrued time.Time               `json:"accrued,omitzero"`
	Rules   money.Amount            `json:"rules,omitzero"` // bill lines beyond plain seconds
	Bill    map[string]money.Amount `json:"bill,omitempty"` // its part of the newest bill; nil: no bill yet
}

// PostedUntil is the time up to which the cost of the machine is posted. It is before the span if the machine was
// thought to have ended then.
func (p *Idle) PostedUntil() time.Time {
	if p.Accrued.IsZero() {
		return p.From
	}
	return p.Accrued
}

// Idle returns the current span without a task. ok is false if a task has the machine, or it has ended.
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

// Idles returns its spans without a task, in order.
func (i *Instance) Idles() []Idle { return i.r.Idles }

// Served returns the attempts that had the machine and left it, in order.
func (i *Instance) Served() []string { return i.r.Served }

// Shared reports whether its cost is split, because it was idle for a time or had several tasks at once.
func (i *Instance) Shared() bool { return (len(i.r.Idles) > 0 || i.r.Several) && !i.r.Paid }

// Waiting returns the machines without a task, sorted by ID.
func (s *State) Waiting() []*Instance { return s.waiting }

// left records that a task has left an instance that stays, for others that have seats on it or for the next job.
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
	waits := f.Next == "" && (f.Attempt == "" || !f.Keep.IsZero())
	if i.r.Phase == Draining && (f.Next != "" || waits) {
		move(NextInstance, "instance", i.r.ID, &i.r.Phase, Ready)
	}
	if (f.Next != "" || f.Attempt != "") && t.End == "" {
		t.End = "terminated"
	}
	if waits {
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

// follows gives a machine that an attempt has left to the next allocation of its job.
func (s *State) follows(a *Allocation, i *Instance, rank int) {
	a.gets(i, grant{Instance: i.r.ID, From: s.now, Rate: i.PresentRate(), Before: i.Cost(s.now), Rank: rank + 1,
		Warm: true})
	i.r.Seats = append(slices.Clone(i.r.Seats), Seat{Attempt: a.r.ID})
	i.r.Job = a.r.Job
	s.lists(i)
}

// Kept is the cause of the end of an attempt if its machine was kept for the next job.
const Kept = "kept"

// idleOwner returns who pays for a machine while it has no task: the owner of the last job, without that job.
func idleOwner(j *Job, i *Instance, n int) ledger.Owner {
	o := j.r.Terms.Owner
	o.Tenant, o.Job, o.Attempt = j.r.Tenant, "", ""
	o.Instance, o.Task = i.r.ID, fmt.Sprintf("%s/idle.%d", i.r.ID, n+1)
	return o
}

// idleOf returns the idle span with the given task name, or nil.
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

// idleTask returns the task name of the idle span that a posting belongs to, or "".
func (s *State) idleTask(p *ledger.Posting) string {
	if !p.Idles() {
		return ""
	}
	return p.Owner.Task
}

// IdleUser returns the user of the idle span with the given task name, or "" if unknown.
func (s *State) IdleUser(task string) string {
	if _, idle := s.idleOf(task); idle != nil {
		return idle.User
	}
	return ""
}

// seats reports whether the attempt has a seat on the instance.
func (i *Instance) seats(attempt string) bool {
	return slices.ContainsFunc(i.r.Seats, func(s Seat) bool { return s.Attempt == attempt })
}

// had reports whether the attempt has or had a seat on the instance.
func (i *Instance) had(attempt string) bool {
	return i.seats(attempt) || slices.Contains(i.r.Served, attempt)
}

// postIdle books a posting for an idle span.
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

// split stores the parts of the newest bill of a shared machine.
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

// clone returns a copy that later changes do not affect.
func (r instanceRecord) clone() instanceRecord {
	r.Bill, r.Idles, r.Spans = maps.Clone(r.Bill), slices.Clone(r.Idles), slices.Clone(r.Spans)
	return r
}

// Demand records how soon a user's jobs request a machine after another of them has ended.
type Demand struct {
	// when one of their machines was last left; zero: they have requested one since
	Left time.Time       `json:"left,omitzero"`
	Gaps []time.Duration `json:"gaps,omitempty"`
}

// gapsKept is the number of gaps kept for a user.
const gapsKept = 16

func (s *State) demand(user string) *Demand {
	d := s.demands[user]
	if d == nil {
		d = &Demand{}
		s.demands[user] = d
	}
	return d
}

// Gaps returns the newest times from the end of a user's task to their next request for a machine.
func (s *State) Gaps(user string) []time.Duration {
	if d := s.demands[user]; d != nil {
		return d.Gaps
	}
	return nil
}

// asksAgain records how long after the end of a task the user requests a machine.
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
