package client

import (
	"time"

	"scrimp/money"
)

// MarketClock is the market with its clock.
type MarketClock struct {
	Name  string    `json:"name"`
	Speed float64   `json:"speed"` // market seconds per wall second
	Now   time.Time `json:"now"`   // market time
}

// Market is everything for sale.
type Market struct {
	Clock  MarketClock `json:"clock"`
	Offers []Listing   `json:"offers"`
	// Away lists the engines, and machines of engines, that did not answer the last time, with the errors: their
	// offers are missing or outdated.
	Away []AwayEngine `json:"away,omitempty"`
}

// AwayEngine is an engine that does not answer, or one of its machines.
type AwayEngine struct {
	Name    string `json:"name"`
	Machine string `json:"machine,omitempty"` // the machine that does not answer; "": the whole engine
	Error   string `json:"error"`
}

// Whole reports whether the whole engine does not answer.
func (a *AwayEngine) Whole() bool { return a.Machine == "" }

// What names what does not answer: "engine hpc", or "gpu2 of engine lab".
func (a *AwayEngine) What() string {
	if a.Whole() {
		return "engine " + a.Name
	}
	return a.Machine + " of engine " + a.Name
}

// Listing is an offer with its price and its observed interruptions.
type Listing struct {
	Offer  Offer  `json:"offer"`
	Quote  Quote  `json:"quote"`
	Hazard Hazard `json:"hazard"`
	// InUse is the number of reserved machines that jobs hold or have requested. Frees lists when those become free,
	// soonest first, in market time, as far as the ends of their jobs are known.
	InUse int         `json:"in_use,omitempty"`
	Frees []time.Time `json:"frees,omitempty"`
	// Cools is the end of the offer's cooling off after a refused launch or a machine that did not come, in market
	// time; zero: it is not cooling off. CoolsFor is the reason.
	Cools    time.Time `json:"cools_until,omitzero"`
	CoolsFor string    `json:"cools_for,omitempty"`
}

// Capacity is how a machine is bought.
type Capacity string

// The kinds of capacity. Spot can be interrupted; on-demand and reserved cannot.
const (
	Spot     Capacity = "spot"
	OnDemand Capacity = "on-demand"
	Reserved Capacity = "reserved"
)

// Offer is something for sale. Its price at a time is a Quote.
type Offer struct {
	ID       string   `json:"id"`
	Provider string   `json:"provider"`
	Region   string   `json:"region"`
	Zone     string   `json:"zone"`
	Machine  string   `json:"machine"` // the provider's name of the machine type
	Capacity Capacity `json:"capacity"`

	CPUs         int    `json:"cpus"`
	Memory       int64  `json:"memory_bytes"`
	Accelerator  string `json:"accelerator,omitempty"` // "": none
	Accelerators int    `json:"accelerators,omitempty"`

	// Speed is the useful work per second relative to the machine for which the job states its work; 0: unknown, and
	// planned as 1.
	Speed float64 `json:"speed,omitempty"`
	// Notice is how long before an interruption the provider announces it, in wall time; 0: no notice.
	Notice time.Duration `json:"notice_ns,omitempty"`
	// MaxLifetime is the time after which the machine is interrupted, in market time; 0: none known.
	MaxLifetime time.Duration `json:"max_lifetime_ns,omitempty"`
	// Boot is the time from launch to a working agent, in market time; 0: unknown.
	Boot time.Duration `json:"boot_ns,omitempty"`

	// Machines is the number of machines, used or not; 0: unknown. For a reservation, see Reserved.
	Machines int `json:"machines,omitempty"`
	// Images reports whether its machines are containers that run the image of a job.
	Images bool `json:"images,omitempty"`

	Currency money.Currency `json:"currency"`
	Billing  Billing        `json:"billing"`
	// Reserved describes the prepaid reservation; zero: none.
	Reserved Reservation `json:"reserved,omitzero"`
}

// Billing is a provider's billing rules beyond plain seconds. Each rule that applies is a line of the bill.
// Durations are market time.
type Billing struct {
	// Minimum is billed even if the machine ran for less; 0: no minimum.
	Minimum time.Duration `json:"minimum_ns,omitempty"`
	// FreeIfInterruptedWithin makes the whole span free if the provider interrupts the machine before it is that
	// old; 0: never.
	FreeIfInterruptedWithin time.Duration `json:"free_if_interrupted_within_ns,omitempty"`
}

// Reservation is capacity that is paid for whether it is used or not: a purchased block, a contract, or one's own
// machine. Its times are market time.
type Reservation struct {
	Count int          `json:"count"` // machines; 0: no reservation
	From  time.Time    `json:"from"`
	Until time.Time    `json:"until"`
	Paid  money.Amount `json:"paid"`           // for all machines and the whole time
	Team  string       `json:"team,omitempty"` // team that bears the cost of unused hours; "": none
	// Before is the cost up to From, under earlier terms if these changed.
	Before money.Amount `json:"before,omitzero"`
	// Marginal is the extra cost per hour of a machine in use, such as power.
	Marginal money.Rate `json:"marginal,omitempty"`
}

// Quote is the price and availability of an offer from At until the next quote.
type Quote struct {
	Offer     string     `json:"offer"`
	Rate      money.Rate `json:"rate"`      // per hour; meaningless unless Priced
	Priced    bool       `json:"priced"`    // false: the price is unknown, which differs from zero
	Available bool       `json:"available"` // a launch would be granted now
	At        time.Time  `json:"at"`        // market time
	// Untried means that no one has probed whether a launch would be granted; Available is then meaningless.
	Untried bool   `json:"untried,omitempty"`
	Source  string `json:"source"`
}

// Hazard counts what is known about the lifetime of spot machines.
type Hazard struct {
	Lost   int           `json:"lost"`      // observed interruptions
	Served time.Duration `json:"served_ns"` // observed spot time
}
