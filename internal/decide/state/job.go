package state

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/market"
)

// Owner is the user who holds the data folder.
const Owner = "owner"

// UserOf is the user that an event's actor names; "" is the owner.
func UserOf(actor string) string {
	name, _ := strings.CutPrefix(actor, "user:")
	if name == actor {
		return ""
	}
	return name
}

// JobRecord is a job as a snapshot keeps it.
type JobRecord struct {
	ID        string       `json:"id"`
	Tenant    string       `json:"tenant"`
	By        string       `json:"by,omitempty"` // the user who submitted it; "": who owns the data folder
	Terms     Terms        `json:"terms"`
	State     Status       `json:"state"`
	Why       string       `json:"why,omitempty"`    // reason of the state, machine-readable
	Detail    string       `json:"detail,omitempty"` // one sentence
	Submitted time.Time    `json:"submitted"`
	Event     uint64       `json:"event"` // number of its submission in the log
	Finished  time.Time    `json:"finished,omitzero"`
	Waits     []Dependency `json:"waits,omitempty"` // of its After, what is not over yet
	// UnplacedSince is since when it has had no machine; zero: it has one.
	UnplacedSince time.Time `json:"unplaced_since,omitzero"`

	Last    *plan.Decision `json:"-"`                // the newest that changed something; nil: none
	Decided time.Time      `json:"decided,omitzero"` // when it was
	// that it waits for, or had to wait for; never changed, but for another
	Approval *Approval     `json:"approval,omitempty"`
	Foreseen *money.Amount `json:"foreseen,omitempty"` // expected cost at its first decision; nil: nobody could say
	// what its work would have cost on-demand when it ended; nil: not ended, or no such machine was for sale
	OnDemand      *money.Amount  `json:"on_demand,omitempty"`
	OnDemandOffer market.OfferID `json:"on_demand_offer,omitempty"`

	Run *runRecord `json:"-"` // nil: it never asked for a machine
}

// runRecord is what a job has that asked for a machine once, or was paused or reopened.
// Those that only wait, which are most, do without.
type runRecord struct {
	PausedSince time.Time `json:"paused_since,omitzero"`
	SpecEvent   uint64    `json:"spec_event,omitempty"` // that changed its job file last; 0: its submission
	Reopened    int       `json:"reopened,omitempty"`   // how often it was
	Source      *Source   `json:"source,omitempty"`     // that it began from

	// Began is its first request for a machine, later by the time that it was paused or over.
	Began    time.Time     `json:"began,omitzero"`
	Epoch    int           `json:"epoch,omitzero"` // number of its newest allocation, which is that of the attempt on it
	Closed   int           `json:"closed,omitzero"`
	Attempts []*Attempt    `json:"-"`
	Settled  money.Amount  `json:"settled,omitzero"` // cost of all attempts that are over
	Asked    *Allocation   `json:"-"`                // pending now
	Leaving  []*Allocation `json:"-"`                // being cancelled

	Retries   int           `json:"retries,omitempty"`
	GPUServed time.Duration `json:"gpu_served_ns,omitempty"`
	Outputs   string        `json:"outputs,omitempty"`
	Exit      int           `json:"exit,omitempty"`
	Ending    Status        `json:"ending,omitempty"` // what the job becomes when its attempt has ended
	EndingWhy string        `json:"ending_why,omitempty"`
	// CheckpointRegion is that of the newest machine, and so of the checkpoint.
	CheckpointRegion string               `json:"checkpoint_region,omitempty"`
	Probes           int                  `json:"probes,omitempty"` // of offers that nobody had tried
	Probed           time.Time            `json:"probed,omitzero"`  // the last time
	ProbeOf          market.OfferID       `json:"probe_of,omitempty"`
	UnsavedLosses    int                  `json:"unsaved_losses,omitempty"` // machines lost with all that was done on them
	MigratingTo      market.OfferID       `json:"migrating_to,omitempty"`   // it leaves its machine for this one
	Placing          placing              `json:"placing,omitzero"`
	Pin              pin                  `json:"pin,omitzero"`
	Fallback         []plan.FallbackState `json:"fallback,omitempty"` // by rung of its ladder

	Learned learnedJob `json:"learned"`
}

// setUps is how often in a row, since the last step, the set-up of a job failed the same way.
type setUps struct {
	Attempt string `json:"attempt"` // the last whose set-up failed: each counts once, whatever its nodes
	Status  int    `json:"status"`
	Alike   int    `json:"alike"`
}

