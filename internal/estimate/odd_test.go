package estimate

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/runs"
	"scrimp/internal/market/catalog"
	"scrimp/internal/test/lane"
)

// rawTable returns the published measurements unparsed, header first.
func rawTable(t testing.TB) [][]string {
	t.Helper()
	f, err := os.Open(filepath.Join(folder, "measured_calibrate.csv"))
	if err != nil {
		missing(t, err)
	}
	defer f.Close()
	recs, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return recs
}

// reread parses a changed table.
func reread(t testing.TB, recs [][]string) []runs.Row {
	t.Helper()
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	if err := w.WriteAll(recs); err != nil {
		t.Fatal(err)
	}
	rows, err := runs.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func changed(recs [][]string, change func(line, col int, cell string) string) [][]string {
	out := make([][]string, len(recs))
	for i, rec := range recs {
		out[i] = make([]string, len(rec))
		for j, c := range rec {
			if out[i][j] = c; i > 0 {
				out[i][j] = change(i, j, c)
			}
		}
	}
	return out
}

// sane fails if an answer cannot be written and read.
func sane(t testing.TB, what string, r runs.Row, a Answer) {
	t.Helper()
	if _, err := json.Marshal(a); err != nil {
		t.Fatalf("%s, row %s: %v", what, r.ID, err)
	}
	if a.Provenance == "" {
		t.Fatalf("%s, row %s: no provenance", what, r.ID)
	}
	for name, v := range map[string]*Range{"throughput": a.Throughput, "hours": a.Hours, "memory": a.PeakMemory,
		"cost": a.Cost} {
		if v != nil && !v.sound() {
			t.Fatalf("%s, row %s: %s is %+v", what, r.ID, name, *v)
		}
	}
}

// Spellings of names and numbers do not change how a table is read, and every row gets an answer whatever its cells
// contain.
func TestEstimate_AnswersOddRows(t *testing.T) {
	recs := rawTable(t)
	e := New(hardware.Catalogued(), hardware.NewListed(catalog.Builtin()), reread(t, recs))
	others := lane.Pick(7, 3)
	for i := 1; i < len(recs); i++ { // a sample, for speed
		if recs = append(recs[:i], recs[min(i+others, len(recs)):]...); i >= len(recs) {
			break
		}
	}
	plain := reread(t, recs)
	was := map[string]Answer{}
	for _, r := range plain {
		was[r.ID] = e.Estimate(r.Question())
	}
	col := map[string]int{}
	for i, h := range recs[0] {
		col[h] = i
	}
	ask := func(what string, recs [][]string) (share, same float64) {
		asked := 0.0
		for i, r := range reread(t, recs) {
			a := e.Estimate(r.Question())
			sane(t, what, r, a)
			if p := plain[i]; p.Scored() && runs.Known(p.Throughput) {
				asked++
				if a.Throughput != nil {
					share++
					if math.Abs(was[p.ID].Throughput.Value/a.Throughput.Value-1) < 1e-9 {
						same++
					}
				}
			}
		}
		return share / asked, same / asked
	}
	upper := changed(recs, func(_, _ int, c string) string { return strings.ToUpper(c) })
	for i, h := range recs[0] {
		upper[0][i] = strings.ToUpper(h)
	}
	for what, table := range map[string][][]string{
		"as it stands":  recs,
		"large letters": upper,
		"small letters": changed(recs, func(_, _ int, c string) string { return strings.ToLower(c) }),
		"white space":   changed(recs, func(_, _ int, c string) string { return " " + c + "\t" }),
		"other units": changed(recs, func(_, j int, c string) string {
			if j == col["throughput_unit"] {
				return strings.NewReplacer("images/s", "img/sec", "tokens/s", "tok/sec", "sequences/s", "seq/second").Replace(c)
			}
			return c
		}),
	} {
		if share, same := ask(what, table); share < 0.98 || same < 0.98 {
			t.Errorf("%s: %.1f %% get a value, %.1f %% the same", what, 100*share, 100*same)
		}
	}
	for what, gpu := range map[string]string{"an accelerator of no known name": "Zeta-9000",
		"an accelerator in words": "NVIDIA A100-SXM4-80GB"} {
		share, _ := ask(what, changed(recs, func(_, j int, c string) string {
			if c != "" && j == col["gpu"] {
				return gpu
			}
			if j == col["gpu_spec"] {
				return ""
			}
			return c
		}))
		if share < 0.98 {
			t.Errorf("%s: %.1f %% get a value", what, 100*share)
		}
	}
	// Without a column: only those for the accelerator and the count are required.
	needed := map[string]bool{"n_gpus": true, "gpu": true}
	for h, i := range col {
		share, _ := ask("without "+h, changed(recs, func(_, j int, c string) string {
			if j == i {
				return ""
			}
			return c
		}))
		if share < 0.98 && !needed[h] {
			t.Errorf("without %s: %.1f %% get a value", h, 100*share)
		}
	}
	// Any value in any cell.
	rng := rand.New(rand.NewPCG(1, 2))
	odd := []string{"", "0", "-1", "1e300", "1e-300", "1e17", "NaN", "Inf", "abc", "1,000", "8x", "\x00", "ÿ",
		strings.Repeat("9", 400), "0x10", "TP=0 PP=-3 EP=1e99 VP=nan"}
	for range 12 {
		ask("anything", changed(recs, func(_, j int, c string) string {
			if rng.IntN(12) == 0 {
				return odd[rng.IntN(len(odd))]
			}
			return c
		}))
	}
	// Learning from such a table.
	table := reread(t, changed(recs, func(_, j int, c string) string {
		if rng.IntN(10) == 0 {
			return odd[rng.IntN(len(odd))]
		}
		return c
	}))
	l := New(hardware.Catalogued(), nil, table)
	for _, r := range plain[:50] {
		sane(t, "learned from anything", r, l.Estimate(r.Question()))
	}
}

// Any bytes are read as a table or refused, and the rows of a table are answered.
func FuzzReadRows(f *testing.F) {
	f.Add(
		[]byte(
			"id,family,model,n_gpus,gpu,throughput_unit,precision,parallelism,seq_len,micro_batch\nx,transformer-moe,Mixtral-8x7B,8,H100,tok/s,FP8,TP=8 PP=0 EP=1e9,1e9,1e9\n"))
	f.Add([]byte("id,family,model,n_gpus,machine,rows,trees\nx,gbdt,xgboost,0,r4.8xlarge,1e18,1e9\n"))
	f.Add([]byte("\ufeffID,Family,model,n_gpus\n\"\n"))
	chips, prices := hardware.Catalogued(), hardware.NewListed(catalog.Builtin())
	f.Fuzz(func(t *testing.T, table []byte) {
		rows, err := runs.Read(bytes.NewReader(table))
		if err != nil {
			return
		}
		rows = rows[:min(len(rows), 20)]
		e := New(chips, prices, rows)
		for _, r := range rows {
			sane(t, "fuzzed", r, e.Estimate(r.Question()))
		}
	})
}
