package state

import (
	"time"

	"scrimp/internal/ledger"
	"scrimp/internal/market"
	"scrimp/internal/money"
)

// Instance is a rented machine with seats. Its cost accrues on it and is split over
// its seats; its bill arrives on it, at any time.
type Instance struct {
	r      instanceRecord
	series *Series // of its offer; nil: its price never changes
}

type instanceRecord struct {
	ID         string        `json:"id"`
	Allocation string        `json:"allocation"` // "": nobody of ours asked for it
	Job        string        `json:"job,omitempty"`
	Phase      InstancePhase `json:"phase"`
	Machine    Machine       `json:"machine"`
	Rate       money.Rate    `json:"rate"`           // an hour, when it was granted
	From       time.Time     `json:"from"`           // billed from
	Until      time.Time     `json:"until,omitzero"` // billed until
	Cause      string        `json:"cause,omitempty"`
	Release    string        `json:"release,omitempty"` // why it is being given back
	Seats      []Seat        `json:"seats,omitempty"`
	// Spans are the times in which the same tasks had it, since it has had several at once;
	// Several says that it had, and so that its bill is split.
	Spans    []span       `json:"spans,omitempty"`
	Several  bool         `json:"several,omitempty"`
	Posted   money.Amount `json:"posted,omitzero"`    // accrued at plain seconds, over all seats
	Agent    *Agent       `json:"agent,omitempty"`    // nil: none has registered
	Noticed  time.Time    `json:"noticed,omitzero"`   // its provider said that it will take it
	Missing  time.Time    `json:"missing,omitzero"`   // since then its provider's list lacks it
	Lost     bool         `json:"lost,omitempty"`     // given up because of that: its true end may come yet
	Disowned bool         `json:"disowned,omitempty"` // of an earlier incarnation, and nobody has decided whose it is
	// Paid says that it ended once and was paid for, and runs all the same: it is given back
	// and not paid again.
	Paid bool `json:"paid,omitempty"`
	// Bill is the newest bill of a machine that nobody asked for, by rule; nil: none has
	// come. That of any other is its tasks'.
	Bill map[string]money.Amount `json:"bill,omitempty"`
	// Served are the attempts that left it, in order, and Idles its spans without a task, where
	// it had one: it is kept for ever then, for its bill. Billed says that one was split.
	Served []string `json:"served,omitempty"`
	Idles  []Idle   `json:"idles,omitempty"`
	Billed bool     `json:"billed,omitempty"`
}

// Agent is the agent of an instance, known by the key that it made. It never changes.
type Agent struct {
	Key      string    `json:"key"` // Ed25519, public, in base64
	At       time.Time `json:"at"`  // when it registered
	Version  string    `json:"version,omitempty"`
	Isolated bool      `json:"isolated,omitempty"` // its programs run as another user
}

// What an instance is, and where it stands.
func (i *Instance) ID() string             { return i.r.ID }
func (i *Instance) Allocation() string     { return i.r.Allocation }
func (i *Instance) Phase() InstancePhase   { return i.r.Phase }
func (i *Instance) Machine() *Machine      { return &i.r.Machine }
func (i *Instance) LaunchRate() money.Rate { return i.r.Rate }
func (i *Instance) From() time.Time        { return i.r.From }
func (i *Instance) Until() time.Time       { return i.r.Until }
func (i *Instance) Cause() string          { return i.r.Cause }
func (i *Instance) Seats() []Seat          { return i.r.Seats }
func (i *Instance) Missing() time.Time     { return i.r.Missing }
func (i *Instance) Lost() bool             { return i.r.Lost }
func (i *Instance) Disowned() bool         { return i.r.Disowned }

// Job is that of its first seat; "": nobody has one.
func (i *Instance) Job() string { return i.r.Job }

// Agent is the one that registered from it; nil: none has.
func (i *Instance) Agent() *Agent { return i.r.Agent }

// Noticed is when a task there was told that its provider will take it; zero: none was.
func (i *Instance) Noticed() time.Time { return i.r.Noticed }

// Release is why it is being given back; "": it is not.
func (i *Instance) Release() string { return i.r.Release }