func (u setUps) failed(attempt string, status int) setUps {
	switch {
	case status == 0 || u.Attempt == attempt:
		return u
	case u.Status == status:
		return setUps{attempt, status, u.Alike + 1}
	}
	return setUps{attempt, status, 1}
}

// learnedJob is what was observed of a job's work, from samples and events.
type learnedJob struct {
	Failures  int                `json:"failures,omitempty"` // attempts in a row that made no step
	SetUp     setUps             `json:"set_up,omitzero"`
	Step      int64              `json:"step,omitzero"`  // newest seen
	Total     int64              `json:"total,omitzero"` // steps of the whole job; 0 unknown
	EpochSeen float64            `json:"epoch_seen,omitempty"`
	Metrics   map[string]float64 `json:"metrics,omitempty"`
	SavedStep int64              `json:"saved_step,omitzero"` // in the newest verified checkpoint
	SavedWork time.Duration      `json:"saved_work_ns,omitzero"`
	HasSaved  bool               `json:"has_saved,omitempty"`
	Anew      bool               `json:"anew,omitempty"` // the program counts its steps anew each epoch
	// SaveTrouble is why the newest save could not be copied, or what its copy lacks; "": it is whole.
	SaveTrouble string        `json:"save_trouble,omitempty"`
	Seen        policy.Seen   `json:"seen,omitzero"`
	StepRate    float64       `json:"step_rate,omitempty"` // steps per hour on speed 1; 0 unknown
	Pace        policy.Pace   `json:"pace,omitzero"`
	Block       policy.Span   `json:"block,omitzero"` // what of the next look at its spread was seen
	Tempo       policy.Tempo  `json:"tempo,omitzero"`
	WarmUp      time.Duration `json:"warm_up_ns,omitempty"`   // before the first step; 0: none, or unknown
	Restart     time.Duration `json:"restart_ns,omitempty"`   // measured; 0 unknown
	SaveCost    time.Duration `json:"save_cost_ns,omitempty"` // measured; 0 unknown
}

// Approval is what a job waits for before it may run, and what became of that.
type Approval struct {
	budget.PendingApproval
	At       time.Time `json:"at,omitzero"` // reviewed; zero: not yet
	By       string    `json:"by,omitempty"`
	Approved bool      `json:"approved,omitempty"`
	Reason   string    `json:"reason,omitempty"`
}

// Job is a job. Others read it through its methods; what they return is the state's own,
// to be read between steps and not to be changed.
type Job struct {
	r       JobRecord
	order   uint64 // of submission
	changed uint64 // number of the last event that may have changed it; 0: none since the start

	// Slots are for the parts of whoever drives the rules: where the job stands in the indexes of each. They are
	// no part of the state.
	Slots [4]any
}

// noRun is what a job has that never asked for a machine.
var noRun = &runRecord{}

func (j *Job) run() *runRecord {
	if j.r.Run == nil {
		return noRun
	}
	return j.r.Run
}

// runs is run to be written to.
func (j *Job) runs() *runRecord {
	if j.r.Run == nil {
		j.r.Run = &runRecord{}
	}
	return j.r.Run
}

// What a job is.
func (j *Job) ID() string               { return j.r.ID }
func (j *Job) Tenant() string           { return j.r.Tenant }
func (j *Job) By() string               { return j.r.By }
func (j *Job) Terms() *Terms            { return &j.r.Terms }
func (j *Job) State() Status            { return j.r.State }
func (j *Job) Why() string              { return j.r.Why }
func (j *Job) Detail() string           { return j.r.Detail }
func (j *Job) Submitted() time.Time     { return j.r.Submitted }
func (j *Job) Event() uint64            { return j.r.Event }
func (j *Job) Order() uint64            { return j.order }
func (j *Job) Finished() time.Time      { return j.r.Finished }
func (j *Job) UnplacedSince() time.Time { return j.r.UnplacedSince }
func (j *Job) Decided() time.Time       { return j.r.Decided }
func (j *Job) Approval() *Approval      { return j.r.Approval }
func (j *Job) Foreseen() *money.Amount  { return j.r.Foreseen }
func (j *Job) OnDemand() *money.Amount  { return j.r.OnDemand }

