package estimate

import (
	"flag"
	"fmt"
	"math"
	"os"
	"reflect"
	"testing"

	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/physics"
	"scrimp/internal/estimate/residual"
	"scrimp/internal/estimate/runs"
)

var (
	steps    = flag.Int("steps", 60, "steps of settling the constants")
	anchor   = flag.Float64("anchor", 0.2, "what a run's error by arithmetic alone counts")
	stiff    = flag.Float64("stiff", 0.3, "how far, in ln, a physical constant may be expected from where it began")
	loose    = flag.Float64("loose", 0.3, "the same of a share of the likeness")
	resettle = flag.Bool("settle", false, "settle the constants anew and print them")
	chat     = flag.Bool("chat", false, "print how settling gets on")
)

// neutral holds the physical constants before any run: each is what the vendors' and the kernels' papers suggest.
var neutral = physics.Constants{
	Product: 0.8, Narrow: 200, Few: 1000, Attention: 0.5, Traffic: 200, Unfused: 4,
	Routing: 32, Expert: 500, Passes: 20, Deep: 40, Conv: 0.5, Launch: 20e-6,
	Link: 0.5, Network: 100, Overlap: 2, Small: 0.5,
	Balance: 0.5, Plain: 1.2, Exchange: 0.5, Proposal: 2000, Grouped: 0.65,
}

// blank returns the kernel before any run: every term moves a run by a tenth, and distances are a factor of four.
func blank() *residual.Kernel {
	k := *standard()
	k.Noise = 0.05
	k.Terms = append([]residual.Term(nil), k.Terms...)
	for i := range k.Terms {
		t := &k.Terms[i]
		t.SD = 0.1
		if t.Slope == 1+xTree {
			t.SD = 0.6 // programs of boosted trees differ by a factor of two
		}
		for j := range t.Reach {
			if t.Reach[j] > 0 {
				t.Reach[j] = math.Log(4)
			}
		}
	}
	return &k
}

// numbers returns every physical constant with its name.
func numbers(k *physics.Constants) (out []*float64, label []string) {
	v := reflect.ValueOf(k).Elem()
	for i := range v.NumField() {
		out = append(out, v.Field(i).Addr().Interface().(*float64))
		label = append(label, v.Type().Field(i).Name)
	}
	return out, label
}

// setting is one fitted number: its location, its start, and its prior standard deviation, in ln.
type setting struct {
	at       *float64
	from, sd float64
	min, max float64
	m, v     float64 // state of the descent
}

// settling is the state of a fit.
type settling struct {
	rows   []runs.Row
	chips  hardware.Chips
	k      *residual.Kernel
	consts []*float64
	list   []setting // the constants, the noise, then the shares and distances in the order of terms
	terms  []struct{ term, num int }
	blocks [][]int
	by     []residual.Leaving
}

// settle fits the constants and the kernel from the rows alone, starting with neutral and blank. It descends the loss
// of left-out groups, sources and profiled runs; every setting that moves pays the cost of its prior.
func settle(rows []runs.Row, chips hardware.Chips, steps int, say func(string, ...any)) (physics.Constants, *residual.Kernel) {
	was := physics.Fitted
	defer func() { physics.Fitted = was }()
	physics.Fitted = neutral
	s := newSettling(rows, chips)
	for step := range steps {
		loss, slope := s.look()
		held := s.descend(step, steps, slope)
		if step%10 == 0 || step == steps-1 {
			say("step %d loss %.2f held %.2f\n", step, loss, held)
		}
	}
	return physics.Fitted, s.k
}