// Bill is what its newest bill says, by rule; nil: none has come, or it has a task.
func (i *Instance) Bill() map[string]money.Amount { return i.r.Bill }

// Posted is what its seats were charged so far at plain seconds.
func (i *Instance) Posted() money.Amount { return i.r.Posted }

// Paid reports whether its end was paid for, and it is shown all the same.
func (i *Instance) Paid() bool { return i.r.Paid }

// Stray reports whether nobody of ours asked for it, or it is shown after its end was paid for.
func (i *Instance) Stray() bool { return len(i.r.Seats) == 0 && !i.Shared() }

// Live reports whether it may still cost something.
func (i *Instance) Live() bool { return i.r.Phase != Gone && i.r.Phase != Missing }

// Cost returns what it has cost by t at plain seconds: the cumulative cost over its
// price segments, so that any cut of the span has the same sum.
func (i *Instance) Cost(t time.Time) money.Amount {
	if !i.r.Until.IsZero() && t.After(i.r.Until) {
		t = i.r.Until
	}
	return market.Cost(i.Segments(), t)
}

// Rate is the price of an hour now.
func (i *Instance) PresentRate() money.Rate {
	if i.series != nil {
		if s := i.series.list; len(s) > 0 && !s[len(s)-1].From.Before(i.r.From) {
			return s[len(s)-1].Rate
		}
	}
	return i.r.Rate
}

// Segments are its prices since it is billed.
func (i *Instance) Segments() []market.Segment {
	first := market.Segment{From: i.r.From, Rate: i.r.Rate}
	if i.series == nil {
		return []market.Segment{first}
	}
	return i.series.since(first)
}

// Series is how the price of an offer of spot moved, as far back as a machine of it is
// billed. Instances refer to it, so that a new price is kept once.
type Series struct{ list []market.Segment }

// since are the prices from the first one on.
func (s *Series) since(first market.Segment) []market.Segment {
	list := append(make([]market.Segment, 0, 4), first)
	for _, seg := range s.list {
		switch last := &list[len(list)-1]; {
		case seg.From.Before(first.From), seg.Rate == last.Rate && !seg.From.Equal(last.From):
		case seg.From.Equal(last.From):
			last.Rate = seg.Rate
		default:
			list = append(list, seg)
		}
	}
	return list
}

// add keeps a price from a time on.
func (s *Series) add(at time.Time, rate money.Rate) {
	n := len(s.list)
	switch {
	case n > 0 && at.Before(s.list[n-1].From):
	case n > 0 && at.Equal(s.list[n-1].From):
		s.list[n-1].Rate = rate
	case n > 0 && s.list[n-1].Rate == rate:
	default:
		s.list = append(s.list, market.Segment{From: at, Rate: rate})
	}
}

// forget drops what was before the time, but for the price that held then.
func (s *Series) forget(before time.Time) {
	n := 0
	for n+1 < len(s.list) && !s.list[n+1].From.After(before) {
		n++
	}
	s.list = append(s.list[:0:0], s.list[n:]...)
}

// Attempt is one try at a job, fenced by its epoch.
type Attempt struct {
	r        attemptRecord
	instance *Instance // of its first task, as long as it may still cost something or be billed
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
	DrainBy   time.Time     `json:"drain_by,omitzero"` // when patience ends
	Noticed   time.Time     `json:"noticed,omitzero"`
	TakenAt   time.Time     `json:"taken_at,omitzero"` // when the notice said that the machine goes
	// Leaving is why its seat is taken from it while others keep theirs, and LeaveBy when
	// patience with that ends.
	Leaving string     `json:"leaving,omitempty"`
	LeaveBy time.Time  `json:"leave_by,omitzero"`
	Task    taskRecord `json:"task"` // rank 0
}

