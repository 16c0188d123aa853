package sim

import (
	"time"

	"scrimp/internal/market"
)

// seller is a provider of a world that has several: each behaves in its own way, and is
// swept at its own pace.
type seller struct {
	name  string
	lag   time.Duration // how long its list may lack a machine that runs
	grant time.Duration // how long it takes to grant a machine on-demand, besides what all take
	every time.Duration // between two sweeps
	next  time.Time     // of them
	away  time.Time     // until then it answers nothing
}

// sellerOf is the provider of an offer; nil where there is one only.
func (w *World) sellerOf(o *market.Offer) *seller {
	for _, s := range w.sellers {
		if s.name == o.Provider {
			return s
		}
	}
	return nil
}

// answers reports whether the offer's provider does; else do follows once it may.
func (w *World) answers(o *market.Offer, do func()) bool {
	s := w.sellerOf(o)
	if s == nil || !w.now.Before(s.away) {
		return true
	}
	w.at(s.away.Add(time.Second), do)
	return false
}
