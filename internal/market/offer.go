// Package market holds what is for sale: offers, their quotes over time, and
// recorded or generated traces of price, availability and interruption.
package market

import (
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
)

// Capacity is how a machine is bought.
type Capacity string

// The kinds of capacity. Spot can be interrupted; on-demand and reserved cannot.
const (
	Spot     Capacity = "spot"
	OnDemand Capacity = "on-demand"
	Reserved Capacity = "reserved"
)

// OfferID names an offer: provider/zone/machine/capacity, "local/us-a/c2/spot".
type OfferID string

// Offer is something for sale. What it costs at a time is a Quote.
type Offer struct {
	ID       OfferID  `json:"id"`
	Provider string   `json:"provider"`
	Region   string   `json:"region"`
	Zone     string   `json:"zone"`
	Machine  string   `json:"machine"` // the provider's name of the machine type
	Capacity Capacity `json:"capacity"`

	CPUs         int        `json:"cpus"`
	Memory       size.Bytes `json:"memory_bytes"`
	Accelerator  string     `json:"accelerator,omitempty"` // "" for none
	Accelerators int        `json:"accelerators,omitempty"`

	// Speed is useful work per second against the machine for which the job
	// states its work; 0 is unknown and is planned with as 1.
	Speed float64 `json:"speed,omitempty"`
	// Notice is how long before an interruption the provider says so, in wall
	// time; 0 is none.
	Notice time.Duration `json:"notice_ns,omitempty"`
	// MaxLifetime is an interruption known in advance, in market time; 0 is none.
	MaxLifetime time.Duration `json:"max_lifetime_ns,omitempty"`
	// Boot is how long from launch to a working agent, in market time; 0 is unknown.
	Boot time.Duration `json:"boot_ns,omitempty"`

	// Machines is how many there are, used or not; 0 is unknown. Of what is reserved Reserved says it.
	Machines int `json:"machines,omitempty"`
	// Images says that its machines are containers, which run the image that a job names.
	Images bool `json:"images,omitempty"`

	Currency money.Currency `json:"currency"`
	Billing  Billing        `json:"billing"`
	// Reserved says what was reserved and paid beforehand; zero: nothing was.
	Reserved Reservation `json:"reserved,omitzero"`
}

// AtOnce is how many machines a job can have of the offer at once, at most; 0: nobody knows.
func (o *Offer) AtOnce() int {
	if o.Machines == 0 {
		return o.Reserved.Count
	}
	return o.Machines
}

// Billing is a provider's rule for what a span costs besides its seconds. Each
// rule that applies is a line of its own on the bill. Spans go by the market's clock.
type Billing struct {
	// Minimum is billed even where the machine ran for less; 0 is no minimum.
	Minimum time.Duration `json:"minimum_ns,omitempty"`
	// FreeIfInterruptedWithin gives the span back where the provider took the
	// machine before it was that old; 0 is never.
	FreeIfInterruptedWithin time.Duration `json:"free_if_interrupted_within_ns,omitempty"`
}

// Quote is the price and availability of an offer from At on, until a later one.
type Quote struct {
	Offer     OfferID    `json:"offer"`
	Rate      money.Rate `json:"rate"`      // of an hour; means nothing unless Priced
	Priced    bool       `json:"priced"`    // false: the price is unknown, which is not zero
	Available bool       `json:"available"` // whether a launch would be granted now
	At        time.Time  `json:"at"`        // market time
	// Untried says that nobody knows whether a launch would be granted: Available
	// means nothing until somebody looks.
	Untried bool   `json:"untried,omitempty"`
	Source  string `json:"source"`
}
