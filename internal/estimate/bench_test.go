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

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/residual"
	"scrimp/internal/estimate/runs"
)

const folder = "../../../shared/data/estimate"

// missing skips the test, with a message if the table was requested.
func missing(t testing.TB, err error) {
	t.Helper()
	if *show {
		fmt.Fprintln(os.Stdout, "SKIPPED: the published measurements are not here:", err)
	}
	t.Skipf("SKIPPED: the published measurements are not here: %v", err)
}

// publishedRows reads the measurements, or skips the test if they are missing.
func publishedRows(t testing.TB) []runs.Row {
	t.Helper()
	f, err := os.Open(filepath.Join(folder, "measured_calibrate.csv"))
	if err != nil {
		missing(t, err)
	}
	defer f.Close()
	rows, err := runs.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func table(t testing.TB, name string) []map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join(folder, name))
	if err != nil {
		missing(t, err)
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

func publishedChips(t testing.TB) hardware.Chips {
	t.Helper()
	var list []hardware.Chip
	for _, m := range table(t, "gpu_specs.csv") {
		n := func(k string) float64 { v, _ := strconv.ParseFloat(m[k], 64); return v }
		list = append(list, hardware.Chip{Name: m["accelerator"], Arch: m["arch"], Vendor: m["vendor"], Mem: n("mem_gb"),
			Band: n("mem_bw_gbps"),
			FP32: n("fp32_tflops"), TF32: n("tf32_dense"), Half: n("bf16_fp16_dense"), FP8: n("fp8_dense"), FP4: n("fp4_dense"),
			Link: n("intra_node_bw_gbps_unidir"), Matmul: n("measured_matmul_bf16_tflops")})
	}
	return hardware.NewChips(list)
}

// bench holds the scored rows with a throughput.
type bench struct {
	rows   []runs.Row
	points []residual.Point
	chips  hardware.Chips
	near   residual.Widths
}

func newBench(t testing.TB) *bench {
	chips := publishedChips(t)
	n := &names{}
	b := &bench{chips: chips}
	for _, r := range publishedRows(t) {
		if !r.Scored() {
			continue
		}
		p := describe(r, chips, n)
		if math.IsNaN(p.Y) {
			continue
		}
		b.rows, b.points = append(b.rows, r), append(b.points, p)
	}
	return b
}

// halves returns half the intervals of standard errors with stacks left out.
func (b *bench) halves(sd []float64) []float64 {
	if b.near == nil {
		b.near = standard().Learn(b.points).Near
	}
	out := make([]float64, len(sd))
	for i := range sd {
		out[i] = math.Max(floor, b.near.Of(b.points[i].Name[cFamily])*sd[i])
	}
	return out
}

// shaded returns the values reported for middles of intervals.
func (b *bench) shaded(middle, half []float64) []float64 {
	out := make([]float64, len(middle))
	for i := range middle {
		out[i] = middle[i] - shade(half[i])
	}
	return out
}

// asked reports whether the row states a throughput, so that it is scored.
func (b *bench) asked(i int) bool { return runs.Known(b.rows[i].Throughput) }

func groups(rows []runs.Row, key func(runs.Row) string) [][]int {
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

func stackKey(r runs.Row) string {
	return strings.Join([]string{r.Source, r.Task, r.Model, r.GPU}, "|")
}
func sourceKey(r runs.Row) string { return r.Source }

// score summarizes |estimate/measured - 1| in percent.
type score struct{ mape, median, n float64 }

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

// baseline predicts the median utilization by accelerator and precision of the kept rows, or of all kept rows if there
// is none.
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
				// ln of the model FLOPs utilization: the physical base without its roofline.
				u := b.mfu(i) + p.Y
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

// mfu returns ln of the utilization behind the physical base.
func (b *bench) mfu(i int) float64 {
	p := b.points[i]
	return p.Base + p.Num[xOps] - p.Num[xPeak] - math.Log(1e12)
}

// profileGroups returns, for each asked row, the given row of its group: the one with the fewest accelerators and equal
// source, model, task, GPU, precision and seq_len.
func profileGroups(rows []runs.Row, seq bool) (given []int, asked [][]int) {
	key := func(r runs.Row) string {
		k := strings.Join([]string{r.Source, r.Model, r.Task, r.GPU, r.Precision}, "|")
		if seq {
			return fmt.Sprint(k, "|", r.N)
		}
		return fmt.Sprint(k, "|", r.Seq)
	}
	for _, g := range groups(rows, key) {
		best := -1
		at := func(i int) float64 {
			if seq {
				return rows[i].Seq
			}
			return rows[i].N
		}
		for _, i := range g {
			if runs.Known(at(i)) && runs.Known(rows[i].Throughput) && (best < 0 || at(i) < at(best)) {
				best = i
			}
		}
		if best < 0 {
			continue
		}
		var ask []int
		for _, i := range g {
			if runs.Known(at(i)) && at(i) > at(best) && runs.Known(rows[i].Throughput) {
				ask = append(ask, i)
			}
		}
		if len(ask) > 0 {
			given, asked = append(given, best), append(asked, ask)
		}
	}
	return given, asked
}

// profileLeft estimates the asked rows from all rows outside their group plus the given row.
func (b *bench) profileLeft(e residual.Examined, seq bool) []float64 {
	_, asked := profileGroups(b.rows, seq)
	m, sd := e.LeftOut(asked)
	return b.shaded(m, b.halves(sd))
}

// profileAlone estimates them from the given row alone.
func (b *bench) profileAlone(k *residual.Kernel, seq bool) []float64 {
	est := make([]float64, len(b.rows))
	for i := range est {
		est[i] = math.NaN()
	}
	given, asked := profileGroups(b.rows, seq)
	for j, g := range given {
		l := k.Learn([]residual.Point{b.points[g]})
		for _, i := range asked[j] {
			g := l.Guess(&b.points[i])
			est[i] = g.Mean - shade(l.Near.Of(b.points[i].Name[cFamily])*g.SD)
		}
	}
	return est
}

func (b *bench) truthY() []float64 {
	y := make([]float64, len(b.rows))
	for i := range y {
		y[i] = b.points[i].Y
	}
	return y
}

func dense(r runs.Row) bool { return r.Family == "transformer-dense" && r.Unit == "tokens/s" }

// linear is the simplest answer to the one-profiled-row question: the given rate per accelerator.
func (b *bench) linear(seq bool) []float64 {
	est := make([]float64, len(b.rows))
	for i := range est {
		est[i] = math.NaN()
	}
	given, asked := profileGroups(b.rows, seq)
	for j, g := range given {
		for _, i := range asked[j] {
			est[i] = b.points[g].Y + b.points[g].Base - b.points[i].Base
			if !seq {
				est[i] += math.Log(0.985) * (b.points[i].Num[xN] - b.points[g].Num[xN]) / math.Ln2
			}
		}
	}
	return est
}
