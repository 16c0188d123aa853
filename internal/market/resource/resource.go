// Package resource describes the machines and volumes of a provider's account, whoever made them.
package resource

import (
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
)

// Kind is what a resource is.
type Kind string

// The kinds.
const (
	Machine Kind = "machine"
	Volume  Kind = "volume"
)

// Resource is a machine or a volume.
type Resource struct {
	ID, Type, Region string
	Kind             Kind
	Made             time.Time // zero: unknown
	Tags             map[string]string
	Stopped          bool       // of a machine: it is stopped, and costs nothing besides its volumes
	On               string     // the machine that a volume is attached to; empty: none
	Size             size.Bytes // of a volume
	// Hourly is the price of an hour of a machine that runs, GigabyteMonth that of a GiB of a volume for 30 days.
	// nil: unknown.
	Hourly, GigabyteMonth *money.Rate
	Currency              money.Currency
}