// OnDemandOffer is where.
func (j *Job) OnDemandOffer() market.OfferID { return j.r.OnDemandOffer }

// PausedSince is since when it is paused; zero: it is not. Reopened is how often it was
// over and resumed.
func (j *Job) PausedSince() time.Time { return j.run().PausedSince }
func (j *Job) Reopened() int          { return j.run().Reopened }

// Inputs is the name under which its work folder is kept: its group's, where it is a member, whose members share it. A
// stage of a pipeline has its own.
func (j *Job) Inputs() string {
	if j.r.Terms.Stage != "" {
		return j.r.ID
	}
	return j.Secrets()
}

// Secrets is the name under which its secrets are kept: its group's, where it is a member.
func (j *Job) Secrets() string { return cmp.Or(Submitted(j.r.Terms.Group), j.r.ID) }

// Source is the checkpoint of another job that it began from; nil: from nothing.
func (j *Job) Source() *Source { return j.run().Source }

// Pausing reports whether it is paused once its program has saved.
func (j *Job) Pausing() bool { return j.r.State == Running && j.Ending() == Paused }

// SpecEvent is the number of the event in the log that has its job file.
func (j *Job) SpecEvent() uint64 { return cmp.Or(j.run().SpecEvent, j.r.Event) }

// Last is the newest decision that changed something; zero: none was taken.
func (j *Job) Last() plan.Decision {
	if j.r.Last == nil {
		return plan.Decision{}
	}
	return *j.r.Last
}

// What became of it since it first asked for a machine.
func (j *Job) Began() time.Time               { return j.run().Began }
func (j *Job) Epoch() int                     { return j.run().Epoch }
func (j *Job) Attempts() []*Attempt           { return j.run().Attempts }
func (j *Job) Settled() money.Amount          { return j.run().Settled }
func (j *Job) Retries() int                   { return j.run().Retries }
func (j *Job) SetUpsAlike() int               { return j.run().Learned.SetUp.Alike }
func (j *Job) Failures() int                  { return j.run().Learned.Failures }
func (j *Job) GPUServed() time.Duration       { return j.run().GPUServed }
func (j *Job) Outputs() string                { return j.run().Outputs }
func (j *Job) Exit() int                      { return j.run().Exit }
func (j *Job) Ending() Status                 { return j.run().Ending }
func (j *Job) EndingWhy() string              { return j.run().EndingWhy }
func (j *Job) CheckpointRegion() string       { return j.run().CheckpointRegion }
func (j *Job) Probes() int                    { return j.run().Probes }
func (j *Job) Probed() time.Time              { return j.run().Probed }
func (j *Job) ProbeOf() market.OfferID        { return j.run().ProbeOf }
func (j *Job) UnsavedLosses() int             { return j.run().UnsavedLosses }
func (j *Job) MigratingTo() market.OfferID    { return j.run().MigratingTo }
func (j *Job) Fallback() []plan.FallbackState { return j.run().Fallback }

// Asked is the allocation that it waits for; nil: none.
func (j *Job) Asked() *Allocation { return j.run().Asked }

// Wanted are all its allocations that are pending or being given up.
func (j *Job) Wanted() []*Allocation {
	r := j.run()
	if r.Asked == nil {
		return r.Leaving
	}
	return append(r.Leaving[:len(r.Leaving):len(r.Leaving)], r.Asked)
}

// Cancelling are the allocations that are being given up and not answered yet.
func (j *Job) Cancelling() []*Allocation { return j.run().Leaving }

// What was observed of its work.
func (j *Job) Step() int64                 { return j.run().Learned.Step }
func (j *Job) EpochSeen() float64          { return j.run().Learned.EpochSeen }
func (j *Job) Metrics() map[string]float64 { return j.run().Learned.Metrics }
func (j *Job) SavedStep() int64            { return j.run().Learned.SavedStep }
func (j *Job) SavedWork() time.Duration    { return j.run().Learned.SavedWork }

// Anew reports whether the program counts its steps anew each epoch.
func (j *Job) Anew() bool { return j.run().Learned.Anew }

// SaveTrouble is why the newest save of the job could not be copied, or what its copy lacks; "": it is whole.
func (j *Job) SaveTrouble() string { return j.run().Learned.SaveTrouble }

