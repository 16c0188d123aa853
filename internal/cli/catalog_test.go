package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/must"
)

// call runs the program in this process on a data folder.
func call(t *testing.T, dir string, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = Main(append([]string{"--data", dir}, args...), strings.NewReader(""), &o, &e)
	return o.String(), e.String(), code
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	must.Do(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must.Do(t, os.WriteFile(file, []byte(text), 0o644))
	return file
}

func TestOffers_FilterAndFailWithoutMatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, errs, code := call(t, dir, "offers", "--gpu", "H100:8", "--on-demand", "--region", "us-*", "--json")
	if code != 0 || errs != "" {
		t.Fatalf("%d %s", code, errs)
	}
	n := 0
	for line := range strings.Lines(out) {
		var o struct {
			Accelerator  string
			Accelerators int
			Capacity     string
			Region       string
			Price        *string
			Stale        *bool
			Source       string `json:"price_source"`
		}
		must.Do(t, json.Unmarshal([]byte(line), &o))
		if !strings.HasPrefix(o.Accelerator, "H100") || o.Accelerators != 8 || o.Capacity != "on-demand" || !strings.HasPrefix(o.Region, "us-") || o.Price == nil || o.Stale == nil || o.Source == "" {
			t.Errorf("%s", line)
		}
		n++
	}
	if n < 2 {
		t.Errorf("%d offers of eight H100", n)
	}
	if out, _, code := call(t, dir, "offers", "--gpu", "H100:7"); code != 2 || !strings.Contains(out, "No matching offers") {
		t.Errorf("seven: %d %s", code, out)
	}
	for _, bad := range [][]string{
		{"--gpu", "H100:0"}, {"--gpu", ":8"}, {"--min-memory", "80"}, {"--min-memory", "-80GB"}, {"--region", "[eu"}, {"--max-price", "-1"}, {"--max-price", "0"}, {"--max-age", "0h"}, {"--max-age", "soon"}, {"--sort", "colour"}, {"--limit", "-1"}, {"--cpus", "-1"}, {"--ram", "x"},
	} {
		if _, errs, code := call(t, dir, append([]string{"offers"}, bad...)...); code != 1 || !strings.Contains(errs, strings.TrimLeft(bad[0], "-")) && !strings.Contains(errs, "pattern") {
			t.Errorf("%v: %d %s", bad, code, errs)
		}
	}
}

func TestCatalog_OverlaysOwnPricesAndReportsErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "prices.csv", "provider,region,machine,capacity,price,currency,discount\naws,*,p5.48xlarge,on-demand,,,50%\naws,*,p5.48xlarge,on-demand,-1,USD,\naws,*,p5.48xlarge,on-demand,1,XYZ,\n")
	out, errs, code := call(t, dir, "offers", "--machine", "p5.48xlarge", "--json")
	if code != 0 || !strings.Contains(out, `"price":"27.52"`) || !strings.Contains(out, `"listed_price":"55.04"`) {
		t.Errorf("%d %s", code, out)
	}
	if !strings.Contains(errs, "1 bad_currency, 1 negative") {
		t.Errorf("said %q", errs)
	}
	out, _, code = call(t, dir, "catalog", "show")
	if code != 0 || !strings.Contains(out, "prices.csv line 3") || !strings.Contains(out, "built in") {
		t.Errorf("%d %s", code, out)
	}
	write(t, dir, "prices.csv", "what,is,this\n1,2,3\n")
	if _, errs, code := call(t, dir, "offers"); code != 1 || !strings.Contains(errs, "prices.csv") {
		t.Errorf("no such columns: %d %s", code, errs)
	}
}

func TestCatalogImport_UpdatesOffersAndRejectsBadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pages := filepath.Join("..", "market", "feed", "testdata")
	if _, errs, code := call(t, dir, "catalog", "import", filepath.Join(pages, "aws-spot.json")); code != 0 {
		t.Fatalf("%d %s", code, errs)
	}
	if _, errs, code := call(t, dir, "catalog", "import", filepath.Join(pages, "aws-advisor.json")); code != 0 {
		t.Fatalf("%d %s", code, errs)
	}
	out, _, code := call(t, dir, "offers", "--provider", "aws", "--spot", "--json")
	if code != 0 || !strings.Contains(out, `"capacity":"spot"`) || !strings.Contains(out, `"interrupted_within_month_high":0.22`) {
		t.Errorf("spot: %d %s", code, out)
	}
	if _, errs, code := call(t, dir, "catalog", "import", "--provider", "lambda", filepath.Join(pages, "skypilot-lambda.csv")); code != 0 {
		t.Fatalf("%d %s", code, errs)
	}
	if _, errs, code := call(t, dir, "catalog", "import", filepath.Join(pages, "gcp-2.json"), filepath.Join(pages, "gcp-1.json")); code != 0 {
		t.Fatalf("%d %s", code, errs)
	}
	kept, err := os.ReadDir(filepath.Join(dir, "catalog"))
	if err != nil || len(kept) != 4 {
		t.Fatalf("%v %v", kept, err)
	}
	for name, text := range map[string]string{"empty.json": "", "other.json": `{"hello":1}`, "cut.json": `{"SpotPriceHistory":[{"Inst`, "changed.json": `{"Items":[{"price":1}]}`} {
		file := write(t, t.TempDir(), name, text)
		if _, errs, code := call(t, dir, "catalog", "import", file); code != 1 || !strings.Contains(errs, name) {
			t.Errorf("%s: %d %s", name, code, errs)
		}
	}
	for _, bad := range [][]string{{"nowhere.json"}, {"--form", "html", filepath.Join(pages, "aws-spot.json")}, {filepath.Join(pages, "skypilot-lambda.csv")}, {"--form", "azure", filepath.Join(pages, "aws-spot.json")}, {"--at", "today", filepath.Join(pages, "aws-spot.json")}, {filepath.Join(pages, "gcp-1.json"), filepath.Join(pages, "aws-spot.json")}} {
		if _, errs, code := call(t, dir, append([]string{"catalog", "import"}, bad...)...); code != 1 {
			t.Errorf("%v: %d %s", bad, code, errs)
		}
	}
	if again, _ := os.ReadDir(filepath.Join(dir, "catalog")); len(again) != 4 {
		t.Errorf("a bad file was kept: %v", again)
	}
}
