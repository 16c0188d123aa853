// Package engine defines engines, the sources of machines: each has a name, a Driver and a timing.
// Its Client limits the rate of calls to a driver and retries them.
package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Callers test for these with errors.Is, never by text.
var (
	ErrNoCapacity = errors.New("no capacity") // try another offer now
	ErrQuota      = errors.New("quota")       // tell the user; retrying is useless
	ErrThrottled  = errors.New("throttled")   // retry later
	ErrNotFound   = errors.New("not found")   // it no longer exists; stop asking
	ErrPrice      = errors.New("price")       // the offer costs more than the request allows
	ErrRequest    = errors.New("bad request") // the request is invalid; retrying is useless
	ErrImage      = errors.New("image")       // machines of this offer cannot run the requested image; others may
	ErrPending    = errors.New("pending")     // it waits in the provider's queue: call again with the same key
	ErrUnanswered = errors.New("no answer")   // from a Client: the call may have succeeded; the same key finds out
)

// RefusalError adds the scope of a refusal and the time to wait, if the provider states them.
type RefusalError struct {
	Err   error         // one of the errors above
	Scope string        // "offer", "zone", "pool" or "account"; empty: unknown
	Wait  time.Duration // wall time; 0: unknown
}

func (e *RefusalError) Error() string { return e.Err.Error() }
func (e *RefusalError) Unwrap() error { return e.Err }

// PendingError is ErrPending with the provider's information about the wait.
type PendingError struct {
	Why      string
	Expected time.Time // when the provider expects to grant it; zero: unknown
}

func (e *PendingError) Error() string {
	if e.Expected.IsZero() {
		return "pending: " + e.Why
	}
	return "pending: " + e.Why + "; expected to begin at " + e.Expected.UTC().Format(time.RFC3339)
}

func (e *PendingError) Unwrap() error { return ErrPending }

// Canceller is implemented by drivers whose launches may be pending.
type Canceller interface {
	// Cancel gives up the part of a launch that is not granted yet; granted machines stay. It
	// returns ErrNotFound if nothing is pending: everything was granted, refused or never
	// requested.
	Cancel(ctx context.Context, key string) error
}

// Driver is the interface to one cloud. Keep it small: retries and rate limits, which every cloud
// needs, belong in Client.
type Driver interface {
	// Launch rents all machines of a request together and returns without waiting for them to boot.
	// They differ only in their IDs. If the Key was used before, it returns the machines launched
	// then, in the same order, including those that have ended. A refused launch does not use up
	// its key unless a part was granted. If only a part is granted, Launch returns that part. With
	// ErrPending beside it, the rest waits in the provider's queue, and the next call returns what
	// was granted by then. With a refusal beside it, the rest will not come, and the caller may use
	// or terminate the part. With any other error it returns no machine.
	Launch(context.Context, Request) ([]Instance, error)

	// Terminate ends the rental of an instance. It is idempotent: ErrNotFound means success.
	Terminate(ctx context.Context, id string) error

	// List returns every instance with the server's tag, known to the server or not. It includes
	// ended instances, with their end and bill, for at least an hour of wall time.
	List(context.Context) ([]Instance, error)

	// Offers returns what is for sale now, with prices and availability.
	Offers(context.Context) ([]market.Offer, []market.Quote, error)
}

// Request asks for machines that are rented together.
type Request struct {
	Key     string // idempotency key: the same key rents once
	Nodes   int    // number of machines; 0 means 1
	Offer   market.OfferID
	MaxRate money.Rate        // refuse a higher rate with ErrPrice; 0: no limit
	Image   string            // container image for the machines; empty: the engine's own
	Tags    map[string]string // set on every resource that is created
	// Env is the environment of the agent on the machine: the server's address and the one-time
	// token. It is secret.
	Env map[string]string
}

// Machines returns the number of machines requested.
func (r *Request) Machines() int { return max(1, r.Nodes) }

// NoImage returns ErrRequest if the request names an image. Drivers whose machines are not containers call it.
func (r *Request) NoImage() error {
	if r.Image == "" {
		return nil
	}
	return fmt.Errorf("run image %s: its machines are not containers: %w", r.Image, ErrRequest)
}

// State is the state of an instance at its provider.
type State string

// Running lasts from the start of billing; Ended is final.
const (
	Running State = "running"
	Ended   State = "ended"
)

// Cause is the reason for an instance's end.
type Cause string

// Causes of an instance's end.
const (
	Terminated  Cause = "terminated"  // scrimp terminated it
	Interrupted Cause = "interrupted" // the provider reclaimed it
	Stopped     Cause = "stopped"     // it switched itself off
)

// Instance is a machine that is or was rented.
type Instance struct {
	ID       string         `json:"id"`
	Key      string         `json:"key"`
	Offer    market.OfferID `json:"offer"`
	State    State          `json:"state"`
	Launched time.Time      `json:"launched"` // market time when billing starts
	Rate     money.Rate     `json:"rate"`     // at launch
	Ended    time.Time      `json:"ended"`    // market time when billing ends; zero while running
	Cause    Cause          `json:"cause,omitempty"`
	// Interrupts is the market time of an announced interruption; zero: none, or the provider
	// announces it only on the machine.
	Interrupts time.Time `json:"interrupts,omitzero"`
	// Notice is the wall time that the provider gave before the interruption; 0: none.
	Notice time.Duration     `json:"notice_ns"`
	Bill   []Line            `json:"bill,omitempty"` // set after the end
	Tags   map[string]string `json:"tags,omitempty"`
}

// Line is one line of a provider's bill for an instance. Credits are negative.
type Line struct {
	Rule string `json:"rule"` // empty for plain seconds, otherwise "minimum", "interrupted-early", …
	// For items other than machine time: the category ("storage", "address"), the provider's name
	// of the item, and its price per hour; 0: unknown.
	Category ledger.Category `json:"category,omitempty"`
	SKU      string          `json:"sku,omitempty"`
	Rate     money.Rate      `json:"rate,omitempty"`
	From     time.Time       `json:"from"`
	To       time.Time       `json:"to"`
	Amount   money.Amount    `json:"amount"`
	Currency money.Currency  `json:"currency"`
}