func (j *Job) HasSaved() bool          { return j.run().Learned.HasSaved }
func (j *Job) Seen() policy.Seen       { return j.run().Learned.Seen }
func (j *Job) StepRate() float64       { return j.run().Learned.StepRate }
func (j *Job) Pace() policy.Pace       { return j.run().Learned.Pace }
func (j *Job) SaveCost() time.Duration { return j.run().Learned.SaveCost }

// Total is how many steps the whole job has; 0: nobody knows.
func (j *Job) Total() int64 {
	if j.r.Run == nil || j.r.Terms.Steps > 0 {
		return j.r.Terms.Steps
	}
	return j.r.Run.Learned.Total
}

// MeasuredRestart is what a move took; 0: none was measured.
func (j *Job) MeasuredRestart() time.Duration { return j.run().Learned.Restart }

// Restart is what a move takes: measured, else as the job's terms say, and what the program
// needs before its first step.
func (j *Job) Restart() time.Duration {
	l := &j.run().Learned
	return cmp.Or(max(l.Restart, 0), j.r.Terms.Restart) + l.WarmUp
}

// Begin is from when on the job could run: its submission, or its approval.
func (j *Job) Begin() time.Time {
	if a := j.r.Approval; a != nil && a.Approved {
		return a.At
	}
	return j.r.Submitted
}

// User is who submitted the job.
func (j *Job) User() string { return cmp.Or(j.r.By, Owner) }

// Attempt returns the newest attempt, or nil.
func (j *Job) Attempt() *Attempt {
	list := j.run().Attempts
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// Live returns the newest attempt where it may still cost something and no other
// machine is asked for, or nil.
func (j *Job) Live() *Attempt {
	if a := j.Attempt(); a != nil && a.Live() && j.run().Asked == nil {
		return a
	}
	return nil
}

// Holds reports whether the job has a machine, of whichever attempt, or asks for one.
func (j *Job) Holds() bool {
	return j.Asked() != nil || slices.ContainsFunc(j.Open(), (*Attempt).Live)
}

// Open are the attempts from the first on that may still cost something.
func (j *Job) Open() []*Attempt {
	r := j.run()
	return r.Attempts[min(r.Closed, len(r.Attempts)):]
}

// Costs reports whether a machine of j may still cost something, or is asked for.
func (j *Job) Costs() bool {
	r := j.run()
	if r.Asked != nil || len(r.Leaving) > 0 {
		return true
	}
	return slices.ContainsFunc(j.Open(), (*Attempt).Live)
}

// Spent returns what the job has cost by t, exactly.
func (j *Job) Spent(t time.Time) money.Amount {
	spent := j.Settled()
	for _, a := range j.Open() {
		if a.Live() {
			spent = spent.Add(a.Cost(t)).Add(a.Rules())
		} else { // over, while one before it is still being given back
			spent = spent.Add(a.Posted()).Add(a.Rules())
		}
	}
	for _, a := range j.Wanted() { // of gangs that are not complete
		spent = spent.Add(a.Cost(t))
	}
	return spent
}

// Left returns the useful time that the job still needs on a machine of that
// speed, counted from its newest verified checkpoint, or false where nobody can say.
func (j *Job) Left(speed float64) (left, done time.Duration, ok bool) {
	if speed <= 0 {
		speed = 1
	}
	scale := func(hours float64) time.Duration { return quantity.Hours(hours / speed) }
	total, saved, rate, work := j.Total(), j.SavedStep(), j.StepRate(), min(j.r.Terms.Work, quantity.Forever)
	switch {
	case total > 0 && rate > 0:
		return scale(float64(max(0, total-saved)) / rate), scale(float64(saved) / rate), true
	case work > 0 && total > 0:
		left, done = Share(work, max(0, total-saved), total), Share(work, min(saved, total), total)
	case work > 0:
		left, done = max(0, work-j.SavedWork()), j.SavedWork()
	default:
		return 0, 0, false
	}
	if speed != 1 {
		left, done = scale(left.Hours()), scale(done.Hours())
	}
	return left, done, true
}

// Rough reports whether what is left is counted in steps at a pace that was hardly
// seen yet: fewer than four samples, each of a minute or more.
func (j *Job) Rough() bool { return j.Total() > 0 && j.StepRate() > 0 && j.Pace().Looks < 4 }

// Share is d · part / whole, cut off, for 0 ≤ part ≤ whole.
func Share(d time.Duration, part, whole int64) time.Duration { return quantity.Portion(d, part, whole) }
