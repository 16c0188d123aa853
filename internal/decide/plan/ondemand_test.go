package plan

import (
	"slices"
	"testing"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// The on-demand equivalent is the price of a machine that could have done the work: with its accelerator, where the
// job may run, in the way it was done, at that speed. There is none if no machine could.
func TestOnDemand_PricesMachineThatCouldDoTheWork(t *testing.T) {
	sold := func(id, gpu string, c market.Capacity, speed float64, dollars int64) *Listing {
		o := market.Offer{ID: market.OfferID(id), Provider: "p", Region: "r-" + id, Zone: "z-" + id, Capacity: c, CPUs: 8,
			Memory: 1 << 36, Speed: speed, Accelerator: gpu, Currency: money.USD}
		if gpu != "" {
			o.Accelerators = 1
		}
		return &Listing{Offer: o, Quote: market.Quote{Rate: money.Rate(dollars) * 1e12, Priced: true, Available: true}}
	}
	sale := []*Listing{
		sold("cpu", "", market.OnDemand, 1, 1), sold("l4", "L4", market.OnDemand, 2, 8), sold("l4-spot", "L4", market.Spot, 2, 2),
		sold("l4-far", "L4", market.OnDemand, 2, 6), sold("a100", "A100", market.OnDemand, 5, 15),
	}
	gpu := func(name string) Requirements { return Requirements{Accelerator: name, Accelerators: 1} }
	either := Need{Requirements: gpu("L4"), Variants: []Variant{{Name: "large", Requirements: gpu("A100"), Throughput: 2}}}
	near := Need{Requirements: gpu("L4")}
	near.Zones = []string{"r-l4", "r-cpu"}
	spotOnly := Need{Requirements: gpu("L4"), MaxRate: 3e12}
	spotOnly.Capacity = []market.Capacity{market.Spot}
	short := sold("short", "T4", market.OnDemand, 1, 1)
	short.Offer.MaxLifetime = 4 * time.Hour
	sale = append(sale, short)
	for name, c := range map[string]struct {
		need  Need
		ways  []string
		nodes int
		whole bool // the job saves nothing
		offer market.OfferID
		want  int64 // cents, for ten hours of work and one of start-up
	}{
		"no accelerator asked for":            {need: Need{}, offer: "cpu", want: 1100},
		"an accelerator":                      {need: Need{Requirements: gpu("L4")}, offer: "l4-far", want: 3600},
		"its zones":                           {need: near, offer: "l4", want: 4800},
		"spot asked for, and a highest price": {need: spotOnly, offer: "l4-far", want: 3600},
		"either way, as nobody says":          {need: either, offer: "a100", want: 3000},
		"done its own way":                    {need: either, ways: []string{""}, offer: "l4-far", want: 3600},
		"done the other way":                  {need: either, ways: []string{"large"}, offer: "a100", want: 3000},
		"on four machines":                    {need: Need{Requirements: gpu("L4")}, nodes: 4, offer: "l4-far", want: 14400},
		"nothing for sale can do it":          {need: Need{Requirements: gpu("H100")}},
		"four machines of four hours each":    {need: Need{Requirements: gpu("T4")}, offer: "short", want: 1400},
		"not begun anew each four hours":      {need: Need{Requirements: gpu("T4")}, whole: true},
		"that way is not for sale on-demand":  {need: either, ways: []string{"gone"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := Work{Span: 10 * time.Hour, StartUp: time.Hour, Ways: c.ways, Nodes: c.nodes, Currency: money.USD, Unsaving: c.whole}
			got, ok := c.need.OnDemand(w, slices.Values(sale))
			if ok != (c.offer != "") || got.Offer != c.offer || got.Cost != money.FromMicros(c.want*10_000, 0) {
				t.Errorf("%v on %q (%v), not $%.2f on %q", got.Cost, got.Offer, ok, float64(c.want)/100, c.offer)
			}
		})
	}
}
