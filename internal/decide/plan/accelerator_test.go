package plan

import (
	"testing"

	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
)

// Accelerator names match as in the catalogue: a job may use whatever plan --catalog ranks for it.
func TestRequirements_AcceleratorMatchesAsCatalogue(t *testing.T) {
	for _, c := range []struct {
		asks, has string
		fits      bool
	}{
		{"A100", "A100-SXM-80GB", true}, {"A100-80GB", "A100-PCIe-80GB", true}, {"a100", "A100-SXM-40GB", true},
		{"A100-80GB", "A100-SXM-40GB", false}, {"A10", "A10G", false}, {"H100", "H200-SXM", false},
		{"A100-SXM-80GB", "A100-SXM-80GB", true}, {"X1", "x1", true}, {"T4", "", false}, {"L4", "l4-part", false},
	} {
		n := Need{Requirements: Requirements{Accelerator: c.asks, Accelerators: 1}}
		o := market.Offer{Accelerator: c.has, Accelerators: 1}
		if c.has == "" {
			o.Accelerators = 0
		}
		l := Listing{Offer: o, Quote: market.Quote{Priced: true, Rate: 1}}
		if _, ok := n.Fits(&l); ok != c.fits || n.Accelerated(&o) != c.fits {
			t.Errorf("%s on %s: fits %v, sold %v", c.asks, c.has, ok, n.Accelerated(&o))
		}
		f := catalog.Filter{Accelerator: c.asks}
		if got := f.Takes(catalog.Listing{Offer: o}); got != c.fits && c.asks != "X1" {
			t.Errorf("the catalogue says %v of %s for %s", got, c.has, c.asks)
		}
	}
}
