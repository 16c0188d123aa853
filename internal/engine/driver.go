// Package engine is what machines are rented from: engines by name, each a Driver with
// its timing, and a Client that holds calls of it to a rate and asks again.
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

// A caller acts on these with errors.Is, never on the text.
var (
	ErrNoCapacity = errors.New("no capacity") // try another offer, now
	ErrQuota      = errors.New("quota")       // tell the user; trying again is useless
	ErrThrottled  = errors.New("throttled")   // try again, later
	ErrNotFound   = errors.New("not found")   // it is gone; stop asking
	ErrPrice      = errors.New("price")       // the offer costs more than the request allows
	ErrRequest    = errors.New("bad request") // the request makes no sense; trying again is useless
	ErrImage      = errors.New("image")       // machines cannot run the image that the request names; others may
	ErrPending    = errors.New("pending")     // it waits in the provider's queue: ask again with the same key
	ErrUnanswered = errors.New("no answer")   // of a Client: it may have been done; the same key finds out
)

// RefusalError says what a refusal is about and how long to wait, where the provider does.
type RefusalError struct {
	Err   error         // one of those above
	Scope string        // "offer", "zone", "pool" or "account"; "": not said
	Wait  time.Duration // wall time; 0: not said
}

func (e *RefusalError) Error() string { return e.Err.Error() }
func (e *RefusalError) Unwrap() error { return e.Err }

// PendingError is ErrPending with what the provider says of the wait.
type PendingError struct {
	Why      string
	Expected time.Time // when it expects to grant it; zero: it does not say
}

func (e *PendingError) Error() string {
	if e.Expected.IsZero() {
		return "pending: " + e.Why
	}
	return "pending: " + e.Why + "; expected to begin at " + e.Expected.UTC().Format(time.RFC3339)
}

func (e *PendingError) Unwrap() error { return ErrPending }

// Canceller is what a driver also does whose launches may be pending.
type Canceller interface {
	// Cancel gives up what is not granted of a launch: machines that were granted stay.
	// ErrNotFound means that nothing waits: all was granted, refused or never asked for.
	Cancel(ctx context.Context, key string) error
}

// Driver is what one cloud must do. Keep it small: what every cloud needs alike
// (retries, rate limits) belongs to Client.
type Driver interface {
	// Launch rents the machines of a request as one and returns without waiting for them to
	// boot. They differ by their ID only. With a Key that was used before it returns the
	// machines made then, in the same order, also those that have ended since. A key whose
	// launch was refused was not used, unless a part had been granted.
	// Where only a part is granted, it returns that part; with ErrPending beside it the rest
	// waits in the provider's queue. Asked again it returns what was granted by then. With a
	// refusal beside it the rest does not come: the part is the caller's to use or give back.
	// With any other error it returns none.
	Launch(context.Context, Request) ([]Instance, error)

	// Terminate gives an instance back. It is idempotent: ErrNotFound means
	// that the goal is reached.
	Terminate(ctx context.Context, id string) error

	// List returns every instance that carries our tag, known to us or not, and
	// those that ended, with their end and bill, for at least an hour of wall time after it.
	List(context.Context) ([]Instance, error)

	// Offers returns what can be bought now, with prices and availability.
	Offers(context.Context) ([]market.Offer, []market.Quote, error)
}

// Request asks for machines that are rented as one.
type Request struct {
	Key     string // the same key rents once
	Nodes   int    // how many machines; 0 is 1
	Offer   market.OfferID
	MaxRate money.Rate        // refuse with ErrPrice above it; 0 is no limit
	Image   string            // container image that the machines run; "" is the engine's own
	Tags    map[string]string // on every resource that is created
	// Env is given to the agent on the machine: the server's address, the
	// one-time token. It is secret.
	Env map[string]string
}

// Machines is how many a request asks for.
func (r *Request) Machines() int { return max(1, r.Nodes) }

// NoImage is ErrRequest where an image is asked for: what a driver answers whose machines are no containers.
func (r *Request) NoImage() error {
	if r.Image == "" {
		return nil
	}
	return fmt.Errorf("run image %s: its machines are no containers: %w", r.Image, ErrRequest)
}

// State is where an instance stands with its provider.
type State string

// An instance is running from the moment it is billed, and ended once.
const (
	Running State = "running"
	Ended   State = "ended"
)

// Cause is why an instance ended.
type Cause string

// Why an instance ended.
const (
	Terminated  Cause = "terminated"  // we gave it back
	Interrupted Cause = "interrupted" // the provider took it
	Stopped     Cause = "stopped"     // it switched itself off
)

// Instance is a machine that is or was rented.
type Instance struct {
	ID       string         `json:"id"`
	Key      string         `json:"key"`
	Offer    market.OfferID `json:"offer"`
	State    State          `json:"state"`
	Launched time.Time      `json:"launched"` // market time from which it is billed
	Rate     money.Rate     `json:"rate"`     // at launch
	Ended    time.Time      `json:"ended"`    // market time until which it is billed; zero while running
	Cause    Cause          `json:"cause,omitempty"`
	// Interrupts is the market time for which the provider announced that it takes the machine;
	// zero: it has not, or says so on the machine only.
	Interrupts time.Time `json:"interrupts,omitzero"`
	// wall time the provider gave before it reclaimed the machine; 0 is none
	Notice time.Duration     `json:"notice_ns"`
	Bill   []Line            `json:"bill,omitempty"` // once ended
	Tags   map[string]string `json:"tags,omitempty"`
}

// Line is one line of a provider's bill for an instance. Credits are negative.
type Line struct {
	Rule string `json:"rule"` // "" for plain seconds, "minimum", "interrupted-early", …
	// What is bought, where it is no time of the machine itself: its category ("storage", "address"), the provider's
	// name of it, and what an hour of it costs; 0: not known.
	Category ledger.Category `json:"category,omitempty"`
	SKU      string          `json:"sku,omitempty"`
	Rate     money.Rate      `json:"rate,omitempty"`
	From     time.Time       `json:"from"`
	To       time.Time       `json:"to"`
	Amount   money.Amount    `json:"amount"`
	Currency money.Currency  `json:"currency"`
}
