package estimate

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/physics"
	"scrimp/internal/estimate/residual"
	"scrimp/internal/estimate/runs"
	"scrimp/internal/estimate/shape"
)

// Estimator estimates runs. It caches its intermediate results, so it is not safe for concurrent use; Fork returns
// another one with the same knowledge.
type Estimator struct {
	chips    hardware.Chips
	prices   Prices
	names    *names
	rate     *residual.Learned
	weight   *residual.Learned
	labels   []string // describes each run of rate for a reader
	families map[int32]string
	own      int               // number of the user's own runs in rate: their source starts with own
	known    map[string]bool   // sources with runs, in lower case
	stacks   map[string]bool   // programs with runs
	models   map[string]bool   // models with runs
	ran      map[[4]int32]bool // groups with runs
	shown    map[[3]int32]bool // programs, models and accelerators with runs
	weighed  map[string]bool   // sources with measured peaks
	quick    *residual.Quick   // fast version of rate
	heavy    *residual.Quick   // fast version of weight
}

// guess is a learned correction; its SD is half the interval, in ln.
type guess struct {
	residual.Guess
	taken     string // the accelerator that stands in for an unknown one
	learned   bool   // from at least one run
	shapeless bool   // the model's shape is unknown, so a typical one is used
}

// Answer is the estimate of a run. nil is unknown, for the reason in Provenance.
type Answer struct {
	ID         string          `json:"id"`
	Throughput *Range          `json:"throughput"`     // of the whole job, in the run's unit
	Hours      *Range          `json:"hours"`          // wall time
	PeakMemory *Range          `json:"peak_memory_gb"` // of one accelerator, in the run's unit
	Cost       *Range          `json:"cost_usd"`
	Fits       *bool           `json:"fits"`
	Provenance string          `json:"provenance"`
	Unit       string          `json:"unit,omitempty"`
	Memory     *physics.Memory `json:"memory,omitempty"` // by component, from arithmetic alone
	Hourly     float64         `json:"hourly_usd,omitempty"`
}

// unlearnedRate and unlearnedMemory are half the interval without measurements, in ln: four of five public runs lie
// within it of the physical part alone. TestUnlearned_IntervalHoldsFourOfFivePublicRuns checks them.
const (
	unlearnedRate   = 0.50
	unlearnedMemory = 0.25
)

// widest bounds half an interval of a rate, in ln: a factor of eight.
const widest = 2.1

// New learns from measured runs. It ignores rows without a measurement. With nil prices, dollars stay unknown.
func New(chips hardware.Chips, prices Prices, measured []runs.Row) *Estimator {
	e := &Estimator{chips: chips, prices: prices, names: &names{}, known: map[string]bool{}, stacks: map[string]bool{},
		models: map[string]bool{}, weighed: map[string]bool{}, families: map[int32]string{}}
	var rates, weights []residual.Point
	for _, r := range measured {
		if r.Quality == "C" || strings.HasPrefix(r.Task, "inference") {
			continue
		}
		p := describe(r, chips, e.names)
		e.families[p.Name[cFamily]] = r.Family
		if !math.IsNaN(p.Y) {
			rates = append(rates, p)
			e.labels = append(e.labels, r.Label())
			if r.Stack() == "own" {
				e.own++
			}
			e.known[strings.ToLower(r.Source)], e.stacks[strings.ToLower(r.Stack())] = true, true
			e.models[strings.ToLower(r.Model)] = true
		}
		if gb, ok := r.PeakGB(); ok {
			if m, ok := physics.SetupOf(r, chips).Memory(); ok {
				p.Base = math.Log(m.Total())
				p.Y = math.Log(gb) - p.Base
				weights = append(weights, p)
				e.weighed[strings.ToLower(r.Source)] = true
			}
		}
	}
	e.rate = standard().Learn(rates)
	e.ran, e.shown = map[[4]int32]bool{}, map[[3]int32]bool{}
	for _, p := range e.rate.Seen {
		e.ran[groupOf(p)], e.shown[stackOf(p)] = true, true
	}
	delete(e.ran, [4]int32{})
	e.weight = memoryKernel().Learn(weights)
	e.names.over = true
	e.quick, e.heavy = quickly(e.rate), quickly(e.weight)
	return e
}

