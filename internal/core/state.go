package core

import (
	"cmp"
	"math/bits"
	"strings"
	"time"

	"scrimp/internal/budget"
	"scrimp/internal/ledger"
	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/plan"
	"scrimp/internal/policy"
)

// State is where a job stands.
//
//	Held ──> Queued ──> Running ──> Succeeded | Failed | Stopped | Cancelled
//	            ^          │
//	            └──────────┘ its machine was lost or given back
type State string

// The states of a job. Running includes booting and draining.
const (
	Held      State = "held" // it waits for approval, and holds nothing
	Queued    State = "queued"
	Running   State = "running"
	Succeeded State = "succeeded"
	Failed    State = "failed"
	Stopped   State = "stopped"   // by the user or a guardrail; its checkpoint is kept
	Cancelled State = "cancelled" // by the user, at once
)

// States are all of them.
var States = []State{Held, Queued, Running, Succeeded, Failed, Stopped, Cancelled}

// Over reports whether the job will never run again.
func (s State) Over() bool { return s != Held && s != Queued && s != Running }

// Phase is where an attempt stands.
//
//	Asked ──> Booting ──> Working ──> Leaving ──> Gone
//
// Each may fall to Gone at once. Running again after a restore elsewhere is a
// new attempt, not an arrow back.
type Phase string

// The phases of an attempt.
const (
	Asked   Phase = "asked"   // the launch is not answered yet
	Booting Phase = "booting" // the instance is billed, the program does not run yet
	Working Phase = "working" // the program runs
	Leaving Phase = "leaving" // the program has ended, the instance is being given back
	Gone    Phase = "gone"    // nothing is billed any more
)

// Job is a job as the core sees it.
type Job struct {
	ID        string       `json:"id"`
	Tenant    string       `json:"tenant"`
	By        string       `json:"by,omitempty"` // the user who submitted it; "": who owns the data folder
	Terms     Terms        `json:"terms"`
	State     State        `json:"state"`
	Why       string       `json:"why,omitempty"`    // reason of the state, machine-readable
	Detail    string       `json:"detail,omitempty"` // one sentence
	Submitted time.Time    `json:"submitted"`
	Event     uint64       `json:"event"`          // number of its submission in the log
	Began     time.Time    `json:"began,omitzero"` // first launch
	Finished  time.Time    `json:"finished,omitzero"`
	Epoch     int          `json:"epoch,omitzero"`  // of the newest attempt
	Closed    int          `json:"closed,omitzero"` // so many of the first attempts are gone
	Attempts  []*Attempt   `json:"attempts,omitempty"`
	Settled   money.Amount `json:"settled,omitzero"` // cost of all attempts that are gone

	Step      int64              `json:"step,omitzero"`  // newest seen
	Total     int64              `json:"total,omitzero"` // steps of the whole job; 0 unknown
	EpochSeen float64            `json:"epoch_seen,omitempty"`
	Metrics   map[string]float64 `json:"metrics,omitempty"`
	SavedStep int64              `json:"saved_step,omitzero"` // in the newest verified checkpoint
	SavedWork time.Duration      `json:"saved_work_ns,omitzero"`
	HasSaved  bool               `json:"has_saved,omitempty"`
	Seen      policy.Seen        `json:"seen,omitzero"`

	StepRate  float64              `json:"step_rate,omitempty"` // steps per hour on speed 1; 0 unknown
	Pace      policy.Pace          `json:"pace,omitzero"`
	PaceFrom  time.Time            `json:"pace_from,omitzero"` // of the look that is under way
	PaceStep  int64                `json:"pace_step,omitempty"`
	Restart   time.Duration        `json:"restart_ns,omitempty"`   // measured; 0 unknown
	SaveCost  time.Duration        `json:"save_cost_ns,omitempty"` // measured; 0 unknown
	Interval  time.Duration        `json:"interval_ns,omitempty"`  // in force; 0: as the program likes
	Retries   int                  `json:"retries,omitempty"`
	Failures  int                  `json:"failures,omitempty"` // attempts in a row that made no step
	GPUServed time.Duration        `json:"gpu_served_ns,omitempty"`
	Outputs   string               `json:"outputs,omitempty"`
	Exit      int                  `json:"exit,omitempty"`
	Ending    State                `json:"ending,omitempty"` // what the job becomes when its attempt has left
	EndingWhy string               `json:"ending_why,omitempty"`
	Last      plan.Decision        `json:"last"`
	Decided   time.Time            `json:"decided,omitzero"` // when Last was
	Wake      time.Time            `json:"wake,omitzero"`
	Home      string               `json:"home,omitempty"`   // region of the newest machine, and of the checkpoint
	Looks     int                  `json:"looks,omitempty"`  // at offers that nobody had tried
	Looked    time.Time            `json:"looked,omitzero"`  // the last time
	Wasted    int                  `json:"wasted,omitempty"` // machines taken with all that was done on them
	Bound     market.OfferID       `json:"bound,omitempty"`  // it leaves its machine for this one
	Without   time.Time            `json:"without,omitzero"` // since then it has had no machine; zero: it has one
	Stands    []plan.FallbackState `json:"stands,omitempty"` // by rung of its ladder
	Asks      market.OfferID       `json:"asks,omitempty"`   // at which then

	Foreseen *money.Amount `json:"foreseen,omitempty"`  // expected cost at its first decision; nil: nobody could say
	OnDemand *money.Amount `json:"on_demand,omitempty"` // what its work would have cost there when it ended; nil: not ended, or no such machine was for sale

	Approval *Approval `json:"approval,omitempty"` // that it waits for, or had to wait for; never changed, but for another

	place   place       // in the queue
	class   *plan.Class // of what it asks for; nil: not looked up
	changed uint64      // number of the last event that may have changed it; 0: none since the start
}

