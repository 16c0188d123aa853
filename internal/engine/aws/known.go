//go:build !local

package aws

import (
	"sync"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
)

// known is what the catalogue says of AWS' machines, which is read once: the whole of it takes a tenth of a second and
// some dozen megabytes.
var known = sync.OnceValue(func() (k struct {
	accelerators map[string]string // by machine
	onDemand     map[string][]catalog.Listing
}) {
	k.accelerators, k.onDemand = map[string]string{}, map[string][]catalog.Listing{}
	for _, l := range catalog.Builtin().Listings {
		o := l.Offer
		if o.Provider != "aws" || l.Platform != "" {
			continue
		}
		if _, has := k.accelerators[o.Machine]; !has && o.Accelerator != "" {
			k.accelerators[o.Machine] = o.Accelerator
		}
		if l.Quote.Priced && o.Capacity == market.OnDemand && o.Currency == money.USD {
			k.onDemand[o.Region] = append(k.onDemand[o.Region], l)
		}
	}
	return k
})
