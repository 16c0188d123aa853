package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// HoldTerms is what a study, a pipeline or a schedule may spend: its parts take from that.
type HoldTerms struct {
	Owner  ledger.Owner  `json:"owner"`              // whose the parts are too
	Parent string        `json:"parent,omitempty"`   // the hold that it takes from; "": none, its limits hold it
	Budget money.Amount  `json:"budget"`             // the most that its parts may be given together
	AtOnce int           `json:"at_once"`            // parts that run at once, at most
	Grace  time.Duration `json:"grace_ns,omitempty"` // of a part
	Rate   money.Rate    `json:"rate,omitempty"`     // the highest at which one is rented; 0: the highest for sale
}

// What can happen to holds.
type (
	// HoldOpened: somebody begins a study, a pipeline or a schedule.
	HoldOpened struct {
		Hold  string    `json:"hold"` // study:NAME, pipeline:NAME or schedule:NAME
		Terms HoldTerms `json:"terms"`
	}
	// HoldReviewed: one that waits for approval has it, or never gets it.
	HoldReviewed struct {
		Hold     string `json:"hold"`
		Approved bool   `json:"approved"`
		Reason   string `json:"reason,omitempty"`
	}
	// HoldClosed: it gets no more parts, and neither do those that take from it. Those that it has go on.
	HoldClosed struct {
		Hold string `json:"hold"`
	}
	// Spawn: parts of a hold begin, all or none.
	Spawn struct {
		Parent string         `json:"parent"`
		Parts  []JobSubmitted `json:"parts"`
	}
)

func (HoldOpened) Kind() string   { return "hold_opened" }
func (HoldReviewed) Kind() string { return "hold_reviewed" }
func (HoldClosed) Kind() string   { return "hold_closed" }
func (Spawn) Kind() string        { return "spawn" }

// Facts about holds.
type (
	// HoldGranted: it holds so much, or, where Asking says for what, waits for approval first.
	HoldGranted struct {
		Hold   string                  `json:"hold"`
		Worst  money.Amount            `json:"worst,omitzero"`
		Asking *budget.PendingApproval `json:"asking,omitempty"`
	}
	// HoldEnded: it is closed.
	HoldEnded struct {
		Hold string `json:"hold"`
		Why  string `json:"why"`
	}
)

func (HoldGranted) Fact() string { return "hold_granted" }
func (HoldEnded) Fact() string   { return "hold_ended" }

func init() {
	reads[HoldGranted]()
	reads[HoldEnded]()
}

// HoldPhase is where a hold stands.
type HoldPhase string

// The phases of a hold.
const (
	HoldAwaits HoldPhase = "awaits_approval"
	HoldOpen   HoldPhase = "open"
	HoldOver   HoldPhase = "closed" // it gets no more parts; those that it has go on
)

// HoldRecord is a hold as a snapshot keeps it.
type HoldRecord struct {
	Name     string       `json:"name"` // study:NAME, pipeline:NAME or schedule:NAME
	By       string       `json:"by,omitempty"`
	Terms    HoldTerms    `json:"terms"`
	Worst    money.Amount `json:"worst"` // that it can cost: grace and minimum charges included
	Phase    HoldPhase    `json:"phase"`
	Why      string       `json:"why,omitempty"` // it is closed
	Opened   time.Time    `json:"opened"`
	Approval *Approval    `json:"approval,omitempty"`
}

// User is who opened it.
func (h *HoldRecord) User() string { return cmp.Or(h.By, Owner) }

// ParseHold says what is wrong with the name of a hold.
func ParseHold(name string) error {
	kind, of, _ := strings.Cut(name, ":")
	if !slices.Contains([]string{"study", "pipeline", "schedule"}, kind) || of == "" {
		return fmt.Errorf("hold %q: write study:NAME, pipeline:NAME or schedule:NAME", name)
	}
	return nil
}

// Hold returns the hold of that name, or nil.
func (s *State) Hold(name string) *HoldRecord { return s.holds[name] }

// Holds are all, by name.
func (s *State) Holds() []*HoldRecord {
	list := make([]*HoldRecord, 0, len(s.holds))
	for _, h := range s.holds {
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b *HoldRecord) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

func (s *State) applyHold(e *Event, f Fact) {
	switch f := f.(type) {
	case HoldGranted:
		if h := s.holds[f.Hold]; h != nil { // it was approved
			h.Phase, h.Approval = HoldOpen, reviewedHold(h.Approval, e)
			return
		}
		h := s.opens(e, f.Hold, f.Worst)
		if h.Phase = HoldOpen; f.Asking != nil {
			h.Phase, h.Approval = HoldAwaits, &Approval{PendingApproval: *f.Asking}
		}
	case HoldEnded:
		h := s.holds[f.Hold]
		h.Phase, h.Why = HoldOver, f.Why
		if h.Approval != nil {
			h.Approval = reviewedHold(h.Approval, e)
		}
	}
}

func (s *State) opens(e *Event, name string, worst money.Amount) *HoldRecord {
	b := e.Body.(HoldOpened)
	h := &HoldRecord{Name: name, By: UserOf(e.Actor), Terms: b.Terms, Worst: worst, Opened: s.now}
	s.holds[name] = h
	return h
}

// reviewedHold is an approval with the review of the event, where that is one.
func reviewedHold(was *Approval, e *Event) *Approval {
	b, ok := e.Body.(HoldReviewed)
	if !ok || was == nil {
		return was
	}
	return reviewed(was, e, JobReviewed{Approved: b.Approved, Reason: b.Reason})
}

// MinimumCharge is the longest time that an offer for sale bills even where a machine ran
// for less.
func (s *State) MinimumCharge() (d time.Duration) {
	for _, l := range s.sale {
		d = max(d, l.Offer().Billing.Minimum)
	}
	return d
}

// submission is what an event says of a new job.
func submission(e *Event, job string) *JobSubmitted {
	if b, ok := e.Body.(Spawn); ok {
		if i := slices.IndexFunc(b.Parts, func(p JobSubmitted) bool { return p.Job == job }); i >= 0 {
			return &b.Parts[i]
		}
	}
	b := e.Body.(JobSubmitted)
	return &b
}

func reviewed(was *Approval, e *Event, b JobReviewed) *Approval {
	return &Approval{PendingApproval: was.PendingApproval, At: e.At, By: cmp.Or(UserOf(e.Actor), Owner),
		Approved: b.Approved, Reason: b.Reason}
}

// letIn is the approval of a job that may run from now on; nil where its new terms need none.
func letIn(was *Approval, e *Event) *Approval {
	b, ok := e.Body.(JobReviewed)
	if !ok {
		return nil
	}
	return reviewed(was, e, b)
}
