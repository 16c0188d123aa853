package local

import (
	"scrimp/internal/engine"
	"scrimp/internal/market"
)

// SocketName is the name of the daemon's socket in the folder of a market.
const SocketName = "market.sock"

// Refusal is the daemon's response to a request that it refuses.
type Refusal struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// Kinds maps the names of errors on the socket to the errors.
var Kinds = map[string]error{"no_capacity": engine.ErrNoCapacity, "price": engine.ErrPrice,
	"not_found": engine.ErrNotFound, "request": engine.ErrRequest}

// Sale is what the daemon sells now, with prices.
type Sale struct {
	Offers []market.Offer `json:"offers"`
	Quotes []market.Quote `json:"quotes"`
}
