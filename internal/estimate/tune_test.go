//go:build tune

package estimate

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"scrimp/internal/estimate/likeness"
)

var (
	tune = flag.Int("tune", 400, "steps of tuning the likeness")
	fold = flag.Int("fold", -1, "tune on this half of the groups only, and show the error of the other")
	hold = flag.Float64("hold", 0.1, "what it costs to move a setting")
)

type verdict struct {
	name  string
	s     score
	cover float64
}

// judge is the error of every protocol, and a smooth loss over the rows that in takes.
func (b *bench) judge(k *likeness.Kernel, in func(int) bool) (list []verdict, loss float64) {
	y := b.truthY()
	add := func(name string, est []float64, weight float64, keep func(int) bool) {
		take := func(i int) bool { return b.asked(i) && keep(i) && in(i) && !math.IsNaN(est[i]) }
		list = append(list, verdict{name, scoreOf(est, y, take), 0})
		n, sum := 0.0, 0.0
		for i := range est {
			if take(i) {
				e := math.Abs(est[i] - y[i])
				e = math.Sqrt(e*e + 0.0004)
				n++
				sum += e / (1 + e)
			}
		}
		if n > 0 {
			loss += weight * 100 * sum / n
		}
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
	x, ok := k.Examine(b.points)
	if !ok {
		return nil, math.Inf(1)
	}
	for j, key := range []func(Row) string{stackKey, sourceKey} {
		name := []string{"stack", "source"}[j]
		m, sd := x.LeftOut(groups(b.rows, key))
		add(name+" all", m, 3, all)
		add(name+" dense tokens", m, 0.5, func(i int) bool { return dense(b.rows[i]) })
		add(name+" transformer", m, 0, is("transformer"))
		add(name+" cnn", m, 0, is("cnn"))
		add(name+" other", m, 0, func(i int) bool { return !is("cnn")(i) && !is("transformer")(i) })
		list = append(list, verdict{name + " cover at 1.28", score{}, cover(m, sd, 1.28)})
	}
	add("arithmetic alone", make([]float64, len(y)), 0.5, all)
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
				add(n+"sequence", est, 1, all)
				continue
			}
			add(n+"cnn", est, 1, is("cnn"))
			add(n+"transformer to 8", est, 1, func(i int) bool { return is("transformer")(i) && b.rows[i].N <= 8 })
			add(n+"transformer more", est, 1, func(i int) bool { return is("transformer")(i) && b.rows[i].N > 8 })
			add(n+"other", est, 0, func(i int) bool { return !is("cnn")(i) && !is("transformer")(i) })
		}
	}
	return list, loss
}

// settle describes the rows anew, with other physical constants.
func (b *bench) settle() {
	n := &names{of: map[string]int32{}}
	for i, r := range b.rows {
		b.points[i] = describe(r, b.chips, n)
	}
}

// numbers is every physical constant by name.
func (k *physics) numbers() (out []*float64, label []string) {
	v := reflect.ValueOf(k).Elem()
	for i := range v.NumField() {
		out = append(out, (*float64)(unsafe.Pointer(v.Field(i).UnsafeAddr())))
		label = append(label, v.Type().Field(i).Name)
	}
	return out, label
}

// TestTune settles the physical constants and the likeness on the error of groups
// left out: go test ./internal/estimate -tags tune -run TestTune -tune 2000 -hold 0.15
func TestTune(t *testing.T) {
	b := newBench(t)
	half := func(i int) uint32 { h := fnv.New32a(); h.Write([]byte(stackKey(b.rows[i]))); return h.Sum32() % 2 }
	in := func(i int) bool { return *fold < 0 || half(i) == uint32(*fold) }
	out := func(i int) bool { return !in(i) }
	if *fold < 0 {
		out = in
	}
	k := standard()
	start, phys := standard(), constants
	from, labels := phys.numbers()
	now, _ := constants.numbers()
	// far is how far the settings went from where they began: what moves them must pay.
	far := func(k *likeness.Kernel) float64 {
		s := 0.0
		for i, x := range k.Terms {
			s += math.Pow(math.Log((x.SD+0.01)/(start.Terms[i].SD+0.01)), 2)
			for j, v := range x.Reach {
				if v > 0 {
					s += math.Pow(math.Log(v/start.Terms[i].Reach[j]), 2)
				}
			}
		}
		for i := range now {
			s += 2 * math.Pow(math.Log(*now[i] / *from[i]), 2)
		}
		return *hold * s
	}
	_, best := b.judge(k, in)
	_, other := b.judge(k, out)
	rng := rand.New(rand.NewPCG(1, 2))
	fmt.Fprintf(os.Stderr, "start %.3f other half %.3f\n", best, other)
	for step := range *tune {
		try := *k
		try.Terms = append([]likeness.Term(nil), k.Terms...)
		what := ""
		undo := func() {}
		if rng.IntN(4) == 0 {
			i := rng.IntN(len(now))
			was := *now[i]
			*now[i] *= math.Exp(rng.NormFloat64() * 0.3)
			if labels[i] == "overlap" {
				*now[i] = math.Min(math.Max(*now[i], 1), 6)
			}
			b.settle()
			undo = func() { *now[i] = was; b.settle() }
			what = labels[i]
		} else {
			for range 1 + rng.IntN(2) {
				i := rng.IntN(len(try.Terms) + 1)
				if i == len(try.Terms) {
					try.Noise = math.Min(math.Max(try.Noise*math.Exp(rng.NormFloat64()*0.2), 0.02), 0.1)
					continue
				}
				x := &try.Terms[i]
				what = x.Label
				if rng.IntN(3) > 0 {
					x.SD = math.Min(math.Max(x.SD*math.Exp(rng.NormFloat64()*0.8), 0.003), 2)
					continue
				}
				for j := range x.Reach {
					if x.Reach[j] > 0 {
						x.Reach[j] = math.Min(math.Max(x.Reach[j]*math.Exp(rng.NormFloat64()*0.5), 0.2), 10)
					}
				}
			}
		}
		if _, loss := b.judge(&try, in); loss+far(&try) < best {
			best = loss + far(&try)
			*k = try
		} else {
			undo()
		}
		if step%100 == 99 {
			_, other = b.judge(k, out)
			fmt.Fprintf(os.Stderr, "%d %.3f of it held back %.3f, other half %.3f, last %s\n", step, best, far(k), other, what)
		}
	}
	list, _ := b.judge(k, out)
	for _, v := range list {
		fmt.Fprintf(os.Stderr, "%-32s n %4.0f  %6.1f / %5.1f  cover %.0f\n", v.name, v.s.n, v.s.mape, v.s.median, v.cover)
	}
	fmt.Fprintf(os.Stderr, "%+v\nnoise %.3f\n", constants, k.Noise)
	for _, x := range k.Terms {
		fmt.Fprintf(os.Stderr, "%s: %.3g", x.Label, x.SD)
		for j, v := range x.Reach {
			if v > 0 {
				fmt.Fprintf(os.Stderr, " %d %.2g", j, v)
			}
		}
		fmt.Fprintln(os.Stderr)
	}
}
