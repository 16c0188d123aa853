package estimate

import (
	"math"
	"strconv"
	"strings"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/physics"
	"scrimp/internal/estimate/residual"
	"scrimp/internal/estimate/runs"
	"scrimp/internal/estimate/shape"
)

// Names of a point: they are equal or not.
const (
	cFamily = iota
	cTask
	cModel
	cChip
	cArch
	cPrecision // the publisher's spelling
	cClass     // class of precision
	cSource
	cStack
	cCut   // sharding, activation checkpointing, parallel degrees
	cLine  // line of models: mpt, llama, bert, resnet
	cWhere // one device, one machine, several machines
	cForm  // how the cut is written: the tables of one release use the same form
)

// Numbers of a point: natural logarithms.
const (
	xN     = iota // accelerators
	xMicro        // samples in the memory of one accelerator
	xSeq          // tokens per sample
	xOps          // operations per sample
	xPeak         // dense rate
	xBand         // bandwidth
	xSize         // parameters
	xCut          // tensor times pipeline parallel degree
	xComm         // 1 + time of exchanges / time of computing
	xTree         // 1 for boosted trees, whose model is the program; not a logarithm
)

// names numbers every spelling. The empty name is 0, which equals nothing; so is an unknown name once learning is over.
type names struct {
	of   [residual.Names]map[string]int32
	last int32
	over bool
}

func (n *names) id(kind int, s string) int32 {
	if s == "" {
		return 0
	}
	s = strings.ToLower(s)
	v, ok := n.of[kind][s]
	if ok || n.over {
		return v
	}
	if n.of[kind] == nil {
		n.of[kind] = map[string]int32{}
	}
	n.last++
	n.of[kind][s] = n.last
	return n.last
}

func lnOr(v, other float64) float64 {
	if math.IsNaN(v) || v <= 0 {
		return math.Log(other)
	}
	return math.Log(v)
}

// line returns a model's line: the letters of its name before the first digit.
func line(model string) string {
	s := strings.ToLower(model)
	if i := strings.IndexAny(s, "0123456789"); i > 0 {
		s = s[:i]
	}
	return strings.Trim(s, "- _.")
}

// describe converts a row to a point.
func describe(r runs.Row, chips hardware.Chips, n *names) residual.Point {
	r.Unit = r.ThroughputUnit()
	r.Seq *= physics.Filled(r)
	m := r.Shape()
	if m.Params <= 0 && (m.Kind == shape.Transformer || m.Kind == shape.Experts || m.Kind == shape.Segments) {
		m.Params = 1.1e8 // BERT-Base, as in shape.Typical
	}
	c, okChip, _, _ := r.Chip(chips)
	class := hardware.ParsePrecision(r.Precision, c.TF32 > 0)
	peak, okPeak := c.Peak(class)
	if !okPeak {
		peak = 100
	}
	count := r.N
	if math.IsNaN(count) || count < 1 {
		count = 1
	}
	p := residual.Point{Name: n.row(r, c, class, count)}
	if !okChip && r.Machine != "" {
		p.Name[cArch] = n.id(cArch, "cpu")
	}
	per, batch := perUnit(r, m)
	pp := runs.ParseParallel(r.Parallel)
	cut := math.Max(1, pp.TP) * math.Max(1, pp.PP) * math.Max(1, pp.CP)
	p.Num = [residual.Nums]float64{
		xN: math.Log(count), xMicro: lnOr(batch, 1), xSeq: math.Log(runs.Or(r.Seq, 1)), xOps: math.Log(per),
		xPeak: math.Log(peak), xBand: lnOr(c.Band, 500), xSize: lnOr(m.Pass(), 1e8), xCut: math.Log(cut),
	}
	t, comm := physics.Fitted.Unit(r, m, c, class, peak, count)
	if comm > 0 {
		p.Num[xComm] = math.Log1p(comm / t)
	}
	t = math.Pow(math.Pow(t, physics.Fitted.Overlap)+math.Pow(comm, physics.Fitted.Overlap), 1/physics.Fitted.Overlap)
	t *= math.Pow(0.985, -math.Log2(count))
	p.Base = -math.Log(t)
	if shape.Kind(r.Family) == shape.Trees {
		rows := runs.Or(r.Rows, 1e6)
		p.Num[xOps], p.Num[xTree] = math.Log(rows), 1
		p.Base = -math.Log(grown/rows + 1/treeRate(r, c, okChip))
	}
	if t, ok := r.Measured(m, per); ok {
		p.Y = math.Log(t/count) - p.Base
	} else {
		p.Y = math.NaN()
	}
	return p
}

