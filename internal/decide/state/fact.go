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

// Fact is part of the decision about an event. It does not repeat the event.
type Fact interface{ Fact() string }

// Facts about jobs.
type (
	// JobHeld: a new or resumed job waits for approval. Asking is the approval it needs; nil: the one in its event.
	// Bound is the budget given to a new job that has none.
	JobHeld struct {
		Job    string                  `json:"job"`
		Asking *budget.PendingApproval `json:"asking,omitempty"`
		Bound  *money.Amount           `json:"bound,omitempty"`
	}
	// JobRefused: a job, or its new terms, is refused. Why is from a closed set; Limit is the limit without room,
	// if one is the reason.
	JobRefused struct {
		Job    string `json:"job"`
		Why    string `json:"why"`
		Limit  string `json:"limit,omitempty"`
		Detail string `json:"detail,omitempty"`
	}
	// JobQueued: a job waits for a machine because it is new, was approved, or tries again.
	JobQueued struct {
		Job     string `json:"job"`
		Why     string `json:"why,omitempty"`
		Detail  string `json:"detail,omitempty"`
		Retried bool   `json:"retried,omitempty"` // it counts as a retry
		Failed  bool   `json:"failed,omitempty"`  // it counts as an attempt that made no step
		// Bound is the budget given to a new job that has none.
		Bound *money.Amount `json:"bound,omitempty"`
	}
	// JobEnding: the state that a job will have after its attempt ends.
	JobEnding struct {
		Job    string `json:"job"`
		State  Status `json:"state"`
		Why    string `json:"why"`
		Detail string `json:"detail,omitempty"` // empty: the job keeps the detail it has
	}
	// JobOver: the job has ended and never runs again, unless it is reopened.
	JobOver struct {
		Job    string `json:"job"`
		State  Status `json:"state"`
		Why    string `json:"why"`
		Detail string `json:"detail,omitempty"`
	}
	// JobSuspended: the job is paused and has no machine. JobReopened: an ended job is open again.
	JobSuspended struct {
		Job    string `json:"job"`
		Why    string `json:"why"`
		Detail string `json:"detail,omitempty"` // empty: the job keeps the detail it has
	}
	JobReopened struct {
		Job string `json:"job"`
	}
	// JobChanged: the changes in the event take effect.
	JobChanged struct {
		Job string `json:"job"`
	}
	// JobPriced: what the work would have cost on-demand when the job's last machine ended, and on which offer.
	JobPriced struct {
		Job      string         `json:"job"`
		OnDemand money.Amount   `json:"on_demand"`
		Offer    market.OfferID `json:"offer,omitempty"`
	}
	// Decided: a decision that changed something. The first decision that knows the job's expected cost sets
	// Foreseen.
	Decided struct {
		Job      string        `json:"job"`
		Version  string        `json:"version"`
		Decision plan.Decision `json:"decision"`
		Foreseen *money.Amount `json:"foreseen,omitempty"`
		// SameRejected is set if its options were rejected for the same reasons as in the job's previous decision,
		// which has the list.
		SameRejected bool `json:"same_rejected,omitempty"`
	}
	// ProbeAsked: scrimp probes an offer for a job.
	ProbeAsked struct {
		Job   string         `json:"job"`
		Offer market.OfferID `json:"offer"`
	}
	// RungFailed: a loss or refusal counts against a rung of the job's fallback ladder. The first rung is 0.
	RungFailed struct {
		Job   string             `json:"job"`
		Rung  int                `json:"rung"`
		State plan.FallbackState `json:"state"`
	}
)

// Facts about allocations.
type (
	// AllocationRequested: machines are requested. The allocation gets the job's next number.
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
		// Instance is an existing machine that is idle or has room for the portion; empty: a machine is to be
		// rented.
		Instance string   `json:"instance,omitempty"`
		Portion  *Portion `json:"portion,omitempty"` // portion of the machine that the task gets; nil: all
		// Keeps lists machines of the job's previous attempt that this allocation gets once they are free.
		Keeps []string `json:"keeps,omitempty"`
	}
	// AllocationQueued: the provider has queued the request.
	AllocationQueued struct {
		Allocation string `json:"allocation"`
		Detail     string `json:"detail,omitempty"` // why it waits, and how long the provider expects that to take
	}
	// AllocationGranted: the allocation gets a machine.
	AllocationGranted struct {
		Allocation string `json:"allocation"`
		Instance   string `json:"instance"`
	}
	// AllocationCancelling: scrimp asks the provider to cancel the request.
	AllocationCancelling struct {
		Allocation string `json:"allocation"`
		Why        string `json:"why"`
	}
	// AllocationReduced: the allocation makes do with fewer machines, because no more are available.
	AllocationReduced struct {
		Allocation string `json:"allocation"`
		Nodes      int    `json:"nodes"`
	}
	// AllocationClosed: the request was refused, expired or was cancelled.
	AllocationClosed struct {
		Allocation string          `json:"allocation"`
		Phase      AllocationPhase `json:"phase"`
	}
	// BackedOff: nothing in a scope is requested before Until; zero: it may be requested again.
	BackedOff struct {
		Scope string    `json:"scope"` // key that ScopeKey makes
		Tries int       `json:"tries,omitempty"`
		Until time.Time `json:"until,omitzero"`
		// Detail is the message of the refusal, or another reason to back off; empty: unchanged.
		Detail string `json:"detail,omitempty"`
	}
)

