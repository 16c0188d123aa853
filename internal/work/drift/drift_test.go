package drift

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func csvOf(name string, values []string) File {
	return File{name + ".csv", []byte("x\n" + strings.Join(values, "\n") + "\n")}
}

func floats(values []float64) (list []string) {
	for _, v := range values {
		list = append(list, fmt.Sprint(v))
	}
	return list
}

func times(values ...any) (list []string) {
	for i := 0; i < len(values); i += 2 {
		for range values[i+1].(int) {
			list = append(list, fmt.Sprint(values[i]))
		}
	}
	return list
}

// Values worked by hand.
func TestMeasure_AgreesWithHandWorkedValues(t *testing.T) {
	for _, c := range []struct {
		name           string
		now, reference []string
		test           string
		want           float64
	}{
		// 0.25 ln(0.75/0.5) - 0.25 ln(0.25/0.5)
		{"half and half to three quarters", times("a", 75, "b", 25), times("a", 50, "b", 50), PSI, 0.274653},
		{"the same shares", times("a", 10, "b", 10), times("a", 50, "b", 50), PSI, 0},
		// (1 - 0.0001) ln(1/0.0001) for each of the two
		{"another text", times("b", 10), times("a", 10), PSI, 18.418839},
		// ten bins of a tenth each: all in the last. 9 (0.0001-0.1) ln(0.001) + 0.9 ln 10
		{"all numbers above", floats([]float64{99, 99}), floats([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), PSI, 8.283089},
		{"the same numbers", floats([]float64{3, 1, 2}), floats([]float64{1, 2, 3}), KS, 0},
		// 1 2 3 4 and 3 4 5 6: at 2, half of the first and none of the second
		{"half of them shifted", floats([]float64{3, 4, 5, 6}), floats([]float64{1, 2, 3, 4}), KS, 0.5},
		{"all below", floats([]float64{-1, -2}), floats([]float64{1, 2, 3}), KS, 1},
		{"ties", floats([]float64{1, 1, 1, 2}), floats([]float64{1, 2, 2, 2}), KS, 0.5},
	} {
		got, err := Measure(csvOf("now", c.now), csvOf("reference", c.reference), c.test, nil)
		if err != nil || len(got) != 1 || math.Abs(got[0].Value-c.want) > 1e-6 {
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}

// The distance equals the largest over all points of both samples, each counted plainly.
func TestMeasure_AgreesWithAPlainKS(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		sample := func() (list []float64) {
			for range 1 + rng.IntN(40) {
				list = append(list, float64(rng.IntN(20))/4)
			}
			return list
		}
		a, b := sample(), sample()
		share := func(list []float64, x float64) float64 {
			n := 0
			for _, v := range list {
				if v <= x {
					n++
				}
			}
			return float64(n) / float64(len(list))
		}
		want := 0.0
		for _, x := range append(append([]float64{}, a...), b...) {
			want = max(want, math.Abs(share(a, x)-share(b, x)))
		}
		got, err := Measure(csvOf("now", floats(b)), csvOf("reference", floats(a)), KS, nil)
		if err != nil || math.Abs(got[0].Value-want) > 1e-6 {
			t.Fatalf("%v, %v, want %v", got, err, want)
		}
	}
}

// Samples of one distribution drift little, a shifted one much; either test is 0 for a file and itself.
func TestMeasure_TellsAShiftFromNone(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	sample := func(shift float64) (list []string) {
		for range 2000 {
			list = append(list, fmt.Sprint(rng.NormFloat64()+shift))
		}
		return list
	}
	reference, same, moved := csvOf("r", sample(0)), csvOf("s", sample(0)), csvOf("m", sample(0.7))
	for test, limit := range map[string]float64{PSI: 0.1, KS: 0.06} {
		for _, c := range []struct {
			file     File
			low, top float64
		}{{reference, 0, 0}, {same, 0, limit}, {moved, 2.5 * limit, 9}} {
			got, err := Measure(c.file, reference, test, nil)
			if err != nil || got[0].Value < c.low || got[0].Value > c.top {
				t.Errorf("%s of %s: %v, %v, want %v to %v", test, c.file.Name, got, err, c.low, c.top)
			}
		}
	}
}

func TestMeasure_SortsColumnsAndCountsMissingValues(t *testing.T) {
	reference := File{"r.csv", []byte("id,a,b\n1,5,x\n2,6,y\n3,7,x\n4,8,y\n")}
	now := File{"n.csv", []byte("b,a,extra\nx,5,1\ny,,1\nx,NaN,1\nx,oops,1\n")}
	got, err := Measure(now, reference, PSI, []string{"a", "b"})
	if err != nil || len(got) != 2 || got[0].Name != "a" || got[0].Value < 1 || got[1].Value > 0.3 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestMeasure_SaysWhatIsWrong(t *testing.T) {
	good := csvOf("good", times(1, 3, 2, 3))
	for _, c := range []struct {
		now, reference File
		test           string
		names          []string
		want           string
	}{
		{File{"n.csv", nil}, good, PSI, nil, "n.csv has no rows"},
		{File{"n.csv", []byte("x\n")}, good, PSI, nil, "n.csv has no rows"},
		{File{"n.csv", []byte("x,x\n1,2\n")}, good, PSI, nil, "there twice"},
		{File{"n.csv", []byte("x,y\n1\n")}, good, PSI, nil, "wrong number of fields"},
		{File{"n.csv", []byte("y\n1\n")}, good, PSI, nil, `n.csv has no column "x": its columns are y`},
		{good, good, KS, []string{"z"}, `good.csv has no column "z"`},
		{good, csvOf("r", times("a", 3)), KS, nil, "r.csv has no column of numbers"},
		{good, csvOf("r", times("a", 3)), KS, []string{"x"}, "no numbers to compare in r.csv"},
		{csvOf("n", times("a", 3)), good, KS, nil, "no numbers to compare in n.csv"},
		{File{"n.csv", make([]byte, MaxBytes+1)}, good, KS, nil, "bytes: keep at most"},
		{File{"n.csv", []byte(strings.Repeat("a,", MaxColumns) + "b\n")}, good, KS, nil, "201 columns"},
	} {
		_, err := Measure(c.now, c.reference, c.test, c.names)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

func FuzzMeasure(f *testing.F) {
	f.Add([]byte("x\n1\n2\n"), []byte("x\n1\na\n"))
	f.Add([]byte("x,y\n1,\n"), []byte("y,x\nNaN,1e999\n"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		for _, test := range []string{PSI, KS} {
			list, err := Measure(File{"a", a}, File{"b", b}, test, nil)
			for _, c := range list {
				if err != nil || math.IsNaN(c.Value) || c.Value < 0 || c.Value > 1000 {
					t.Errorf("%+v, %v", c, err)
				}
			}
		}
	})
}
