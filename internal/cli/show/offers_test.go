package show_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/listing"
	"scrimp/internal/decide/policy"
	"scrimp/internal/market"
	"scrimp/internal/market/accelerator"
	"scrimp/internal/market/catalog"
	"scrimp/internal/test/golden"
	"scrimp/internal/test/must"
)

// listings has one of each kind: dated and undated, spot with a risk, in another currency, without a price, a user's
// own machine, and a part of an accelerator.
const listings = `provider,region,zone,machine,capacity,accelerator,accelerators,accelerator_memory_gb,cpus,memory_gib,disk_gb,network_gbps,price,currency,at,source,risk_low,risk_high
aws,us-east-1,,p5.48xlarge,on-demand,H100-SXM-80GB,8,,192,2048,30400,3200,55.04,USD,2026-02-27,price list of 2026-02-27,,
aws,us-east-1,us-east-1a,p5.48xlarge,spot,H100-SXM-80GB,8,,192,2048,30400,3200,19.2512,USD,2026-03-01T11:40:00Z,"spot prices, DescribeSpotPriceHistory",0.05,0.1
gcp,europe-west4,,a3-highgpu-8g,spot,H100-SXM-80GB,8,,208,1872,,,30.1,EUR,2026-02-28,billing catalogue,,
azure,eastus,,Standard_ND96isr_H100_v5,on-demand,H100-SXM-80GB,8,,96,1900,,,98.32,USD,2025-11-01,retail prices,,
lambda,us-west-3,,gpu_8x_h100_sxm5,on-demand,H100-SXM-80GB,8,,208,1800,,,23.92,USD,,a table without a date,,
newcloud,north-1,,h100x8,spot,H100-SXM-80GB,8,,,,,,,USD,,,,
aws,us-east-1,,g6f.large,on-demand,L4-part,1,3,2,8,,,0.202,USD,2026-02-27,price list of 2026-02-27,,
aws,us-east-1,,t3.medium,on-demand,,,,2,4,,,0.0416,USD,2026-02-27,price list of 2026-02-27,,
`

const own = `provider,region,machine,capacity,price,currency,discount,accelerator,accelerators,cpus,memory_gib,at
aws,*,p5*,on-demand,,,25%,,,,,
slurm,cluster,h100-node,reserved,9.60,USD,,H100-SXM-80GB,8,128,1024,
`

// seen is a server's observation of the spot offer.
var seen = map[market.OfferID]policy.Hazard{"aws/us-east-1a/p5.48xlarge/spot": {Lost: 3, Served: 40 * time.Hour}}

func offers(t *testing.T) catalog.Catalog {
	t.Helper()
	c, err := catalog.Read("test", listings)
	if err != nil || len(c.Skipped) > 0 {
		t.Fatal(err, c.Skipped)
	}
	if c, err = c.Overlay("prices.csv", own, now.Add(-24*time.Hour)); err != nil || len(c.Skipped) > 0 {
		t.Fatal(err, c.Skipped)
	}
	return c
}

func kinds(query string) []accelerator.Accelerator {
	return slices.DeleteFunc(slices.Clone(accelerator.Accelerators()), func(a accelerator.Accelerator) bool { return !accelerator.Matches(query, a.Name) })
}

func offerPages(t *testing.T, p show.Place) map[string]string {
	list := offers(t).Listings
	must.Do(t, listing.SortOffers(list, "price"))
	return map[string]string{
		"offers": listing.Offers(list, seen, nil, 0, listing.Limits{}, now, p), "offers-few": listing.Offers(list, seen, nil, 3, listing.Limits{Age: 24 * time.Hour}, now, p),
		"offers-gpu": listing.Offers(list[:4], seen, kinds("H100"), 0, listing.Limits{}, now, p), "offers-none": listing.Offers(nil, nil, kinds("MI300X"), 0, listing.Limits{}, now, p), "gpus": listing.Kinds(kinds("A100"), p),
	}
}

