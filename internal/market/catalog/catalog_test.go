package catalog_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scrimp/internal/test/must"
	_ "scrimp/internal/test/sameseed"

	"scrimp/internal/lib/figure"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/accelerator"
	"scrimp/internal/market/catalog"
)

// facts is the folder of the sources of the embedded rows.
const facts = "../../../../shared/data/estimate"

func TestBuiltin_FactsHaveSourcesAndPricesArePositive(t *testing.T) {
	c := catalog.Builtin()
	if len(c.Listings) < 150 {
		t.Fatalf("%d listings are embedded", len(c.Listings))
	}
	for _, l := range c.Listings {
		if l.Quote.Source == "" || !l.Quote.Priced || l.Quote.Rate <= 0 || l.Offer.Currency != money.USD {
			t.Errorf("%s: %+v", l.Offer.ID, l.Quote)
		}
		if l.Quote.Available {
			t.Errorf("%s is called available, which no catalogue knows", l.Offer.ID)
		}
	}
	for _, a := range accelerator.Accelerators() {
		if a.Source == "" || a.Memory <= 0 || a.UsableMemory > 0 && a.UsableSource == "" {
			t.Errorf("%s has no source", a.Name)
		}
		if a.UsableMemory > a.Memory*110/100 || a.UsableMemory > 0 && a.UsableMemory < a.Memory*95/100 {
			t.Errorf("%s: %v of %v usable", a.Name, a.UsableMemory, a.Memory)
		}
	}
}

func TestBuiltin_RowsMatchFacts(t *testing.T) {
	if _, err := os.Stat(facts); err != nil {
		t.Skipf("SKIP %s: the facts that the embedded rows are written from are not here", facts)
	}
	dir := t.TempDir()
	for _, name := range []string{"accelerator", "catalog"} {
		must.Do(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	cmd := exec.Command("go", "run", "./hack/catalog", "../shared/data/estimate", dir)
	cmd.Dir = "../../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"accelerator/accelerators.csv", "catalog/listings.csv"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		must.Do(t, err)
		got, err := os.ReadFile(filepath.Join("..", name))
		must.Do(t, err)
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs: go run ./hack/catalog ../shared/data/estimate internal/market", name)
		}
	}
}

func TestFigure_UnknownIsNotZero(t *testing.T) {
	t4, _ := accelerator.Find("t4")
	if v, ok := t4.Dense(accelerator.BF16); ok {
		t.Errorf("a T4 has no bfloat16, and says %v", v)
	}
	if v, ok := t4.Dense(accelerator.FP16); !ok || v != 65 {
		t.Errorf("T4 fp16 = %v, %v", v, ok)
	}
	v5p, _ := accelerator.Find("TPU-v5p")
	if v5p.Link.OK || v5p.Power.OK {
		t.Errorf("TPU-v5p: link %v, power %v", v5p.Link, v5p.Power)
	}
	c := catalog.Builtin()
	for _, l := range c.Listings {
		if l.Offer.Machine == "gpu_8x_v100" {
			if _, ok := l.Spec(); ok {
				t.Errorf("the source does not say which V100, the catalogue says %s", l.Offer.Accelerator)
			}
			if _, ok := l.PerDollar(accelerator.FP16); ok {
				t.Error("a rate of unknown facts")
			}
			if !l.Stale(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 1e6*time.Hour) {
				t.Error("a price without a date is fresh")
			}
		}
	}
}

func TestListing_KnowsInterconnectOfMachineType(t *testing.T) {
	c := catalog.Builtin()
	for _, x := range []struct {
		provider, machine string
		network, link     float64
	}{
		{"aws", "g5.xlarge", 2.5, 0}, {"aws", "p5.48xlarge", 3200, 0}, {"gcp", "a2-highgpu-8g", 100, 0},
		{"azure", "Standard_NC48ads_A100_v4", 40, 300}, {"azure", "Standard_ND96isr_H100_v5", 3200, 0},
	} {
		l, ok := c.Machine(x.provider, x.machine)
		if !ok || l.Network.V != x.network || l.Link.V != x.link {
			t.Errorf("%s: %v Gbit/s, links of %v GB/s", x.machine, l.Network, l.Link)
		}
	}
	// The source's own figure stays.
	shape, _ := c.Machine("gcp", "a2-highgpu-8g")
	shape.Network = figure.Known(7)
	if l := catalog.Sell(shape, "x", "", market.Spot, market.Quote{}, money.USD); l.Network.V != 7 {
		t.Errorf("%v", l.Network)
	}
}

