// Package runs describes training runs, requested or measured, and reads tables of them.
package runs

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/shape"
)

// Row is a run in the format of the published measurements: the request, and the measurements if known. Unstated
// numbers are NaN.
type Row struct {
	ID, Family, Task, Model            string
	GPU, Spec, Precision               string
	Ckpt, Sharding, Parallel, Machine  string
	Unit, MemUnit, TimeUnit, Source    string
	Split, Quality                     string
	Params, Active                     float64 // in 1e9
	Layers, Dim, Heads, KV, FF, Vocab  float64
	GPUMem, N, Seq, Micro, Global      float64
	GMACs, Rows, TreeN, Depth, Epochs  float64
	Features                           float64 // columns of a table
	Tokens                             float64 // in 1e9
	Throughput, PerGPU, Step, MFU, Mem float64
	TFLOPS, Time, GPUHours, Cost, OOM  float64

	// Given is the model if it was read from a file or stated, not named.
	Given *shape.Model
	// Host holds the machines that carry the accelerators; nil if unknown.
	Host *hardware.Machine
	// Decoded means that the host's processors decode no images.
	Decoded bool
	// Odd holds the impossible cells. They count as unstated.
	Odd []*BadCell
}

// Unstated returns a row without numbers.
func Unstated() Row {
	u := math.NaN()
	return Row{
		Params: u, Active: u, Layers: u, Dim: u, Heads: u, KV: u, FF: u, Vocab: u, GPUMem: u, N: u, Seq: u, Micro: u,
		Global: u, GMACs: u, Rows: u, TreeN: u, Depth: u, Epochs: u, Tokens: u, Features: u,
		Throughput: u, PerGPU: u, Step: u, MFU: u, Mem: u, TFLOPS: u, Time: u, GPUHours: u, Cost: u, OOM: u,
	}
}

// BadCell is an impossible value.
type BadCell struct {
	Line         int
	Field, Value string
	Why          string
}

func (e *BadCell) Error() string {
	return fmt.Sprintf("line %d, %s %q: %s", e.Line, e.Field, e.Value, e.Why)
}

// Read reads the CSV format of the published measurements. It finds columns by name, ignoring case, ignores unknown
// columns, and treats missing ones as unknown. An impossible cell makes its row Odd, but not the table unreadable.
func Read(r io.Reader) ([]Row, error) {
	in := bufio.NewReader(r)
	if mark, _ := in.Peek(3); string(mark) == "\ufeff" {
		_, _ = in.Discard(3) // it was peeked
	}
	c := csv.NewReader(in)
	c.FieldsPerRecord = -1
	head, err := c.Read()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it is empty: the first line of a table names its columns, at least id, family, " +
				"model and n_gpus")
		}
		return nil, fmt.Errorf("this is not a table of runs: read the header: %w", err)
	}
	col, err := columns(head)
	if err != nil {
		return nil, err
	}
	var rows []Row
	for {
		rec, err := c.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := c.FieldPos(0)
		row := parseRow(line, func(name string) string {
			if i, ok := col[name]; ok && i < len(rec) {
				return strings.TrimSpace(rec[i])
			}
			return ""
		})
		if len(rec) < len(head) {
			row.Odd = append(row.Odd, &BadCell{line, "row", rec[len(rec)-1],
				fmt.Sprintf("%d cells under %d columns, of which this is the last; it may be cut off", len(rec), len(head))})
		}
		if len(rec) > len(head) {
			row.Odd = append(row.Odd, &BadCell{line, "row", strings.Join(rec[len(head):], ","),
				fmt.Sprintf("%d cells under %d columns; quote a cell that has a comma in it", len(rec), len(head))})
		}
		rows = append(rows, row)
	}
}

