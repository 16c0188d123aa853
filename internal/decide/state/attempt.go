package state

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Attempt is one try at a job, fenced by its epoch. It has a task on each of its machines, and they start together.
// Methods about its machine describe rank 0; methods about cost cover all ranks.
type Attempt struct {
	r     attemptRecord
	tasks []*Task // by rank
}

type attemptRecord struct {
	ID        string        `json:"id"`
	Job       string        `json:"job"`
	Epoch     int           `json:"epoch"`
	Phase     AttemptPhase  `json:"phase"`
	Variant   string        `json:"variant,omitempty"`
	Rung      int           `json:"rung,omitempty"`
	Transfer  time.Duration `json:"transfer_ns,omitempty"`
	Requested time.Time     `json:"requested"`
	Most      money.Rate    `json:"most,omitempty"`
	Draining  bool          `json:"draining,omitempty"`
	DrainWhy  string        `json:"drain_why,omitempty"`
	DrainBy   time.Time     `json:"drain_by,omitzero"` // deadline of the drain
	Wanted    int           `json:"wanted,omitempty"`  // machines it was to have, if it never got all of them
	// Preemption is nil unless a critical job got its seat.
	Preemption *Preemption `json:"preemption,omitempty"`
}

// storedAttempt is the form of an attempt in a snapshot.
type storedAttempt struct {
	attemptRecord
	Tasks []taskRecord `json:"tasks"`
}

func (a *Attempt) stored() storedAttempt {
	s := storedAttempt{attemptRecord: a.r, Tasks: make([]taskRecord, len(a.tasks))}
	for n, t := range a.tasks {
		s.Tasks[n] = t.r
	}
	return s
}

// attempt returns the attempt without its machines.
func (s *storedAttempt) attempt() *Attempt {
	a := &Attempt{r: s.attemptRecord}
	for _, r := range s.Tasks {
		a.tasks = append(a.tasks, &Task{r: r, attempt: a})
	}
	return a
}

// Identity and state of an attempt.
func (a *Attempt) ID() string              { return a.r.ID }
func (a *Attempt) Job() string             { return a.r.Job }
func (a *Attempt) Epoch() int              { return a.r.Epoch }
func (a *Attempt) Phase() AttemptPhase     { return a.r.Phase }
func (a *Attempt) Variant() string         { return a.r.Variant }
func (a *Attempt) Rung() int               { return a.r.Rung }
func (a *Attempt) Transfer() time.Duration { return a.r.Transfer }
func (a *Attempt) Requested() time.Time    { return a.r.Requested }
func (a *Attempt) Most() money.Rate        { return a.r.Most }
func (a *Attempt) Draining() bool          { return a.r.Draining }
func (a *Attempt) DrainWhy() string        { return a.r.DrainWhy }
func (a *Attempt) DrainBy() time.Time      { return a.r.DrainBy }

// Tasks returns its tasks by rank, Nodes their number, and Lead the task of rank 0.
func (a *Attempt) Tasks() []*Task { return a.tasks }
func (a *Attempt) Nodes() int     { return len(a.tasks) }
func (a *Attempt) Lead() *Task    { return a.tasks[0] }

// Rank returns the task of a rank, or nil.
func (a *Attempt) Rank(n int) *Task {
	if n < 0 || n >= len(a.tasks) {
		return nil
	}
	return a.tasks[n]
}

// On returns the task on an instance, or nil.
func (a *Attempt) On(instance string) *Task {
	for _, t := range a.tasks {
		if t.r.Instance == instance {
			return t
		}
	}
	return nil
}

// Partial is the number of machines that an attempt was to have if it never got all of them, otherwise 0.
func (a *Attempt) Partial() int { return a.r.Wanted }

// Task is the phase of its ranks together: running once all have started, ended once all have ended.
func (a *Attempt) Task() TaskPhase {
	if len(a.tasks) == 1 {
		return a.tasks[0].r.Phase
	}
	ended, least := 0, Ended
	for _, t := range a.tasks {
		switch p := t.r.Phase; {
		case p == Ended:
			ended++
		case least == Ended || p == Assigned || p == Starting && least == TaskRunning:
			least = p
		}
	}
	if ended == len(a.tasks) {
		return Ended
	}
	return least
}

