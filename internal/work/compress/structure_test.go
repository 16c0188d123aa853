package compress_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/test/must"
	"scrimp/internal/test/onnxrun"
	"scrimp/internal/work/compress"
)

// layered is a graph that a test builds from layers of weights.
type layered struct {
	onnxrun.Graph
	rng *rand.Rand
	w   map[string][]float32
}

// add adds a constant of random numbers.
func (l *layered) add(name string, dims ...int64) {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(l.rng.NormFloat64())
	}
	if strings.HasPrefix(name, "variance") {
		for i := range v {
			v[i] = v[i]*v[i] + 0.1
		}
	}
	if l.w[name] == nil { // a test may give other values
		l.w[name] = v
	}
	l.Floats(name, false, l.w[name], dims...)
}

// cnn is a network of images: two convolutions with a norm, a scale for each channel and a pool, and two matrices. With
// mask it has the same weights and zeros where the layers read the channels that go.
func cnn(seed uint64, w map[string][]float32) *layered {
	l := &layered{rng: rand.New(rand.NewPCG(seed, 8)), w: w}
	l.Opset = 17
	l.Value(false, "x", -1, 2, 8, 8)
	l.add("w1", 6, 2, 3, 3)
	l.add("b1", 6)
	l.Node("Conv", []string{"x", "w1", "b1"}, "c1", onnxrun.Ints("pads", 1, 1, 1, 1))
	for _, v := range []string{"scale", "shift", "mean", "variance"} {
		l.add(v, 6)
	}
	l.Node("BatchNormalization", []string{"c1", "scale", "shift", "mean", "variance"}, "n1")
	l.Node("Relu", []string{"n1"}, "r1")
	l.Node("MaxPool", []string{"r1"}, "p1", onnxrun.Ints("kernel_shape", 2, 2), onnxrun.Ints("strides", 2, 2))
	l.add("w2", 5, 6, 3, 3)
	l.Node("Conv", []string{"p1", "w2"}, "c2")
	l.add("times", 5, 1, 1)
	l.Node("Mul", []string{"times", "c2"}, "m2")
	l.Node("Flatten", []string{"m2"}, "f2")
	l.add("w3", 20, 7)
	l.add("b3", 7)
	l.Node("MatMul", []string{"f2", "w3"}, "y3")
	l.Node("Add", []string{"y3", "b3"}, "a3")
	l.Node("Relu", []string{"a3"}, "r3")
	l.add("w4", 3, 7)
	l.add("b4", 3)
	l.Node("Gemm", []string{"r3", "w4", "b4"}, "z", onnxrun.Int("transB", 1), onnxrun.Float("alpha", 0.5))
	l.Value(true, "z", -1, 3)
	return l
}

// smallest returns the n channels with the smallest L1 norm. in returns the channel of an element.
func smallest(w []float32, count, n int, in func(i int) int) map[int]bool {
	norms := make([]float64, count)
	for i, v := range w {
		norms[in(i)] += math.Abs(float64(v))
	}
	sorted := slices.Sorted(slices.Values(norms))
	gone := map[int]bool{}
	for c, v := range norms {
		if v < sorted[n] {
			gone[c] = true
		}
	}
	return gone
}

