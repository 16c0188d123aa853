package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/plan"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Fact is what was decided about an event. It does not repeat what its event says.
type Fact interface{ Fact() string }

// Facts about jobs.
type (
	// JobHeld: a job that is new, or goes on, waits for approval, and for what; nil: for what
	// its event says. Bound is the budget that a new one gets, as it has none of its own.
	JobHeld struct {
		Job    string                  `json:"job"`
		Asking *budget.PendingApproval `json:"asking,omitempty"`
		Bound  *money.Amount           `json:"bound,omitempty"`
	}
	// JobRefused: a job is not let in, or not with the terms of the event: a reason from a
	// closed set, and the limit that has no room for it, where it is one.
	JobRefused struct {
		Job    string `json:"job"`
		Why    string `json:"why"`
		Limit  string `json:"limit,omitempty"`
		Detail string `json:"detail,omitempty"`
	}
	// JobQueued: a job waits for a machine: it is new, was approved, or tries again.
	JobQueued struct {
		Job     string `json:"job"`
		Why     string `json:"why,omitempty"`
		Detail  string `json:"detail,omitempty"`
		Retried bool   `json:"retried,omitempty"` // it counts among its retries
		Failed  bool   `json:"failed,omitempty"`  // it counts among the attempts that made no step
		// Bound is the budget that a new job gets, as it has none of its own.
		Bound *money.Amount `json:"bound,omitempty"`
	}
	// JobEnding: what a job becomes when its attempt has ended.
	JobEnding struct {
		Job    string `json:"job"`
		State  Status `json:"state"`
		Why    string `json:"why"`
		Detail string `json:"detail,omitempty"` // "": what it says stands
	}
	// JobOver: it will never run again.
	JobOver struct {
		Job    string `json:"job"`
		State  Status `json:"state"`
		Why    string `json:"why"`
		Detail string `json:"detail,omitempty"`
	}
	// JobSuspended: it is paused, without a machine. JobReopened: it is over no more.
	JobSuspended struct {
		Job    string `json:"job"`
		Why    string `json:"why"`
		Detail string `json:"detail,omitempty"` // "": what it says stands
	}
	JobReopened struct {
		Job string `json:"job"`
	}
	// JobChanged: the changes of the event hold.
	JobChanged struct {
		Job string `json:"job"`
	}
	// JobPriced: what its work would have cost on-demand when its last machine was gone, and where.
	JobPriced struct {
		Job      string         `json:"job"`
		OnDemand money.Amount   `json:"on_demand"`
		Offer    market.OfferID `json:"offer,omitempty"`
	}
	// Decided: a decision that changed something. Foreseen is set with the first that says
	// what the job will cost.
	Decided struct {
		Job      string        `json:"job"`
		Version  string        `json:"version"`
		Decision plan.Decision `json:"decision"`
		Foreseen *money.Amount `json:"foreseen,omitempty"`
		// SameRejected: its options were rejected for the same reasons as in the job's
		// decision before, which has the list.
		SameRejected bool `json:"same_rejected,omitempty"`
	}
	// ProbeAsked: whether an offer can be had is asked for a job.
	ProbeAsked struct {
		Job   string         `json:"job"`
		Offer market.OfferID `json:"offer"`
	}
	// RungFailed: a loss or a refusal was counted on a rung of the job's ladder, from 0.
	RungFailed struct {
		Job   string             `json:"job"`
		Rung  int                `json:"rung"`
		State plan.FallbackState `json:"state"`
	}
)