// Facts about instances.
type (
	// StrayFound: a machine with scrimp's tag runs that scrimp did not request, or whose end is already booked
	// (Paid).
	StrayFound struct {
		Instance string `json:"instance"`
		Paid     bool   `json:"paid,omitempty"`
	}
	// InstanceReleased: an instance is terminated. End is how its attempt ends, unless another event says so.
	InstanceReleased struct {
		Instance string `json:"instance"`
		Why      string `json:"why"`
		End      string `json:"end,omitempty"`
	}
	// SeatReleased: an attempt must leave its seat while others keep theirs. Its agent must end the task by By. End
	// is how the attempt ends, unless another event says so.
	SeatReleased struct {
		Attempt string    `json:"attempt"`
		Node    int       `json:"node,omitempty"`
		Why     string    `json:"why"`
		End     string    `json:"end,omitempty"`
		By      time.Time `json:"by"`
	}
	// SeatLeft: a task has left an instance that stays. If Next is set, the machine goes to that allocation of the
	// same job. If only Attempt is set, other attempts keep their seats on it. Otherwise it waits, until Keep or while
	// a part of it is kept, for the next job of the same user, and Most is held for that. Lost is the time lost.
	SeatLeft struct {
		Instance string        `json:"instance"`
		Attempt  string        `json:"attempt,omitempty"`
		Next     string        `json:"next,omitempty"`
		Keep     time.Time     `json:"keep,omitzero"`
		Most     money.Amount  `json:"most,omitzero"`
		Lost     time.Duration `json:"lost_ns,omitempty"`
	}
	// InstanceCleaned: the agent has shown that earlier tasks left nothing on the instance.
	InstanceCleaned struct {
		Instance string `json:"instance"`
	}
	// InstanceRegistered: the agent's key is known. Scrimp accepts no other key after it.
	InstanceRegistered struct {
		Instance string `json:"instance"`
	}
	// InstanceMissing: the provider's list lacks the instance. InstanceListed: the list has it again.
	InstanceMissing struct {
		Instance string `json:"instance"`
	}
	InstanceListed struct {
		Instance string `json:"instance"`
	}
	// InterruptionTaken: the provider will interrupt the instance.
	InterruptionTaken struct {
		Instance string `json:"instance"`
	}
	// InstanceClosed: the instance is billed no longer. Until is corrected to lie within its life. Lost is the time
	// lost by its end. GivenUp is set if the provider no longer lists it.
	InstanceClosed struct {
		Instance string        `json:"instance"`
		Until    time.Time     `json:"until"`
		Cause    string        `json:"cause"`
		Lost     time.Duration `json:"lost_ns,omitempty"`
		GivenUp  bool          `json:"given_up,omitempty"`
		Unsaved  bool          `json:"unsaved,omitempty"` // all work done on it is lost
		// Others are the attempts with seats beside the first; Lost and Unsaved are those of the first.
		Others []SeatEnd `json:"others,omitempty"`
	}
	// InstanceExtended: an instance that was given up ended later than assumed.
	InstanceExtended struct {
		Instance string    `json:"instance"`
		Until    time.Time `json:"until"`
		Cause    string    `json:"cause"`
	}
	// InstanceLeft: the actual end of an instance that was given up is booked.
	InstanceLeft struct {
		Instance string `json:"instance"`
	}
	// BillTaken: the newest bill of an instance is booked.
	BillTaken struct {
		Instance string `json:"instance"`
	}
	// BillSplit: the newest bill of a shared instance is booked in these parts.
	BillSplit struct {
		Instance string     `json:"instance"`
		Parts    []BillPart `json:"parts"`
	}
	// InstanceOwned: a user has adopted or released a machine of an earlier incarnation.
	InstanceOwned struct {
		Instance string `json:"instance"`
	}
)

// SeatEnd is what an attempt lost when its machine ended.
type SeatEnd struct {
	Attempt string        `json:"attempt"`
	Lost    time.Duration `json:"lost_ns,omitempty"`
	Unsaved bool          `json:"unsaved,omitempty"`
}

// BillPart is the share of a bill, by rule, that an attempt pays, or a span without a task (named by Task).
type BillPart struct {
	Attempt string                  `json:"attempt,omitempty"`
	Task    string                  `json:"task,omitempty"`
	Bill    map[string]money.Amount `json:"bill"`
}

// Facts about everything.
type (
	// ConfigSet: the settings in the event take effect. RulesSet: the team limits in the event take effect.
	ConfigSet struct{}
	RulesSet  struct{}
	// LimitReached: a limit's dollars are spent in its window; its jobs stop.
	LimitReached struct {
		Limit string       `json:"limit"`
		Spent money.Amount `json:"spent"` // includes costs not booked yet
	}
	// IncarnationSet: the log takes the installation and incarnation of the event.
	IncarnationSet struct{}
	// ReconciliationBooked: the differences in the event are booked.
	ReconciliationBooked struct{}
	// ReserveSettled: the unused cost of a reservation is posted up to now.
	ReserveSettled struct {
		Offer market.OfferID `json:"offer"`
	}
)

// EncodeFacts encodes facts for the log as a flat list: name, fact, name, fact. It returns nil for no facts.
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

// DecodeFacts decodes the output of EncodeFacts.
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

// oneFact returns the fact of a list with a single entry, the most common case. If anything follows that entry, the
// result is invalid JSON, or ok is false and the caller decodes the list in full.
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