// taskRecord is a rank of the attempt, seated on an instance, with its share of the cost.
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
	Claimed  time.Time     `json:"claimed,omitzero"`
	By       string        `json:"by,omitempty"` // who claimed it: a hash of the machine's own secret
	Started  time.Time     `json:"started,omitzero"`
	Over     time.Time     `json:"over,omitzero"` // the program
	// completed, failed, drained, setup, interrupted, silent, terminated, stopped
	End      string `json:"end,omitempty"`
	Exit     int    `json:"exit,omitempty"`
	Restored string `json:"restored,omitempty"`
	// Before is what its machine had cost when it took its seat; Warm, that the machine had
	// served another task before.
	Before money.Amount `json:"before,omitzero"`
	Warm   bool         `json:"warm,omitempty"`

	Posted  money.Amount                `json:"posted"` // its share of plain seconds
	Rules   money.Amount                `json:"rules"`  // of the bill's lines that are not plain seconds
	Uses    map[ledger.Use]money.Amount `json:"uses"`
	Settled time.Time                   `json:"settled,omitzero"` // up to here the use of its time is posted
	// Bill is the newest bill by rule, "" for plain seconds; nil: none has come.
	Bill     map[string]money.Amount `json:"bill,omitempty"`
	LostTime time.Duration           `json:"lost_ns,omitempty"`
	Rate     money.Rate              `json:"rate"`                // an hour, when it was granted
	LastRate money.Rate              `json:"last_rate,omitempty"` // of its last hour, once it is over

	Learned learnedTask `json:"learned"`
}

// learnedTask is what was observed of a task's program.
type learnedTask struct {
	First      int64     `json:"first"` // step it began from
	Step       int64     `json:"step"`
	Paced      time.Time `json:"paced,omitzero"` // when its slow first steps were behind it
	PacedStep  int64     `json:"paced_step,omitempty"`
	Saves      int       `json:"saves,omitempty"`
	SavedBytes int64     `json:"saved_bytes,omitempty"`
	LastSave   time.Time `json:"last_save,omitzero"`
	Kept       time.Time `json:"kept,omitzero"` // work up to here is in a checkpoint, or settled otherwise
	Heard      int64     `json:"heard"`         // highest message applied
	IdleFrom   time.Time `json:"idle_from,omitzero"`
	CPU        float64   `json:"cpu,omitempty"` // mean cores in use

	// CPUSeen is the time over which CPU is the mean, from the program's start.
	CPUSeen time.Duration `json:"cpu_seen,omitempty"`
}

// What an attempt is, and where it stands.
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
func (a *Attempt) Noticed() time.Time      { return a.r.Noticed }
func (a *Attempt) TakenAt() time.Time      { return a.r.TakenAt }

// Its task and machine.
func (a *Attempt) Task() TaskPhase           { return a.r.Task.Phase }
func (a *Attempt) Instance() string          { return a.r.Task.Instance }
func (a *Attempt) Machine() *Machine         { return &a.r.Task.Machine }
func (a *Attempt) Offer() market.OfferID     { return a.r.Task.Machine.Offer }
func (a *Attempt) Provider() string          { return a.r.Task.Machine.Provider }
func (a *Attempt) Region() string            { return a.r.Task.Machine.Region }
func (a *Attempt) Zone() string              { return a.r.Task.Machine.Zone }
func (a *Attempt) Capacity() market.Capacity { return a.r.Task.Machine.Capacity }
func (a *Attempt) Speed() float64            { return a.r.Task.Machine.Speed }
func (a *Attempt) GPUs() int                 { return a.r.Task.Machine.GPUs }
func (a *Attempt) Currency() money.Currency  { return a.r.Task.Machine.Currency }
func (a *Attempt) From() time.Time           { return a.r.Task.From }
func (a *Attempt) Until() time.Time          { return a.r.Task.Until }
func (a *Attempt) Cause() string             { return a.r.Task.Cause }
func (a *Attempt) Notice() time.Duration     { return a.r.Task.Notice }
func (a *Attempt) Claimed() time.Time        { return a.r.Task.Claimed }
func (a *Attempt) By() string                { return a.r.Task.By }
func (a *Attempt) Started() time.Time        { return a.r.Task.Started }
func (a *Attempt) Over() time.Time           { return a.r.Task.Over }
func (a *Attempt) End() string               { return a.r.Task.End }
func (a *Attempt) Exit() int                 { return a.r.Task.Exit }
func (a *Attempt) Restored() string          { return a.r.Task.Restored }

