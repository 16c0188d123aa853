package sim

import (
	"time"

	"scrimp/internal/market"
)

// seller is one of several providers of a world. Each has its own delays and its own sweeps.
type seller struct {
	name  string
	lag   time.Duration // how long its list may omit a running machine
	grant time.Duration // extra time that it takes to grant an on-demand machine
	every time.Duration // between two sweeps
	next  time.Time     // time of the next sweep
	away  time.Time     // until then it does not answer
}

// sellerOf returns the provider of an offer, or nil if the world has only one.
func (w *World) sellerOf(o *market.Offer) *seller {
	for _, s := range w.sellers {
		if s.name == o.Provider {
			return s
		}
	}
	return nil
}

// answers reports whether the offer's provider answers now. If not, do runs as soon as it may.
func (w *World) answers(o *market.Offer, do func()) bool {
	s := w.sellerOf(o)
	if s == nil || !w.now.Before(s.away) {
		return true
	}
	w.at(s.away.Add(time.Second), do)
	return false
}