// Approval is what a job waits for before it may run, and what became of that.
type Approval struct {
	budget.Asking
	At       time.Time `json:"at,omitzero"` // reviewed; zero: not yet
	By       string    `json:"by,omitempty"`
	Approved bool      `json:"approved,omitempty"`
	Reason   string    `json:"reason,omitempty"`
}

// begin is from when on the job could run: its submission, or its approval.
func (j *Job) begin() time.Time {
	if a := j.Approval; a != nil && a.Approved {
		return a.At
	}
	return j.Submitted
}

// Owner is the user who holds the data folder.
const Owner = "owner"

// User is who submitted the job.
func (j *Job) User() string { return cmp.Or(j.By, Owner) }

// by is the user that an event's actor names; "" is the owner.
func by(actor string) string {
	name, _ := strings.CutPrefix(actor, "user:")
	if name == actor {
		return ""
	}
	return name
}

// Attempt is one try at a job on one instance.
type Attempt struct {
	ID         string                      `json:"id"`
	Job        string                      `json:"job"`
	Epoch      int                         `json:"epoch"`
	Phase      Phase                       `json:"phase"`
	Offer      market.OfferID              `json:"offer"`
	Region     string                      `json:"region,omitempty"`
	Variant    string                      `json:"variant,omitempty"` // in which the work is done
	Rung       int                         `json:"rung,omitempty"`    // of the ladder, from 1; 0: there is none
	Zone       string                      `json:"zone"`
	Capacity   market.Capacity             `json:"capacity"`
	Provider   string                      `json:"provider"`
	Speed      float64                     `json:"speed"`
	GPUs       int                         `json:"gpus,omitempty"`
	Instance   string                      `json:"instance,omitempty"`
	Asked      time.Time                   `json:"asked"`
	Most       money.Rate                  `json:"most,omitempty"`        // its launch is refused above it; 0 in logs of earlier releases
	Transfer   time.Duration               `json:"transfer_ns,omitempty"` // of its restart, for another region
	From       time.Time                   `json:"from,omitzero"`         // billed from
	Until      time.Time                   `json:"until,omitzero"`        // billed until
	Claimed    time.Time                   `json:"claimed,omitzero"`
	By         string                      `json:"by,omitempty"`     // who claimed it: a hash of the machine's own secret; "" from agents that had none
	Started    time.Time                   `json:"started,omitzero"` // the program
	Over       time.Time                   `json:"over,omitzero"`    // the program
	Rates      []market.Segment            `json:"rates,omitempty"`  // what it is billed at
	Currency   money.Currency              `json:"currency"`
	Posted     money.Amount                `json:"posted"`        // accrued so far
	Kept       time.Time                   `json:"kept,omitzero"` // up to here the time is settled as start-up, useful or lost
	Rules      money.Amount                `json:"rules"`         // sum of the bill's lines that are not plain seconds
	Uses       map[ledger.Use]money.Amount `json:"uses"`
	Billed     bool                        `json:"billed,omitempty"`
	Refused    string                      `json:"refused,omitempty"` // why the launch was not granted
	Restored   string                      `json:"restored,omitempty"`
	First      int64                       `json:"first"` // step it began from
	Step       int64                       `json:"step"`
	Paced      time.Time                   `json:"paced,omitzero"` // when its slow first steps were behind it
	PacedStep  int64                       `json:"paced_step,omitempty"`
	Saves      int                         `json:"saves,omitempty"`
	SavedBytes int64                       `json:"saved_bytes,omitempty"`
	LastSave   time.Time                   `json:"last_save,omitzero"`
	Draining   bool                        `json:"draining,omitempty"`
	DrainWhy   string                      `json:"drain_why,omitempty"`
	DrainBy    time.Time                   `json:"drain_by,omitzero"` // when patience ends
	Noticed    time.Time                   `json:"noticed,omitzero"`
	TakenAt    time.Time                   `json:"taken_at,omitzero"` // when the notice said that the machine goes
	End        string                      `json:"end,omitempty"`     // completed, failed, drained, setup, interrupted, silent, terminated, stopped
	Cause      string                      `json:"cause,omitempty"`   // why the instance ended
	Notice     time.Duration               `json:"notice_ns,omitempty"`
	Exit       int                         `json:"exit,omitempty"`
	Heard      int64                       `json:"heard"`            // highest message applied
	Asking     bool                        `json:"asking,omitempty"` // a Terminate is out
	IdleFrom   time.Time                   `json:"idle_from,omitzero"`
	LostTime   time.Duration               `json:"lost_ns,omitempty"`
	GivenUp    bool                        `json:"given_up,omitempty"` // its provider lists the instance no more, and sent no bill yet
	CPU        float64                     `json:"cpu,omitempty"`      // mean cores in use
	CPUSeen    int                         `json:"cpu_seen,omitempty"`
}