func TestSold_IsNominalMemory(t *testing.T) {
	for machine, want := range map[string]size.Bytes{"p5.48xlarge": 80 * size.GB, "g4dn.xlarge": 16 * size.GB, "p4d.24xlarge": 40 * size.GB} {
		if l, ok := catalog.Builtin().Machine("aws", machine); !ok || l.Sold() != want {
			t.Errorf("%s has accelerators of %s", machine, l.Sold())
		}
	}
}

func TestInferenceOnly_TrainsNothing(t *testing.T) {
	c := catalog.Builtin()
	all, training := c.Match(catalog.Filter{}), c.Match(catalog.Filter{Trains: true})
	for _, l := range training {
		if accelerator.InferenceOnly(l.Offer.Accelerator) {
			t.Errorf("%s trains", l.Offer.ID)
		}
	}
	if n := len(all) - len(training); n < 8 || accelerator.InferenceOnly("Trainium1") || accelerator.InferenceOnly("") {
		t.Errorf("%d machines only serve", n)
	}
	for name, want := range map[string]bool{"T4": false, "V100-SXM2-16GB": false, "A100-SXM-80GB": true, "TPU-v5e": true} {
		a, _ := accelerator.Find(name)
		if _, has := a.Dense(accelerator.BF16); has != want {
			t.Errorf("%s has bfloat16: %v", name, has)
		}
	}
	if a, _ := accelerator.Find("TPU-v5e"); true {
		_, half := a.Dense(accelerator.FP16)
		if v, ok := a.Half(); half || !ok || v != 197 {
			t.Errorf("a TPU has float16: %v; its 16 bit rate is %v", half, v)
		}
	}
}

func TestMatches_SelectsKindsWithAllWords(t *testing.T) {
	for _, c := range []struct {
		query, name string
		want        bool
	}{
		{"H100", "H100-SXM-80GB", true}, {"h100", "H100-NVL-94GB", true}, {"H100", "H200-SXM", false},
		{"A100-80GB", "A100-PCIe-80GB", true}, {"A100-80GB", "A100-SXM-40GB", false}, {"A10", "A10G", false},
		{"A100", "A100-SXM-40GB", true}, {"L4", "L4", true}, {"L4", "l4-part", false}, {"L4-part", "l4-part", true},
		{"NVIDIA A100-SXM4-80GB", "A100-SXM-80GB", true}, {"RTX 4090", "RTX4090", true}, {"Trainium", "Trainium1", true},
		{"L4", "L40S", false}, {"", "L4", false}, {"H100", "", false}, {"TPU-v5e", "TPU-v5p", false},
		{"TPU", "TPU-v5p", true}, {"any", "L4", true}, {"any", "l4-part", false}, {"any", "TPU-v5e", false},
		{"any", "Trainium1", false}, {"any", "Inferentia2", false},
	} {
		if got := accelerator.Matches(c.query, c.name); got != c.want {
			t.Errorf("Matches(%q, %q) = %v", c.query, c.name, got)
		}
	}
	for _, c := range []struct {
		name, machine string
		memory        size.Bytes
		want          string
	}{
		{"H100", "gpu_8x_h100_sxm5", 0, "H100-SXM-80GB"}, {"H100", "gpu_1x_h100_pcie", 0, "H100-PCIe-80GB"},
		{"H100", "box", 0, "H100"},
		{"V100-32GB", "x", 0, "V100-SXM2-32GB"}, {"A100", "a2-highgpu-8g", 40 * size.GiB, "A100"}, {"T4", "x", 0, "T4"},
		{"Gaudi", "x", 0, "Gaudi"},
		{"H200", "x", 0, "H200-SXM"}, {"inferentia", "inf1.xlarge", 0, "inferentia"},
		{"Inferentia", "x", 32 * size.GB, "Inferentia2"},
	} {
		if got := accelerator.Resolve(c.name, c.machine, c.memory); got != c.want {
			t.Errorf("Resolve(%q, %q, %v) = %q, want %q", c.name, c.machine, c.memory, got, c.want)
		}
	}
}

