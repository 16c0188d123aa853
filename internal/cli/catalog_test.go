package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scrimp/internal/feed"
)

// call runs the program in this process on a data folder.
func call(t *testing.T, dir string, args ...string) (out, errs string, code int) {
	t.Helper()
	t.Setenv("GOOGLE_API_KEY", "")
	var o, e bytes.Buffer
	code = Main(append([]string{"--data", dir}, args...), strings.NewReader(""), &o, &e)
	return o.String(), e.String(), code
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestOffersAreFilteredAndNothingIsAnError(t *testing.T) {
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
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(o.Accelerator, "H100") || o.Accelerators != 8 || o.Capacity != "on-demand" || !strings.HasPrefix(o.Region, "us-") || o.Price == nil || o.Stale == nil || o.Source == "" {
			t.Errorf("%s", line)
		}
		n++
	}
	if n < 2 {
		t.Errorf("%d offers of eight H100", n)
	}
	if out, _, code := call(t, dir, "offers", "--gpu", "H100:7"); code != 2 || !strings.Contains(out, "No offer is like that") {
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

func TestOwnPricesAreLaidOverAndTheirMistakesAreSaid(t *testing.T) {
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

func TestAnImportIsSeenInTheOffersAndABadFileKeepsNothing(t *testing.T) {
	dir := t.TempDir()
	pages := filepath.Join("..", "feed", "testdata")
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

// testApp is the program without its flags.
func testApp(dir string) (*app, *bytes.Buffer, *bytes.Buffer) {
	var o, e bytes.Buffer
	return &app{in: strings.NewReader(""), out: &o, err: &e, data: dir, now: time.Now}, &o, &e
}

func TestASourceThatFailsLeavesItsCopyAndTheOthersGoOn(t *testing.T) {
	good := true
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !good && strings.HasPrefix(r.URL.Path, "/azure") {
			_, _ = w.Write([]byte(`{"items":"no longer so"}`))
			return
		}
		name := map[string]string{"/azure": "azure-2.json", "/sky/lambda/vms.csv": "skypilot-lambda.csv"}[r.URL.Path]
		http.ServeFile(w, r, filepath.Join("..", "feed", "testdata", name))
	}))
	defer web.Close()
	dir := t.TempDir()
	write(t, dir, "prices.csv", "provider,region,machine,capacity,price,currency,discount\nazure,*,*,on-demand,,,10%\n")
	update := func(sources ...string) (string, error) {
		a, out, _ := testApp(dir)
		err := a.fetch(context.Background(), sources, func(string) feed.Updater {
			c := feed.Default("test", 1<<20)
			c.Tries = 1
			return feed.Updater{Client: c, Endpoints: feed.Endpoints{Azure: web.URL + "/azure", SkyPilot: web.URL + "/sky"}, Now: time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)}
		})
		return out.String(), err
	}
	if out, err := update("azure", "skypilot/lambda"); err != nil {
		t.Fatal(err, out)
	}
	before, err := os.ReadFile(filepath.Join(dir, "catalog", "azure.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(before), "discount") {
		t.Error("the user's discount is in the copy")
	}
	good = false
	out, err := update("azure", "skypilot/lambda")
	if err == nil || !strings.Contains(err.Error(), "1 of 2") || !strings.Contains(out, "FAILED") || !strings.Contains(out, "skypilot/lambda") {
		t.Errorf("%v\n%s", err, out)
	}
	if after, _ := os.ReadFile(filepath.Join(dir, "catalog", "azure.csv")); !bytes.Equal(before, after) {
		t.Error("the copy has changed")
	}
	write(t, dir, "catalog/azure.csv", "torn")
	if _, errs, code := call(t, dir, "offers"); code != 1 || !strings.Contains(errs, "azure.csv") {
		t.Errorf("torn: %d %s", code, errs)
	}
	good = true
	if out, err := update("azure"); err != nil {
		t.Error(err, out)
	}
	if _, errs, code := call(t, dir, "offers"); code != 0 {
		t.Errorf("mended: %d %s", code, errs)
	}
}
