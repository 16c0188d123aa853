package feed

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/feed/intake"
	"scrimp/internal/test/must"
)

// unit returns a SKU in the format of services.skus.list.
func unit(description, group, usage, units string, nanos int, measure string) map[string]any {
	return map[string]any{
		"description": description, "category": map[string]any{"resourceFamily": "Compute", "resourceGroup": group,
			"usageType": usage}, "serviceRegions": []string{"us-central1"},
		"pricingInfo": []any{map[string]any{"pricingExpression": map[string]any{"usageUnit": measure,
			"tieredRates": []any{map[string]any{"startUsageAmount": 0,
				"unitPrice": map[string]any{"currencyCode": "USD", "units": units, "nanos": nanos}}}}}},
	}
}

func listOf(t *testing.T, all ...map[string]any) []byte {
	b, err := json.Marshal(map[string]any{"skus": all, "nextPageToken": ""})
	must.Do(t, err)
	return b
}

// shaped adds machine types to the known ones.
func shaped(p intake.Page, machines ...market.Offer) intake.Page {
	for _, o := range machines {
		o.Provider, o.CPUs, o.Memory, o.Currency, o.Region, o.Capacity = "gcp", 10, 100*size.GiB, money.USD,
			"us-central1", market.OnDemand
		p.Shapes.Listings = append(p.Shapes.Listings, catalog.Listing{Offer: o})
	}
	return p
}

// TestGCP_MachinesUseTheirOwnComponents covers the pitfalls of the catalogue: components for reserved and scheduled use, a
// Mega that is sold as Plus beside the plain H100, slices, and spot that is categorized as on-demand.
func TestGCP_MachinesUseTheirOwnComponents(t *testing.T) {
	page := listOf(t,
		unit("Nvidia H100 Mega 80GB GPU attached to DWS Defined Duration VMs running in Americas", "GPU", "OnDemand",
			"4", 400_000_000, "h"),
		unit("Reserved Nvidia H100 80GB Mega GPU in Americas in Calendar Mode", "GPU", "OnDemand", "4", 800_000_000, "h"),
		unit("Nvidia H100 80GB GPU running in Americas", "GPU", "OnDemand", "9", 0, "h"),
		unit("Nvidia H100 80GB Plus GPU running in Americas", "GPU", "OnDemand", "10", 0, "h"),
		unit("A3 Instance Core running in Americas", "CPU", "OnDemand", "0", 10_000_000, "h"),
		unit("A3 Instance Ram running in Americas", "RAM", "OnDemand", "0", 1_000_000, "GiBy.h"),
		unit("A3Plus Instance Core running in Americas", "CPU", "OnDemand", "0", 20_000_000, "h"),
		unit("A3Plus Instance Ram running in Americas", "RAM", "OnDemand", "0", 2_000_000, "GiBy.h"),
		unit("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Americas", "GPU", "OnDemand", "5", 0, "h"),
		unit("A4 Nvidia B200 (1 gpu slice) running in Americas", "GPU", "OnDemand", "16", 0, "h"),
		unit("A4 Instance Core running in Americas", "CPU", "OnDemand", "0", 10_000_000, "h"),
		unit("A4 Instance Ram running in Americas", "RAM", "OnDemand", "0", 1_000_000, "GiBy.h"),
		unit("Spot Preemptible A4 Instance Core running in Americas", "CPU", "Preemptible", "0", 5_000_000, "h"),
		unit("Spot Preemptible A4 Instance Ram running in Americas", "RAM", "Preemptible", "0", 500_000, "GiBy.h"),
	)
	p := shaped(intake.Page{Source: "test", At: now},
		market.Offer{Machine: "a3-megagpu-8g", Accelerator: "H100-SXM-80GB", Accelerators: 8},
		market.Offer{Machine: "a3-highgpu-8g", Accelerator: "H100-SXM-80GB", Accelerators: 8},
		market.Offer{Machine: "a4-highgpu-8g", Accelerator: "B200-SXM", Accelerators: 8})
	c, err := Import(GCP, p, page)
	must.Do(t, err)
	for id, want := range map[market.OfferID]string{
		"gcp/us-central1/a3-highgpu-8g/on-demand": "72.2 USD 2026-11-21", // 8·9 + 10·0.01 + 100·0.001
		"gcp/us-central1/a3-megagpu-8g/on-demand": "80.4 USD 2026-11-21", // 8·10 + 10·0.02 + 100·0.002
		"gcp/us-central1/a4-highgpu-8g/on-demand": "128.2 USD 2026-11-21",
		"gcp/us-central1/a4-highgpu-8g/spot":      "40.1 USD 2026-11-21",
	} {
		if got := price(t, c, id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if len(c.Listings) != 5 { // each spot machine is also preemptible
		t.Errorf("%d listings", len(c.Listings))
	}
}

func FuzzImportPages(f *testing.F) {
	for _, name := range []string{"aws-spot.json", "aws-advisor.json", "azure-1.json", "gcp-2.json",
		"skypilot-lambda.csv"} {
		b, err := readTestdata(name)
		must.Do(f, err)
		f.Add(b)
	}
	f.Add(
		[]byte(
			`{"offerCode":"AmazonEC2","products":{"a":{"productFamily":"Compute Instance","attributes":{"tenancy":"Shared"}}},"terms":{"OnDemand":{"a":{"b":{}}}}}`))
	f.Add([]byte("provider,region,machine,capacity,price,currency\na,b,c,spot,1e-9,USD\n"))
	shapes := catalog.Builtin()
	f.Fuzz(func(t *testing.T, page []byte) {
		for _, form := range Forms() {
			c, err := Import(form, intake.Page{Source: "fuzz", Provider: "x", Shapes: shapes, Spot: &shapes, At: now}, page)
			if err != nil {
				continue
			}
			for _, l := range c.Listings {
				if l.Quote.Priced && l.Quote.Rate <= 0 || l.Offer.Machine == "" || l.Offer.Currency == "" ||
					!strings.Contains(string(l.Offer.ID), l.Offer.Machine) {
					t.Errorf("%s: %+v", form, l)
				}
			}
			again, err := catalog.Read("again", catalog.Write(c.Listings))
			if len(c.Listings) > 0 && (err != nil || len(again.Listings) != len(c.Listings)) {
				t.Errorf("%s: %d listings, %d kept, %v %s", form, len(c.Listings), len(again.Listings), err,
					fmt.Sprint(again.Skipped))
			}
		}
	})
}