const small = "provider,region,machine,capacity,accelerator,accelerators,cpus,price,currency,at,source\n"

func TestRead_SkipsAndCountsInvalidRows(t *testing.T) {
	for _, c := range []struct{ row, why string }{
		{"aws,us-east-1,m,spot,,,4,-1.00,USD,,s", catalog.Negative},
		{"aws,us-east-1,m,spot,,,4,0,USD,,s", catalog.ZeroPrice},
		{"aws,us-east-1,m,spot,,,4,0.000,USD,,s", catalog.ZeroPrice},
		{"aws,us-east-1,m,spot,,,4,1.2.3,USD,,s", catalog.BadPrice},
		{"aws,us-east-1,m,spot,,,4,NaN,USD,,s", catalog.BadPrice},
		{"aws,us-east-1,m,spot,,,4,99999999999,USD,,s", catalog.BadPrice},
		{"aws,us-east-1,m,spot,,,4,1,XYZ,,s", catalog.BadCurrency},
		{"aws,us-east-1,m,spot,,,4,1,,,s", catalog.BadCurrency},
		{"aws,us-east-1,m,cheap,,,4,1,USD,,s", catalog.BadRow},
		{"aws,,m,spot,,,4,1,USD,,s", catalog.BadRow},
		{"aws,us-east-1,m,spot,,,many,1,USD,,s", catalog.BadRow},
		{"aws,us-east-1,m,spot,,,4,1,USD,yesterday,s", catalog.BadRow},
		{"aws,us-east-1,m,spot,H100,,4,1,USD,,s", catalog.BadRow},
		{"aws,us-east-1,m,spot,,,4,1,USD", catalog.BadRow},
		{"aws,us-east-1,good,spot,,,4,2,USD,,s", catalog.Duplicate},
	} {
		text := small + "aws,us-east-1,good,spot,,,4,1,USD,2026-01-02,s\n" + c.row + "\n"
		got, err := catalog.Read("page", text)
		if err != nil {
			t.Errorf("%s: %v", c.row, err)
			continue
		}
		if len(got.Listings) != 1 || got.Listings[0].Quote.Rate.String() != "1" || len(got.Skipped) != 1 ||
			got.Skipped[0].Why != c.why {
			t.Errorf("%s: %d listings, skipped %+v, want %s", c.row, len(got.Listings), got.Skipped, c.why)
		}
	}
	got, err := catalog.Read("page", small+"aws,us-east-1,m,spot,,,4,,USD,,s\n")
	if err != nil || len(got.Listings) != 1 || got.Listings[0].Quote.Priced {
		t.Errorf("a row without a price: %+v, %v, want it unpriced", got, err)
	}
	for _, text := range []string{"", "provider,region\n", "a,b\n1,2\n", "<html>\n<p>\n"} {
		if got, err := catalog.Read("page", text); err == nil {
			t.Errorf("%q became %+v without an error", text, got)
		}
	}
}

func TestWrite_IsReadBack(t *testing.T) {
	want := catalog.Builtin()
	got, err := catalog.Read("copy", catalog.Write(want.Listings))
	if err != nil || len(got.Skipped) > 0 || len(got.Listings) != len(want.Listings) {
		t.Fatalf("%d of %d, skipped %v, %v", len(got.Listings), len(want.Listings), got.Skipped, err)
	}
	for i := range got.Listings {
		if got.Listings[i] != want.Listings[i] {
			t.Errorf("%+v\nbecame\n%+v", want.Listings[i], got.Listings[i])
		}
	}
}