// row returns the names of the row's point.
func (n *names) row(r runs.Row, c hardware.Chip, class hardware.Precision, count float64) [residual.Names]int32 {
	where := "one"
	switch {
	case count > 8:
		where = "many"
	case count > 1:
		where = "machine"
	}
	return [residual.Names]int32{
		cFamily: n.id(cFamily, r.Family), cTask: n.id(cTask, r.Task), cModel: n.id(cModel, r.Model),
		cChip: n.id(cChip, r.GPU+r.Spec+r.Machine), cArch: n.id(cArch, c.Arch),
		cPrecision: n.id(cPrecision, "p"+r.Precision), cClass: n.id(cClass, string(class)),
		cSource: n.id(cSource, r.Source), cStack: n.id(cStack, r.Stack()),
		cCut:  n.id(cCut, "c"+r.Ckpt+"|"+strings.TrimPrefix(r.Sharding, runs.Unshared)+"|"+r.Parallel),
		cLine: n.id(cLine, line(r.Model)), cWhere: n.id(cWhere, where), cForm: n.id(cForm, "f"+form(r.Parallel)),
	}
}

// perUnit returns the operations of a unit of throughput, and how many units (or tokens of a transformer) an
// accelerator has in its memory at a time.
func perUnit(r runs.Row, m shape.Model) (per, batch float64) {
	seq := runs.Or(r.Seq, 1)
	words := m.Kind == shape.Transformer || m.Kind == shape.Experts
	// Attention kernels reach about half the rate of matrix products, so skipping the causal half saves nothing: it
	// counts in full.
	ops, ok := m.Ops(seq, r.Tuning(), false)
	if !ok {
		ops = shape.Typical(m.Kind)
	}
	per, batch = ops, r.Micro*physics.UnitsOf(r, m)
	if words {
		batch = r.Micro * seq
	}
	if words && !m.Tokens(r.Unit) {
		per = ops * seq // one unit of throughput is many tokens
	}
	return per, batch
}

// grown is the setup time of one tree in seconds.
const grown = 0.02

// treeRate returns the rows × trees per second of a boosted tree program on large tables. A core processes 2e7 rows and
// levels a second; an accelerator moves 1500 bytes per row and level (gradients and positions, and the bins of a dozen
// columns). Both scale with the columns plus one. The default depth is six, as in the programs.
//
// Example: r4.8xlarge has 32 virtual and so 16 real cores, at depth 10: 3.2e7 a second; V100 with 900 GB/s: 6e7.
func treeRate(r runs.Row, c hardware.Chip, okChip bool) float64 {
	columns := physics.TableColumns(runs.Or(r.Features, 0))
	depth := math.Max(1, runs.Or(r.Depth, 6)) * (columns + 1) / (physics.UsualColumns + 1)
	if okChip && c.Band > 0 {
		return c.Band * 1e9 / (1500 * depth)
	}
	return 2e7 / depth * cores(r.Machine)
}

// cores returns the real cores of a machine type by AWS's naming rule: an xlarge has four virtual ones, n of them n
// times as many, two per core. Other names count as 16.
func cores(machine string) float64 {
	_, size, _ := strings.Cut(strings.ToLower(machine), ".")
	switch {
	case size == "xlarge":
		return 2
	case strings.HasPrefix(size, "metal"):
		return 48
	}
	if n, ok := strings.CutSuffix(size, "xlarge"); ok {
		if v, err := strconv.ParseFloat(n, 64); err == nil && v >= 1 && v <= 1000 {
			return 2 * v
		}
	}
	return 16
}

// form returns how a cut is written, without its degrees: "FSDP= TP=#".
func form(cut string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '#'
		}
		return r
	}, strings.ReplaceAll(strings.ToLower(cut), "n/a", "#"))
}
