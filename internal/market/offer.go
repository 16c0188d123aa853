// Package market holds what is for sale: offers, their quotes over time, and recorded or generated traces of price,
// availability and interruption.
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

// Offer is something for sale. Its price at a time is a Quote.
type Offer struct {
	ID       OfferID  `json:"id"`
	Provider string   `json:"provider"`
	Region   string   `json:"region"`
	Zone     string   `json:"zone"`
	Machine  string   `json:"machine"` // the provider's name of the machine type
	Capacity Capacity `json:"capacity"`

	CPUs         int        `json:"cpus"`
	Memory       size.Bytes `json:"memory_bytes"`
	Accelerator  string     `json:"accelerator,omitempty"` // empty for none
	Accelerators int        `json:"accelerators,omitempty"`

	// Speed is useful work per second relative to the machine for which the job states its work; 0 is unknown and
	// counts as 1 in plans.
	Speed float64 `json:"speed,omitempty"`
	// Notice is the provider's warning time before an interruption, in wall time; 0 for none.
	Notice time.Duration `json:"notice_ns,omitempty"`
	// MaxLifetime is the time after which an interruption is certain, in market time; 0 for none.
	MaxLifetime time.Duration `json:"max_lifetime_ns,omitempty"`
	// Boot is the time from launch to a working agent, in market time; 0 is unknown.
	Boot time.Duration `json:"boot_ns,omitempty"`

	// Machines is the number of machines, used or not; 0 is unknown. Reservations use Reserved.Count instead.
	Machines int `json:"machines,omitempty"`
	// Images means that its machines are containers, which run the image that a job names.
	Images bool `json:"images,omitempty"`

	Currency money.Currency `json:"currency"`
	Billing  Billing        `json:"billing"`
	// Reserved describes a reservation; zero for none.
	Reserved Reservation `json:"reserved,omitzero"`
}

// AtOnce returns the largest number of the offer's machines that a job can have at once; 0 if unknown.
func (o *Offer) AtOnce() int {
	if o.Machines == 0 {
		return o.Reserved.Count
	}
	return o.Machines
}

// Billing holds a provider's rules for the cost of a span besides its seconds. Each rule that applies has its own line
// on the bill. Durations are in market time.
type Billing struct {
	// Minimum is billed even if the machine ran for less; 0 for no minimum.
	Minimum time.Duration `json:"minimum_ns,omitempty"`
	// FreeIfInterruptedWithin makes the span free if the provider interrupts the machine before that age; 0 for never.
	FreeIfInterruptedWithin time.Duration `json:"free_if_interrupted_within_ns,omitempty"`
}

// Quote is the price and availability of an offer from At until a later quote.
type Quote struct {
	Offer     OfferID    `json:"offer"`
	Rate      money.Rate `json:"rate"`      // per hour; meaningless unless Priced
	Priced    bool       `json:"priced"`    // false if the price is unknown, which is not zero
	Available bool       `json:"available"` // whether a launch would be granted now
	At        time.Time  `json:"at"`        // market time
	// Untried means that nobody knows whether a launch would be granted: Available is meaningless until a probe.
	Untried bool   `json:"untried,omitempty"`
	Source  string `json:"source"`
}