func one(t *testing.T, price, at string) catalog.Catalog {
	t.Helper()
	c, err := catalog.Read("test", small+"aws,us-east-1,m,spot,,,4,"+price+",USD,"+at+",s\n")
	must.Do(t, err)
	return c
}

func TestWith_NewerPriceWinsInAnyOrder(t *testing.T) {
	for _, c := range []struct{ a, atA, b, atB, want string }{
		{"1", "2026-01-01", "2", "2026-02-01", "2"},
		{"1", "2026-02-01", "2", "2026-01-01", "1"},
		{"1", "2026-01-01", "2", "", "1"},
		{"1", "", "2", "2026-01-01", "2"},
		{"1", "2026-01-01", "", "2026-02-01", "1"},
		{"", "2026-02-01", "2", "2026-01-01", "2"},
	} {
		got := one(t, c.a, c.atA).With(one(t, c.b, c.atB))
		if len(got.Listings) != 1 || got.Listings[0].Quote.Rate.String() != c.want {
			t.Errorf("%+v: %v", c, got.Listings)
		}
	}
}

func TestOverlay_AppliesPricesAndDiscounts(t *testing.T) {
	day := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	c, err := catalog.Builtin().Overlay("prices.csv", `provider,region,machine,capacity,price,currency,discount,accelerator,accelerators,cpus,memory_gib
aws,*,p5.*,on-demand,,,25%,,,,
aws,,p5.48xlarge,,,,0.5,,,,
gcp,us-central1,a3-highgpu-8g,spot,30.5,EUR,,,,,
slurm,cluster,a100-node,reserved,0,,,A100-SXM-80GB,8,64,512
aws,*,no-such,,,,10%,,,,
aws,*,p5.*,,,,125%,,,,
aws,*,p5.*,,1,USD,10%,,,,
aws,*,p5.*,,-3,USD,,,,,
mine,here,box,reserved,0.10,USD,,,,,
`, day)
	must.Do(t, err)
	find := func(id market.OfferID) catalog.Listing {
		for _, l := range c.Listings {
			if l.Offer.ID == id {
				return l
			}
		}
		t.Fatalf("no %s", id)
		return catalog.Listing{}
	}
	// $55.04 less a quarter is $41.28, and half of that is $20.64.
	if l := find("aws/us-east-1/p5.48xlarge/on-demand"); l.Quote.Rate.String() != "20.64" || l.Listed == nil ||
		l.Listed.String() != "55.04" {
		t.Errorf("%+v, listed %v", l.Quote, l.Listed)
	}
	if l := find("gcp/us-central1/a3-highgpu-8g/spot"); l.Quote.Rate.String() != "30.5" || l.Offer.Currency != "EUR" ||
		!l.Quote.At.Equal(day) {
		t.Errorf("%+v", l)
	}
	own := find("slurm/cluster/a100-node/reserved")
	if !own.Quote.Priced || own.Quote.Rate != 0 || own.AcceleratorMemory != 81920*size.MiB || own.Offer.CPUs != 64 {
		t.Errorf("a machine of the user's own: %+v", own)
	}
	var why []string
	for _, s := range c.Skipped {
		why = append(why, fmt.Sprint(s.Row, " ", s.Why))
	}
	want := []string{"6 no_match", "7 bad_price", "8 bad_row", "9 negative", "10 no_machine"}
	if strings.Join(why, ",") != strings.Join(want, ",") {
		t.Errorf("skipped %v, want %v", why, want)
	}
	if _, err := catalog.Builtin().Overlay("x", "a,b\n1,2\n", day); err == nil {
		t.Error("a file without its columns is taken")
	}
}

