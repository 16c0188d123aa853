package feed

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/feed/aws"
	"scrimp/internal/market/feed/intake"
	"scrimp/internal/test/must"
)

var now = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

func page(t *testing.T, name string) []byte {
	t.Helper()
	b, err := readTestdata(name)
	must.Do(t, err)
	return b
}

func readTestdata(name string) ([]byte, error) { return os.ReadFile(filepath.Join("testdata", name)) }

func known() intake.Page {
	return intake.Page{Source: "test", Shapes: catalog.Builtin(), At: now, Provider: "lambda"}
}

// price returns an offer's price with currency and day.
func price(t *testing.T, c catalog.Catalog, id market.OfferID) string {
	t.Helper()
	for _, l := range c.Listings {
		if l.Offer.ID == id {
			return fmt.Sprintf("%v %s %s", l.Quote.Rate, l.Offer.Currency, l.Quote.At.Format(time.DateOnly))
		}
	}
	return "none"
}

func TestAWSPrices_KeepsWholeLinuxMachines(t *testing.T) {
	c, err := Import(AWSPrices, known(), page(t, "aws-prices.json"))
	must.Do(t, err)
	if got := price(t, c, "aws/us-east-1/p5.48xlarge/on-demand"); got != "51 USD 2026-11-01" {
		t.Errorf("p5.48xlarge: %s", got)
	}
	if got := price(t, c, "aws/us-east-1/p9.96xlarge/on-demand"); got != "200.5 USD 2026-11-01" {
		t.Errorf("a type that nobody knew: %s", got)
	}
	for _, l := range c.Listings {
		switch l.Offer.Machine {
		case "p5.48xlarge":
			if l.Offer.Accelerator != "H100-SXM-80GB" || l.Offer.Accelerators != 8 {
				t.Errorf("%+v", l.Offer)
			}
		case "p9.96xlarge":
			if l.Offer.Accelerator != "unknown" || l.Offer.Accelerators != 16 || l.Offer.CPUs != 384 || l.Network.OK {
				t.Errorf("%+v, network %v", l.Offer, l.Network)
			}
			if _, ok := l.Spec(); ok {
				t.Error("facts of an accelerator of which the list says no kind")
			}
		default:
			t.Errorf("listed: %s at %v", l.Offer.ID, l.Quote.Rate)
		}
	}
	if got := intake.Summary(c.Skipped); got != "1 bad_currency, 1 no_price, 5 other_use, 1 zero_price" {
		t.Errorf("skipped %s", got)
	}
}

// A price without a usable time is skipped, and the other prices of the file count.
func TestAWSSpot_SkipsPriceWithABadTime(t *testing.T) {
	body := bytes.Replace(page(t, "aws-spot.json"), []byte("2026-11-20T09:30:00+00:00"), []byte("yesterday"), 1)
	c, _, err := aws.ReadSpot(known(), body)
	must.Do(t, err)
	if got := price(t, c, "aws/us-east-1a/p4d.24xlarge/spot"); got != "9.8329 USD 2026-11-19" {
		t.Errorf("us-east-1a: %s", got)
	}
	if got := intake.Summary(c.Skipped); got != "1 bad_row, 1 negative, 1 no_machine, 1 other_use" {
		t.Errorf("skipped %s", got)
	}
}

func TestAWSSpot_KeepsNewestPriceOfZone(t *testing.T) {
	c, next, err := aws.ReadSpot(known(), page(t, "aws-spot.json"))
	must.Do(t, err)
	if got := price(t, c, "aws/us-east-1a/p4d.24xlarge/spot"); got != "10.1 USD 2026-11-20" {
		t.Errorf("us-east-1a: %s", got)
	}
	if got := price(t, c, "aws/us-east-1b/p4d.24xlarge/spot"); got != "8.5 USD 2026-11-20" {
		t.Errorf("us-east-1b: %s", got)
	}
	if got := intake.Summary(c.Skipped); len(c.Listings) != 2 || next != "bmV4dA==" ||
		got != "1 negative, 1 no_machine, 1 other_use" {
		t.Errorf("%d listings, next %q, skipped %s", len(c.Listings), next, got)
	}
	for _, l := range c.Listings {
		if l.Offer.Notice != 2*time.Minute || l.Offer.Billing.FreeIfInterruptedWithin != time.Hour || l.RuleSource == "" {
			t.Errorf("rules of spot at AWS: %+v", l.Offer)
		}
		if l.Risk.Known {
			t.Error("a risk that nobody stated")
		}
	}
	p := known()
	p.Spot = &c
	risky, err := Import(AWSAdvisor, p, page(t, "aws-advisor.json"))
	if err != nil || len(risky.Listings) != 2 {
		t.Fatalf("%d listings with a risk, %v", len(risky.Listings), err)
	}
	if got := c.With(risky).Listings[0].Risk; got != (catalog.Risk{Low: 0.16, High: 0.22, Known: true}) {
		t.Errorf("risk %+v", got)
	}
}

