package state

import (
	"slices"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/market"
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
	Image    string          `json:"image,omitempty"`   // that it was asked for with; "": its engine's own
	// Terms are those under which it is reserved, where a use of it costs more than is paid.
	Terms *market.Reservation `json:"terms,omitempty"`
}

// BoughtAs is what postings about the time of a machine say was bought.
func BoughtAs(m *Machine) ledger.Bought {
	return ledger.Bought{Provider: m.Provider, Region: m.Region, SKU: m.Type, Category: ledger.Compute}
}

// Owned is the part of what a use of the machine costs that is paid for already.
func (m *Machine) Owned(cost money.Amount) money.Amount {
	if m.Terms == nil {
		return cost
	}
	return m.Terms.Owned(cost)
}

// Allocation is a request for one or more machines as one. Its offers never change: a
// change is a cancel and a new one.
type Allocation struct {
	r        allocationRecord
	machines []*Instance // those that it has, in the order of r.Granted
}

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
	Queued    time.Time        `json:"queued,omitzero"`   // the provider said that it waits in its queue
	Detail    string           `json:"detail,omitempty"`  // what the provider says of that wait
	Granted   []grant          `json:"granted,omitempty"` // so far
	// Keeps are machines of the job's attempt before that it gets once they are free of that.
	Keeps   []string `json:"keeps,omitempty"`
	Portion *Portion `json:"portion,omitempty"` // that its task gets of a machine; nil: all
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

// Detail is what the provider says of that wait; "": nothing.
func (a *Allocation) Detail() string { return a.r.Detail }

// Portion is what its task gets of a machine; nil: all of it.
func (a *Allocation) Portion() *Portion { return a.r.Portion }

// grant is a machine that an allocation has, from when on, and what the machine had cost then.
type grant struct {
	Instance string       `json:"instance"`
	From     time.Time    `json:"from"`
	Rate     money.Rate   `json:"rate"` // an hour, then
	Before   money.Amount `json:"before,omitzero"`
	Rank     int          `json:"rank,omitempty"` // that it had in the attempt before, from 1; 0: it is new
	Warm     bool         `json:"warm,omitempty"` // it had served another task
}

// Granted are the machines that it has been given so far.
func (a *Allocation) Granted() []string {
	list := make([]string, len(a.r.Granted))
	for n := range a.r.Granted {
		list[n] = a.r.Granted[n].Instance
	}
	return list
}

// Since is when it was given the first of its machines; zero: it has none.
func (a *Allocation) Since() (t time.Time) {
	for n := range a.r.Granted {
		if from := a.r.Granted[n].From; n == 0 || from.Before(t) {
			t = from
		}
	}
	return t
}

// Keeps are machines of the attempt before that it gets once they are free of that, and
// Rents how many it is to be given besides.
func (a *Allocation) Keeps() []string { return a.r.Keeps }

// Rents is how many machines are asked for.
func (a *Allocation) Rents() int { return a.r.Nodes - len(a.r.Keeps) }

// Answered reports whether all machines that were asked for have been granted.
func (a *Allocation) Answered() bool {
	n := 0
	for i := range a.r.Granted {
		if a.r.Granted[i].Rank == 0 {
			n++
		}
	}
	return n >= a.Rents()
}

// Has reports whether it has the machine; Awaits whether it will have it.
func (a *Allocation) Has(instance string) bool {
	return slices.ContainsFunc(a.r.Granted, func(g grant) bool { return g.Instance == instance })
}

// Awaits reports whether it gets the machine once that is free.
func (a *Allocation) Awaits(instance string) bool {
	return slices.Contains(a.r.Keeps, instance) && !a.Has(instance)
}

// Full reports whether it has all its machines.
func (a *Allocation) Full() bool { return len(a.r.Granted) >= a.r.Nodes }

// Cost is what the machines that it has have cost since it has them, by t at plain seconds.
func (a *Allocation) Cost(t time.Time) (sum money.Amount) {
	for n, i := range a.machines {
		sum = sum.Add(i.Cost(t).Sub(a.r.Granted[n].Before))
	}
	return sum
}

// PresentRate is the price of an hour of the machines that it has.
func (a *Allocation) PresentRate() (rate money.Rate) {
	for _, i := range a.machines {
		if i.r.Until.IsZero() {
			rate = quantity.Add(rate, i.PresentRate())
		}
	}
	return rate
}
