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

// UserOf returns the user that an event's actor names; empty means the owner.
func UserOf(actor string) string {
	name, _ := strings.CutPrefix(actor, "user:")
	if name == actor {
		return ""
	}
	return name
}

// JobRecord is the form of a job in a snapshot.
type JobRecord struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// user who submitted the job; empty means the owner of the data folder
	By        string       `json:"by,omitempty"`
	Terms     Terms        `json:"terms"`
	State     Status       `json:"state"`
	Why       string       `json:"why,omitempty"`    // reason for the state, machine-readable
	Detail    string       `json:"detail,omitempty"` // one sentence
	Submitted time.Time    `json:"submitted"`
	Event     uint64       `json:"event"` // sequence number of the event that submitted the job
	Finished  time.Time    `json:"finished,omitzero"`
	Waits     []Dependency `json:"waits,omitempty"` // dependencies that have not ended yet
	// UnplacedSince is the time since which the job has had no machine; zero while it has one.
	UnplacedSince time.Time `json:"unplaced_since,omitzero"`

	Last    *plan.Decision `json:"-"`                // newest decision that changed something; nil: none
	Decided time.Time      `json:"decided,omitzero"` // time of that decision
	// Approval is replaced as a whole and never changed in place; nil if the job needed none.
	Approval *Approval     `json:"approval,omitempty"`
	Foreseen *money.Amount `json:"foreseen,omitempty"` // expected cost at its first decision; nil: unknown
	// OnDemand is what the work would have cost on-demand; nil until the job ends, or if no such machine was for
	// sale.
	OnDemand      *money.Amount  `json:"on_demand,omitempty"`
	OnDemandOffer market.OfferID `json:"on_demand_offer,omitempty"`

	Stored *Stored    `json:"stored,omitempty"`
	Run    *runRecord `json:"-"` // nil until the job requests a machine
}

// runRecord holds the fields of a job that has requested a machine, or was paused or reopened. Most jobs only wait
// and have none.
type runRecord struct {
	PausedSince time.Time `json:"paused_since,omitzero"`
	SpecEvent   uint64    `json:"spec_event,omitempty"` // last event that changed its job file; 0: its submission
	Reopened    int       `json:"reopened,omitempty"`   // number of times the job was reopened
	Source      *Source   `json:"source,omitempty"`     // checkpoint that the job started from

	// Began is the time of its first request for a machine, shifted by the time it was paused or ended.
	Began    time.Time     `json:"began,omitzero"`
	Epoch    int           `json:"epoch,omitzero"` // number of its newest allocation and of the attempt on it
	Closed   int           `json:"closed,omitzero"`
	Attempts []*Attempt    `json:"-"`
	Settled  money.Amount  `json:"settled,omitzero"` // cost of all attempts that have ended
	Asked    *Allocation   `json:"-"`                // pending
	Leaving  []*Allocation `json:"-"`                // being cancelled

	Retries   int           `json:"retries,omitempty"`
	GPUServed time.Duration `json:"gpu_served_ns,omitempty"`
	Outputs   string        `json:"outputs,omitempty"`
	// OutputsDigest identifies what the outputs of its first machine hold.
	OutputsDigest string `json:"outputs_digest,omitempty"`
	Exit          int    `json:"exit,omitempty"`
	Ending        Status `json:"ending,omitempty"` // state of the job after its attempt ends
	EndingWhy     string `json:"ending_why,omitempty"`
	// CheckpointRegion is the region of the newest machine, where the checkpoint is.
	CheckpointRegion string               `json:"checkpoint_region,omitempty"`
	Probes           int                  `json:"probes,omitempty"` // probes of offers that no job had tried
	Probed           time.Time            `json:"probed,omitzero"`  // last probe
	ProbeOf          market.OfferID       `json:"probe_of,omitempty"`
	UnsavedLosses    int                  `json:"unsaved_losses,omitempty"` // machines lost with all the work done on them
	MigratingTo      market.OfferID       `json:"migrating_to,omitempty"`   // it drains its machine for
	Placing          placing              `json:"placing,omitzero"`
	Pin              pin                  `json:"pin,omitzero"`
	Claim            Claim                `json:"claim,omitzero"`
	Fallback         []plan.FallbackState `json:"fallback,omitempty"` // by rung of the fallback ladder

	Learned learnedJob `json:"learned"`
}