// Facts about allocations.
type (
	// AllocationRequested: machines are asked for. Its number is the job's next.
	AllocationRequested struct {
		Job      string        `json:"job"`
		Why      string        `json:"why"`
		Nodes    int           `json:"nodes"`
		Machine  Machine       `json:"machine"`
		Rate     money.Rate    `json:"rate"`
		Most     money.Rate    `json:"most"`
		Variant  string        `json:"variant,omitempty"`
		Rung     int           `json:"rung,omitempty"`
		Transfer time.Duration `json:"transfer_ns,omitempty"`
		// Instance is a machine that is there, without a task or with a part to spare; "": one is
		// to be rented.
		Instance string   `json:"instance,omitempty"`
		Portion  *Portion `json:"portion,omitempty"` // that the task gets of the machine; nil: all
		// Keeps are machines of the job's attempt before that it gets when they are free.
		Keeps []string `json:"keeps,omitempty"`
	}
	// AllocationQueued: the provider has it in its queue.
	AllocationQueued struct {
		Allocation string `json:"allocation"`
		Detail     string `json:"detail,omitempty"` // why it waits, and until when the provider expects it to
	}
	// AllocationGranted: it was given a machine.
	AllocationGranted struct {
		Allocation string `json:"allocation"`
		Instance   string `json:"instance"`
	}
	// AllocationCancelling: its end is asked for, for that reason.
	AllocationCancelling struct {
		Allocation string `json:"allocation"`
		Why        string `json:"why"`
	}
	// AllocationReduced: it does with so many machines, since no more are to be had.
	AllocationReduced struct {
		Allocation string `json:"allocation"`
		Nodes      int    `json:"nodes"`
	}
	// AllocationClosed: it leads to nothing: it was refused, has expired or is cancelled.
	AllocationClosed struct {
		Allocation string          `json:"allocation"`
		Phase      AllocationPhase `json:"phase"`
	}
	// BackedOff: nothing of a scope is asked for until then; zero: it is granted again.
	BackedOff struct {
		Scope string    `json:"scope"` // a scope's key, as ScopeKey makes it
		Tries int       `json:"tries,omitempty"`
		Until time.Time `json:"until,omitzero"`
		// Detail is what was said when it refused, or what else it is left alone for; "": as before
		Detail string `json:"detail,omitempty"`
	}
)

// Facts about instances.
type (
	// StrayFound: a machine with our tag runs, and nobody of ours asked for it, or its
	// end is paid for already.
	StrayFound struct {
		Instance string `json:"instance"`
		Paid     bool   `json:"paid,omitempty"`
	}
	// InstanceReleased: it is given back. End is what its attempt ends as, where that is
	// not said otherwise.
	InstanceReleased struct {
		Instance string `json:"instance"`
		Why      string `json:"why"`
		End      string `json:"end,omitempty"`
	}
	// SeatReleased: the seat of an attempt is taken from it, while others keep theirs. Its agent
	// is to end the task by By. End is what it ends as, where that is not said otherwise.
	SeatReleased struct {
		Attempt string    `json:"attempt"`
		Node    int       `json:"node,omitempty"`
		Why     string    `json:"why"`
		End     string    `json:"end,omitempty"`
		By      time.Time `json:"by"`
	}
	// SeatLeft: a task of an instance is over for good, and the machine stays: where Next is set,
	// for that allocation of the same job; where Attempt alone is, for others that have seats
	// there; else it waits for the next job of the same user
	// until Keep at the latest, and Most is held for that. Lost is time lost by it.
	SeatLeft struct {
		Instance string        `json:"instance"`
		Attempt  string        `json:"attempt,omitempty"`
		Next     string        `json:"next,omitempty"`
		Keep     time.Time     `json:"keep,omitzero"`
		Most     money.Amount  `json:"most,omitzero"`
		Lost     time.Duration `json:"lost_ns,omitempty"`
	}
	// InstanceCleaned: its agent shows that nothing of an earlier task is left on it.
	InstanceCleaned struct {
		Instance string `json:"instance"`
	}
	// InstanceRegistered: the key of its agent is known. No other is taken after it.
	InstanceRegistered struct {
		Instance string `json:"instance"`
	}
	// InstanceMissing: its provider's list lacks it. InstanceListed: it is there again.
	InstanceMissing struct {
		Instance string `json:"instance"`
	}
	InstanceListed struct {
		Instance string `json:"instance"`
	}
	// InterruptionTaken: its provider will interrupt it.
	InterruptionTaken struct {
		Instance string `json:"instance"`
	}
	// InstanceClosed: it is billed no longer. Until is corrected to lie in its life; Lost
	// is time lost by its end; Given up says that its provider lists it no more.
	InstanceClosed struct {
		Instance string        `json:"instance"`
		Until    time.Time     `json:"until"`
		Cause    string        `json:"cause"`
		Lost     time.Duration `json:"lost_ns,omitempty"`
		GivenUp  bool          `json:"given_up,omitempty"`
		Unsaved  bool          `json:"unsaved,omitempty"` // all that was done on it is lost
		// Others are those that had seats beside the first, to which Lost and Unsaved belong.
		Others []SeatEnd `json:"others,omitempty"`
	}
	// InstanceExtended: one that was given up ended later than was thought.
	InstanceExtended struct {
		Instance string    `json:"instance"`
		Until    time.Time `json:"until"`
		Cause    string    `json:"cause"`
	}
	// InstanceLeft: the true end of one that was given up is booked.
	InstanceLeft struct {
		Instance string `json:"instance"`
	}
	// BillTaken: the newest bill of an instance is booked.
	BillTaken struct {
		Instance string `json:"instance"`
	}
	// BillSplit: the newest bill of an instance that was shared is booked in these parts.
	BillSplit struct {
		Instance string     `json:"instance"`
		Parts    []BillPart `json:"parts"`
	}
	// InstanceOwned: somebody has decided whose a machine of an earlier incarnation is.
	InstanceOwned struct {
		Instance string `json:"instance"`
	}
)