// Machine of rank 0; the others have the same type.
func (a *Attempt) Instance() string          { return a.tasks[0].r.Instance }
func (a *Attempt) Machine() *Machine         { return &a.tasks[0].r.Machine }
func (a *Attempt) Offer() market.OfferID     { return a.tasks[0].r.Machine.Offer }
func (a *Attempt) Provider() string          { return a.tasks[0].r.Machine.Provider }
func (a *Attempt) Region() string            { return a.tasks[0].r.Machine.Region }
func (a *Attempt) Zone() string              { return a.tasks[0].r.Machine.Zone }
func (a *Attempt) Capacity() market.Capacity { return a.tasks[0].r.Machine.Capacity }
func (a *Attempt) Speed() float64            { return a.tasks[0].r.Machine.Speed }
func (a *Attempt) Currency() money.Currency  { return a.tasks[0].r.Machine.Currency }
func (a *Attempt) From() time.Time           { return a.tasks[0].r.From }
func (a *Attempt) Claimed() time.Time        { return a.tasks[0].r.Claimed }
func (a *Attempt) By() string                { return a.tasks[0].r.By }
func (a *Attempt) Started() time.Time        { return a.tasks[0].r.Started }
func (a *Attempt) Restored() string          { return a.tasks[0].r.Restored }

// Full returns when it had all of its machines.
func (a *Attempt) Full() (t time.Time) {
	for _, k := range a.tasks {
		t = later(t, k.r.From)
	}
	return t
}

// Rented returns when billing of the oldest of its machines began.
func (a *Attempt) Rented() (t time.Time) {
	for _, k := range a.tasks {
		if r := k.Rented(); t.IsZero() || r.Before(t) {
			t = r
		}
	}
	return t
}

// GPUs returns the number of accelerators on all its machines.
func (a *Attempt) GPUs() (n int) {
	for _, t := range a.tasks {
		n += t.GPUs()
	}
	return n
}

// Until returns when billing of the last machine ended; zero if one is still billed.
func (a *Attempt) Until() (until time.Time) {
	for _, t := range a.tasks {
		if t.r.Until.IsZero() {
			return time.Time{}
		}
		until = later(until, t.r.Until)
	}
	return until
}

// Over returns when the last program ended; zero if one still runs or was cut off.
func (a *Attempt) Over() (over time.Time) {
	for _, t := range a.tasks {
		if t.r.Over.IsZero() {
			return time.Time{}
		}
		over = later(over, t.r.Over)
	}
	return over
}

// ends lists ways in which a task ends. Earlier ones cause later ones.
var ends = []string{"silent", "interrupted", "stopped", "failed", "setup", "moved", "drained", "completed"}

// explaining returns the task whose end explains how the attempt ended: in a gang, the one that caused the others to
// end. It returns nil if none has ended.
func (a *Attempt) explaining() (worst *Task) {
	rank := func(t *Task) int {
		if n := slices.Index(ends, t.r.End); n >= 0 {
			return n
		}
		return len(ends)
	}
	for _, t := range a.tasks {
		switch {
		case t.r.End == "" && len(a.tasks) > 1:
		case worst == nil || cmp.Or(rank(t)-rank(worst), t.ended().Compare(worst.ended())) < 0:
			worst = t
		}
	}
	return worst
}

// End returns how it ended: completed, failed, drained, setup, interrupted, silent, terminated or stopped.
func (a *Attempt) End() string {
	if t := a.explaining(); t != nil {
		return t.r.End
	}
	return ""
}

// Exit returns the exit status of the program whose end explains the others.
func (a *Attempt) Exit() int {
	if t := a.explaining(); t != nil {
		return t.r.Exit
	}
	return 0
}

// Cause returns why its machine ended. In a gang, an interrupted machine comes first, otherwise the last one.
func (a *Attempt) Cause() string {
	for _, t := range a.tasks {
		if t.r.Cause == "interrupted" {
			return t.r.Cause
		}
	}
	return a.tasks[len(a.tasks)-1].r.Cause
}

