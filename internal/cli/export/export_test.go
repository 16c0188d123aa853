package export

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/focus"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

// rows returns n rows of FOCUS with empty values, text, and numbers of every size.
func rows(n int) string {
	var b strings.Builder
	w, out := focus.NewWriter(focus.V14), csv.NewWriter(&b)
	_ = out.Write(w.Header())
	begin := time.Date(2026, 10, 30, 22, 0, 0, 0, time.UTC)
	for i := range n {
		rate := money.Rate(1 + int64(i)*7_777_777_777_777)
		c := charge.Charge{Begin: begin, End: begin.Add(time.Hour), Timed: true, Time: time.Hour, Price: ledger.PriceOf(rate, true),
			Amount: rate.Until(time.Hour), Currency: "USD", Category: ledger.Compute, Use: ledger.Useful, Phase: ledger.Accrued,
			Owner: ledger.Owner{Job: fmt.Sprint("j", i, "\n東京")}}
		if i%3 == 0 {
			c.Amount, c.Corrects = c.Amount.Neg(), true
		}
		_ = out.Write(w.Row(nil, c))
	}
	out.Flush()
	return b.String()
}

// runs runs scrimp export against a server with the given answer, and returns its output.
func runs(t *testing.T, answer http.HandlerFunc, args ...string) (out string, err error) {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/server") {
			_, _ = io.WriteString(w, "{}")
			return
		}
		answer(w, r)
	}))
	defer site.Close()
	var printed bytes.Buffer
	a := &app{&command.App{Out: &printed, Err: io.Discard, Now: time.Now}}
	c := &command.Client{Base: site.URL, Client: api.New(site.URL, "", site.Client())}
	f := &flags{}
	cmd := a.focusCmd()
	must.Do(t, cmd.ParseFlags(args))
	f.to, _ = cmd.Flags().GetString("output")
	f.force, _ = cmd.Flags().GetBool("force")
	var columns []column
	for _, k := range focus.Columns(focus.V14) {
		columns = append(columns, column{k.Name, k.Kind, k.Null})
	}
	err = a.fetch(t.Context(), c, f, "/v1/export/focus", columns)
	return printed.String(), err
}

func whole(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func left(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	must.Do(t, err)
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// Each format has every row with every value, exactly.
func TestExport_EachFormatHasEveryRow(t *testing.T) {
	text := rows(300)
	dir := t.TempDir()
	for _, name := range []string{"a.csv", "a.csv.gz"} {
		path := filepath.Join(dir, name)
		if out, err := runs(t, whole(text), "-o", path); err != nil || !strings.HasPrefix(out, "Wrote "+path) {
			t.Fatal(out, err)
		}
		b, err := os.ReadFile(path)
		must.Do(t, err)
		switch name {
		case "a.csv":
			if string(b) != text {
				t.Error("the file is not what was sent")
			}
		case "a.csv.gz":
			z, err := gzip.NewReader(bytes.NewReader(b))
			must.Do(t, err)
			if got, err := io.ReadAll(z); err != nil || string(got) != text {
				t.Error(err, "the file is not what was sent")
			}
		}
	}
	if got := left(t, dir); len(got) != 2 {
		t.Errorf("there are %v", got)
	}
}

// A truncated answer, a problem and an unknown format leave no file and keep an existing one.
func TestExport_LeavesNoHalfFile(t *testing.T) { leavesNoHalfFile(t, "a.csv", "a.csv.gz") }

func leavesNoHalfFile(t *testing.T, names ...string) {
	t.Helper()
	text := rows(50)
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		_, _ = io.WriteString(w, text[:len(text)/2])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	problem := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(404)
		_, _ = io.WriteString(w, `{"title":"there are no costs in that span","status":404,"fix":"give another"}`)
	}
	for _, name := range names {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		for says, answer := range map[string]http.HandlerFunc{"run it again": cut, "give another": problem} {
			if _, err := runs(t, answer, "-o", path); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want %q", name, err, says)
			}
			if got := left(t, dir); len(got) > 0 {
				t.Errorf("%s: %v is left", name, got)
			}
		}
		must.Do(t, os.WriteFile(path, []byte("mine"), 0o600))
		if _, err := runs(t, whole(text), "-o", path); err == nil || !strings.Contains(err.Error(), "--force replaces it") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := runs(t, cut, "-o", path, "--force"); err == nil {
			t.Errorf("%s: half of it was kept", name)
		}
		if b, _ := os.ReadFile(path); string(b) != "mine" {
			t.Errorf("%s was replaced", name)
		}
		if _, err := runs(t, whole(text), "-o", path, "--force"); err != nil {
			t.Error(err)
		}
		if b, _ := os.ReadFile(path); string(b) == "mine" || len(left(t, dir)) != 1 {
			t.Errorf("%s was not replaced, or there is more: %v", name, left(t, dir))
		}
	}
}