// A model without its weakest channels computes what the whole model computes when the layers after them do not read
// those channels: the test finds the channels a second time and sets the weights that read them to zero.
func TestNew_RemovesChannelsAsIfNobodyReadThem(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		whole := cnn(seed, map[string][]float32{})
		masked := map[string][]float32{}
		for name, v := range whole.w {
			masked[name] = slices.Clone(v)
		}
		zero := func(name string, gone map[int]bool, in func(i int) int) {
			for i := range masked[name] {
				if gone[in(i)] {
					masked[name][i] = 0
				}
			}
		}
		zero("w2", smallest(whole.w["w1"], 6, 3, func(i int) int { return i / 18 }), func(i int) int { return i / 9 % 6 })
		zero("w3", smallest(whole.w["w2"], 5, 2, func(i int) int { return i / 54 }), func(i int) int { return i / 7 / 4 })
		zero("w4", smallest(whole.w["w3"], 7, 3, func(i int) int { return i % 7 }), func(i int) int { return i % 7 })
		in := onnxrun.Value{Dims: []int{2, 2, 8, 8}}
		for range 256 {
			in.V = append(in.V, whole.rng.NormFloat64())
		}
		m, err := onnxrun.Load(cnn(seed, masked).Bytes())
		must.Do(t, err)
		want, err := onnxrun.Run(m, in)
		must.Do(t, err)
		p, out, small := squeeze(t, whole.Bytes(), compress.PruneStructured)
		got, err := onnxrun.Run(small, in)
		must.Do(t, err)
		for i := range want.V {
			if math.Abs(got.V[i]-want.V[i]) > 1e-9*max(1, math.Abs(want.V[i])) {
				t.Errorf("seed %d: output %d is %g, want %g", seed, i, got.V[i], want.V[i])
			}
		}
		for name, dims := range map[string][]int64{"w1": {3, 2, 3, 3}, "b1": {3}, "mean": {3}, "w2": {3, 3, 3, 3}, "times": {3, 1, 1},
			"w3": {12, 4}, "b3": {4}, "w4": {3, 4}, "b4": {3}} {
			if !slices.Equal(small.Tensors[name].Dims, dims) {
				t.Errorf("%s has the shape %v, want %v", name, small.Tensors[name].Dims, dims)
			}
		}
		for i, removed := range []int64{3, 2, 3, 0} {
			if l := p.Layers[i]; l.Removed != removed || (l.Skipped == "") != (removed > 0) || l.Diff > l.Bound {
				t.Errorf("layer %d: %+v", i, l)
			}
		}
		if n := m.Parameters() - small.Parameters(); p.Changed() != n {
			t.Errorf("%d parameters are gone, and %d are reported", n, p.Changed())
		}
		if len(out) >= len(whole.Bytes()) {
			t.Errorf("%d bytes become %d", len(whole.Bytes()), len(out))
		}
	}
}

// A layer whose channels reach something that scrimp does not understand keeps them, with the reason.
func TestNew_KeepsChannelsThatReachTheUnknown(t *testing.T) {
	t.Parallel()
	for want, add := range map[string]func(l *layered){
		"reach an output of the model":              func(l *layered) { l.Value(true, "y", -1, 4) },
		`Softmax "node_s"`:                          func(l *layered) { l.Node("Softmax", []string{"y"}, "s") },
		"combined with \"x\", which is no constant": func(l *layered) { l.Node("Add", []string{"y", "x"}, "s") },
		"transA is set": func(l *layered) {
			l.add("v", 4, 4)
			l.Node("Gemm", []string{"y", "v"}, "s", onnxrun.Int("transA", 1))
		},
		"in 1 other place as well": func(l *layered) { l.Node("MatMul", []string{"x", "w"}, "s") },
		"has the shape [3]": func(l *layered) {
			l.add("v", 3)
			l.Node("Add", []string{"y", "v"}, "s")
		},
	} {
		l := &layered{rng: rand.New(rand.NewPCG(1, 9)), w: map[string][]float32{}}
		l.Opset = 17
		l.Value(false, "x", -1, 4)
		for _, name := range []string{"w", "w2", "k", "k2"} {
			l.add(name, 4, 4)
		}
		l.Node("MatMul", []string{"x", "w"}, "y")
		l.Node("MatMul", []string{"y", "w2"}, "z")
		l.Node("MatMul", []string{"x", "k"}, "u")
		l.Node("MatMul", []string{"u", "k2"}, "o")
		add(l)
		l.Value(true, "z", -1, 4)
		l.Value(true, "o", -1, 4)
		p, _, small := squeeze(t, l.Bytes(), compress.PruneStructured)
		if got := p.Layers[0]; !strings.Contains(got.Skipped, want) || p.Layers[2].Removed != 2 {
			t.Errorf("%s: %+v", want, p.Layers)
		}
		if !slices.Equal(small.Tensors["w"].Dims, []int64{4, 4}) || !slices.Equal(small.Tensors["k"].Dims, []int64{4, 2}) {
			t.Errorf("%s: the shapes are %v and %v", want, small.Tensors["w"].Dims, small.Tensors["k"].Dims)
		}
	}
}
