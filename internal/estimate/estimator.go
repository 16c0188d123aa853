package estimate

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/estimate/likeness"
	"scrimp/internal/estimate/shape"
)

// Estimator answers what runs will need. It keeps tables of what it worked out, so it
// is not safe for concurrent use; Fork gives another for the same knowledge.
type Estimator struct {
	chips    Chips
	prices   Prices
	names    *names
	rate     *likeness.Learned
	weight   *likeness.Learned
	labels   []string // what each run of rate was, for a reader
	families map[int32]string
	own      int               // how many of rate are the user's own: of a source that begins with own
	known    map[string]bool   // sources there are runs of, in small letters
	stacks   map[string]bool   // programs there are runs of
	models   map[string]bool   // models there are runs of
	ran      map[[4]int32]bool // groups there are runs of
	shown    map[[3]int32]bool // programs, models and accelerators there are runs of
	weighed  map[string]bool   // sources there are peaks of
	quick    *likeness.Quick   // rate, quickly
	heavy    *likeness.Quick   // weight, quickly
}

// guess is a learned correction; its SD is half the interval, in ln.
type guess struct {
	likeness.Guess
	taken     string // what the accelerator was taken for, where its name says nothing
	learned   bool   // from a run at least
	shapeless bool   // the shape of the model is not known, and a typical one was taken
}

// Answer is what a run is estimated to need. A nil is unknown, for the reason
// that Provenance states.
type Answer struct {
	ID         string  `json:"id"`
	Throughput *Range  `json:"throughput"`     // for the whole job, in the run's unit
	Hours      *Range  `json:"hours"`          // wall time
	PeakMemory *Range  `json:"peak_memory_gb"` // of one accelerator, in the run's unit
	Cost       *Range  `json:"cost_usd"`
	Fits       *bool   `json:"fits"`
	Provenance string  `json:"provenance"`
	Unit       string  `json:"unit,omitempty"`
	Memory     *Memory `json:"memory,omitempty"` // by component, by arithmetic alone
	Hourly     float64 `json:"hourly_usd,omitempty"`
}

// unlearned is how far, in ln, four of five public runs lie from the physical
// part alone: the interval where nothing was measured. TestPhysicalPartAlone holds it.
const (
	unlearnedRate   = 0.50
	unlearnedMemory = 0.25
)

// widest is the most that half an interval of a rate is, in ln: a factor of eight.
const widest = 2.1

