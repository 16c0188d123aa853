package estimate

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
)

const folder = "../../../shared/data/estimate"

// published reads the measurements, and skips where they are not there.
func publishedRows(t testing.TB) []Row {
	t.Helper()
	f, err := os.Open(filepath.Join(folder, "measured_calibrate.csv"))
	if err != nil {
		if *show {
			fmt.Fprintln(os.Stdout, "SKIPPED: the published measurements are not here:", err)
		}
		t.Skipf("SKIPPED: the published measurements are not here: %v", err)
	}
	defer f.Close()
	rows, err := ReadRows(f)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func table(t testing.TB, name string) []map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join(folder, name))
	if err != nil {
		t.Skipf("SKIPPED: %s is not here: %v", name, err)
	}
	defer f.Close()
	recs, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]string
	for _, rec := range recs[1:] {
		m := map[string]string{}
		for i, h := range recs[0] {
			m[h] = rec[i]
		}
		out = append(out, m)
	}
	return out
}

func publishedChips(t testing.TB) Chips {
	t.Helper()
	var list []Chip
	for _, m := range table(t, "gpu_specs.csv") {
		n := func(k string) float64 { v, _ := strconv.ParseFloat(m[k], 64); return v }
		list = append(list, Chip{Name: m["accelerator"], Arch: m["arch"], Vendor: m["vendor"], Mem: n("mem_gb"), Band: n("mem_bw_gbps"),
			FP32: n("fp32_tflops"), TF32: n("tf32_dense"), Half: n("bf16_fp16_dense"), FP8: n("fp8_dense"), FP4: n("fp4_dense"),
			Link: n("intra_node_bw_gbps_unidir"), Matmul: n("measured_matmul_bf16_tflops")})
	}
	return NewChips(list)
}

// bench is the scored rows with a throughput.
type bench struct {
	rows   []Row
	points []point
	chips  Chips
}

func newBench(t testing.TB) *bench {
	chips := publishedChips(t)
	n := &names{of: map[string]int32{}}
	b := &bench{chips: chips}
	for _, r := range publishedRows(t) {
		if !r.Scored() {
			continue
		}
		p := describe(r, chips, n)
		if math.IsNaN(p.y) {
			continue
		}
		b.rows, b.points = append(b.rows, r), append(b.points, p)
	}
	return b
}

// asked says whether the row states a throughput, so that it is scored.
func (b *bench) asked(i int) bool { return known(b.rows[i].Throughput) }

func groups(rows []Row, key func(Row) string) [][]int {
	at := map[string]int{}
	var g [][]int
	for i, r := range rows {
		k := key(r)
		j, ok := at[k]
		if !ok {
			j = len(g)
			at[k] = j
			g = append(g, nil)
		}
		g[j] = append(g[j], i)
	}
	return g
}

func stackKey(r Row) string  { return strings.Join([]string{r.Source, r.Task, r.Model, r.GPU}, "|") }
func sourceKey(r Row) string { return r.Source }

// errors is |estimate/measured - 1| in percent.
type score struct{ mape, median, cover, n float64 }

func scoreOf(est, y []float64, keep func(int) bool) score {
	var e []float64
	for i := range est {
		if keep(i) && !math.IsNaN(est[i]) {
			e = append(e, 100*math.Abs(math.Exp(est[i]-y[i])-1))
		}
	}
	return score{mape: meanOf(e), median: quantile(e, 0.5), n: float64(len(e))}
}

func meanOf(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s / float64(len(v))
}

func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := append([]float64(nil), v...)
	sort.Float64s(s)
	p := q * float64(len(s)-1)
	i := int(p)
	if i+1 == len(s) {
		return s[i]
	}
	return s[i] + (p-float64(i))*(s[i+1]-s[i])
}

// baseline is the median utilisation by accelerator and precision of the rows
// that are kept, and of all where there is none.
func (b *bench) baseline(g [][]int) []float64 {
	est := make([]float64, len(b.rows))
	for _, out := range g {
		gone := map[int]bool{}
		for _, i := range out {
			gone[i] = true
		}
		at := map[string][]float64{}
		for i, p := range b.points {
			if !gone[i] {
				// ln of model flops utilisation: the physical base without its roofline.
				u := b.mfu(i) + p.y
				r := b.rows[i]
				for _, k := range []string{r.GPU + "|" + r.Precision, r.GPU, ""} {
					at[k] = append(at[k], u)
				}
			}
		}
		for _, i := range out {
			r := b.rows[i]
			for _, k := range []string{r.GPU + "|" + r.Precision, r.GPU, ""} {
				if v := at[k]; len(v) > 0 {
					est[i] = quantile(v, 0.5) - b.mfu(i)
					break
				}
			}
		}
	}
	return est
}

// mfu is ln of the utilisation that the physical base stands for.
func (b *bench) mfu(i int) float64 {
	p := b.points[i]
	return p.base + p.num[xOps] - p.num[xPeak] - math.Log(1e12)
}

func TestBaselines(t *testing.T) {
	b := newBench(t)
	y := make([]float64, len(b.rows))
	for i := range y {
		y[i] = b.points[i].y
	}
	for _, fam := range []string{"", "transformer", "cnn", "rnn", "gbdt", "recsys"} {
		for name, key := range map[string]func(Row) string{"stack": stackKey, "source": sourceKey} {
			g := groups(b.rows, key)
			est := b.baseline(g)
			keep := func(i int) bool { return b.asked(i) && strings.HasPrefix(b.rows[i].Family, fam) }
			s := scoreOf(est, y, keep)
			p := scoreOf(make([]float64, len(y)), y, keep)
			t.Logf("%-12s %-6s n %3.0f groups %d baseline %.1f / %.1f  physical %.1f / %.1f", fam, name, s.n, len(g), s.mape, s.median, p.mape, p.median)
		}
	}
}
