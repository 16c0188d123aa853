package replay

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"scrimp/internal/test/lane"
)

// shared returns the folder of measured tables, which are not part of the repository.
func shared(t testing.TB) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "..", "..", "shared", "data", "search")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		t.Skip("the measured tables are not there: they lie outside of the repository, in ../shared/data/search")
	}
	return dir
}

// load reads a table from a folder.
func load(t testing.TB, dir string) *Table {
	t.Helper()
	var files [3]io.Reader
	for i, name := range []string{"space.json", "configs.csv", "curves.csv"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[i] = bytes.NewReader(text)
	}
	table, err := Read(filepath.Base(dir), files[0], files[1], files[2])
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func goOn() error { return nil }

// Searchers of other projects were replayed on these tables. The figures of five are known for each seed.
func TestSearchers_AgreeWithTheProtocol(t *testing.T) {
	dir := shared(t)
	f, err := os.Open(filepath.Join(dir, "expected.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]*Table{}
	seen := map[string]int{}
	for _, row := range rows[1:] {
		name, by := row[0], row[1]
		if tables[name] == nil {
			tables[name] = load(t, filepath.Join(dir, name))
		}
		seed, _ := strconv.ParseUint(row[2], 10, 64)
		got, err := Simulate(tables[name], by, seed, End{}, goOn)
		if err != nil {
			t.Fatal(err)
		}
		seen[by]++
		for i, v := range []float64{got.R10, got.R25, got.R50, got.R100, got.AUC, got.To1} {
			want, _ := strconv.ParseFloat(row[3+i], 64)
			if math.Abs(v-want) > 1e-5 {
				t.Errorf("%s, %s, seed %d: %s is %.6g, want %.6g", name, by, seed, rows[0][3+i], v, want)
			}
		}
		over, _ := strconv.ParseFloat(row[10], 64)
		if math.Abs(got.Overshoot-over) > 1e-5 || strconv.Itoa(got.Trials) != row[11] || strconv.Itoa(got.Switches) != row[12] {
			t.Errorf("%s, %s, seed %d: overshoot %.6g, %d trials, %d switches, want %v", name, by, seed, got.Overshoot, got.Trials,
				got.Switches, row[10:])
		}
	}
	for _, by := range []string{"random", "median-stop", "asha-stop", "asha-promo", "hyperband-async"} {
		if seen[by] != 4*30 {
			t.Errorf("%s was compared %d times, want 120", by, seen[by])
		}
	}
}

// The default searcher reaches the protocol's figures on the measured tables, and stops near the best moment where a
// point of r is worth ten times the budget. With few seeds the bounds are the same; the mean of all is far below them.
func TestDefault_ReachesTheProtocolsFigures(t *testing.T) {
	dir := shared(t)
	var sum Result
	regret, n := 0.0, 0.0
	for _, name := range []string{"digits-mlp", "patch-mlp", "code-lm", "rnn-text-a"} {
		table := load(t, filepath.Join(dir, name))
		own, asha := 0.0, 0.0
		for seed := range uint64(lane.Pick(2, 30)) {
			got, err := Simulate(table, "default", seed, End{PointUSD: 10 * table.BudgetSeconds * table.PriceUSD / 3600}, goOn)
			if err != nil {
				t.Fatal(err)
			}
			other, err := Simulate(table, "asha-stop", seed, End{}, goOn)
			if err != nil {
				t.Fatal(err)
			}
			own, asha, n = own+got.AUC, asha+other.AUC, n+1
			sum.R10, sum.R25, sum.R50 = sum.R10+got.R10, sum.R25+got.R25, sum.R50+got.R50
			sum.R100, sum.AUC, regret = sum.R100+got.R100, sum.AUC+got.AUC, regret+got.Regret
			if got.Overshoot > 0.001 {
				t.Errorf("%s, seed %d: it spends %.2f %% beyond its budget", name, seed, 100*got.Overshoot)
			}
		}
		if own > 1.05*asha {
			t.Errorf("%s: the AUC is %.3f of asha-stop's", name, own/asha)
		}
	}
	for _, f := range []struct {
		name       string
		mean, most float64
	}{{"r10", sum.R10 / n, 0.60}, {"r25", sum.R25 / n, 0.35}, {"r50", sum.R50 / n, 0.16}, {"r100", sum.R100 / n, 0.10},
		{"auc", sum.AUC / n, 0.27}, {"stop_regret", regret / n, 0.06}} {
		if t.Logf("%s is %.4f", f.name, f.mean); f.mean > f.most {
			t.Errorf("%s is %.4f, and at most %.2f is allowed", f.name, f.mean, f.most)
		}
	}
}
