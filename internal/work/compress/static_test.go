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
	"scrimp/internal/work/onnx"
	"scrimp/internal/work/onnx/forward"
)

// ranged returns the ranges of the activations of a model on calibration data.
func ranged(t *testing.T, m *onnx.Model, calibration []onnxrun.Value) map[string]compress.Range {
	t.Helper()
	if len(calibration) == 0 {
		return nil
	}
	net, err := forward.New(m)
	must.Do(t, err)
	ranges := map[string]compress.Range{}
	for _, v := range calibration {
		in := forward.Value{Dims: v.Dims}
		for _, x := range v.V {
			in.V = append(in.V, float32(x))
		}
		err := net.Run(map[string]forward.Value{net.Inputs()[0]: in}, func(name string, v forward.Value) error {
			if slices.Contains(compress.Activations(m), name) {
				r := ranges[name]
				r.Add(v.V)
				ranges[name] = r
			}
			return nil
		})
		must.Do(t, err)
	}
	return ranges
}

// The outputs of a layer that int8-static rounds differ on the calibration data by no more than the steps allow: for
// each output the sum over the rows of |x| times half a step of the weight, and of the weight times a step of x, and
// half a step of the bias.
func TestNew_KeepsOutputsWithinTheStepsOfStaticRanges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 13))
		rows, cols := 6+rng.IntN(95), 1+rng.IntN(20)
		model, in, w := mix(rng, rows, cols)
		m, _ := onnxrun.Load(model)
		want, err := onnxrun.Run(m, in)
		must.Do(t, err)
		p, _, small := squeeze(t, model, compress.Int8Static, in)
		got, err := onnxrun.Run(small, in)
		must.Do(t, err)
		if l := p.Layers[0]; !(l.Diff <= l.Bound*(1+1e-6)) || l.Bound == 0 || l.Skipped != "" {
			t.Errorf("seed %d: %+v", seed, l)
		}
		stepX := (max(0, slices.Max(in.V)) - min(0, slices.Min(in.V))) / 255
		for i := range got.V {
			bound, col, top := 1e-4, i%cols, 0.0
			for r := range rows {
				top = max(top, math.Abs(w[r*cols+col]))
			}
			for r := range rows {
				bound += (math.Abs(in.V[i/cols*rows+r])+stepX)*top/127/2 + math.Abs(w[r*cols+col])*stepX
			}
			bound += stepX * top / 127 / 2 // the bias
			if math.Abs(got.V[i]-want.V[i]) > bound {
				t.Errorf("seed %d: output %d differs by %g, at most %g", seed, i, math.Abs(got.V[i]-want.V[i]), bound)
			}
		}
	}
}

// A network of images keeps its outputs nearly: each layer is rounded, a shared input once, and a bias where it fits.
func TestNew_RoundsANetworkOfImages(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		whole := cnn(seed, map[string][]float32{})
		in := onnxrun.Value{Dims: []int{2, 2, 8, 8}}
		for range 256 {
			in.V = append(in.V, whole.rng.NormFloat64())
		}
		m, _ := onnxrun.Load(whole.Bytes())
		want, err := onnxrun.Run(m, in)
		must.Do(t, err)
		p, out, small := squeeze(t, whole.Bytes(), compress.Int8Static, in)
		got, err := onnxrun.Run(small, in)
		must.Do(t, err)
		size, off := 0.0, 0.0
		for i := range want.V {
			size, off = max(size, math.Abs(want.V[i])), max(off, math.Abs(got.V[i]-want.V[i]))
		}
		if off > 0.05*size || off == 0 {
			t.Errorf("seed %d: outputs up to %g differ by %g", seed, size, off)
		}
		for _, l := range p.Layers {
			if l.Skipped != "" || l.Diff > l.Bound*(1+1e-6) {
				t.Errorf("seed %d: %+v", seed, l)
			}
		}
		if small.Tensors["b1_int32"] == nil || small.Tensors["w1_int8"] == nil || small.Tensors["w1"] != nil || len(out) >= len(whole.Bytes()) {
			t.Errorf("seed %d: the tensors are %d bytes", seed, len(out))
		}
	}
}

// A layer whose input has no range, whose weight others use, or whose rows are few stays with its reason. A bias that
// other nodes use stays as it is.
func TestNew_SkipsLayersThatStaticRangesDoNotFit(t *testing.T) {
	t.Parallel()
	l := &layered{rng: rand.New(rand.NewPCG(2, 9)), w: map[string][]float32{}}
	l.Opset = 17
	l.Value(false, "x", -1, 8)
	l.add("a", 8, 8)
	l.add("bias", 8)
	l.add("v", 8, 8)
	l.add("thin", 1, 8)
	l.Node("Gemm", []string{"x", "a", "bias"}, "y")
	l.Node("Add", []string{"y", "bias"}, "z")
	l.Node("MatMul", []string{"z", "v"}, "u")
	l.Node("Gemm", []string{"u", "v"}, "o", onnxrun.Int("transB", 1))
	l.Node("Gemm", []string{"o", "thin"}, "p", onnxrun.Int("transB", 1))
	l.Value(true, "p", -1, 1)
	m, err := onnxrun.Load(l.Bytes())
	must.Do(t, err)
	p, err := compress.New(m, compress.Options{Method: compress.Int8Static, Ranges: map[string]compress.Range{"x": {Low: -1, High: 1},
		"z": {Low: -1, High: 1}, "u": {Low: -1, High: 1}}})
	must.Do(t, err)
	for i, want := range []string{"", "in 1 other place", "in 1 other place", `no values of "o"`} {
		if got := p.Layers[i].Skipped; (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("layer %d: %q, want %q", i, got, want)
		}
	}
	if _, err := compress.New(m, compress.Options{Method: compress.Int8Static}); err == nil || !strings.Contains(err.Error(), `no values of "x"`) {
		t.Errorf("without ranges: %v", err)
	}
}
