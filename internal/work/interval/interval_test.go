package interval

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"scrimp/internal/test/must"
	"scrimp/internal/work/pipeline"
)

// file is a file of examples with names.
func file(values []float64) string {
	b := strings.Builder{}
	b.WriteString("id,score\n")
	for i, v := range values {
		fmt.Fprintf(&b, "e%d,%s\n", i, strconv.FormatFloat(v, 'f', -1, 64))
	}
	return b.String()
}

func read(t testing.TB, text string) *Examples {
	t.Helper()
	e, err := Read("each.csv", []byte(text), "score")
	must.Do(t, err)
	return e
}

var sure = big.NewRat(95, 100)

// plain resamples numbers in the plainest way: the means of so many draws, sorted.
func plain(draws *rand.PCG, values []float64) []float64 {
	list := make([]float64, Resamples)
	for i := range list {
		sum := 0.0
		for range values {
			at, _ := bits.Mul64(draws.Uint64(), uint64(len(values)))
			sum += values[at]
		}
		list[i] = sum / float64(len(values))
	}
	return list
}

// The interval is that of a plain bootstrap in floating point, for paired and for other examples and for a number.
func TestOf_AgreesWithAPlainBootstrap(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 5 {
		n := 20 + rng.IntN(100)
		a, b, d := make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range a {
			b[i] = math.Round(rng.NormFloat64()*1000) / 1000
			a[i] = math.Round((b[i]+rng.NormFloat64()/4)*1000) / 1000
			d[i] = a[i] - b[i]
		}
		ends := func(list []float64) (low, high float64) {
			slices.Sort(list)
			return list[100], list[Resamples-101] // 2.5 % of 4,000 on each side
		}
		unpaired := func() []float64 {
			draws := rand.NewPCG(Seed, 0)
			list := plain(draws, a)
			for i, v := range plain(draws, b) {
				list[i] -= v
			}
			return list
		}
		number := plain(rand.NewPCG(Seed, 0), a)
		for i := range number {
			number[i] -= 0.25
		}
		for name, c := range map[string]struct {
			value, base string
			want        []float64
		}{
			"paired":   {file(a), file(b), plain(rand.NewPCG(Seed, 0), d)},
			"unpaired": {file(a), strings.ReplaceAll(file(b), "\ne", "\nf"), unpaired()},
			"number":   {file(a), "", number},
		} {
			base := (*Examples)(nil)
			if c.base != "" {
				base = read(t, c.base)
			}
			in, low, err := Of(read(t, c.value), base, big.NewRat(1, 4), sure, false)
			must.Do(t, err)
			wantLow, wantHigh := ends(c.want)
			high, _ := strconv.ParseFloat(in.High, 64)
			if is, _ := low.Float64(); math.Abs(is-wantLow) > 1e-9 || math.Abs(high-wantHigh) > 1e-9 || in.Paired != (name == "paired") {
				t.Errorf("%s: %s to %s, want %v to %v", name, in.Low, in.High, wantLow, wantHigh)
			}
			down, _, err := Of(read(t, c.value), base, big.NewRat(1, 4), sure, true)
			must.Do(t, err)
			if lower, _ := strconv.ParseFloat(down.Low, 64); math.Abs(lower+wantHigh) > 1e-9 {
				t.Errorf("%s: minimized it begins at %s, want %v", name, down.Low, -wantHigh)
			}
		}
	}
}

// Between two models that are equally good, the lower bound is above zero in few cases.
func TestOf_IsSeldomAboveZeroWithoutAGain(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	const lives = 150
	wrong := 0
	for range lives {
		a, b := make([]float64, 100), make([]float64, 100)
		for i := range a {
			hard := rng.Float64()
			if a[i], b[i] = 0, 0; rng.Float64() > hard {
				a[i] = 1
			}
			if rng.Float64() > hard {
				b[i] = 1
			}
		}
		_, low, err := Of(read(t, file(a)), read(t, file(b)), new(big.Rat), sure, false)
		must.Do(t, err)
		if low.Sign() > 0 {
			wrong++
		}
	}
	if wrong > lives*7/100 { // 2.5 % are expected; three standard deviations more are 6.3 %
		t.Errorf("%d of %d are above zero", wrong, lives)
	}
}

