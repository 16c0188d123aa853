package client

import (
	"time"

	"scrimp/money"
)

// MarketClock is the market and how its time runs.
type MarketClock struct {
	Name  string    `json:"name"`
	Speed float64   `json:"speed"` // market seconds a wall second
	Now   time.Time `json:"now"`   // market time
}

// Market is what is for sale.
type Market struct {
	Clock  MarketClock `json:"clock"`
	Offers []Listing   `json:"offers"`
	// Away are the engines that did not answer the last time, and machines of them, with why: what they sell is not
	// known, or old.
	Away []AwayEngine `json:"away,omitempty"`
}

// AwayEngine is an engine that does not answer, or a machine of it.
type AwayEngine struct {
	Name    string `json:"name"`
	Machine string `json:"machine,omitempty"` // the one that does not; "": the engine as a whole
	Error   string `json:"error"`
}

// Whole reports whether the engine as a whole does not answer.
func (a *AwayEngine) Whole() bool { return a.Machine == "" }

// What is what does not answer, in words: "engine hpc", or "gpu2 of engine lab".
func (a *AwayEngine) What() string {
	if a.Whole() {
		return "engine " + a.Name
	}
	return a.Machine + " of engine " + a.Name
}

// Listing is an offer with its price and what was seen of its interruptions.
type Listing struct {
	Offer  Offer  `json:"offer"`
	Quote  Quote  `json:"quote"`
	Hazard Hazard `json:"hazard"`
	// InUse is how many machines of what is reserved jobs have or ask for, and Frees when those come free of
	// whose jobs the end is known, soonest first, in market time.
	InUse int         `json:"in_use,omitempty"`
	Frees []time.Time `json:"frees,omitempty"`
	// Cools is until when nothing is asked for, because a launch was refused or its machine did not come, in market
	// time; zero: it is asked. CoolsFor is what was said of it.
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

// Offer is something for sale. What it costs at a time is a Quote.
type Offer struct {
	ID       string   `json:"id"`
	Provider string   `json:"provider"`
	Region   string   `json:"region"`
	Zone     string   `json:"zone"`
	Machine  string   `json:"machine"` // the provider's name of the machine type
	Capacity Capacity `json:"capacity"`

	CPUs         int    `json:"cpus"`
	Memory       int64  `json:"memory_bytes"`
	Accelerator  string `json:"accelerator,omitempty"` // "" for none
	Accelerators int    `json:"accelerators,omitempty"`

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

// Billing is a provider's rule for what a span costs besides its seconds. Each
// rule that applies is a line of its own on the bill. Spans go by the market's clock.
type Billing struct {
	// Minimum is billed even where the machine ran for less; 0 is no minimum.
	Minimum time.Duration `json:"minimum_ns,omitempty"`
	// FreeIfInterruptedWithin gives the span back where the provider took the
	// machine before it was that old; 0 is never.
	FreeIfInterruptedWithin time.Duration `json:"free_if_interrupted_within_ns,omitempty"`
}

// Reservation is capacity that is paid for whether it is used or not: a block that
// was bought, a contract, a machine of one's own. Its times are market time.
type Reservation struct {
	Count int          `json:"count"` // machines; 0: this is no reservation
	From  time.Time    `json:"from"`
	Until time.Time    `json:"until"`
	Paid  money.Amount `json:"paid"`           // for all of them and the whole time
	Team  string       `json:"team,omitempty"` // whose cost the hours are that nobody uses; "": nobody's
	// Before is what it had cost by From: under other terms, where these changed.
	Before money.Amount `json:"before,omitzero"`
	// Marginal is what an hour of one machine costs beyond what is paid, when it is used: power.
	Marginal money.Rate `json:"marginal,omitempty"`
}

// Quote is the price and availability of an offer from At on, until a later one.
type Quote struct {
	Offer     string     `json:"offer"`
	Rate      money.Rate `json:"rate"`      // of an hour; means nothing unless Priced
	Priced    bool       `json:"priced"`    // false: the price is unknown, which is not zero
	Available bool       `json:"available"` // whether a launch would be granted now
	At        time.Time  `json:"at"`        // market time
	// Untried says that nobody knows whether a launch would be granted: Available
	// means nothing until somebody looks.
	Untried bool   `json:"untried,omitempty"`
	Source  string `json:"source"`
}

// Hazard counts what is known of how long spot machines last.
type Hazard struct {
	Lost   int           `json:"lost"`      // interruptions seen
	Served time.Duration `json:"served_ns"` // spot time seen
}
