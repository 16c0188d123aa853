// Package egress prices the transfer of bytes out of a place, by the published charges of its provider.
package egress

import (
	"math/big"
	"slices"

	"scrimp/internal/lib/money"
	"scrimp/internal/market/catalog"
)

// Origin is where data is stored, with the published prices of a transfer from there. A nil price is unknown, which is
// not zero.
type Origin struct {
	Provider string      `json:"provider,omitempty"` // "" is unknown: then the region alone locates it
	Region   string      `json:"region"`
	Near     *money.Rate `json:"near,omitempty"` // of a gigabyte to another region of the provider on the same continent
	Out      *money.Rate `json:"out,omitempty"`  // of a gigabyte to anywhere else
	// Sellers lists the engines that rent from the provider under another name. Own lists the engines that name their
	// regions themselves, so that an equal name means this region.
	Sellers []string `json:"sellers,omitempty"`
	Own     []string `json:"own,omitempty"`
}

// From returns a place with its provider's charges in dollars: the user's own in the catalogue, or else the built-in
// ones.
func From(c catalog.Catalog, provider, region string) Origin {
	fare := func(what string) *money.Rate {
		x, ok := c.TransferRate(provider, what)
		if !ok || x.Currency != money.USD {
			return nil
		}
		return new(x.Price)
	}
	return Origin{Provider: provider, Region: region, Near: fare(catalog.TransferRegion), Out: fare(catalog.TransferOut)}
}

// Fare returns the price of the transfer of a gigabyte to a provider's region. It is zero within the region, and false
// where it is unknown.
func (o Origin) Fare(provider, region string) (money.Rate, bool) {
	same := provider == o.Provider || slices.Contains(o.Sellers, provider)
	if region == o.Region && (same || o.Provider == "" || slices.Contains(o.Own, provider)) {
		return 0, true
	}
	fare := o.Out
	if same && o.Provider != "" {
		fare = nil
		if c := catalog.Continent(o.Region); c != "" && c == catalog.Continent(region) {
			fare = o.Near
		}
	}
	if fare == nil {
		return 0, false
	}
	return *fare, true
}

// Cost returns what the transfer of bytes costs at a price of a gigabyte of 1e9 bytes, cut off below 1e-12.
func Cost(bytes int64, gigabyte money.Rate) money.Amount {
	n := new(big.Int).Mul(big.NewInt(bytes), big.NewInt(int64(gigabyte)))
	a, _ := money.FromBig(n.Quo(n, big.NewInt(1e9))) // two int64 by 1e9 are below 2^97
	return a
}
