package state

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// Task is one rank of an attempt, on a machine, with its share of the cost.
type Task struct {
	r        taskRecord
	attempt  *Attempt
	instance *Instance // as long as it may still cost something or be billed
}

type taskRecord struct {
	Rank     int           `json:"rank,omitempty"`
	Phase    TaskPhase     `json:"phase"`
	Instance string        `json:"instance"`
	Machine  Machine       `json:"machine"`
	Portion  *Portion      `json:"portion,omitempty"` // that it has of the machine; nil: all
	From     time.Time     `json:"from"`              // its seat is billed from
	Until    time.Time     `json:"until,omitzero"`
	Cause    string        `json:"cause,omitempty"` // why its instance ended
	Notice   time.Duration `json:"notice_ns,omitempty"`
	Noticed  time.Time     `json:"noticed,omitzero"`
	TakenAt  time.Time     `json:"taken_at,omitzero"` // when the notice said that the machine goes
	Claimed  time.Time     `json:"claimed,omitzero"`
	By       string        `json:"by,omitempty"` // who claimed it: a hash of the machine's own secret
	Started  time.Time     `json:"started,omitzero"`
	Over     time.Time     `json:"over,omitzero"` // the program
	// completed, failed, drained, setup, interrupted, silent, terminated, stopped
	End      string `json:"end,omitempty"`
	Exit     int    `json:"exit,omitempty"`
	Restored string `json:"restored,omitempty"`
	// Leaving is why its seat is taken from it while others keep theirs, and LeaveBy when
	// patience with that ends.
	Leaving string    `json:"leaving,omitempty"`
	LeaveBy time.Time `json:"leave_by,omitzero"`
	// Before is what its machine had cost when it took its seat; Warm, that the machine had
	// served another task before.
	Before money.Amount `json:"before,omitzero"`
	Warm   bool         `json:"warm,omitempty"`

	Posted  money.Amount                `json:"posted"` // its share of plain seconds
	Rules   money.Amount                `json:"rules"`  // of the bill's lines that are not plain seconds
	Uses    map[ledger.Use]money.Amount `json:"uses"`
	Settled time.Time                   `json:"settled,omitzero"` // up to here the use of its time is posted
	Accrued time.Time                   `json:"accrued,omitzero"` // up to here its cost is
	// Bill is the newest bill by rule, "" for plain seconds; nil: none has come.
	Bill     map[string]money.Amount `json:"bill,omitempty"`
	LostTime time.Duration           `json:"lost_ns,omitempty"`
	Rate     money.Rate              `json:"rate"`                // an hour, when it was granted
	LastRate money.Rate              `json:"last_rate,omitempty"` // of its last hour, once it is over

	Learned learnedTask `json:"learned"`
}

// learnedTask is what was observed of a task's program. What it did is that of rank 0, which
// speaks for all.
type learnedTask struct {
	First     int64     `json:"first"` // step it began from
	Step      int64     `json:"step"`
	Paced     time.Time `json:"paced,omitzero"` // of the newest look at its steps
	PacedStep int64     `json:"paced_step,omitempty"`
	// FirstTook is how long its first steps took, FirstSteps, with what was before them. Warming counts
	// the looks at its slow first steps, and is above mostWarming once its warm-up is known.
	FirstTook  time.Duration `json:"first_took_ns,omitempty"`
	FirstSteps int64         `json:"first_steps,omitempty"`
	Warming    int           `json:"warming,omitempty"`
	Saves      int           `json:"saves,omitempty"`
	SavedBytes int64         `json:"saved_bytes,omitempty"`
	LastSave   time.Time     `json:"last_save,omitzero"`
	Kept       time.Time     `json:"kept,omitzero"` // work up to here is in a checkpoint, or settled otherwise
	Heard      int64         `json:"heard"`         // highest message applied
	IdleFrom   time.Time     `json:"idle_from,omitzero"`
	CPU        float64       `json:"cpu,omitempty"` // mean cores in use

	// CPUSeen is the time over which CPU is the mean, from the program's start.
	CPUSeen time.Duration `json:"cpu_seen,omitempty"`
}

// What a task is, and where it stands.
func (t *Task) Attempt() *Attempt     { return t.attempt }
func (t *Task) Rank() int             { return t.r.Rank }
func (t *Task) Phase() TaskPhase      { return t.r.Phase }
func (t *Task) Instance() string      { return t.r.Instance }
func (t *Task) Machine() *Machine     { return &t.r.Machine }
func (t *Task) GPUs() int             { return t.r.Machine.GPUs }
func (t *Task) Portion() *Portion     { return t.r.Portion }
func (t *Task) From() time.Time       { return t.r.From }
func (t *Task) Until() time.Time      { return t.r.Until }
func (t *Task) Cause() string         { return t.r.Cause }
func (t *Task) Notice() time.Duration { return t.r.Notice }
func (t *Task) Noticed() time.Time    { return t.r.Noticed }
func (t *Task) TakenAt() time.Time    { return t.r.TakenAt }