// Taken reports whether the provider took the attempt's machine, or said that
// it would and was given it back early.
func (a *Attempt) Taken() bool {
	return !a.Until.IsZero() && (a.Cause == "interrupted" || !a.Noticed.IsZero() && a.End != "completed")
}

// Live reports whether the attempt may still cost something.
func (a *Attempt) Live() bool { return a.Phase != Gone }

// Cost returns what the attempt has cost by t at plain seconds: the cumulative
// cost over its price segments, so that any cut of the span has the same sum.
func (a *Attempt) Cost(t time.Time) money.Amount {
	if a.From.IsZero() {
		return money.Amount{}
	}
	if !a.Until.IsZero() && t.After(a.Until) {
		t = a.Until
	}
	return market.Cost(a.Rates, t)
}

// Attempt returns the newest attempt, or nil.
func (j *Job) Attempt() *Attempt {
	if len(j.Attempts) == 0 {
		return nil
	}
	return j.Attempts[len(j.Attempts)-1]
}

// live returns the attempt that may still cost something, or nil.
func (j *Job) live() *Attempt {
	if a := j.Attempt(); a != nil && a.Live() {
		return a
	}
	return nil
}

// Spent returns what the job has cost by t, to the last unit.
func (j *Job) Spent(t time.Time) money.Amount {
	spent := j.Settled
	for _, a := range j.Attempts[min(j.Closed, len(j.Attempts)):] {
		if a.Live() {
			spent = spent.Add(a.Cost(t))
		} else { // gone, while one before it is still being given back
			spent = spent.Add(a.Posted).Add(a.Rules)
		}
	}
	return spent
}

// Left returns the useful time that the job still needs on a machine of that
// speed, counted from its newest verified checkpoint, or false where nobody can say.
func (j *Job) Left(speed float64) (left, done time.Duration, ok bool) {
	if speed <= 0 {
		speed = 1
	}
	scale := func(hours float64) time.Duration { return time.Duration(hours / speed * float64(time.Hour)) }
	switch {
	case j.Total > 0 && j.StepRate > 0:
		return scale(float64(max(0, j.Total-j.SavedStep)) / j.StepRate), scale(float64(j.SavedStep) / j.StepRate), true
	case j.Terms.Work > 0 && j.Total > 0:
		left, done = share(j.Terms.Work, max(0, j.Total-j.SavedStep), j.Total), share(j.Terms.Work, min(j.SavedStep, j.Total), j.Total)
	case j.Terms.Work > 0:
		left, done = max(0, j.Terms.Work-j.SavedWork), j.SavedWork
	default:
		return 0, 0, false
	}
	if speed != 1 {
		left, done = scale(left.Hours()), scale(done.Hours())
	}
	return left, done, true
}

// Rough reports whether what is left is counted in steps at a pace that was hardly
// seen yet: fewer than four looks, each a minute or more.
func (j *Job) Rough() bool { return j.Total > 0 && j.StepRate > 0 && j.Pace.Looks < 4 }

// share is d · part / whole, cut off, for 0 ≤ part ≤ whole.
func share(d time.Duration, part, whole int64) time.Duration {
	hi, lo := bits.Mul64(uint64(d), uint64(part))
	q, _ := bits.Div64(hi, lo, uint64(whole))
	return time.Duration(q)
}

// restart is what a move takes: measured, else as the job's terms say.
func (j *Job) restart() time.Duration {
	if j.Restart > 0 {
		return j.Restart
	}
	return j.Terms.Restart
}