// groupOf returns the source, task, model and accelerator of a run, or zeros if one is not named.
func groupOf(p residual.Point) (g [4]int32) {
	for i, n := range stackNames {
		if g[i] = p.Name[n]; g[i] == 0 {
			return [4]int32{}
		}
	}
	return g
}

// stackOf returns the programs, model and accelerator of a run.
func stackOf(p residual.Point) [3]int32 {
	return [3]int32{p.Name[cStack], p.Name[cModel], p.Name[cChip]}
}

// quickly returns the fast version of a learned correction. The kernels of standard and memoryKernel allow one: they
// are sums of functions of one number (TestQuickly_KernelsInUseAreSums).
func quickly(l *residual.Learned) *residual.Quick {
	q, _ := l.Quick()
	return q
}

// Fork returns another estimator with the same knowledge, for concurrent use.
func (e *Estimator) Fork() *Estimator {
	f := *e
	f.quick, f.heavy = e.quick.Fork(), e.heavy.Fork()
	return &f
}

// Runs returns the numbers of measured runs behind throughput and memory.
func (e *Estimator) Runs() (rate, memory int) { return len(e.rate.Seen), len(e.weight.Seen) }

// correct returns the learned correction of a point.
func (e *Estimator) correct(r runs.Row, p residual.Point) guess {
	g := guess{Guess: e.quick.Guess(&p)}
	if len(e.rate.Seen) == 0 {
		g = guess{Guess: residual.Guess{SD: unlearnedRate, Nearest: -1}}
	} else {
		w := e.rate.Afar
		switch {
		case e.ran[groupOf(p)]:
			w = e.rate.Once
		case e.known[strings.ToLower(r.Source)]:
			w = e.rate.Near
		}
		g.learned = true
		g.SD = math.Min(g.SD*w.Of(p.Name[cFamily]), widest)
	}
	return g
}

// around returns v with an interval of half, in ln, either way.
func around(v, half float64) *Range {
	return &Range{Value: v, Low: v * math.Exp(-half), High: v * math.Exp(half)}
}

// shade returns how far, in ln, a value should be below the middle of its interval of half width half. The relative
// error is unbounded for too high an estimate and bounded for too low a one. With errors about normal in ln with
// standard error s, the mean relative error is least at s² below the middle. Standard errors up to 0.17 are ignored,
// and larger ones than 1.2 count as 1.2. Example: half 1.28 in ln is s = 1: 1 - 0.03 = 0.97.
func shade(half float64) float64 {
	s := math.Min(1.2, half/1.28)
	return math.Max(0, s*s-0.03)
}

// around returns the corrected range of a rate whose arithmetic value is v.
func (g guess) around(v float64) *Range {
	half := math.Max(floor, g.SD)
	r := around(v*math.Exp(g.Mean), half)
	if g.learned {
		r.Value *= math.Exp(-shade(half))
	}
	return r
}

// floor is the smallest half width of an interval, in ln: the same machine type varies by 0.1 to 1.8 %, and submitters
// of one system by up to 4.7 %.
const floor = 0.04

// Rate returns the throughput of the whole job, and false if the accelerator or the count is unknown.
func (e *Estimator) Rate(r runs.Row) (Range, bool) {
	g, p, why := e.rateOf(r)
	if why != "" {
		return Range{}, false
	}
	return *g.around(r.Count() * math.Exp(p.Base)), true
}