// A file that appears during the export is not replaced.
func TestExport_KeepsFileCreatedMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	text := rows(3)
	_, err := runs(t, func(w http.ResponseWriter, _ *http.Request) {
		if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, text)
	}, "-o", path)
	if b, _ := os.ReadFile(path); err == nil || string(b) != "mine" {
		t.Errorf("%v, %q", err, b)
	}
}

func TestExport_NamesTheFix(t *testing.T) {
	dir := t.TempDir()
	for _, c := range [][2]string{{"", "name the file"}, {"a.xlsx", "end its name with .csv, .csv.gz or .parquet"}, {dir + "/zz/b.csv", "there is no folder " + dir + "/zz: make it first"}} {
		if _, err := runs(t, whole(rows(1)), "-o", c[0]); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v", c[0], err)
		}
	}
	must.Do(t, os.Mkdir(filepath.Join(dir, "b.csv"), 0o700))
	if _, err := runs(t, whole(rows(1)), "-o", filepath.Join(dir, "b.csv"), "--force"); err == nil || !strings.Contains(err.Error(), "it is a folder") {
		t.Error(err)
	}
	link := filepath.Join(dir, "l.csv")
	must.Do(t, os.Symlink(filepath.Join(dir, "nothing"), link))
	asked := false
	if _, err := runs(t, func(http.ResponseWriter, *http.Request) { asked = true }, "-o", link); err == nil || asked ||
		err.Error() != "write "+link+": there is one: --force replaces it, or name another file" {
		t.Error(err, asked)
	}
}

// A given version must be valid.
func TestFocus_RefusesAnEmptyVersion(t *testing.T) {
	if _, err := versionOf(""); err == nil || !strings.Contains(err.Error(), "--version") {
		t.Error(err)
	}
}

// The sheet has every offer, its price if known, and the on-demand price as the list price.
func TestPrices_UnknownIsEmpty(t *testing.T) {
	offer := func(capacity api.Capacity, rate money.Rate, priced bool) api.Listing {
		return api.Listing{Offer: api.Offer{ID: "x/" + string(capacity), Provider: "x", Region: "r", Zone: "z", Machine: "m", Capacity: capacity,
			Currency: "USD", Accelerator: "=H100"}, Quote: api.Quote{Rate: rate, Priced: priced}}
	}
	b, err := io.ReadAll(sheetOf(api.Market{Offers: []api.Listing{offer(api.Spot, 5e11, true), offer(api.OnDemand, 3e12, true), offer(api.Reserved, 0, false)}}))
	must.Do(t, err)
	want := "x/r/m/spot,m,x,r,z,Dynamic,Hours,USD,0.5,3.0,x/spot,spot,accelerator-=H100,,,,,\n" +
		"x/r/m/on-demand,m,x,r,z,Standard,Hours,USD,3.0,3.0,x/on-demand,on-demand,accelerator-=H100,,,,,\n" +
		"x/r/m/reserved,m,x,r,z,Committed,Hours,USD,,3.0,x/reserved,reserved,accelerator-=H100,,,,,\n"
	if _, got, _ := strings.Cut(string(b), "\n"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// The sheet uses the same price IDs as the rows of FOCUS, whatever the names.
func TestPrices_JoinRowsOfFOCUS(t *testing.T) {
	for _, name := range []string{"a", "007", "1e5", "-r", "=cmd()", "mar-1", "null"} {
		b, err := io.ReadAll(sheetOf(api.Market{Offers: []api.Listing{{Offer: api.Offer{ID: name, Provider: name, Region: name, Zone: name, Machine: name,
			Capacity: api.Spot, Currency: "USD"}}}}))
		must.Do(t, err)
		lines, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
		must.Do(t, err)
		w := focus.NewWriter(focus.V14)
		row := w.Row(nil, charge.Charge{Begin: time.Unix(0, 0), End: time.Unix(3600, 0), Currency: "USD", Category: ledger.Compute, Rule: "minimum",
			Use: ledger.Idle, Amount: money.Picos(5), Provider: name, Region: name, Zone: name, SKU: name, Source: charge.Source{Capacity: "spot"}})
		for i, column := range w.Header() {
			if at := slices.Index(lines[0], column); at >= 0 && strings.HasSuffix(column, "Id") || column == "AvailabilityZone" || column == "ServiceProviderName" {
				if row[i] != lines[1][at] {
					t.Errorf("%s of %q is %q in the sheet and %q in the costs", column, name, lines[1][at], row[i])
				}
			}
		}
	}
}