// setUps counts how often in a row, since the last step, a job's set-up failed with the same status.
type setUps struct {
	// last attempt whose set-up failed; each attempt counts once, however many nodes it has
	Attempt string `json:"attempt"`
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

// learnedJob is what samples and events say about a job's work.
type learnedJob struct {
	Failures  int                `json:"failures,omitempty"` // attempts in a row that made no step
	SetUp     setUps             `json:"set_up,omitzero"`
	Step      int64              `json:"step,omitzero"`  // newest step seen
	Total     int64              `json:"total,omitzero"` // steps of the whole job; 0: unknown
	EpochSeen float64            `json:"epoch_seen,omitempty"`
	Metrics   map[string]float64 `json:"metrics,omitempty"`
	SavedStep int64              `json:"saved_step,omitzero"` // step of the newest verified checkpoint
	SavedWork time.Duration      `json:"saved_work_ns,omitzero"`
	HasSaved  bool               `json:"has_saved,omitempty"`
	Anew      bool               `json:"anew,omitempty"` // the program restarts its step counter each epoch
	// SaveTrouble says why the newest save could not be copied, or what its copy lacks; empty if the copy is whole.
	SaveTrouble string      `json:"save_trouble,omitempty"`
	Seen        policy.Seen `json:"seen,omitzero"`
	StepRate    float64     `json:"step_rate,omitempty"` // steps per hour on a machine of speed 1; 0: unknown
	Pace        policy.Pace `json:"pace,omitzero"`
	// samples so far of the next measurement of the spread of its pace
	Block    policy.Span   `json:"block,omitzero"`
	Tempo    policy.Tempo  `json:"tempo,omitzero"`
	WarmUp   time.Duration `json:"warm_up_ns,omitempty"`   // time before the first step; 0: none, or unknown
	Restart  time.Duration `json:"restart_ns,omitempty"`   // measured; 0: unknown
	SaveCost time.Duration `json:"save_cost_ns,omitempty"` // measured; 0: unknown
}

// Approval is the approval that a job needs before it may run, and the answer.
type Approval struct {
	budget.PendingApproval
	At       time.Time `json:"at,omitzero"` // time of the review; zero: not yet reviewed
	By       string    `json:"by,omitempty"`
	Approved bool      `json:"approved,omitempty"`
	Reason   string    `json:"reason,omitempty"`
}

// Job is a job. Callers outside this package read it through its methods between steps, and must not change what
// they return.
type Job struct {
	r       JobRecord
	order   uint64 // of submission
	changed uint64 // last event that may have changed the job; 0: none since the server started

	// Slots hold the positions of the job in the indexes of the rules (core). They are not part of the state.
	Slots [4]any
}

// noRun stands in for the run record of a job that never requested a machine.
var noRun = &runRecord{}

func (j *Job) run() *runRecord {
	if j.r.Run == nil {
		return noRun
	}
	return j.r.Run
}

// runs returns the run record for writing, and creates it if needed.
func (j *Job) runs() *runRecord {
	if j.r.Run == nil {
		j.r.Run = &runRecord{}
	}
	return j.r.Run
}

// Identity, terms and state of a job.
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

// OnDemandOffer is the offer that OnDemand was priced at.
func (j *Job) OnDemandOffer() market.OfferID { return j.r.OnDemandOffer }

// PausedSince is the time since which the wall clock of a job stands still, because the job is paused or waits for
// approval; zero if it runs. Reopened counts how often the job was resumed after it had ended.
func (j *Job) PausedSince() time.Time { return j.run().PausedSince }
func (j *Job) Reopened() int          { return j.run().Reopened }

// Inputs returns the name that the job's work folder is stored under. The members of a group share the group's
// folder; a stage of a pipeline has its own.
func (j *Job) Inputs() string {
	if j.r.Terms.Stage != "" {
		return j.r.ID
	}
	return j.owner()
}

// owner returns the group that submitted the job as a member, otherwise the job itself.
func (j *Job) owner() string { return cmp.Or(Submitted(j.r.Terms.Group), j.r.ID) }

// Source is the checkpoint of another job that this one started from, or nil.
func (j *Job) Source() *Source { return j.run().Source }

// Pausing reports whether the job pauses as soon as its program has saved.
func (j *Job) Pausing() bool { return j.r.State == Running && j.Ending() == Paused }

// SpecEvent is the sequence number of the event that has its current job file.
func (j *Job) SpecEvent() uint64 { return cmp.Or(j.run().SpecEvent, j.r.Event) }

// Last returns the newest decision that changed something, or the zero decision.
func (j *Job) Last() plan.Decision {
	if j.r.Last == nil {
		return plan.Decision{}
	}
	return *j.r.Last
}

// What happened to the job since it first requested a machine.
func (j *Job) Began() time.Time               { return j.run().Began }
func (j *Job) Epoch() int                     { return j.run().Epoch }
func (j *Job) Attempts() []*Attempt           { return j.run().Attempts }
func (j *Job) Settled() money.Amount          { return j.run().Settled }
func (j *Job) Retries() int                   { return j.run().Retries }
func (j *Job) SetUpsAlike() int               { return j.run().Learned.SetUp.Alike }
func (j *Job) Failures() int                  { return j.run().Learned.Failures }
func (j *Job) GPUServed() time.Duration       { return j.run().GPUServed }
func (j *Job) Outputs() string                { return j.run().Outputs }
func (j *Job) OutputsDigest() string          { return j.run().OutputsDigest }
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

// Asked is the pending allocation, or nil.
func (j *Job) Asked() *Allocation { return j.run().Asked }

// Wanted returns all allocations that are pending or being cancelled.
func (j *Job) Wanted() []*Allocation {
	r := j.run()
	if r.Asked == nil {
		return r.Leaving
	}
	return append(r.Leaving[:len(r.Leaving):len(r.Leaving)], r.Asked)
}

// Cancelling returns the allocations that are being cancelled and that the provider has not answered yet.
func (j *Job) Cancelling() []*Allocation { return j.run().Leaving }

// What was observed of its work.
func (j *Job) Step() int64                 { return j.run().Learned.Step }
func (j *Job) EpochSeen() float64          { return j.run().Learned.EpochSeen }
func (j *Job) Metrics() map[string]float64 { return j.run().Learned.Metrics }
func (j *Job) SavedStep() int64            { return j.run().Learned.SavedStep }
func (j *Job) SavedWork() time.Duration    { return j.run().Learned.SavedWork }

// Anew reports whether the program restarts its step counter each epoch.
func (j *Job) Anew() bool { return j.run().Learned.Anew }

// SaveTrouble says why the newest save could not be copied, or what its copy lacks; empty if the copy is whole.
func (j *Job) SaveTrouble() string { return j.run().Learned.SaveTrouble }

func (j *Job) HasSaved() bool          { return j.run().Learned.HasSaved }
func (j *Job) Seen() policy.Seen       { return j.run().Learned.Seen }
func (j *Job) StepRate() float64       { return j.run().Learned.StepRate }
func (j *Job) Pace() policy.Pace       { return j.run().Learned.Pace }
func (j *Job) SaveCost() time.Duration { return j.run().Learned.SaveCost }

// Total returns the number of steps of the whole job; 0 if unknown.
func (j *Job) Total() int64 {
	if j.r.Run == nil || j.r.Terms.Steps > 0 {
		return j.r.Terms.Steps
	}
	return j.r.Run.Learned.Total
}

// MeasuredRestart is the measured time of a move; 0 if none was measured.
func (j *Job) MeasuredRestart() time.Duration { return j.run().Learned.Restart }

// Restart is the expected time of a move: the measured time, or else the one in the job's terms, plus the program's
// warm-up before its first step.
func (j *Job) Restart() time.Duration {
	l := &j.run().Learned
	return cmp.Or(max(l.Restart, 0), j.r.Terms.Restart) + l.WarmUp
}

// Begin is the time from which the job may run: its approval, or else its submission.
func (j *Job) Begin() time.Time {
	if a := j.r.Approval; a != nil && a.Approved {
		return a.At
	}
	return j.r.Submitted
}

// User returns the user who submitted the job.
func (j *Job) User() string { return cmp.Or(j.r.By, Owner) }

// Attempt returns the newest attempt, or nil.
func (j *Job) Attempt() *Attempt {
	list := j.run().Attempts
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// Live returns the newest attempt if it may still cost something and no other machine is requested, or nil.
func (j *Job) Live() *Attempt {
	if a := j.Attempt(); a != nil && a.Live() && j.run().Asked == nil {
		return a
	}
	return nil
}

// Holds reports whether any attempt of the job has a machine, or the job requests one.
func (j *Job) Holds() bool {
	return j.Asked() != nil || slices.ContainsFunc(j.Open(), (*Attempt).Live)
}

// Open returns the attempts from the first one that may still cost something.
func (j *Job) Open() []*Attempt {
	r := j.run()
	return r.Attempts[min(r.Closed, len(r.Attempts)):]
}

// Costs reports whether a machine of the job may still cost something, or is requested.
func (j *Job) Costs() bool {
	r := j.run()
	if r.Asked != nil || len(r.Leaving) > 0 {
		return true
	}
	return slices.ContainsFunc(j.Open(), (*Attempt).Live)
}

// Spent returns the exact cost of the job up to t.
func (j *Job) Spent(t time.Time) money.Amount {
	spent := j.Settled()
	for _, a := range j.Open() {
		if a.Live() {
			spent = spent.Add(a.Cost(t)).Add(a.Rules())
		} else { // ended while an earlier one is still being terminated
			spent = spent.Add(a.Posted()).Add(a.Rules())
		}
	}
	for _, a := range j.Wanted() { // machines of incomplete gangs
		spent = spent.Add(a.Cost(t))
	}
	return spent
}

// Left returns the useful time that the job still needs on a machine of the given speed, and the time done, both
// counted from its newest verified checkpoint. ok is false if that is unknown.
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

// Rough reports whether Left relies on a pace that was hardly measured: fewer than four samples of a minute or
// more.
func (j *Job) Rough() bool { return j.Total() > 0 && j.StepRate() > 0 && j.Pace().Looks < 4 }