// rateOf returns the correction of the physical rate, or why a rate is unknown.
func (e *Estimator) rateOf(r runs.Row) (guess, residual.Point, string) {
	if math.IsNaN(r.N) {
		return guess{}, residual.Point{}, "how many accelerators is not stated"
	}
	m := r.Shape()
	_, chip, taken, guessed := r.Chip(e.chips)
	if !chip && r.Accelerator() != "" {
		return guess{}, residual.Point{}, fmt.Sprintf("nothing is known of the accelerator %s", r.Accelerator())
	}
	if !chip && m.Kind != shape.Trees {
		return guess{}, residual.Point{}, "no accelerator is stated"
	}
	p := describe(r, e.chips, e.names)
	g := e.correct(r, p)
	if _, ok := m.Ops(1, shape.Full, false); !ok && m.Kind != shape.Trees && !e.models[strings.ToLower(r.Model)] {
		g.SD, g.shapeless = 2*unlearnedRate, true
	}
	if m.Kind == physics.Rated {
		c, _, _, _ := r.Chip(e.chips)
		if peak, ok := c.Peak(hardware.ParsePrecision(r.Precision, c.TF32 > 0)); ok {
			_, off := physics.Fitted.Bound(m, c.Ceiling()*peak*1e12, c.Band*1e9, 2)
			g.SD = math.Hypot(g.SD, off)
		}
	}
	if g.taken = taken; guessed {
		g.SD = widest
	}
	return g, p, ""
}

// Estimate returns everything that is known about a run.
func (e *Estimator) Estimate(r runs.Row) Answer {
	a := Answer{ID: r.ID, Unit: r.ThroughputUnit()}
	var why []string
	for _, o := range r.Odd {
		why = append(why, o.Error()+", and counts as not stated")
	}
	g, p, no := e.rateOf(r)
	if no == "" {
		a.Throughput = g.around(r.Count() * math.Exp(p.Base))
		why = append(why, e.tell(r, p, g))
		why = append(why, g.taken, e.held(r, p, &a), r.Host.Describe(r.Count()))
		if shape.Kind(r.Family) == shape.Trees && !runs.Known(r.Features) {
			why = append(why, fmt.Sprintf("a table of %d columns is assumed: --features (model.features) says how many",
				physics.UsualColumns))
		}
	} else {
		why = append(why, "throughput is unknown: "+no)
	}
	why = append(why, e.memory(r, &a))
	if r.Given != nil && r.Given.Note != "" {
		why = append(why, r.Given.Note)
	}
	units, ok := r.Work()
	switch {
	case !ok:
		why = append(why, "how much work there is is not stated (tokens, epochs and rows, or rows and trees)")
	case a.Throughput != nil:
		h := a.Throughput.Per(units / 3600)
		a.Hours = &h
	}
	if e.prices != nil || r.Host != nil && r.Host.Hourly > 0 {
		why = append(why, e.priced(r, &a))
	}
	why = append(why, a.dropUnsound()...)
	why = slices.DeleteFunc(why, func(s string) bool { return s == "" })
	a.Provenance = strings.Join(why, "; ") + "."
	return a
}

// dropUnsound leaves out the figures that are outside what numbers hold, and says so once for each.
func (a *Answer) dropUnsound() (why []string) {
	for _, v := range []**Range{&a.Throughput, &a.Hours, &a.PeakMemory, &a.Cost} {
		if *v != nil && !(*v).sound() {
			*v = nil
			why = append(why, "a figure is outside what numbers hold, and left out")
		}
	}
	if a.PeakMemory == nil {
		a.Fits = nil
	}
	return why
}

// tell returns the provenance of a rate.
func (e *Estimator) tell(r runs.Row, p residual.Point, g guess) string {
	if g.shapeless {
		return "throughput of a typical model of its family, since the shape of this one is not known"
	}
	n := len(e.rate.Seen)
	if n == 0 {
		return "throughput by arithmetic (operations and bytes against the accelerator's measured rates), no measured run"
	}
	s := "throughput by arithmetic × " + strconv.FormatFloat(math.Exp(g.Mean), 'f', 2, 64) + ", learned from " +
		e.learned(n) + ", most of all " + e.labels[e.quick.Nearest(&p)]
	if !e.known[strings.ToLower(r.Source)] && !e.stacks[strings.ToLower(r.Stack())] {
		s += ", none of this program"
	}
	return s
}

// learned describes how many runs there were, and whose.
func (e *Estimator) learned(n int) string {
	s := strconv.Itoa(n) + " measured runs"
	if n == 1 {
		s = "one measured run"
	}
	switch e.own {
	case 0:
		return s
	case n:
		return s + " of yours"
	}
	return fmt.Sprintf("%s, %d of them yours", s, e.own)
}