// What it cost.
func (a *Attempt) Posted() money.Amount              { return a.r.Task.Posted }
func (a *Attempt) Rules() money.Amount               { return a.r.Task.Rules }
func (a *Attempt) Uses() map[ledger.Use]money.Amount { return a.r.Task.Uses }
func (a *Attempt) Settled() time.Time                { return a.r.Task.Settled }
func (a *Attempt) Bill() map[string]money.Amount     { return a.r.Task.Bill }
func (a *Attempt) Billed() bool                      { return a.r.Task.Bill != nil }
func (a *Attempt) LostTime() time.Duration           { return a.r.Task.LostTime }

// What was observed of its program.
func (a *Attempt) First() int64           { return a.r.Task.Learned.First }
func (a *Attempt) Step() int64            { return a.r.Task.Learned.Step }
func (a *Attempt) Saves() int             { return a.r.Task.Learned.Saves }
func (a *Attempt) SavedBytes() int64      { return a.r.Task.Learned.SavedBytes }
func (a *Attempt) LastSave() time.Time    { return a.r.Task.Learned.LastSave }
func (a *Attempt) Kept() time.Time        { return a.r.Task.Learned.Kept }
func (a *Attempt) Heard() int64           { return a.r.Task.Learned.Heard }
func (a *Attempt) IdleFrom() time.Time    { return a.r.Task.Learned.IdleFrom }
func (a *Attempt) CPU() float64           { return a.r.Task.Learned.CPU }
func (a *Attempt) CPUSeen() time.Duration { return a.r.Task.Learned.CPUSeen }

// Live reports whether the attempt may still cost something.
func (a *Attempt) Live() bool { return a.r.Phase != Over }

// Releasing reports whether its machine, or its seat there, is being given back.
func (a *Attempt) Releasing() bool {
	return a.r.Leaving != "" || a.instance != nil && a.instance.r.Release != ""
}

// Leaving is why its seat is taken from it while others keep theirs; "": it is not. LeaveBy is
// when patience with that ends.
func (a *Attempt) Leaving() string    { return a.r.Leaving }
func (a *Attempt) LeaveBy() time.Time { return a.r.LeaveBy }

// Disowned reports whether its machine is of an earlier incarnation, and nobody has
// decided yet whose it is.
func (a *Attempt) Disowned() bool { return a.instance != nil && a.instance.r.Disowned }

// GivenUp reports whether its machine was given up because its provider lists it no
// more, and its true end may come yet.
func (a *Attempt) GivenUp() bool { return a.instance != nil && a.instance.r.Lost }

// Taken reports whether the provider interrupted the attempt, or said that it would and
// was given the machine back early.
func (a *Attempt) Taken() bool {
	return !a.Until().IsZero() && (a.Cause() == "interrupted" || !a.r.Noticed.IsZero() && a.End() != "completed")
}

// Cost returns what the attempt has cost by t at plain seconds: what its machine has since the
// attempt took its seat, or its part of that where others had seats beside it.
func (a *Attempt) Cost(t time.Time) money.Amount {
	switch {
	case a.instance == nil:
		return a.r.Task.Posted
	case len(a.instance.r.Spans) > 0:
		return a.instance.partOf(a.r.ID, t)
	}
	return a.instance.Cost(t).Sub(a.r.Task.Before)
}

// Warm reports whether its machine had served another task before, and waited.
func (a *Attempt) Warm() bool { return a.r.Task.Warm }

// Rented is from when on its machine is billed.
func (a *Attempt) Rented() time.Time {
	if a.instance != nil {
		return a.instance.r.From
	}
	return a.r.Task.From
}

// LaunchRate is the price of an hour of its machine when it was granted.
func (a *Attempt) LaunchRate() money.Rate { return a.r.Task.Rate }

// Rate is the price of an hour of its machine, or of its part of that: of now, or of its last hour.
func (a *Attempt) Rate() money.Rate {
	if a.instance == nil {
		return a.r.Task.LastRate
	}
	return a.instance.rateOf(a.r.ID)
}
