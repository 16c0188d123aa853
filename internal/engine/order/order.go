// Package order holds the part of a request for machines that drivers store themselves because the provider does not:
// the ordered machine and its price.
package order

import (
	"maps"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Order is the part of a driver's record of a request that does not depend on the provider. The driver stores its
// record before it contacts the provider, so that a restarted or another server finds the machines.
type Order struct {
	Key      string            `json:"key"`
	Offer    market.OfferID    `json:"offer"`
	Nodes    int               `json:"nodes"`
	Rate     money.Rate        `json:"rate,omitempty"`
	Priced   bool              `json:"priced,omitempty"`
	Currency money.Currency    `json:"currency"`
	Tags     map[string]string `json:"tags,omitempty"`
}

// Of returns the order of a request at the price of an offer.
func Of(r *engine.Request, o *market.Offer, q *market.Quote) Order {
	return Order{Key: r.Key, Offer: r.Offer, Nodes: r.Machines(), Rate: q.Rate, Priced: q.Priced, Currency: o.Currency,
		Tags: maps.Clone(r.Tags)}
}

// Instance returns a machine of the order that runs since launched.
func (o *Order) Instance(id string, launched time.Time) engine.Instance {
	return engine.Instance{ID: id, Key: o.Key, Offer: o.Offer, State: engine.Running, Launched: launched, Rate: o.Rate,
		Tags: maps.Clone(o.Tags)}
}

// Bill returns the cost of a machine of the order: its seconds at the order's rate. It is empty without a price, since
// an unknown price is not zero.
func (o *Order) Bill(from, to time.Time) []engine.Line {
	if !o.Priced {
		return nil
	}
	return []engine.Line{{From: from, To: to, Amount: o.Rate.Until(to.Sub(from)), Currency: o.Currency}}
}
