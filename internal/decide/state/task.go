package state

import (
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
	instance *Instance // nil once it can neither cost anything nor receive a bill
}

type taskRecord struct {
	Rank     int           `json:"rank,omitempty"`
	Phase    TaskPhase     `json:"phase"`
	Instance string        `json:"instance"`
	Machine  Machine       `json:"machine"`
	Portion  *Portion      `json:"portion,omitempty"` // portion of the machine; nil: all
	From     time.Time     `json:"from"`              // start of billing for its seat
	Until    time.Time     `json:"until,omitzero"`
	Cause    string        `json:"cause,omitempty"` // why its instance ended
	Notice   time.Duration `json:"notice_ns,omitempty"`
	Noticed  time.Time     `json:"noticed,omitzero"`
	TakenAt  time.Time     `json:"taken_at,omitzero"` // interruption time in the notice
	Claimed  time.Time     `json:"claimed,omitzero"`
	By       string        `json:"by,omitempty"` // who claimed it: a hash of the machine's own secret
	Started  time.Time     `json:"started,omitzero"`
	Over     time.Time     `json:"over,omitzero"` // end of the program
	// completed, failed, drained, setup, interrupted, silent, terminated, stopped
	End      string `json:"end,omitempty"`
	Exit     int    `json:"exit,omitempty"`
	Restored string `json:"restored,omitempty"`
	// Leaving is why the task must leave its seat while others keep theirs, and LeaveBy the deadline for that.
	Leaving string    `json:"leaving,omitempty"`
	LeaveBy time.Time `json:"leave_by,omitzero"`
	// Before is the cost of the machine when the task took its seat. Warm is set if the machine had served
	// another task before.
	Before money.Amount `json:"before,omitzero"`
	Warm   bool         `json:"warm,omitempty"`

	Posted  money.Amount                `json:"posted"`          // share of plain seconds
	Rules   money.Amount                `json:"rules"`           // bill lines that are not plain seconds
	Extras  money.Amount                `json:"extras,omitzero"` // tax, credits, commitments and Reads, part of Rules
	Reads   money.Amount                `json:"reads,omitzero"`  // for reading the inputs, part of Extras
	Uses    map[ledger.Use]money.Amount `json:"uses"`
	Settled time.Time                   `json:"settled,omitzero"` // the use of its time is posted up to here
	Accrued time.Time                   `json:"accrued,omitzero"` // its cost is posted up to here
	// Bill is the newest bill by rule, with "" for plain seconds; nil: no bill yet.
	Bill     map[string]money.Amount `json:"bill,omitempty"`
	LostTime time.Duration           `json:"lost_ns,omitempty"`
	Rate     money.Rate              `json:"rate"`                // per hour, when granted
	LastRate money.Rate              `json:"last_rate,omitempty"` // rate of its last hour, once it has ended

	Data    []DataRead  `json:"data,omitempty"` // inputs that the agent brought
	Learned learnedTask `json:"learned"`
}

// learnedTask is what was observed of a task's program. Progress is that of rank 0, which reports for all ranks.
type learnedTask struct {
	First     int64     `json:"first"` // step it started from
	Step      int64     `json:"step"`
	Paced     time.Time `json:"paced,omitzero"` // time of the newest pace sample
	PacedStep int64     `json:"paced_step,omitempty"`
	// FirstTook is how long its first FirstSteps steps took, with everything before them. Warming counts the
	// samples of its slow first steps, and exceeds mostWarming once its warm-up is known.
	FirstTook  time.Duration `json:"first_took_ns,omitempty"`
	FirstSteps int64         `json:"first_steps,omitempty"`
	Warming    int           `json:"warming,omitempty"`
	Saves      int           `json:"saves,omitempty"`
	SavedBytes int64         `json:"saved_bytes,omitempty"`
	LastSave   time.Time     `json:"last_save,omitzero"`
	Kept       time.Time     `json:"kept,omitzero"` // work up to here is in a checkpoint, or settled otherwise
	Heard      int64         `json:"heard"`         // highest message number applied
	IdleFrom   time.Time     `json:"idle_from,omitzero"`
	CPU        float64       `json:"cpu,omitempty"` // mean cores in use

	// CPUSeen is the time since the program started that CPU is averaged over.
	CPUSeen time.Duration `json:"cpu_seen,omitempty"`
}