// columns returns the indices of the columns by name.
func columns(head []string) (map[string]int, error) {
	col := map[string]int{}
	for i, h := range head {
		h = strings.ToLower(strings.TrimSpace(h))
		if _, twice := col[h]; twice && h != "" {
			return nil, fmt.Errorf("the column %s stands there twice: keep one", h)
		}
		col[h] = i
	}
	for _, must := range []string{"id", "family", "model", "n_gpus"} {
		if _, ok := col[must]; ok {
			continue
		}
		why := ""
		switch first := strings.Join(head, ","); {
		case strings.HasPrefix(first, "\xff\xfe") || strings.HasPrefix(first, "\xfe\xff"):
			why = "; it is in UTF-16: save it in UTF-8"
		case len(head) == 1 && strings.ContainsAny(first, ";\t"):
			why = "; put commas between the columns"
		}
		return nil, fmt.Errorf("this is not a table of runs: the column %s is missing from its first line%s", must, why)
	}
	return col, nil
}

func parseRow(line int, cell func(string) string) Row {
	var odd []*BadCell
	num := func(name string, low, high float64) float64 {
		s := cell(name)
		if s == "" {
			return math.NaN()
		}
		v, err := strconv.ParseFloat(s, 64)
		switch {
		case err != nil:
			odd = append(odd, &BadCell{line, name, s, "not a number; leave it empty where it is not known"})
			return math.NaN()
		case math.IsNaN(v) || v < low || v > high:
			odd = append(odd, &BadCell{line, name, s, fmt.Sprintf("must be from %g to %g", low, high)})
			return math.NaN()
		}
		return v
	}
	const huge = 1e18
	r := Row{
		ID: cell("id"), Family: strings.ToLower(cell("family")), Task: strings.ToLower(cell("task")), Model: cell("model"),
		GPU: cell("gpu"), Spec: cell("gpu_spec"), Precision: cell("precision"),
		Ckpt: strings.ToLower(cell("act_ckpt")), Sharding: cell("sharding"), Parallel: cell("parallelism"),
		Machine: cell("machine"), Unit: unitName(cell("throughput_unit")), MemUnit: cell("mem_unit"),
		TimeUnit: cell("time_unit"), Source: cell("source"),
		Split: cell("split"), Quality: strings.ToUpper(cell("quality")),
		Params: num("params_b", 1e-9, 1e9), Active: num("active_params_b", 1e-9, 1e9),
		Layers: num("layers", 1, 1e5), Dim: num("d_model", 1, 1e7), Heads: num("n_heads", 1, 1e6),
		KV: num("n_kv_heads", 1, 1e6), FF: num("d_ff", 1, 1e8), Vocab: num("vocab", 1, 1e9),
		GPUMem: num("gpu_mem_gb", 0.1, 1e6), N: num("n_gpus", 0, 1e7), Seq: num("seq_len", 1, 1e9),
		Micro: num("micro_batch", 0, 1e9), Global: num("global_batch", 0, 1e12),
		GMACs: num("fwd_gmacs", 0, 1e9), Rows: num("rows", 1, huge), TreeN: num("trees", 1, 1e9), Depth: num("depth", 1, 1e4),
		Features: num("features", 1, 1e7),
		Epochs:   num("epochs", 0, 1e9), Tokens: num("tokens_b", 0, 1e9),
		Throughput: num("throughput", 0, huge), PerGPU: num("throughput_per_gpu", 0, huge), Step: num("step_time_s", 0, huge),
		MFU: num("mfu_pct", 0, 1000), Mem: num("peak_mem_gb", 0, 1e9), TFLOPS: num("model_tflops_per_gpu", 0, 1e9),
		Time: num("time_value", 0, huge), GPUHours: num("gpu_hours", 0, huge), Cost: num("cost_usd", 0, huge),
		OOM: num("oom", 0, 1),
	}
	r.Odd = odd
	return r
}

// unitName normalizes a published unit of throughput: img/sec is images/s.
func unitName(s string) string {
	what, each, ok := strings.Cut(strings.ToLower(s), "/")
	if !ok || each != "s" && each != "sec" && each != "second" {
		return s
	}
	return cmp.Or(plurals[what], what) + "/s"
}

