package state

import (
	"time"

	"scrimp/internal/market"
	"scrimp/internal/money"
)

// Machine is what is known of a rented machine besides its price: taken over from its
// offer when it was asked for, since the offer may change or go.
type Machine struct {
	Offer    market.OfferID  `json:"offer"`
	Provider string          `json:"provider"`
	Region   string          `json:"region,omitempty"`
	Zone     string          `json:"zone"`
	Type     string          `json:"type,omitempty"` // the provider's name of the machine type
	Capacity market.Capacity `json:"capacity"`
	Speed    float64         `json:"speed"` // of the job's work on it, the way it is done there
	GPUs     int             `json:"gpus,omitempty"`
	Currency money.Currency  `json:"currency"`
	Prepaid  bool            `json:"prepaid,omitempty"` // it is reserved
}

// Allocation is a request for one or more machines as one. Its offers never change: a
// change is a cancel and a new one.
type Allocation struct{ r allocationRecord }

type allocationRecord struct {
	ID    string          `json:"id"` // JOB.NUMBER: also the name of the attempt that it leads to
	Job   string          `json:"job"`
	Epoch int             `json:"epoch"`
	Phase AllocationPhase `json:"phase"`
	// Offers will do in this order; Machine is the first of them.
	Offers    []market.OfferID `json:"offers"`
	Machine   Machine          `json:"machine"`
	Nodes     int              `json:"nodes"`
	Rate      money.Rate       `json:"rate"`                  // an hour, when it was decided
	Most      money.Rate       `json:"most,omitempty"`        // it is refused above
	Variant   string           `json:"variant,omitempty"`     // in which the work is done
	Rung      int              `json:"rung,omitempty"`        // of the ladder, from 1; 0: there is none
	Transfer  time.Duration    `json:"transfer_ns,omitempty"` // of its restart, for another region
	Requested time.Time        `json:"requested"`
	Queued    time.Time        `json:"queued,omitzero"`     // the provider said that it waits in its queue
	Instances []string         `json:"instances,omitempty"` // granted so far
	Portion   *Portion         `json:"portion,omitempty"`   // that its task gets of a machine; nil: all
}

// What an allocation asks for, and where it stands.
func (a *Allocation) ID() string              { return a.r.ID }
func (a *Allocation) Job() string             { return a.r.Job }
func (a *Allocation) Epoch() int              { return a.r.Epoch }
func (a *Allocation) Phase() AllocationPhase  { return a.r.Phase }
func (a *Allocation) Offer() market.OfferID   { return a.r.Machine.Offer }
func (a *Allocation) Machine() *Machine       { return &a.r.Machine }
func (a *Allocation) Nodes() int              { return a.r.Nodes }
func (a *Allocation) Rate() money.Rate        { return a.r.Rate }
func (a *Allocation) Most() money.Rate        { return a.r.Most }
func (a *Allocation) Variant() string         { return a.r.Variant }
func (a *Allocation) Rung() int               { return a.r.Rung }
func (a *Allocation) Transfer() time.Duration { return a.r.Transfer }
func (a *Allocation) Requested() time.Time    { return a.r.Requested }

// Queued is since when the provider has it in its queue; zero: it did not say so.
func (a *Allocation) Queued() time.Time { return a.r.Queued }

// Portion is what its task gets of a machine; nil: all of it.
func (a *Allocation) Portion() *Portion { return a.r.Portion }

// Granted are the machines that it has been given so far.
func (a *Allocation) Granted() []string { return a.r.Instances }
