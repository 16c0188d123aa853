package rank

import (
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
)

// place is a machine type where it is sold.
type place struct {
	provider, region, zone, machine string
	currency                        money.Currency
}

func placeOf(o *market.Offer) place {
	return place{o.Provider, o.Region, o.Zone, o.Machine, o.Currency}
}

// sameAsSpot reports whether a spot offer with a fixed lifetime, such as Google Cloud's preemptible machines, is also
// for sale without one for no more.
func (r *ranking) sameAsSpot(l *catalog.Listing) bool {
	if l.Offer.Capacity != market.Spot || l.Offer.MaxLifetime <= 0 || !l.Quote.Priced {
		return false
	}
	rate, ok := r.spot[placeOf(&l.Offer)]
	return ok && rate <= l.Quote.Rate
}
