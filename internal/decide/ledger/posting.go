// Package ledger records what every billed second cost and who owns it: double entry, append-only, chained by
// hashes.
package ledger

import (
	"maps"
	"time"

	"scrimp/internal/lib/money"
)

// Account is one side of a posting, such as "payable/local" or "cost/compute/useful".
type Account string

// Category is the type of a cost.
type Category string

// Categories of cost.
const (
	Compute  Category = "compute"
	Storage  Category = "storage"
	Transfer Category = "transfer"
	Image    Category = "image"
	Address  Category = "address" // public network address
	Overhead Category = "overhead"
	Fixed    Category = "fixed"
)

// Phase is how certain an amount is.
type Phase string

// A cost is estimated before it is spent, accrued while it runs, and billed when the provider bills it.
const (
	Estimated Phase = "estimated"
	Accrued   Phase = "accrued"
	Billed    Phase = "billed"
)

// Use is what became of paid time.
type Use string

// Paid time is Open until its use is known: a checkpoint makes it useful, an interruption before one makes it lost.
const (
	Open    Use = "open"
	Useful  Use = "useful"
	Lost    Use = "lost"
	StartUp Use = "start-up"
	Idle    Use = "idle"
)

// DefaultTenant is the tenant of an installation with only one. The sender of an event names the tenant in it;
// nothing else assumes a tenant.
const DefaultTenant = "default"

// Owner is who owns the cost of a posting. Empty fields do not apply.
type Owner struct {
	Tenant       string            `json:"tenant"`
	Team         string            `json:"team,omitempty"`
	Project      string            `json:"project,omitempty"`
	Environment  string            `json:"environment,omitempty"`
	ModelVersion string            `json:"model_version,omitempty"`
	Group        string            `json:"group,omitempty"` // group that the job is a member of
	Part         string            `json:"part,omitempty"`  // which member, such as the index in an array
	Job          string            `json:"job,omitempty"`
	Attempt      string            `json:"attempt,omitempty"`
	Task         string            `json:"task,omitempty"`
	Instance     string            `json:"instance,omitempty"`
	Tags         map[string]string `json:"tags,omitempty"`
}

// Labels returns the tags that costs are grouped and limited by: the job's own tags, plus environment and
// model_version.
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

// Labels that are fields of the job file.
const (
	LabelEnvironment  = "environment"
	LabelModelVersion = "model_version"
)

// Posting moves a positive amount from one account to another, so the sum over all accounts is always zero.
// Postings never change: another posting corrects a mistake.
type Posting struct {
	Event    uint64         `json:"event"` // event that caused it
	Line     int            `json:"line"`  // from 0 within the event
	At       time.Time      `json:"at"`    // market time
	Amount   money.Amount   `json:"amount"`
	Currency money.Currency `json:"currency"`
	From     Account        `json:"from"`
	To       Account        `json:"to"`
	Category Category       `json:"category"`
	Phase    Phase          `json:"phase"`
	Use      Use            `json:"use"`
	Rule     string         `json:"rule,omitempty"` // billing rule of the line; empty for plain seconds

	// What was bought, as on a bill. Empty fields are unknown or do not apply.
	Provider  string    `json:"provider,omitempty"`
	Region    string    `json:"region,omitempty"`
	Zone      string    `json:"zone,omitempty"`
	SKU       string    `json:"sku,omitempty"`       // the offer's machine type, or the provider's own SKU
	Begin     time.Time `json:"begin,omitzero"`      // start of the charge period
	End       time.Time `json:"end,omitzero"`        // end of the charge period, exclusive
	Quantity  Quantity  `json:"quantity,omitzero"`   // used in the period, in Unit
	Unit      Unit      `json:"unit,omitempty"`      // empty if nothing is counted
	Price     Price     `json:"price,omitzero"`      // agreed price per hour; with DataRule: of 1e9 bytes
	ListPrice Price     `json:"list_price,omitzero"` // public on-demand price per hour at that time

	Owner Owner `json:"owner"`
	Prev  Hash  `json:"prev"` // hash of the tenant's previous posting
	Hash  Hash  `json:"hash"`
}
