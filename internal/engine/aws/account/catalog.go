//go:build !local

package account

import (
	"sync"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
)

// Known holds the catalogue's facts about AWS machines. It is read once: reading all of it takes a tenth of a second
// and some dozen megabytes.
var Known = sync.OnceValue(func() (k struct {
	Accelerators map[string]string // by machine
	OnDemand     map[string][]catalog.Listing
}) {
	k.Accelerators, k.OnDemand = map[string]string{}, map[string][]catalog.Listing{}
	for _, l := range catalog.Builtin().Listings {
		o := l.Offer
		if o.Provider != "aws" || l.Platform != "" {
			continue
		}
		if _, has := k.Accelerators[o.Machine]; !has && o.Accelerator != "" {
			k.Accelerators[o.Machine] = o.Accelerator
		}
		if l.Quote.Priced && o.Capacity == market.OnDemand && o.Currency == money.USD {
			k.OnDemand[o.Region] = append(k.OnDemand[o.Region], l)
		}
	}
	return k
})