func TestAzure_SpotAndOnDemandOfKnownMachines(t *testing.T) {
	var all catalog.Catalog
	for _, name := range []string{"azure-1.json", "azure-2.json"} {
		c, err := Import(Azure, known(), page(t, name))
		must.Do(t, err)
		all = all.With(c)
	}
	for id, want := range map[market.OfferID]string{
		"azure/eastus/Standard_ND96isr_H100_v5/on-demand": "90.5 USD 2026-11-21",
		"azure/eastus/Standard_ND96isr_H100_v5/spot":      "28 USD 2026-11-21",
		"azure/eastus/Standard_NC4as_T4_v3/on-demand":     "0.526 USD 2026-11-21",
		"azure/eastus/Standard_NC24ads_A100_v4/on-demand": "none",
		"azure/eastus/Standard_NC8as_T4_v3/on-demand":     "none",
	} {
		if got := price(t, all, id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if got := intake.Summary(all.Skipped); got != "1 bad_currency, 1 bad_row, 1 no_machine, 2 other_use, 1 zero_price" {
		t.Errorf("skipped %s", got)
	}
}

// The components are those of the on-demand A2, and their sum is the embedded price: 12 × 0.031611 + 85 × 0.004237 +
// 2.933908 = 3.673385.
func TestGCP_MachineCostsSumOfComponents(t *testing.T) {
	var s skus
	p := known()
	token, err := s.add(p, page(t, "gcp-1.json"))
	if err != nil || token == "" {
		t.Fatal(token, err)
	}
	if token, err = s.add(p, page(t, "gcp-2.json")); err != nil || token != "" {
		t.Fatal(token, err)
	}
	c := s.compose(p)
	for id, want := range map[market.OfferID]string{
		"gcp/us-central1/a2-highgpu-1g/on-demand": "3.673385 USD 2026-11-21",
		"gcp/us-east1/a2-highgpu-8g/on-demand":    "29.38708 USD 2026-11-21",
		"gcp/us-central1/a2-highgpu-1g/spot":      "1.405 USD 2026-11-21",
		"gcp/us-east1/a2-highgpu-1g/spot":         "none", // its accelerator has no price there
		"gcp/us-central1/g2-standard-4/on-demand": "none", // its core has no known currency
		"gcp/us-central1/n1-standard-4/on-demand": "none", // its memory has another unit
		"gcp/us-central1/a2-ultragpu-1g/spot":     "none",
	} {
		if got := price(t, c, id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if got := intake.Summary(c.Skipped); !strings.Contains(got, "1 bad_currency, 1 bad_row") ||
		!strings.Contains(got, "1 other_use, 1 zero_price") {
		t.Errorf("skipped %s", got)
	}
}

func TestSkyPilot_ReadsTable(t *testing.T) {
	c, err := Import(SkyPilot, known(), page(t, "skypilot-lambda.csv"))
	must.Do(t, err)
	for id, want := range map[market.OfferID]string{
		"lambda/us-west-3/gpu_8x_h100_sxm5/on-demand": "31.92 USD 2026-11-21",
		"lambda/us-west-3/gpu_1x_h100_pcie/on-demand": "3.29 USD 2026-11-21",
		"lambda/us-west-3/gpu_1x_h100_pcie/spot":      "2 USD 2026-11-21",
		"lambda/us-east1/tpu-v3-32/spot":              "9.6 USD 2026-11-21",
		"lambda/us-west-3/cpu_4x_general/on-demand":   "0.2 USD 2026-11-21",
		"lambda/us-west-3/gpu_1x_a6000/on-demand":     "none",
	} {
		if got := price(t, c, id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	for _, l := range c.Listings {
		if l.Offer.Machine == "gpu_8x_h100_sxm5" &&
			(l.Offer.Accelerator != "H100-SXM-80GB" || l.AcceleratorMemory.String() != "79.647GiB") {
			t.Errorf("%+v with %v", l.Offer, l.AcceleratorMemory)
		}
		if l.Offer.Machine == "gpu_1x_h100_pcie" && l.Offer.Accelerator != "H100-PCIe-80GB" {
			t.Errorf("%+v", l.Offer)
		}
	}
	if got := intake.Summary(c.Skipped); got != "2 bad_row, 1 duplicate, 1 no_price, 2 zero_price" {
		t.Errorf("skipped %s", got)
	}
	p := known()
	p.Provider = ""
	if _, err := Import(SkyPilot, p, page(t, "skypilot-lambda.csv")); err == nil ||
		!strings.Contains(err.Error(), "--provider") {
		t.Errorf("a table of nobody: %v", err)
	}
}

func TestImport_RefusesPageOfOtherFormat(t *testing.T) {
	for form, pages := range map[Form][]string{
		AWSPrices: {`{}`, `[]`, `<html>`, ``, `{"offerCode":"AmazonS3","products":{},"terms":{"OnDemand":{}}}`,
			`{"offerCode":"AmazonEC2","products":{"a":{"productFamily":"Storage"}},"terms":{"OnDemand":{}}}`,
			`{"offerCode":"AmazonEC2","products":[]}`,
			`{"offerCode":"AmazonEC2","publicationDate":"soon","products":{},"terms":{}}`,
			string(page(t, "aws-prices.json")[:3000])},
		AWSSpot: {`{}`, `[]`, `<html>`, ``, `{"SpotPriceHistory":"none"}`, `{"SpotPrices":[]}`},
		AWSAdvisor: {`{}`, `[]`, ``, `{"ranges":[{"index":0,"max":5}]}`,
			`{"ranges":[{"index":0,"max":0}],"spot_advisor":{"us-east-1":{}}}`},
		Azure: {`{}`, `[]`, `<html>`, ``, `{"items":5}`, `{"Items":[{"sku":"x","price":3}]}`,
			`{"Items":[{"retailPrice":"soon"}]}`},
		GCP: {`{}`, `[]`, `<html>`, ``, `{"skus":{}}`, `{"error":{"code":403}}`},
		SkyPilot: {``, "a,b\n1,2\n", "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region\n",
			"InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region\nx,,,4,16,0.0,us\n"},
		Listings: {``, "a,b\n1,2\n"},
	} {
		for _, p := range pages {
			if c, err := Import(form, known(), []byte(p)); err == nil {
				t.Errorf("%s: %.60q became %d listings", form, p, len(c.Listings))
			}
		}
	}
	if _, err := Import(Azure, known(), []byte(`{}`)); !errors.Is(err, intake.ErrForm) {
		t.Errorf("%v does not say that the form changed", err)
	}
}

func TestSniff_RecognizesFormat(t *testing.T) {
	for name, want := range map[string]Form{
		"aws-prices.json": AWSPrices, "aws-spot.json": AWSSpot, "aws-advisor.json": AWSAdvisor, "azure-1.json": Azure,
		"gcp-1.json": GCP, "skypilot-lambda.csv": SkyPilot,
	} {
		if got, err := Sniff(page(t, name)); err != nil || got != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	if got, err := Sniff([]byte(catalog.Write(catalog.Builtin().Listings))); err != nil || got != Listings {
		t.Errorf("our own listings are %q, %v", got, err)
	}
	for _, p := range []string{"", "  ", "hello", "<html>", "{}"} {
		if got, err := Sniff([]byte(p)); err == nil {
			t.Errorf("%q is %s", p, got)
		}
	}
}

func TestLoad_CombinesCopiesAndUsersPrices(t *testing.T) {
	dir := t.TempDir()
	c, copies, err := Load(dir)
	if err != nil || len(copies) != 1 || len(c.Listings) != len(catalog.Builtin().Managed().Listings) {
		t.Fatalf("%v, %v", copies, err)
	}
	azure, err := Import(Azure, known(), page(t, "azure-1.json"))
	must.Do(t, err)
	must.Do(t, Save(dir, "azure", azure))
	must.Do(t, os.WriteFile(filepath.Join(dir, PricesName),
		[]byte("provider,machine,capacity,discount,price\nazure,*,spot,50%,\n"), 0o600))
	c, copies, err = Load(dir)
	if err != nil || len(copies) != 3 || copies[1].Name != "azure.csv" || copies[1].Rows != 3 || copies[2].Rows != 1 {
		t.Fatalf("%+v, %v", copies, err)
	}
	if got := price(t, c, "azure/eastus/Standard_ND96isr_H100_v5/spot"); got != "14 USD 2026-11-21" {
		t.Errorf("half of 28 is %s", got)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "catalog", "*.tmp")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "catalog", "azure.csv"), []byte("torn"), 0o600))
	if _, _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "azure.csv") {
		t.Errorf("a torn copy: %v", err)
	}
}

func FuzzImport(f *testing.F) {
	for _, name := range []string{"aws-prices.json", "aws-spot.json", "aws-advisor.json", "azure-2.json", "gcp-2.json",
		"skypilot-lambda.csv"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		must.Do(f, err)
		f.Add(b)
	}
	shapes := catalog.Builtin()
	f.Fuzz(func(t *testing.T, b []byte) {
		form, err := Sniff(b)
		if err != nil {
			return
		}
		c, err := Import(form, intake.Page{Source: "fuzz", Provider: "p", Shapes: shapes, At: now}, b)
		if err != nil {
			return
		}
		for _, l := range c.Listings {
			if l.Quote.Priced && l.Quote.Rate <= 0 || form != Listings && !l.Quote.Priced {
				t.Errorf("%s: a price of %v", l.Offer.ID, l.Quote.Rate)
			}
			if _, ok := catalog.ParseCurrency(string(l.Offer.Currency)); !ok {
				t.Errorf("%s: currency %q", l.Offer.ID, l.Offer.Currency)
			}
		}
	})
}