// New learns from measured runs. Rows without a measurement teach nothing; nil
// prices leave dollars unknown.
func New(chips Chips, prices Prices, measured []Row) *Estimator {
	e := &Estimator{chips: chips, prices: prices, names: &names{}, known: map[string]bool{}, stacks: map[string]bool{},
		models: map[string]bool{}, weighed: map[string]bool{}, families: map[int32]string{}}
	var rates, weights []likeness.Point
	for _, r := range measured {
		if r.Quality == "C" || strings.HasPrefix(r.Task, "inference") {
			continue
		}
		p := describe(r, chips, e.names)
		e.families[p.Name[cFamily]] = r.Family
		if !math.IsNaN(p.Y) {
			rates = append(rates, p)
			e.labels = append(e.labels, r.label())
			if r.Stack() == "own" {
				e.own++
			}
			e.known[strings.ToLower(r.Source)], e.stacks[strings.ToLower(r.Stack())] = true, true
			e.models[strings.ToLower(r.Model)] = true
		}
		if gb, ok := r.peakGB(); ok {
			if m, ok := r.Setup(chips).Memory(); ok {
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

// groupOf is the program, task, model and accelerator of a run, none where one is not named.
func groupOf(p likeness.Point) (g [4]int32) {
	for i, n := range stackNames {
		if g[i] = p.Name[n]; g[i] == 0 {
			return [4]int32{}
		}
	}
	return g
}

// stackOf is the programs, model and accelerator of a run.
func stackOf(p likeness.Point) [3]int32 {
	return [3]int32{p.Name[cStack], p.Name[cModel], p.Name[cChip]}
}

// quickly is what standard and memoryKernel are made for: sums of functions of one
// number (TestTheLikenessInUseIsASum).
func quickly(l *likeness.Learned) *likeness.Quick {
	q, _ := l.Quick()
	return q
}

// Fork is another estimator with the same knowledge, for use beside this one.
func (e *Estimator) Fork() *Estimator {
	f := *e
	f.quick, f.heavy = e.quick.Fork(), e.heavy.Fork()
	return &f
}

// Runs is how many measured runs throughput and memory were learned from.
func (e *Estimator) Runs() (rate, memory int) { return len(e.rate.Seen), len(e.weight.Seen) }

// label is the run in a reader's words.
func (r Row) label() string {
	s := r.Model
	if known(r.N) && r.N > 0 && r.GPU != "" {
		s += fmt.Sprintf(" on %g %s", r.N, r.GPU)
	} else if r.Machine != "" {
		s += " on " + r.Machine
	}
	if st := r.Stack(); st != "" {
		s += " (" + strings.TrimPrefix(st, "github.com/") + ")"
	}
	return s
}

// correct is the learned correction of a point.
func (e *Estimator) correct(r Row, p likeness.Point) guess {
	g := guess{Guess: e.quick.Guess(&p)}
	if len(e.rate.Seen) == 0 {
		g = guess{Guess: likeness.Guess{SD: unlearnedRate, Nearest: -1}}
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

// around is a value with its interval: half, in ln, either way.
func around(v, half float64) *Range {
	return &Range{Value: v, Low: v * math.Exp(-half), High: v * math.Exp(half)}
}

// shade is by how much, in ln, a value lies below the middle of its interval, half
// an interval wide: too high an estimate has no bound, too low a one has, so where
// errors are about normal in ln with standard error s the mean relative error is
// least at s² below the middle. A standard error up to 0.17 is passed over, and one
// above 1.2 taken for that. Worked: half 1.28 in ln is s = 1: 1 - 0.03 = 0.97.
func shade(half float64) float64 {
	s := math.Min(1.2, half/1.28)
	return math.Max(0, s*s-0.03)
}

// around is the range of a rate that is v by arithmetic.
func (g guess) around(v float64) *Range {
	half := math.Max(floor, g.SD)
	r := around(v*math.Exp(g.Mean), half)
	if g.learned {
		r.Value *= math.Exp(-shade(half))
	}
	return r
}

// floor is the least that an interval can be wide, in ln: the same machine type
// varies by 0.1 to 1.8 %, submitters of one system by up to 4.7 %.
const floor = 0.04

// Rate is the throughput for the whole job, and false where accelerator or count
// are not known.
func (e *Estimator) Rate(r Row) (Range, bool) {
	g, p, why := e.rateOf(r)
	if why != "" {
		return Range{}, false
	}
	return *g.around(r.count() * math.Exp(p.Base)), true
}

func (r Row) count() float64 {
	if known(r.N) && r.N >= 1 {
		return r.N
	}
	return 1
}

// rateOf says why a rate cannot be known, or the correction of the physical one.
func (e *Estimator) rateOf(r Row) (guess, likeness.Point, string) {
	if math.IsNaN(r.N) {
		return guess{}, likeness.Point{}, "how many accelerators is not stated"
	}
	m := r.Shape()
	_, chip, taken, guessed := r.chip(e.chips)
	if !chip && r.accelerator() != "" {
		return guess{}, likeness.Point{}, fmt.Sprintf("nothing is known of the accelerator %s", r.accelerator())
	}
	if !chip && m.Kind != shape.Trees {
		return guess{}, likeness.Point{}, "no accelerator is stated"
	}
	p := describe(r, e.chips, e.names)
	g := e.correct(r, p)
	if _, ok := m.Ops(1, shape.Full, false); !ok && m.Kind != shape.Trees && !e.models[strings.ToLower(r.Model)] {
		g.SD, g.shapeless = 2*unlearnedRate, true
	}
	if m.Kind == rated {
		c, _, _, _ := r.chip(e.chips)
		if peak, ok := c.Peak(ParsePrecision(r.Precision, c.TF32 > 0)); ok {
			_, off := constants.bound(m, c.ceiling()*peak*1e12, c.Band*1e9, 2)
			g.SD = math.Hypot(g.SD, off)
		}
	}
	if g.taken = taken; guessed {
		g.SD = widest
	}
	return g, p, ""
}

// Estimate is everything that can be said of a run.
func (e *Estimator) Estimate(r Row) Answer {
	a := Answer{ID: r.ID, Unit: r.unit()}
	var why []string
	for _, o := range r.Odd {
		why = append(why, o.Error()+", and counts as not stated")
	}
	g, p, no := e.rateOf(r)
	if no == "" {
		a.Throughput = g.around(r.count() * math.Exp(p.Base))
		why = append(why, e.tell(r, p, g))
		why = append(why, g.taken, e.held(r, p, &a), r.Host.tell(r.count()))
		if shape.Kind(r.Family) == shape.Trees && !known(r.Features) {
			why = append(why, fmt.Sprintf("a table of %d columns is assumed: --features (model.features) says how many",
				usualColumns))
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

func (r Row) accelerator() string {
	if r.Spec != "" {
		return r.Spec
	}
	return r.GPU
}

// unit is the unit of the row's throughput, by its model where it states none.
func (r Row) unit() string {
	if r.Unit != "" {
		return r.Unit
	}
	switch shape.Kind(r.Family) {
	case shape.Trees:
		return "row-trees/s"
	case shape.Conv, shape.Detect:
		return "images/s"
	case shape.Transformer, shape.Experts, shape.Recurrent, shape.Segments:
		return "tokens/s"
	case shape.Recommend:
	}
	return "samples/s"
}

// Work is how many units of throughput the run asks for, and false where it does
// not say: tokens, epochs times rows, or rows times trees.
func (r Row) Work() (units float64, ok bool) {
	u := r.unit()
	switch {
	case u == "row-trees/s":
		return r.Rows * r.TreeN, known(r.Rows) && known(r.TreeN)
	case strings.HasSuffix(u, "tokens/s") && known(r.Tokens):
		return r.Tokens * 1e9, true
	case known(r.Tokens) && known(r.Seq) && r.Seq > 0 &&
		(strings.HasPrefix(u, "sequences") || strings.HasPrefix(r.Family, "transformer")):
		return r.Tokens * 1e9 / r.Seq, true
	case known(r.Epochs) && known(r.Rows):
		units = r.Epochs * r.Rows
		if strings.HasSuffix(u, "tokens/s") {
			return units * r.Seq, known(r.Seq)
		}
		return units, true
	}
	return 0, false
}

// tell is the provenance of a rate.
func (e *Estimator) tell(r Row, p likeness.Point, g guess) string {
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

// learned says how many runs there were, and whose.
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