// Where each example gains exactly the same, the lower bound is exactly that: nothing is lost to rounding.
func TestOf_IsExactWhereAllExamplesGainTheSame(t *testing.T) {
	for _, gain := range []string{"0.005", "0.1", "0.0000001", "123456.789"} {
		g, err := pipeline.Decimal(gain)
		must.Do(t, err)
		a, b := strings.Builder{}, strings.Builder{}
		a.WriteString("id,score\n")
		b.WriteString("id,score\n")
		for i := range 1000 {
			v := big.NewRat(int64(i*37%1000), 1000)
			fmt.Fprintf(&b, "%d,%s\n", i, v.FloatString(3))
			fmt.Fprintf(&a, "%d,%s\n", i, new(big.Rat).Add(v, g).FloatString(7))
		}
		in, low, err := Of(read(t, a.String()), read(t, b.String()), new(big.Rat), sure, false)
		if err != nil || low.Cmp(g) != 0 || in.Low != gain {
			t.Errorf("the lower bound is %s, want %s: %v", in.Low, gain, err)
		}
	}
}

// The order of examples does not count, nor does the form of the file.
func TestRead_TakesEveryFormOfTheSame(t *testing.T) {
	var names, bare, lines, words, wide strings.Builder
	names.WriteString("score,example\n")
	wide.WriteString("id,loss,eval.score\n")
	for i := range 12 {
		v := i % 2
		fmt.Fprintf(&names, "%d, e%d\n", v, i)
		fmt.Fprintf(&bare, "%d\n", v)
		fmt.Fprintf(&lines, "{\"id\": \"e%d\", \"score\": %d}\n\n", i, v)
		fmt.Fprintf(&words, "{\"right\": %v}\n", v == 1)
		fmt.Fprintf(&wide, "e%d,9,%d\n", i, v)
	}
	for name, c := range map[string]struct {
		text, metric string
		named        bool
	}{
		"a.csv": {names.String(), "score", true}, "b.csv": {bare.String(), "score", false}, "c.jsonl": {lines.String(), "score", true},
		"d.jsonl": {words.String(), "score", false}, "e.csv": {"\ufeff" + wide.String(), "eval.score", true},
	} {
		e, err := Read(name, []byte(c.text), c.metric)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if e.Len() != 12 || e.Mean().Cmp(big.NewRat(1, 2)) != 0 || (e.names != nil) != c.named {
			t.Errorf("%s: %d examples with the mean %s, names: %v", name, e.Len(), e.Mean(), e.names)
		}
		if e.Agrees("0.5") != nil || e.Agrees("0.50") != nil || e.Agrees("0.49") == nil || e.Agrees("0.496") == nil || e.Agrees("1") != nil ||
			e.Agrees("5.0e-1") != nil || e.Agrees("4.9e-1") == nil || e.Agrees("4.996e-1") == nil || e.Agrees("0.499") == nil ||
			e.Agrees("0.4980") == nil {
			t.Errorf("%s agrees with what it should not, or not with what it should", name)
		}
	}
}

func TestRead_SaysWhatIsWrong(t *testing.T) {
	ten := strings.Repeat("1\n", 10)
	for text, want := range map[string]string{
		"":                              "has 0 examples: an interval needs at least 10",
		"1\n2\n":                        "has 2 examples",
		ten + "x\n":                     "line 11: the value of score: \"x\" is no decimal number",
		ten + "NaN\n":                   "is no decimal number",
		ten + "1,2\n":                   "wrong number of fields",
		"a,b\n1,2\n":                    "none of its columns is score: they are a, b",
		"id,score\n,1\n":                "line 2: the example has no name",
		"id,score\na,1\na,1\n":          "line 3: the example \"a\" is there twice",
		"{\"score\": 1}\n{\"other\":1}": "line 2 has no score",
		"{\"score\": 1}\n[1]":           "line 2 is no JSON object",
		"{\"score\": {\"a\": 1}}":       "is no decimal number",
		"id,score\n\"a,1\n":             "extraneous or missing \" in quoted-field",
		strings.Repeat("1\n", 100_001):  "more than 100000 examples",
	} {
		if _, err := Read("each.csv", []byte(text), "score"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("id,score\na,1\nb,0.5\n", "score")
	f.Add("{\"id\":1,\"score\":2}\n", "a.score")
	f.Fuzz(func(t *testing.T, text, metric string) {
		e, err := Read("each.csv", []byte(text), metric)
		if err != nil {
			return
		}
		if e.Len() < minExamples || e.names != nil && len(e.names) != e.Len() {
			t.Errorf("%d examples, %d names", e.Len(), len(e.names))
		}
	})
}

func BenchmarkOf(b *testing.B) {
	values := make([]float64, MaxExamples)
	for i := range values {
		values[i] = float64(i % 2)
	}
	a, c := read(b, file(values)), read(b, file(values))
	for b.Loop() {
		if _, _, err := Of(a, c, new(big.Rat), sure, false); err != nil {
			b.Fatal(err)
		}
	}
}
