package estimate

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

var tune = flag.Int("tune", 0, "steps of tuning the likeness")

// profiled is, for each asked row, the given row of its group: equal in source,
// model, task, gpu, precision and seq_len, the fewest accelerators.
func profileGroups(rows []Row, seq bool) (given []int, asked [][]int) {
	key := func(r Row) string {
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
			if known(at(i)) && known(rows[i].Throughput) && (best < 0 || at(i) < at(best)) {
				best = i
			}
		}
		if best < 0 {
			continue
		}
		var ask []int
		for _, i := range g {
			if known(at(i)) && at(i) > at(best) && known(rows[i].Throughput) {
				ask = append(ask, i)
			}
		}
		if len(ask) > 0 {
			given, asked = append(given, best), append(asked, ask)
		}
	}
	return given, asked
}

// profileLeft is what the asked rows would be estimated as with all but their
// group known, and of their group only the given row.
func (b *bench) profileLeft(e examined, seq bool) []float64 {
	_, asked := profileGroups(b.rows, seq)
	m, _ := e.leftOut(asked)
	return m
}

// profileAlone is the same where nothing but the given row is known.
func (b *bench) profileAlone(k *kernel, seq bool) []float64 {
	est := make([]float64, len(b.rows))
	for i := range est {
		est[i] = math.NaN()
	}
	given, asked := profileGroups(b.rows, seq)
	for j, g := range given {
		l := k.learn([]point{b.points[g]})
		for _, i := range asked[j] {
			est[i], _ = l.predict(&b.points[i])
		}
	}
	return est
}

type verdict struct {
	name string
	s    score
}

func (b *bench) truthY() []float64 {
	y := make([]float64, len(b.rows))
	for i := range y {
		y[i] = b.points[i].y
	}
	return y
}

func dense(r Row) bool { return r.Family == "transformer-dense" && r.Unit == "tokens/s" }

// judge prints the error of every protocol.
func (b *bench) judge(k *kernel) (list []verdict, loss float64) {
	y := b.truthY()
	add := func(name string, est []float64, keep func(int) bool) score {
		s := scoreOf(est, y, func(i int) bool { return b.asked(i) && keep(i) })
		list = append(list, verdict{name, s})
		return s
	}
	cover := func(m, sd []float64, z float64) float64 {
		n, in := 0.0, 0.0
		for i := range m {
			if b.asked(i) {
				n++
				if math.Abs(m[i]-y[i]) <= z*sd[i] {
					in++
				}
			}
		}
		return 100 * in / n
	}
	is := func(f string) func(int) bool {
		return func(i int) bool { return strings.HasPrefix(b.rows[i].Family, f) }
	}
	all := func(int) bool { return true }
	x, ok := k.examine(b.points)
	if !ok {
		return nil, math.Inf(1)
	}
	for name, key := range map[string]func(Row) string{"stack": stackKey, "source": sourceKey} {
		m, sd := x.leftOut(groups(b.rows, key))
		a := add(name+" all", m, all)
		d := add(name+" dense tokens", m, func(i int) bool { return dense(b.rows[i]) })
		add(name+" transformer", m, is("transformer"))
		add(name+" cnn", m, is("cnn"))
		add(name+" other", m, func(i int) bool { return !is("cnn")(i) && !is("transformer")(i) })
		list = append(list, verdict{name + " cover at 1.28", score{cover: cover(m, sd, 1.28)}})
		w := 1.0
		if name == "source" {
			w = 0.5
		}
		loss += w * (0.5*math.Min(a.mape, 100) + a.median + 0.5*d.mape + d.median)
		// A smooth part, so that small steps show.
		for i := range m {
			if b.asked(i) {
				loss += w * 30 * math.Sqrt(0.0004+(m[i]-y[i])*(m[i]-y[i])) / float64(len(m))
			}
		}
	}
	for _, alone := range []bool{false, true} {
		for _, seq := range []bool{false, true} {
			var est []float64
			if alone {
				est = b.profileAlone(k, seq)
			} else {
				est = b.profileLeft(x, seq)
			}
			n := "profiled "
			if alone {
				n = "profiled alone "
			}
			if seq {
				loss += add(n+"sequence", est, all).mape
				continue
			}
			loss += add(n+"cnn", est, is("cnn")).mape
			loss += add(n+"transformer to 8", est, func(i int) bool { return is("transformer")(i) && b.rows[i].N <= 8 }).mape
			loss += add(n+"transformer more", est, func(i int) bool { return is("transformer")(i) && b.rows[i].N > 8 }).mape
			add(n+"other", est, func(i int) bool { return !is("cnn")(i) && !is("transformer")(i) })
		}
	}
	return list, loss
}