func TestOffers_FitTerminal(t *testing.T) {
	for width, p := range map[string]show.Place{"80": {Width: 80, Now: now}, "120": {Width: 120, Now: now}, "piped": {}} {
		for name, text := range offerPages(t, p) {
			golden.Check(t, name+"."+width+".txt", text)
			for line := range strings.Lines(text) {
				line = strings.TrimSuffix(line, "\n")
				if n := utf8.RuneCountInString(line); p.Width > 0 && n > p.Width && !strings.Contains(line, "/") || strings.TrimRight(line, " ") != line {
					t.Errorf("%s at %s: %q", name, width, line)
				}
			}
		}
	}
	for _, l := range offers(t).Listings {
		switch {
		case l.Offer.Zone == "us-east-1a":
			golden.JSON(t, "json/offer.json", listing.OfferOf(l, seen[l.Offer.ID], now, listing.Limits{}))
		case l.Offer.Provider == "newcloud":
			golden.JSON(t, "json/offer-unknown.json", listing.OfferOf(l, seen[l.Offer.ID], now, listing.Limits{}))
		}
	}
}

func TestSortOffers_UsesRequestedOrder(t *testing.T) {
	for order, want := range map[string]string{
		"price":     "t3.medium g6f.large h100-node p5.48xlarge/spot gpu_8x_h100_sxm5 p5.48xlarge Standard_ND96isr_H100_v5 a3-highgpu-8g h100x8",
		"value":     "h100-node p5.48xlarge/spot gpu_8x_h100_sxm5 p5.48xlarge Standard_ND96isr_H100_v5 t3.medium g6f.large a3-highgpu-8g h100x8",
		"gpu-price": "g6f.large h100-node p5.48xlarge/spot gpu_8x_h100_sxm5 p5.48xlarge Standard_ND96isr_H100_v5 t3.medium a3-highgpu-8g h100x8",
		"age":       "p5.48xlarge/spot h100-node t3.medium g6f.large p5.48xlarge Standard_ND96isr_H100_v5 gpu_8x_h100_sxm5 a3-highgpu-8g h100x8",
	} {
		list := offers(t).Listings
		must.Do(t, listing.SortOffers(list, order))
		var got []string
		for _, l := range list {
			name := l.Offer.Machine
			if l.Offer.Capacity == market.Spot && name == "p5.48xlarge" {
				name += "/spot"
			}
			got = append(got, name)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("by %s:\n got %s\nwant %s", order, s, want)
		}
	}
	if err := listing.SortOffers(nil, "colour"); err == nil {
		t.Error("colour is an order")
	}
}

func TestOffers_MarkStalePrices(t *testing.T) {
	want := map[string]bool{"price list": false, "spot prices": false, "billing": true, "retail": true, "a table": true, "prices.csv": false}
	for _, l := range offers(t).Listings {
		for source, stale := range want {
			if strings.HasPrefix(l.Quote.Source, source) && l.Stale(now, catalog.Fresh(l.Offer.Capacity)) != stale {
				t.Errorf("%s from %s: stale is not %v", l.Offer.ID, source, stale)
			}
		}
	}
	for _, l := range offers(t).Listings {
		if !listing.OfferOf(l, seen[l.Offer.ID], now, listing.Limits{Age: time.Minute}).Stale {
			t.Errorf("%s is fresh within a minute", l.Offer.ID)
		}
	}
}

func TestNearly_NamesFilterInTheWay(t *testing.T) {
	c := catalog.Builtin()
	want := catalog.Filter{Accelerator: "H100", Least: 8, Most: 8, Regions: []string{"eu-*"}}
	for width, p := range map[string]show.Place{"80": {Width: 80, Now: now}, "120": {Width: 120, Now: now}} {
		golden.Check(t, "offers-nearly."+width+".txt", listing.Nearly(c, want, p))
	}
	want = catalog.Filter{Accelerator: "L4", Least: 1, Capacity: []market.Capacity{market.Reserved}}
	if text := listing.Nearly(c, want, show.Place{}); !strings.HasPrefix(text, "Without --reserved there are ") {
		t.Error(text)
	}
}
