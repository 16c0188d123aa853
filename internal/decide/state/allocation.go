package state

import (
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/market"
)

// Machine describes a rented machine, without its price. It is copied from the offer at the request, because the
// offer may change or disappear.
type Machine struct {
	Offer    market.OfferID  `json:"offer"`
	Provider string          `json:"provider"`
	Region   string          `json:"region,omitempty"`
	Zone     string          `json:"zone"`
	Type     string          `json:"type,omitempty"` // the provider's name of the machine type
	Capacity market.Capacity `json:"capacity"`
	Speed    float64         `json:"speed"` // of the job's work on it, in the chosen variant
	GPUs     int             `json:"gpus,omitempty"`
	Currency money.Currency  `json:"currency"`
	Prepaid  bool            `json:"prepaid,omitempty"` // it is reserved
	Image    string          `json:"image,omitempty"`   // requested image; empty: the engine's default
	// Terms are the terms of its reservation, if using it costs more than was prepaid.
	Terms *market.Reservation `json:"terms,omitempty"`
}

// BoughtAs returns the purchase that postings for the time of a machine name.
func BoughtAs(m *Machine) ledger.Bought {
	return ledger.Bought{Provider: m.Provider, Region: m.Region, SKU: m.Type, Category: ledger.Compute}
}

// Owned returns the part of the machine's cost that is prepaid.
func (m *Machine) Owned(cost money.Amount) money.Amount {
	if m.Terms == nil {
		return cost
	}
	return m.Terms.Owned(cost)
}

// Allocation is a request for one or more machines that are granted together. Its offers never change: a change is
// a cancellation and a new request.
type Allocation struct {
	r        allocationRecord
	machines []*Instance // granted machines, in the order of r.Granted
}

type allocationRecord struct {
	ID    string          `json:"id"` // JOB.NUMBER; the attempt that it leads to has the same ID
	Job   string          `json:"job"`
	Epoch int             `json:"epoch"`
	Phase AllocationPhase `json:"phase"`
	// Offers are acceptable in this order; Machine is the first.
	Offers    []market.OfferID `json:"offers"`
	Machine   Machine          `json:"machine"`
	Nodes     int              `json:"nodes"`
	Rate      money.Rate       `json:"rate"`                  // per hour, when decided
	Most      money.Rate       `json:"most,omitempty"`        // maximum rate; a higher price is refused
	Variant   string           `json:"variant,omitempty"`     // variant of the work
	Rung      int              `json:"rung,omitempty"`        // rung of the fallback ladder, from 1; 0: no ladder
	Transfer  time.Duration    `json:"transfer_ns,omitempty"` // part of its restart time, for another region
	Requested time.Time        `json:"requested"`
	Queued    time.Time        `json:"queued,omitzero"`   // when the provider first said that the request is queued
	Detail    string           `json:"detail,omitempty"`  // the provider's message about the queue
	Granted   []grant          `json:"granted,omitempty"` // so far
	// Keeps are machines of the job's previous attempt that this allocation gets once they are free.
	Keeps   []string `json:"keeps,omitempty"`
	Portion *Portion `json:"portion,omitempty"` // portion of the machine that its task gets; nil: all
}

// Request and state of an allocation.
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

// Queued is when the provider first said that the request is queued; zero: never.
func (a *Allocation) Queued() time.Time { return a.r.Queued }

// Detail is the provider's message about the queue, or "".
func (a *Allocation) Detail() string { return a.r.Detail }

// Portion is the portion of a machine that its task gets; nil: all of it.
func (a *Allocation) Portion() *Portion { return a.r.Portion }

// grant is a granted machine, with its time and its cost by then.
type grant struct {
	Instance string       `json:"instance"`
	From     time.Time    `json:"from"`
	Rate     money.Rate   `json:"rate"` // per hour, at that time
	Before   money.Amount `json:"before,omitzero"`
	Rank     int          `json:"rank,omitempty"` // its rank in the previous attempt, from 1; 0: a new machine
	Warm     bool         `json:"warm,omitempty"` // it had served another task
}

// Granted returns the machines granted so far.
func (a *Allocation) Granted() []string {
	list := make([]string, len(a.r.Granted))
	for n := range a.r.Granted {
		list[n] = a.r.Granted[n].Instance
	}
	return list
}

// Since returns when the first machine was granted; zero if none was.
func (a *Allocation) Since() (t time.Time) {
	for n := range a.r.Granted {
		if from := a.r.Granted[n].From; n == 0 || from.Before(t) {
			t = from
		}
	}
	return t
}

// Keeps returns the machines of the previous attempt that this allocation gets once they are free.
func (a *Allocation) Keeps() []string { return a.r.Keeps }

// Rents returns the number of machines to be rented.
func (a *Allocation) Rents() int { return a.r.Nodes - len(a.r.Keeps) }

// Answered reports whether every machine to be rented has been granted.
func (a *Allocation) Answered() bool {
	n := 0
	for i := range a.r.Granted {
		if a.r.Granted[i].Rank == 0 {
			n++
		}
	}
	return n >= a.Rents()
}

// Has reports whether the machine has been granted.
func (a *Allocation) Has(instance string) bool {
	return slices.ContainsFunc(a.r.Granted, func(g grant) bool { return g.Instance == instance })
}

// Awaits reports whether the allocation gets the machine once it is free.
func (a *Allocation) Awaits(instance string) bool {
	return slices.Contains(a.r.Keeps, instance) && !a.Has(instance)
}

// Full reports whether all machines have been granted.
func (a *Allocation) Full() bool { return len(a.r.Granted) >= a.r.Nodes }

// Cost returns what the granted machines have cost since they were granted, up to t at plain seconds.
func (a *Allocation) Cost(t time.Time) (sum money.Amount) {
	for n, i := range a.machines {
		sum = sum.Add(i.costFrom(a.r.Granted[n].From, a.r.Granted[n].Before, t))
	}
	return sum
}

// PresentRate is the current hourly price of the granted machines.
func (a *Allocation) PresentRate() (rate money.Rate) {
	for _, i := range a.machines {
		if i.r.Until.IsZero() {
			rate = quantity.Add(rate, i.PresentRate())
		}
	}
	return rate
}