var plurals = map[string]string{
	"img": "images", "imgs": "images", "image": "images", "tok": "tokens", "toks": "tokens", "token": "tokens",
	"seq": "sequences", "seqs": "sequences", "sequence": "sequences", "sample": "samples", "samp": "samples",
}

// Stack returns the repository or site of a source, whose programs have common habits.
func (r Row) Stack() string {
	s := strings.ToLower(r.Source)
	s = strings.TrimPrefix(strings.TrimPrefix(s, "https://"), "http://")
	parts := strings.Split(s, "/")
	n := 3
	if len(parts) > 0 && parts[0] != "github.com" {
		n = 1
	}
	if len(parts) < n {
		n = len(parts)
	}
	return strings.Join(parts[:n], "/")
}

// Tuning returns the trained parameters of the run, from the name of its task.
func (r Row) Tuning() shape.Tuning {
	t := strings.ToLower(r.Task + " " + r.Model)
	switch {
	case strings.Contains(t, "qlora"):
		return shape.QLoRA
	case strings.Contains(t, "lora"):
		return shape.LoRA
	case strings.Contains(t, "adapter-v2"):
		return shape.AdapterV2
	case strings.Contains(t, "adapter"):
		return shape.Adapter
	}
	return shape.Full
}

// Scored reports whether the row counts in the benchmark: quality A or B, not out of memory, not inference.
func (r Row) Scored() bool {
	return (r.Quality == "A" || r.Quality == "B") && math.IsNaN(r.OOM) && !strings.HasPrefix(r.Task, "inference")
}

// Question returns the row without its measurements.
func (r Row) Question() Row {
	u := math.NaN()
	r.Throughput, r.PerGPU, r.Step, r.MFU, r.Mem, r.TFLOPS = u, u, u, u, u, u
	r.Time, r.GPUHours, r.Cost, r.OOM = u, u, u, u
	return r
}

// Known reports whether a number was stated.
func Known(v float64) bool { return !math.IsNaN(v) }

// Or returns v, or other if v was not stated.
func Or(v, other float64) float64 {
	if Known(v) {
		return v
	}
	return other
}

// Parallel holds the parallel degrees of a run; zero if not stated.
type Parallel struct{ TP, PP, CP, EP, DP, FSDP, VP float64 }

// ParseParallel parses "FSDP=32 TP=8 PP=1".
func ParseParallel(s string) Parallel {
	var p Parallel
	for _, f := range strings.Fields(s) {
		k, v, ok := strings.Cut(f, "=")
		if !ok {
			if f == "FSDP" {
				p.FSDP = 1
			}
			continue
		}
		n, err := strconv.ParseFloat(v, 64)
		if err != nil || n < 0 || math.IsNaN(n) || math.IsInf(n, 0) {
			continue
		}
		switch strings.ToUpper(k) {
		case "TP":
			p.TP = n
		case "PP":
			p.PP = n
		case "CP":
			p.CP = n
		case "EP":
			p.EP = n
		case "DP":
			p.DP = n
		case "FSDP":
			p.FSDP = n
		case "VP":
			p.VP = n
		}
	}
	return p
}

// Shape returns the model of a row: what the row states, completed by the published model of that name.
func (r Row) Shape() shape.Model {
	m, _ := shape.Variant(r.Model)
	if r.Given != nil {
		m = *r.Given
	}
	m.Name, m.Kind = r.Model, shape.Kind(r.Family)
	set := func(p *float64, v, k float64) {
		if !math.IsNaN(v) && v > 0 {
			*p = v * k
		}
	}
	set(&m.Params, r.Params, 1e9)
	set(&m.Active, r.Active, 1e9)
	set(&m.Layers, r.Layers, 1)
	set(&m.Dim, r.Dim, 1)
	set(&m.Heads, r.Heads, 1)
	set(&m.KV, r.KV, 1)
	set(&m.FF, r.FF, 1)
	set(&m.Vocab, r.Vocab, 1)
	set(&m.GMACs, r.GMACs, 1)
	return m
}
