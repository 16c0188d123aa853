package estimate

import (
	"math"
	"testing"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/market/catalog"
)

// The embedded catalogue agrees with the published tables; otherwise the benchmark and the program would differ.
func TestCatalogued_AgreesWithPublishedTables(t *testing.T) {
	pub, ours := publishedChips(t), hardware.Catalogued()
	for name, c := range pub {
		o := ours[name]
		if o != c {
			t.Errorf("%s: catalogue %+v, published %+v", name, o, c)
		}
	}
	prices, listed := publishedPrices(table(t, "instances.csv")), hardware.NewListed(catalog.Builtin())
	n := 0
	for _, c := range pub {
		for _, count := range []float64{1, 2, 3, 8, 16, 100} {
			p, _, ok := hourly(prices, c.Name, "", count)
			v, source, ok2 := hourly(listed, c.Name, "", count)
			if ok != ok2 || math.Abs(p-v) > 1e-9 {
				t.Errorf("%g %s: catalogue %v %v (%s), published %v %v", count, c.Name, v, ok2, source, p, ok)
			}
			if ok {
				n++
			}
		}
	}
	if n == 0 {
		t.Error("nothing has a price")
	}
}

func TestDates_GivesOldestPrice(t *testing.T) {
	if got := hardware.NewListed(catalog.Builtin()).Dates(); got != "the oldest of 2024-12-23, some of unknown age" {
		t.Error(got)
	}
	if got := hardware.NewListed(catalog.Catalog{}).Dates(); got != "" {
		t.Error(got)
	}
}