// Warned is for how long its machine was known to go: until the time that was said, or until the provider took it,
// where that was sooner and cut the task off. One that ended before in order has been told no later for that.
func (t *Task) Warned() time.Duration {
	taken := t.r.TakenAt
	if t.r.Cause == "interrupted" && t.r.Over.IsZero() && t.r.Until.Before(taken) {
		taken = t.r.Until
	}
	return max(0, taken.Sub(t.r.Noticed))
}

func (t *Task) Claimed() time.Time       { return t.r.Claimed }
func (t *Task) By() string               { return t.r.By }
func (t *Task) Started() time.Time       { return t.r.Started }
func (t *Task) Over() time.Time          { return t.r.Over }
func (t *Task) End() string              { return t.r.End }
func (t *Task) Exit() int                { return t.r.Exit }
func (t *Task) Kept() time.Time          { return t.r.Learned.Kept }
func (t *Task) Heard() int64             { return t.r.Learned.Heard }
func (t *Task) CPU() float64             { return t.r.Learned.CPU }
func (t *Task) IdleFrom() time.Time      { return t.r.Learned.IdleFrom }
func (t *Task) Warm() bool               { return t.r.Warm }
func (t *Task) Currency() money.Currency { return t.r.Machine.Currency }

// Before is what its machine had cost when it took its seat.
func (t *Task) Before() money.Amount { return t.r.Before }

// Leaving is why its seat is taken from it while others keep theirs; "": it is not. LeaveBy is
// when patience with that ends.
func (t *Task) Leaving() string    { return t.r.Leaving }
func (t *Task) LeaveBy() time.Time { return t.r.LeaveBy }

// What it cost.
func (t *Task) Posted() money.Amount              { return t.r.Posted }
func (t *Task) Rules() money.Amount               { return t.r.Rules }
func (t *Task) Uses() map[ledger.Use]money.Amount { return t.r.Uses }
func (t *Task) Settled() time.Time                { return t.r.Settled }
func (t *Task) Bill() map[string]money.Amount     { return t.r.Bill }
func (t *Task) Billed() bool                      { return t.r.Bill != nil }
func (t *Task) LostTime() time.Duration           { return t.r.LostTime }
func (t *Task) LaunchRate() money.Rate            { return t.r.Rate }

// Name is what postings call it: that of its attempt and its rank.
func (t *Task) Name() string { return fmt.Sprintf("%s/%d", t.attempt.r.ID, t.r.Rank) }

// Live reports whether it may still cost something.
func (t *Task) Live() bool { return t.r.Until.IsZero() }

// ended is when its program or its machine ended, whichever was first.
func (t *Task) ended() time.Time {
	if t.r.Over.IsZero() {
		return t.r.Until
	}
	return t.r.Over
}

// Releasing reports whether its machine, or its seat there, is being given back.
func (t *Task) Releasing() bool {
	return t.r.Leaving != "" && t.Live() || t.instance != nil && t.instance.r.Release != ""
}

// GivenUp reports whether its machine was given up because its provider lists it no more.
func (t *Task) GivenUp() bool { return t.instance != nil && t.instance.r.Lost }

// Taken reports whether the provider interrupted it, or said that it would and was given the
// machine back early.
func (t *Task) Taken() bool {
	return !t.r.Until.IsZero() && (t.r.Cause == "interrupted" || !t.r.Noticed.IsZero() && t.r.End != "completed")
}

// Cost returns what it has cost by at at plain seconds: what its machine has since the
// task took its seat, or its part of that where others had seats beside it.
func (t *Task) Cost(at time.Time) money.Amount {
	switch {
	case t.instance == nil:
		return t.r.Posted
	case len(t.instance.r.Spans) > 0:
		return t.instance.partOf(t.attempt.r.ID, at)
	}
	return t.instance.Cost(at).Sub(t.r.Before)
}

// Rented is from when on its machine is billed.
func (t *Task) Rented() time.Time {
	if t.instance != nil {
		return t.instance.r.From
	}
	return t.r.From
}

// Rate is the price of an hour of its machine, or of its part of that: of now, or of its last hour.
func (t *Task) Rate() money.Rate {
	if t.instance == nil {
		return t.r.LastRate
	}
	return t.instance.rateOf(t.attempt.r.ID)
}

// Beside reports whether others have seats on its machine too.
func (t *Task) Beside() bool { return t.instance != nil && len(t.instance.r.Seats) > 1 }

// TaskOf is the task of a posting's name, over or not, or nil.
func (s *State) TaskOf(name string) *Task {
	attempt, rank, ok := strings.Cut(name, "/")
	n, err := strconv.Atoi(rank)
	if !ok || err != nil {
		return nil
	}
	if a := s.AttemptOf(attempt); a != nil {
		return a.Rank(n)
	}
	return nil
}