// Notice returns the longest notice that any of its machines had of its end.
func (a *Attempt) Notice() (d time.Duration) {
	for _, t := range a.tasks {
		d = max(d, t.r.Notice)
	}
	return d
}

// Noticed returns when one of its machines first had a notice of interruption.
func (a *Attempt) Noticed() (at time.Time) {
	for _, t := range a.tasks {
		if n := t.r.Noticed; !n.IsZero() && (at.IsZero() || n.Before(at)) {
			at = n
		}
	}
	return at
}

// TakenAt returns the earliest announced interruption of its machines.
func (a *Attempt) TakenAt() (at time.Time) {
	for _, t := range a.tasks {
		if n := t.r.TakenAt; !n.IsZero() && (at.IsZero() || n.Before(at)) {
			at = n
		}
	}
	return at
}

// What rank 0 reported about the program.
func (a *Attempt) First() int64           { return a.tasks[0].r.Learned.First }
func (a *Attempt) Step() int64            { return a.tasks[0].r.Learned.Step }
func (a *Attempt) Saves() int             { return a.tasks[0].r.Learned.Saves }
func (a *Attempt) SavedBytes() int64      { return a.tasks[0].r.Learned.SavedBytes }
func (a *Attempt) LastSave() time.Time    { return a.tasks[0].r.Learned.LastSave }
func (a *Attempt) Kept() time.Time        { return a.tasks[0].r.Learned.Kept }
func (a *Attempt) CPU() float64           { return a.tasks[0].r.Learned.CPU }
func (a *Attempt) Heard() int64           { return a.tasks[0].r.Learned.Heard }
func (a *Attempt) Settled() time.Time     { return a.tasks[0].r.Settled }
func (a *Attempt) CPUSeen() time.Duration { return a.tasks[0].r.Learned.CPUSeen }

// IdleFrom returns since when all of its machines are idle; zero if one is not.
func (a *Attempt) IdleFrom() (from time.Time) {
	for _, t := range a.tasks {
		if t.r.Learned.IdleFrom.IsZero() {
			return time.Time{}
		}
		from = later(from, t.r.Learned.IdleFrom)
	}
	return from
}

// Live reports whether the attempt may still cost something.
func (a *Attempt) Live() bool { return a.r.Phase != Over }

// Releasing reports whether one of its machines is being terminated, or its seat released.
func (a *Attempt) Releasing() bool { return slices.ContainsFunc(a.tasks, (*Task).Releasing) }

// Leaving says why a task of it must leave its seat while others keep theirs, or "".
func (a *Attempt) Leaving() string {
	for _, t := range a.tasks {
		if t.r.Leaving != "" {
			return t.r.Leaving
		}
	}
	return ""
}

// Disowned reports whether one of its machines is from an earlier incarnation and nobody has adopted or released
// it.
func (a *Attempt) Disowned() bool {
	return slices.ContainsFunc(a.tasks, func(t *Task) bool { return t.instance != nil && t.instance.r.Disowned })
}

// GivenUp reports whether one of its machines was given up because its provider no longer lists it. Its actual end
// may still arrive.
func (a *Attempt) GivenUp() bool { return slices.ContainsFunc(a.tasks, (*Task).GivenUp) }

// Taken reports whether the provider interrupted the attempt: it interrupted a machine, or announced that and got
// the machine back early.
func (a *Attempt) Taken() bool { return slices.ContainsFunc(a.tasks, (*Task).Taken) }

// Warm reports whether all its machines had served another task before.
func (a *Attempt) Warm() bool {
	return !slices.ContainsFunc(a.tasks, func(t *Task) bool { return !t.r.Warm })
}

// Portion is its portion of the machine; nil: all of it.
func (a *Attempt) Portion() *Portion { return a.tasks[0].r.Portion }

// Beside reports whether others have seats on its machine too.
func (a *Attempt) Beside() bool { return a.tasks[0].Beside() }