// linear is the plain answer to the one-profiled-row question: the given rate per accelerator.
func (b *bench) linear(seq bool) []float64 {
	est := make([]float64, len(b.rows))
	for i := range est {
		est[i] = math.NaN()
	}
	given, asked := profileGroups(b.rows, seq)
	for j, g := range given {
		for _, i := range asked[j] {
			est[i] = b.points[g].y + b.points[g].base - b.points[i].base
			if !seq {
				est[i] += math.Log(0.985) * (b.points[i].num[xN] - b.points[g].num[xN]) / math.Ln2
			}
		}
	}
	return est
}

func TestJudge(t *testing.T) {
	b := newBench(t)
	list, loss := b.judge(standard())
	for _, v := range list {
		t.Logf("%-32s n %4.0f  %6.1f / %5.1f  cover %.0f", v.name, v.s.n, v.s.mape, v.s.median, v.s.cover)
	}
	t.Logf("loss %.3f", loss)
	y := b.truthY()
	for _, seq := range []bool{false, true} {
		e := b.linear(seq)
		for _, f := range []string{"cnn", "transformer"} {
			for _, many := range []bool{false, true} {
				s := scoreOf(e, y, func(i int) bool { return strings.HasPrefix(b.rows[i].Family, f) && (b.rows[i].N > 8) == many })
				t.Logf("linear seq %v %s many %v: n %.0f %.1f / %.1f", seq, f, many, s.n, s.mape, s.median)
			}
		}
	}
}

func TestTune(t *testing.T) {
	if *tune == 0 {
		t.Skip("SKIPPED: tuning takes minutes: -tune 400")
	}
	b := newBench(t)
	k := standard()
	_, best := b.judge(k)
	rng := rand.New(rand.NewPCG(1, 2))
	fmt.Fprintf(os.Stderr, "start %.3f\n", best)
	for step := range *tune {
		try := *k
		try.terms = append([]term(nil), k.terms...)
		what := ""
		for range 1 + rng.IntN(2) {
			i := rng.IntN(len(try.terms) + 1)
			f := math.Exp(rng.NormFloat64() * 0.6)
			if i == len(try.terms) {
				try.noise = math.Min(math.Max(try.noise*math.Exp(rng.NormFloat64()*0.2), 0.02), 0.1)
				continue
			}
			x := &try.terms[i]
			what = x.label
			if rng.IntN(3) > 0 {
				x.sd = math.Min(math.Max(x.sd*f, 0.003), 2)
				continue
			}
			for j := range x.reach {
				if x.reach[j] > 0 {
					x.reach[j] = math.Min(math.Max(x.reach[j]*math.Exp(rng.NormFloat64()*0.5), 0.2), 10)
				}
			}
		}
		if _, loss := b.judge(&try); loss < best {
			best = loss
			*k = try
			fmt.Fprintf(os.Stderr, "%d %.3f %s\n", step, best, what)
		}
	}
	var s strings.Builder
	fmt.Fprintf(&s, "noise %.3f\n", k.noise)
	for _, x := range k.terms {
		fmt.Fprintf(&s, "%s: %.3g", x.label, x.sd)
		for j, v := range x.reach {
			if v > 0 {
				fmt.Fprintf(&s, " %d %.2g", j, v)
			}
		}
		s.WriteString("\n")
	}
	fmt.Fprint(os.Stderr, s.String())
}