func TestFilters(t *testing.T) {
	c := catalog.Builtin()
	var f catalog.Filter
	must.Do(t, f.ParseAccelerator("H100:8"))
	f.Memory, f.Regions, f.Capacity = 80*size.GB, []string{"us-*"}, []market.Capacity{market.Spot}
	got := c.Match(f)
	if len(got) != 2 || got[0].Offer.ID != "gcp/us-central1/a3-highgpu-8g/spot" ||
		got[1].Offer.ID != "gcp/us-central1/a3-highgpu-8g/spot/preemptible" {
		t.Errorf("H100:8 spot in us-*: %v", got)
	}
	if got := c.Match(catalog.Filter{Regions: []string{"eu-*"}}); len(got) != 0 {
		t.Errorf("in eu-*: %d", len(got))
	}
	for _, l := range c.Match(catalog.Filter{Accelerator: "none", CPUs: 8}) {
		if l.Offer.Accelerators > 0 || l.Offer.CPUs < 8 {
			t.Errorf("%+v", l.Offer)
		}
	}
	for _, bad := range []string{"", ":8", "H100:", "H100:0", "H100:8..4", "H100:x", "H100:1..2+", "H100:1+..2"} {
		if err := new(catalog.Filter).ParseAccelerator(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if (catalog.Filter{Regions: []string{"eu-[a"}}).Check() == nil {
		t.Error("a malformed pattern is taken")
	}
}

func TestPlain_KeepsValueWithoutExponent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1e12).Draw(t, "n")
		e := rapid.IntRange(-6, 2).Draw(t, "e")
		got, ok := catalog.Plain(fmt.Sprintf("%de%d", n, e))
		if !ok {
			t.Fatalf("%de%d is not a number", n, e)
		}
		want, err := money.Parse(fmt.Sprint(n))
		must.Do(t, err)
		a, err := money.Parse(got)
		if err != nil {
			t.Fatalf("%de%d became %q: %v", n, e, got, err)
		}
		// a × 10^-e = n
		for ; e > 0; e-- {
			sum := money.Amount{}
			for range 10 {
				sum = sum.Add(want)
			}
			want = sum
		}
		for ; e < 0; e++ {
			sum := money.Amount{}
			for range 10 {
				sum = sum.Add(a)
			}
			a = sum
		}
		if a != want {
			t.Fatalf("%q is %v, want %v", got, a, want)
		}
	})
	for _, bad := range []string{"", "e5", "1e", "1e99", "--1", "1,5", "0x10", "Inf"} {
		if got, ok := catalog.Plain(bad); ok {
			t.Errorf("%q became %q", bad, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(small + "aws,us-east-1,m,spot,H100,8,4,1e-3,USD,2026-01-01,s\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := catalog.Read("fuzz", text)
		if err != nil {
			return
		}
		rows, _ := csv.NewReader(strings.NewReader(text)).ReadAll()
		if len(rows) > 0 && len(c.Listings)+len(c.Skipped) != len(rows)-1 {
			t.Errorf("%d rows, %d listings and %d skipped", len(rows)-1, len(c.Listings), len(c.Skipped))
		}
		for _, l := range c.Listings {
			if l.Quote.Rate < 0 || l.Quote.Priced && l.Quote.Rate == 0 {
				t.Errorf("price %v", l.Quote)
			}
		}
	})
}

func ExampleCatalog_Match() {
	f := catalog.Filter{Capacity: []market.Capacity{market.OnDemand}, Providers: []string{"aws"}}
	_ = f.ParseAccelerator("H100:8")
	for _, l := range catalog.Builtin().Match(f) {
		perDollar, _ := l.PerDollar(accelerator.BF16)
		fmt.Printf("%s %s/h on %s, %.0f dense bf16 TFLOP/s for a dollar an hour\n", l.Offer.ID,
			money.Format(l.Quote.Rate.Until(time.Hour), l.Offer.Currency, 2), l.Quote.At.Format(time.DateOnly), perDollar)
	}
	// Output: aws/us-east-1/p5.48xlarge/on-demand $55.04/h on 2026-07-20, 144 dense bf16 TFLOP/s for a dollar an hour
}

func TestTransferRate_IsKnownOrUnknown(t *testing.T) {
	c := catalog.Builtin()
	for _, provider := range []string{"aws", "gcp", "azure"} {
		for _, what := range []string{catalog.StorageMonth, catalog.TransferRegion, catalog.TransferOut} {
			x, ok := c.TransferRate(provider, what)
			if !ok || x.Price <= 0 || x.Source == "" || x.At.IsZero() || x.Currency != "USD" {
				t.Errorf("%s %s: %+v %v", provider, what, x, ok)
			}
		}
	}
	if x, ok := c.TransferRate("slurm", catalog.StorageMonth); ok {
		t.Errorf("nobody knows what a cluster takes, and it is %v", x)
	}
	own, err := c.Overlay("prices.csv",
		"provider,machine,price,currency\naws,storage-gb-month,0.02,USD\naws,storage-gb-month,0.021,USD\nlab,storage-gb-month,0,USD\nlab,transfer-gb-out,-1,USD\nlab,transfer-gb-region,x,USD\n", day)
	must.Do(t, err)
	if x, _ := own.TransferRate("aws", catalog.StorageMonth); x.Price != rate("0.021") || x.Source != "prices.csv" ||
		!x.At.Equal(day) {
		t.Errorf("%+v: the last row of the user counts", x)
	}
	if x, ok := own.TransferRate("lab", catalog.StorageMonth); !ok || x.Price != 0 {
		t.Errorf("%+v %v: it is paid already", x, ok)
	}
	if _, ok := own.TransferRate("lab", catalog.TransferOut); ok || len(own.Skipped) != 3 {
		t.Errorf("a price below zero was taken: %+v", own.Skipped)
	}
	if x, _ := c.TransferRate("aws", catalog.StorageMonth); x.Price != rate("0.023") {
		t.Errorf("the overlay changed what lies below it: %+v", x)
	}
}

func TestContinent_FromRegionName(t *testing.T) {
	for region, want := range map[string]string{
		"us-east-1": "north america", "us-central1": "north america", "northamerica-northeast1": "north america",
		"eastus2": "north america", "eu-west-1": "europe", "europe-west4": "europe", "westeurope": "europe",
		"uksouth":    "europe",
		"ap-south-1": "asia", "asia-east1": "asia", "japaneast": "asia", "brazilsouth": "south america",
		"australiaeast": "australia", "cluster": "", "": "", "service": "",
	} {
		if got := catalog.Continent(region); got != want {
			t.Errorf("%s lies in %q, want %q", region, got, want)
		}
	}
}

// A user's own price holds until it is changed, and becomes stale as late as a prepaid one.
func TestFresh_UsersPricesBecomeStaleLate(t *testing.T) {
	c, err := catalog.Builtin().Overlay("prices.csv",
		"provider,region,machine,capacity,price,currency,discount\naws,*,p5.48xlarge,on-demand,40,USD,\naws,*,p4d.24xlarge,on-demand,,,10%\n", day)
	must.Do(t, err)
	for _, l := range c.Listings {
		if l.Offer.Machine == "p5.48xlarge" && l.Stale(day.AddDate(0, 0, 80), l.Fresh()) {
			t.Errorf("%s: marked after 80 days", l.Offer.ID)
		}
		if l.Offer.Machine == "p5.48xlarge" && !l.Stale(day.AddDate(0, 0, 91), l.Fresh()) ||
			l.Offer.Machine == "p4d.24xlarge" && !l.Stale(day.AddDate(0, 0, 80), l.Fresh()) {
			t.Errorf("%s: not marked", l.Offer.ID)
		}
	}
}

var day = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func rate(s string) money.Rate {
	r, err := money.ParseRate(s)
	if err != nil {
		panic(err)
	}
	return r
}

func TestNearly_NamesEachConditionInTheWay(t *testing.T) {
	c := catalog.Builtin()
	f := catalog.Filter{Accelerator: "H100", Least: 8, Most: 8, Regions: []string{"eu-*"},
		Capacity: []market.Capacity{market.Spot}}
	if n := len(c.Match(f)); n != 0 {
		t.Skipf("SKIP: the embedded catalogue has %d of them now", n)
	}
	near := c.Nearly(f)
	if len(near) != 1 || near[0].Name != "region" || near[0].Listings < 1 {
		t.Errorf("%+v: without the region there are some", near)
	}
	f.Regions, f.MaxRate = nil, 1
	if near := c.Nearly(f); len(near) != 1 || near[0].Name != "max-price" {
		t.Errorf("%+v: at another price there are some", near)
	}
	f.Regions = []string{"eu-*"}
	if near := c.Nearly(f); len(near) != 0 {
		t.Errorf("%+v: two wishes are in the way together", near)
	}
}

func TestOverlay_LastPriceCountsAndOtherIsReported(t *testing.T) {
	c, err := catalog.Builtin().Overlay("prices.csv",
		"provider,region,machine,capacity,price,currency,discount\naws,us-east-1,g5.xlarge,on-demand,0.9,USD,\naws,us-east-1,g5.xlarge,on-demand,0.7,USD,\naws,us-east-1,g5.xlarge,on-demand,,,10%\n", day)
	if err != nil || len(c.Skipped) != 1 || c.Skipped[0].Why != catalog.Duplicate || c.Skipped[0].Row != 2 ||
		!strings.Contains(c.Skipped[0].Detail, "line 3") {
		t.Fatal(c.Skipped, err)
	}
	for _, l := range c.Listings {
		if l.Offer.Machine == "g5.xlarge" && l.Offer.Capacity == market.OnDemand && l.Quote.Rate.Float() != 0.63 {
			t.Errorf("the price is %v, not 0.7 less a tenth", l.Quote.Rate)
		}
	}
	if _, err := catalog.Builtin().Overlay("prices.csv", "", day); err == nil ||
		!strings.Contains(err.Error(), "its first line names the columns") {
		t.Error(err)
	}
}

func TestStale_FuturePriceIsStale(t *testing.T) {
	for at, want := range map[time.Duration]bool{-time.Hour: false, 23 * time.Hour: false, 48 * time.Hour: true,
		9000 * time.Hour: true} {
		l := catalog.Listing{Quote: market.Quote{Priced: true, At: day.Add(at)}}
		if got := l.Stale(day, 7*24*time.Hour); got != want {
			t.Errorf("a price of %v from now is marked: %v", at, got)
		}
	}
}

// A filter selects exactly the listings between the lower and the upper end of each count.
func TestFilter_HasUpperBounds(t *testing.T) {
	c := catalog.Builtin()
	for _, f := range []catalog.Filter{{CPUs: 4, MostCPUs: 16}, {MostCPUs: 2}, {RAM: 8 * size.GiB, MostRAM: 32 * size.GiB},
		{CPUs: 8, MostCPUs: 8, MostRAM: 64 * size.GiB}} {
		want := 0
		for _, l := range c.Listings {
			cpus, ram := l.Offer.CPUs, l.Offer.Memory
			if cpus >= f.CPUs && ram >= f.RAM && (f.MostCPUs == 0 || cpus <= f.MostCPUs) && (f.MostRAM == 0 || ram <= f.MostRAM) {
				want++
			}
		}
		got := c.Match(f)
		for _, l := range got {
			if l.Offer.CPUs > f.MostCPUs && f.MostCPUs > 0 || l.Offer.Memory > f.MostRAM && f.MostRAM > 0 {
				t.Errorf("%+v takes %s with %d processors and %v", f, l.Offer.ID, l.Offer.CPUs, l.Offer.Memory)
			}
		}
		if len(got) != want || want == 0 || want == len(c.Listings) {
			t.Errorf("%+v takes %d listings, of which %d are like it", f, len(got), want)
		}
	}
}

// Any selects every GPU, but no other chips and no machine without an accelerator.
func TestMatches_AnySelectsEveryGPU(t *testing.T) {
	for name, want := range map[string]bool{"H100-SXM5-80GB": true, "T4": true, "MI300X": true, "Trainium1": false, "TPU-v5e": false, "Inferentia2": false, "": false} {
		if got := accelerator.Matches(accelerator.AnyKind, name); got != want {
			t.Errorf("any is %q: %v", name, got)
		}
	}
}