func newSettling(rows []runs.Row, chips hardware.Chips) *settling {
	s := &settling{rows: rows, chips: chips, k: blank(), blocks: groups(rows, sourceKey)}
	var labels []string
	s.consts, labels = numbers(&physics.Fitted)
	for i, c := range s.consts {
		x := setting{at: c, from: *c, sd: *stiff, min: *c / 10, max: *c * 10}
		if labels[i] == "Overlap" {
			x.min, x.max = 1, 6
		}
		s.list = append(s.list, x)
	}
	s.list = append(s.list, setting{at: &s.k.Noise, from: s.k.Noise, sd: 0.3, min: 0.02, max: 0.1})
	for i := range s.k.Terms {
		t := &s.k.Terms[i]
		sd := *loose
		if t.Slope == 1+xTree {
			sd = 0.2 // a handful of runs cannot distinguish them
		}
		s.list, s.terms = append(s.list, setting{at: &t.SD, from: t.SD, sd: sd, min: 0.003, max: 2}),
			append(s.terms, struct{ term, num int }{i, -1})
		for j := range t.Reach {
			if t.Reach[j] > 0 {
				s.list, s.terms = append(s.list, setting{at: &t.Reach[j], from: t.Reach[j], sd: 0.5, min: 0.2,
					max: 10}), append(s.terms, struct{ term, num int }{i, j})
			}
		}
	}
	_, counts := profileGroups(rows, false)
	_, longer := profileGroups(rows, true)
	s.by = []residual.Leaving{{Groups: groups(rows, stackKey), Weight: 1}, {Groups: s.blocks, Weight: 0.5},
		{Groups: counts, Weight: 0.5}, {Groups: longer, Weight: 0.5}}
	return s
}

func (s *settling) describe() (out []residual.Point) {
	n := &names{}
	for _, r := range s.rows {
		out = append(out, describe(r, s.chips, n))
	}
	return out
}

// look returns the current loss and its gradient by the logarithm of each setting.
func (s *settling) look() (loss float64, slope []float64) {
	points := s.describe()
	loss, by, ok := s.k.Loss(points, s.blocks, s.by)
	if !ok {
		panic("the likeness is none")
	}
	// The physical part alone should be close, too: ± 25 %, with long tails.
	for i, p := range points {
		q := 4*0.0625 + p.Y*p.Y
		loss += *anchor * 2.5 * math.Log(q/0.25)
		by.Y[i] += *anchor * 5 * p.Y / q
	}
	slope = make([]float64, len(s.list))
	for i, c := range s.consts {
		const h = 1e-4
		v := *c
		*c = v * math.Exp(h)
		for j, p := range s.describe() {
			slope[i] += by.Y[j] * (p.Y - points[j].Y) / h
		}
		*c = v
	}
	slope[len(s.consts)] = by.Noise
	for i, w := range s.terms {
		if w.num < 0 {
			slope[len(s.consts)+1+i] = by.SD[w.term]
		} else {
			slope[len(s.consts)+1+i] = by.Reach[w.term][w.num]
		}
	}
	return loss, slope
}

// descend moves every setting against its gradient by a step scaled by past gradients (Kingma and Ba 2015), and returns
// the cost of the priors before the move.
func (s *settling) descend(step, steps int, slope []float64) (held float64) {
	rate := 0.12 * math.Min(1, 2*(1-float64(step)/float64(steps)))
	for i := range s.list {
		x := &s.list[i]
		far := math.Log(*x.at / x.from)
		held += far * far / (2 * x.sd * x.sd)
		g := slope[i] + far/(x.sd*x.sd)
		x.m, x.v = 0.9*x.m+0.1*g, 0.98*x.v+0.02*g*g
		d := x.m / (1 - math.Pow(0.9, float64(step+1))) / (math.Sqrt(x.v/(1-math.Pow(0.98, float64(step+1)))) + 1e-9)
		*x.at = math.Min(math.Max(*x.at*math.Exp(-rate*d), x.min), x.max)
	}
	return held
}

// TestSettle fits the constants in use on all public runs and prints them: go test ./internal/estimate -run TestSettle
// -settle -steps 100 -v
func TestSettle(t *testing.T) {
	if !*resettle {
		t.Skip("settling takes a minute: -settle")
	}
	b := newBench(t)
	c, k := settle(b.rows, b.chips, *steps, telling)
	from, labels := numbers(&c)
	for i, l := range labels {
		fmt.Fprintf(os.Stdout, "%s: %.3g, ", l, *from[i])
	}
	fmt.Fprintf(os.Stdout, "\nnoise %.3g\n", k.Noise)
	for _, x := range k.Terms {
		fmt.Fprintf(os.Stdout, "%s SD: %.2g", x.Label, x.SD)
		for j, v := range x.Reach {
			if v > 0 {
				fmt.Fprintf(os.Stdout, " %d %.2g", j, v)
			}
		}
		fmt.Fprintln(os.Stdout)
	}
}

func telling(format string, a ...any) {
	if *chat {
		fmt.Fprintf(os.Stderr, format, a...)
	}
}
