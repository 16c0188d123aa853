package catalog

import (
	"math/big"
	"slices"

	"scrimp/internal/lib/money"
)

// Origin is a place that data lie in, with the published fares for carrying them away. A nil fare is unknown, which is
// not zero.
type Origin struct {
	Provider string      `json:"provider,omitempty"` // "" is unknown: then only the region tells where it is
	Region   string      `json:"region"`
	Near     *money.Rate `json:"near,omitempty"` // of a gigabyte to another region of the provider on the same continent
	Out      *money.Rate `json:"out,omitempty"`  // of a gigabyte to anywhere else
	// Sellers lists the engines that rent at the provider under another name, and Own those that name their regions
	// themselves, so that a region of the same name is this one.
	Sellers []string `json:"sellers,omitempty"`
	Own     []string `json:"own,omitempty"`
}

// Origin returns a place with the charges of its provider in dollars: the user's own, or else the built-in ones.
func (c Catalog) Origin(provider, region string) Origin {
	fare := func(what string) *money.Rate {
		x, ok := c.TransferRate(provider, what)
		if !ok || x.Currency != money.USD {
			return nil
		}
		return new(x.Price)
	}
	return Origin{Provider: provider, Region: region, Near: fare(TransferRegion), Out: fare(TransferOut)}
}

// Fare returns the price of carrying a gigabyte to a provider's region. It is zero within the region, and false where
// it is unknown.
func (o Origin) Fare(provider, region string) (money.Rate, bool) {
	same := provider == o.Provider || slices.Contains(o.Sellers, provider)
	if region == o.Region && (same || o.Provider == "" || slices.Contains(o.Own, provider)) {
		return 0, true
	}
	fare := o.Out
	if same && o.Provider != "" {
		fare = nil
		if c := Continent(o.Region); c != "" && c == Continent(region) {
			fare = o.Near
		}
	}
	if fare == nil {
		return 0, false
	}
	return *fare, true
}

// Carriage returns what carrying bytes costs at a price of a gigabyte of 1e9 bytes, cut off below 1e-12.
func Carriage(bytes int64, gigabyte money.Rate) money.Amount {
	n := new(big.Int).Mul(big.NewInt(bytes), big.NewInt(int64(gigabyte)))
	a, _ := money.FromBig(n.Quo(n, big.NewInt(1e9))) // two int64 by 1e9 are below 2^97
	return a
}