// SeatEnd is what an attempt lost by the end of its machine.
type SeatEnd struct {
	Attempt string        `json:"attempt"`
	Lost    time.Duration `json:"lost_ns,omitempty"`
	Unsaved bool          `json:"unsaved,omitempty"`
}

// BillPart is what an attempt, or a span without a task by its name, pays of a bill, by rule.
type BillPart struct {
	Attempt string                  `json:"attempt,omitempty"`
	Task    string                  `json:"task,omitempty"`
	Bill    map[string]money.Amount `json:"bill"`
}

// Facts about everything.
type (
	// ConfigSet: the limits of the event hold. RulesSet: its limits of teams do.
	ConfigSet struct{}
	RulesSet  struct{}
	// LimitReached: all of a limit's dollars are spent in its window; its jobs are stopped.
	LimitReached struct {
		Limit string       `json:"limit"`
		Spent money.Amount `json:"spent"` // with what is not booked yet
	}
	// IncarnationSet: the log is of the event's installation and incarnation.
	IncarnationSet struct{}
	// ReserveSettled: what a reservation cost and nobody used is posted up to now.
	ReserveSettled struct {
		Offer market.OfferID `json:"offer"`
	}
)

// EncodeFacts writes facts for the log: a list of pairs of name and fact; nil for none.
func EncodeFacts(facts []Fact) (json.RawMessage, error) {
	if len(facts) == 0 {
		return nil, nil
	}
	b := append(make([]byte, 0, 128*len(facts)), '[')
	for i, f := range facts {
		if i > 0 {
			b = append(b, ',')
		}
		text, err := json.Marshal(f)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", f.Fact(), err)
		}
		b = append(append(append(append(b, '"'), f.Fact()...), `",`...), text...)
	}
	return append(b, ']'), nil
}

// DecodeFacts reads what EncodeFacts wrote.
func DecodeFacts(b json.RawMessage) ([]Fact, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if name, fact, ok := oneFact(b); ok {
		f, err := readFact(name, fact)
		if err != nil {
			return nil, err
		}
		return []Fact{f}, nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return nil, fmt.Errorf("read facts: %w", err)
	}
	facts := make([]Fact, 0, len(parts)/2)
	for i := 0; i+1 < len(parts); i += 2 {
		var name string
		if err := json.Unmarshal(parts[i], &name); err != nil {
			return nil, fmt.Errorf("read facts: %w", err)
		}
		f, err := readFact(name, parts[i+1])
		if err != nil {
			return nil, err
		}
		facts = append(facts, f)
	}
	return facts, nil
}

// oneFact is the only fact of a list that has but one, as most have. What follows it, if
// anything does, makes it no JSON, and is read in the other way.
func oneFact(b json.RawMessage) (name string, fact json.RawMessage, ok bool) {
	r := appended{rest: b, ok: b[len(b)-1] == ']'}
	r.skip(`[`)
	name = r.text()
	r.skip(`,`)
	if !r.ok || len(r.rest) < 2 || bytes.Contains(r.rest, []byte(`},"`)) {
		return "", nil, false
	}
	return name, r.rest[:len(r.rest)-1], true
}

func readFact(name string, text json.RawMessage) (Fact, error) {
	read := factKinds[name]
	if read == nil {
		return nil, fmt.Errorf("fact of unknown kind %q: use a newer program", name)
	}
	f, err := read(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return f, nil
}
