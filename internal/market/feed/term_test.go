package feed

import (
	"context"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/feed/intake"
	"scrimp/internal/market/feed/skypilot"
	"scrimp/internal/test/must"
)

// plainHour computes the hourly cost of a term with fractions: all payments over all hours, rounded up.
func plainHour(t *testing.T, upfront, hourly string, hours int64) string {
	t.Helper()
	read := func(s string) *big.Rat {
		r, ok := new(big.Rat).SetString(s)
		if !ok {
			t.Fatal(s)
		}
		return r
	}
	sum := new(big.Rat).Add(read(upfront), new(big.Rat).Mul(read(hourly), new(big.Rat).SetInt64(hours)))
	sum.Quo(sum, new(big.Rat).SetInt64(hours)).Mul(sum, new(big.Rat).SetInt64(1e12))
	n, rest := new(big.Int).QuoRem(sum.Num(), sum.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		n.Add(n, big.NewInt(1))
	}
	text := new(big.Rat).SetFrac(n, big.NewInt(1e12)).FloatString(12)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

func termsOf(t *testing.T, c catalog.Catalog, id market.OfferID, upfront, hourly string, hours int64) {
	t.Helper()
	for _, l := range c.Listings {
		if l.Offer.ID != id {
			continue
		}
		want := plainHour(t, upfront, hourly, hours)
		if l.Upfront.String() != upfront || l.Hourly.String() != hourly || l.Quote.Rate.String() != want ||
			l.Offer.Capacity != market.Reserved {
			t.Errorf("%s: %v up front, %v an hour, %v in all, want %s, %s, %s", id, l.Upfront, l.Hourly, l.Quote.Rate,
				upfront, hourly, want)
		}
		return
	}
	t.Errorf("no %s", id)
}

func TestAWSPrices_HasReservedTermsWithUpfront(t *testing.T) {
	c, err := Import(AWSPrices, known(), page(t, "aws-prices.json"))
	must.Do(t, err)
	const p5 = "aws/us-east-1/p5.48xlarge/reserved/"
	termsOf(t, c, p5+"reserved-1y-no-upfront", "0", "30", 8760)
	termsOf(t, c, p5+"reserved-1y-partial-upfront", "122640", "15", 8760)
	termsOf(t, c, p5+"reserved-3y-all-upfront-convertible", "500000", "0", 26280)
	if len(c.Match(catalog.Filter{Terms: []string{"reserved-*"}})) != 3 {
		t.Errorf("other terms: %v", c.Listings)
	}
}

func TestAWSSavings_SplitsRateIntoUpfrontAndHourly(t *testing.T) {
	c, err := Import(AWSSavings, known(), page(t, "aws-savings.json"))
	must.Do(t, err)
	termsOf(t, c, "aws/us-east-1/p5.48xlarge/reserved/savings-plan-1y-no-upfront", "0", "40.25", 8760)
	// 26,280 h at $25.000000000001.
	termsOf(t, c, "aws/us-west-2/p5.48xlarge/reserved/savings-plan-3y-all-upfront", "657000.00000002628", "0", 26280)
	// Half of $33.333333333333, rounded down to 1e-12, and 8760 h of the other half.
	termsOf(t, c, "aws/us-east-1/p5.48xlarge/reserved/instance-savings-plan-1y-partial-upfront",
		"146000.00000000292", "16.666666666666", 8760)
	if got := intake.Summary(c.Skipped); len(c.Listings) != 3 || got != "1 no_machine, 2 other_use" {
		t.Errorf("%d listings, skipped %s", len(c.Listings), got)
	}
	if form, err := Sniff(page(t, "aws-savings.json")); err != nil || form != AWSSavings {
		t.Errorf("its form is %s, %v", form, err)
	}
	if _, err := Import(AWSSavings, known(), []byte(`{"products":[],"terms":{}}`)); err == nil {
		t.Error("a file without savings plans is one of them")
	}
}

func TestAWSPrices_SageMakerBesideRawMachine(t *testing.T) {
	raw, err := Import(AWSPrices, known(), page(t, "aws-prices.json"))
	must.Do(t, err)
	c, err := Import(AWSPrices, known(), page(t, "sagemaker.json"))
	must.Do(t, err)
	const id = "aws/us-east-1/ml.p5.48xlarge/on-demand@sagemaker"
	if got := price(t, c, id); got != "63.296 USD 2026-11-01" || len(c.Listings) != 1 {
		t.Fatalf("%s, %d listings", got, len(c.Listings))
	}
	all := raw.With(c)
	beside := all.Beside(c.Listings)[0]
	over, ok := beside.MarkUp()
	if !ok || beside.RawPrice == nil || beside.RawPrice.String() != "51" || beside.Offer.Accelerators != 8 {
		t.Errorf("mark-up %v %v of %+v", over, ok, beside)
	}
	if want := 63.296/51 - 1; over < want-1e-12 || over > want+1e-12 {
		t.Errorf("mark-up %v, want %v", over, want)
	}
	kept, err := catalog.Read("kept", catalog.Write(all.Listings))
	if err != nil || len(kept.Skipped) > 0 || len(kept.Listings) != len(all.Listings) {
		t.Errorf("kept %d of %d, %v, %v", len(kept.Listings), len(all.Listings), kept.Skipped, err)
	}
}

func TestAzure_ReservationsAreSumsAndSavingsPlansHourly(t *testing.T) {
	c, err := Import(Azure, known(), page(t, "azure-1.json"))
	must.Do(t, err)
	termsOf(t, c, "azure/eastus/Standard_ND96isr_H100_v5/reserved/reserved-1y-all-upfront", "500000", "0", 8760)
	c, err = Import(Azure, known(), []byte(`{"Items": [{"currencyCode": "USD", "retailPrice": 90.5, "armRegionName": "eastus",
		"meterName": "ND96isr H100 v5", "productName": "Virtual Machines NDsr H100 v5 Series", "serviceName": "Virtual Machines",
		"unitOfMeasure": "1 Hour", "type": "Consumption", "armSkuName": "Standard_ND96isr_H100_v5", "savingsPlan": [
		{"unitPrice": 61.1, "retailPrice": 61.1, "term": "3 Years"}, {"unitPrice": 9, "retailPrice": 9, "term": "9 Years"}]}]}`))
	if err != nil || len(c.Listings) != 2 {
		t.Fatalf("%d listings, %v", len(c.Listings), err)
	}
	termsOf(t, c, "azure/eastus/Standard_ND96isr_H100_v5/reserved/savings-plan-3y-no-upfront", "0", "61.1", 26280)
}

func TestGCP_CommittedPreemptibleAndVertex(t *testing.T) {
	page := listOf(t,
		unit("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Americas", "GPU", "Preemptible", "5", 0, "h"),
		unit("Spot Preemptible A4 Instance Core running in Americas", "CPU", "Preemptible", "0", 5_000_000, "h"),
		unit("Spot Preemptible A4 Instance Ram running in Americas", "RAM", "Preemptible", "0", 500_000, "GiBy.h"),
		unit("Commitment v1: Nvidia H100 80GB GPU running in Americas for 3 Years", "GPU", "Commit3Yr", "4", 0, "h"),
		unit("Commitment v1: A3 Cpu in Americas for 3 Year", "CPU", "Commit3Yr", "0", 10_000_000, "h"),
		unit("Commitment v1: A3 Ram in Americas for 3 Year", "RAM", "Commit3Yr", "0", 1_000_000, "GiBy.h"),
		unit("Vertex AI: Training/Pipelines on NVIDIA H100 80GB in Iowa", "Training", "OnDemand", "11", 266_033_200, "h"),
		unit("Vertex AI: Training/Pipelines on A3 Instance Core in Iowa", "Training", "OnDemand", "0", 29_322_700, "h"),
		unit("Vertex AI: Training/Pipelines on A3 Instance RAM in Iowa", "Training", "OnDemand", "0", 2_553_400, "GBy.h"),
		unit("Vertex AI: Training/Pipelines management fee on NVIDIA H100 80GB in Iowa", "Training", "OnDemand", "1", 0, "h"),
	)
	p := intake.Page{Source: "test", At: now, Shapes: catalog.Builtin()}
	p = shaped(p, market.Offer{Machine: "a4-highgpu-8g", Accelerator: "B200-SXM", Accelerators: 8})
	c, err := Import(GCP, p, page)
	must.Do(t, err)
	const a4 = "gcp/us-central1/a4-highgpu-8g/spot"
	for id, want := range map[market.OfferID]string{
		a4:                  "40.1 USD 2026-11-21", // 8·5 + 10·0.005 + 100·0.0005
		a4 + "/preemptible": "40.1 USD 2026-11-21",
		// 8·11.2660332 + 208·0.0293227 + 1872·0.0025534, the built-in price.
		"gcp/us-central1/a3-highgpu-8g/on-demand@vertex": "101.007352 USD 2026-11-21",
	} {
		if got := price(t, c, id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	// 8·4 + 208·0.01 + 1872·0.001
	termsOf(t, c, "gcp/us-central1/a3-highgpu-8g/reserved/committed-3y", "0", "35.952", 26280)
	for _, l := range c.Listings {
		if want := map[catalog.Term]time.Duration{catalog.Preemptible: 24 * time.Hour}[l.Term]; l.Offer.MaxLifetime != want {
			t.Errorf("%s lives %v, want %v", l.Offer.ID, l.Offer.MaxLifetime, want)
		}
	}
}

func TestSkyPilot_GCPMachinesIncludeAccelerators(t *testing.T) {
	const head = "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice\n"
	p := known()
	p.Provider = "gcp"
	c, err := skypilot.Read(p, head+
		"a2-highgpu-1g,12.0,85.0,,,,us-central1,us-central1-a,0.73948,0.36975\n"+
		"a2-highgpu-1g,12.0,85.0,,,,us-central1,us-central1-f,0.73948,0.36975\n"+
		"a9-highgpu-1g,12.0,85.0,,,,us-central1,us-central1-a,0.7,0.3\n"+
		",,,A100,1.0,A100,us-central1,us-central1-a,2.933908,1.4\n"+
		"n1-standard-4,4,15,,,,us-central1,us-central1-a,0.19,0.06701\n")
	must.Do(t, err)
	for id, want := range map[market.OfferID]string{
		"gcp/us-central1-a/a2-highgpu-1g/on-demand":        "3.673388 USD 2026-11-21",
		"gcp/us-central1-a/a2-highgpu-1g/spot":             "1.76975 USD 2026-11-21",
		"gcp/us-central1-a/a2-highgpu-1g/spot/preemptible": "1.76975 USD 2026-11-21",
		"gcp/us-central1-a/n1-standard-4/on-demand":        "0.19 USD 2026-11-21",
		"gcp/us-central1-f/a2-highgpu-1g/on-demand":        "none",
		"gcp/us-central1-a/A100/on-demand":                 "none",
	} {
		if got := price(t, c, id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if got := intake.Summary(c.Skipped); got != "1 no_machine, 1 no_price" {
		t.Errorf("skipped %s", got)
	}
}

func TestUpdate_FetchesTermsAndPlatforms(t *testing.T) {
	w := serve(t, func(_ *web, rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/sage/us-east-1/index.json":
			_, _ = rw.Write(page(t, "sagemaker.json"))
		case "/plans/region_index.json":
			_, _ = rw.Write([]byte(`{"regions": [{"regionCode": "eu-west-1", "versionUrl": "/plans/no"},
				{"regionCode": "us-east-1", "versionUrl": "/plans/v1/us-east-1/index.json"}]}`))
		case "/plans/v1/us-east-1/index.json":
			_, _ = rw.Write(page(t, "aws-savings.json"))
		case "/elsewhere/region_index.json":
			_, _ = rw.Write([]byte(`{"regions": [{"regionCode": "us-east-1", "versionUrl": "https://other.example/x"}]}`))
		default:
			http.NotFound(rw, r)
		}
	})
	u := w.updater()
	u.Endpoints.SageMaker, u.Endpoints.Savings = w.URL+"/sage", w.URL+"/plans/region_index.json"
	for source, n := range map[string]int{"sagemaker": 1, "aws-savings": 3} {
		if c, err := u.Update(context.Background(), source); err != nil || len(c.Listings) != n {
			t.Errorf("%s: %d listings, %v", source, len(c.Listings), err)
		}
	}
	u.Endpoints.Savings = w.URL + "/elsewhere/region_index.json"
	if _, err := u.Update(context.Background(), "aws-savings"); err == nil {
		t.Error("a file at another host is fetched")
	}
}
