// Package ledger records what every billed second cost and who owns it: double
// entry, append-only, chained by hashes.
package ledger

import (
	"maps"
	"time"

	"scrimp/internal/lib/money"
)

// Account is one side of a posting, such as "payable/local" or "cost/compute/useful".
type Account string

// Category is what the money was for.
type Category string

// The categories of cost.
const (
	Compute  Category = "compute"
	Storage  Category = "storage"
	Transfer Category = "transfer"
	Image    Category = "image"
	Address  Category = "address" // of the public network
	Overhead Category = "overhead"
	Fixed    Category = "fixed"
)

// Phase is how sure an amount is.
type Phase string

// A cost is estimated before it is spent, accrued while it runs, and billed when the provider says so.
const (
	Estimated Phase = "estimated"
	Accrued   Phase = "accrued"
	Billed    Phase = "billed"
)

// Use is what became of the time that was paid for.
type Use string

// Time that is paid for is Open until it is known what became of it: a
// checkpoint makes it useful, an interruption before one makes it lost.
const (
	Open    Use = "open"
	Useful  Use = "useful"
	Lost    Use = "lost"
	StartUp Use = "start-up"
	Idle    Use = "idle"
)

// DefaultTenant is that of an installation which has one. Whoever makes events names the tenant in
// them, and nothing else assumes it.
const DefaultTenant = "default"

// Owner says whose cost a posting is. Empty fields mean that the level does not apply.
type Owner struct {
	Tenant       string            `json:"tenant"`
	Team         string            `json:"team,omitempty"`
	Project      string            `json:"project,omitempty"`
	Environment  string            `json:"environment,omitempty"`
	ModelVersion string            `json:"model_version,omitempty"`
	Group        string            `json:"group,omitempty"` // of which the job is a member
	Part         string            `json:"part,omitempty"`  // which member: the index in an array
	Job          string            `json:"job,omitempty"`
	Attempt      string            `json:"attempt,omitempty"`
	Task         string            `json:"task,omitempty"`
	Instance     string            `json:"instance,omitempty"`
	Tags         map[string]string `json:"tags,omitempty"`
}

// Labels are the tags that costs are grouped and limited by: the job's own, and environment and
// model_version as tags of these names.
func (o *Owner) Labels() map[string]string {
	if o.Environment == "" && o.ModelVersion == "" {
		return o.Tags
	}
	labels := make(map[string]string, len(o.Tags)+2)
	maps.Copy(labels, o.Tags)
	for name, value := range map[string]string{LabelEnvironment: o.Environment, LabelModelVersion: o.ModelVersion} {
		if value != "" {
			labels[name] = value
		}
	}
	return labels
}

// Names of the labels that are fields of the job file.
const (
	LabelEnvironment  = "environment"
	LabelModelVersion = "model_version"
)

// Posting moves a positive amount from one account to another, so every sum
// over all accounts is zero. Postings are never changed: a mistake is corrected by another one.
type Posting struct {
	Event    uint64         `json:"event"` // the event that caused it
	Line     int            `json:"line"`  // counts from 0 within the event
	At       time.Time      `json:"at"`    // market time
	Amount   money.Amount   `json:"amount"`
	Currency money.Currency `json:"currency"`
	From     Account        `json:"from"`
	To       Account        `json:"to"`
	Category Category       `json:"category"`
	Phase    Phase          `json:"phase"`
	Use      Use            `json:"use"`
	Rule     string         `json:"rule,omitempty"` // the billing rule that made the line, "" for plain seconds

	// What was bought, as a bill lists it. Empty fields are not known or do not apply.
	Provider  string    `json:"provider,omitempty"`
	Region    string    `json:"region,omitempty"`
	Zone      string    `json:"zone,omitempty"`
	SKU       string    `json:"sku,omitempty"`       // the offer's machine, or the provider's own SKU
	Begin     time.Time `json:"begin,omitzero"`      // the charge period: from here
	End       time.Time `json:"end,omitzero"`        // until here, which is not in it
	Quantity  Quantity  `json:"quantity,omitzero"`   // used in the period, of Unit
	Unit      Unit      `json:"unit,omitempty"`      // "" where nothing is counted
	Price     Price     `json:"price,omitzero"`      // agreed, of an hour
	ListPrice Price     `json:"list_price,omitzero"` // on-demand and public, of an hour at that time

	Owner Owner `json:"owner"`
	Prev  Hash  `json:"prev"` // hash of the tenant's posting before this one
	Hash  Hash  `json:"hash"`
}