// Identity and state of a task.
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

// Warned returns how long the machine's interruption was known in advance: until the announced time, or until the
// actual interruption if that was sooner and cut the task off. A task that ended in order before still counts the
// announced time.
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

// Before is the cost of the machine when the task took its seat.
func (t *Task) Before() money.Amount { return t.r.Before }

// Leaving says why the task must leave its seat while others keep theirs; empty if it need not. LeaveBy is the
// deadline for that.
func (t *Task) Leaving() string    { return t.r.Leaving }
func (t *Task) LeaveBy() time.Time { return t.r.LeaveBy }

// Cost of the task.
func (t *Task) Posted() money.Amount              { return t.r.Posted }
func (t *Task) Rules() money.Amount               { return t.r.Rules }
func (t *Task) Uses() map[ledger.Use]money.Amount { return t.r.Uses }
func (t *Task) Settled() time.Time                { return t.r.Settled }
func (t *Task) Bill() map[string]money.Amount     { return t.r.Bill }
func (t *Task) Billed() bool                      { return t.r.Bill != nil }
func (t *Task) LostTime() time.Duration           { return t.r.LostTime }
func (t *Task) LaunchRate() money.Rate            { return t.r.Rate }

// Name returns the task's name in postings: attempt ID, slash, rank.
func (t *Task) Name() string { return t.attempt.r.ID + "/" + strconv.Itoa(t.r.Rank) }

// Live reports whether the task may still cost something.
func (t *Task) Live() bool { return t.r.Until.IsZero() }

// ended returns the end of its program or of its machine, whichever came first.
func (t *Task) ended() time.Time {
	if t.r.Over.IsZero() {
		return t.r.Until
	}
	return t.r.Over
}

// Releasing reports whether its machine is being terminated, or its seat released.
func (t *Task) Releasing() bool {
	return t.r.Leaving != "" && t.Live() || t.instance != nil && t.instance.r.Release != ""
}

// GivenUp reports whether its machine was given up because the provider no longer lists it.
func (t *Task) GivenUp() bool { return t.instance != nil && t.instance.r.Lost }

// Taken reports whether the provider interrupted the task, or announced an interruption and got the machine back
// early.
func (t *Task) Taken() bool {
	return !t.r.Until.IsZero() && (t.r.Cause == "interrupted" || !t.r.Noticed.IsZero() && t.r.End != "completed")
}

// Cost returns the cost of plain seconds up to at: the machine's cost since the task took its seat, or the task's
// portion of it if others had seats beside it.
func (t *Task) Cost(at time.Time) money.Amount {
	switch {
	case t.instance == nil:
		return t.r.Posted
	case len(t.instance.r.Spans) > 0:
		return t.instance.partOf(t.attempt.r.ID, at)
	}
	return t.instance.costFrom(t.r.From, t.r.Before, at)
}

// Rented returns when billing of its machine began.
func (t *Task) Rented() time.Time {
	if t.instance != nil {
		return t.instance.r.From
	}
	return t.r.From
}

// Rate returns the hourly price of its machine, or of its portion of it: the current price, or that of its last
// hour once it has ended.
func (t *Task) Rate() money.Rate {
	if t.instance == nil {
		return t.r.LastRate
	}
	return t.instance.rateOf(t.attempt.r.ID)
}

// Beside reports whether others have seats on its machine too.
func (t *Task) Beside() bool { return t.instance != nil && len(t.instance.r.Seats) > 1 }

// TaskOf returns the task with the given name in postings, ended or not, or nil.
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
