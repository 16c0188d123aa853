package compress_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/test/must"
	"scrimp/internal/test/onnxrun"
	"scrimp/internal/work/compress"
	"scrimp/internal/work/onnx"
)

// squeeze compresses a model in memory and reads the result again.
func squeeze(t *testing.T, model []byte, method compress.Method, calibration ...onnxrun.Value) (*compress.Plan, []byte, *onnx.Model) {
	t.Helper()
	m, err := onnxrun.Load(model)
	must.Do(t, err)
	p, err := compress.New(m, compress.Options{Method: method, Sparsity: 0.5, Ranges: ranged(t, m, calibration)})
	must.Do(t, err)
	var out bytes.Buffer
	n, err := p.Write(&out)
	if err != nil || n != int64(out.Len()) {
		t.Fatalf("%d bytes are written, %d reported: %v", out.Len(), n, err)
	}
	again, err := onnxrun.Load(out.Bytes())
	must.Do(t, err)
	return p, out.Bytes(), again
}

// int8 and int4 keep the classifier of digits within half a point and two points; the sizes are what the bits say.
func TestNew_KeepsTheClassifierOfDigits(t *testing.T) {
	t.Parallel()
	model := onnxrun.Classifier(7)
	m, err := onnxrun.Load(model)
	must.Do(t, err)
	held := onnxrun.Digits(1000, 99)
	before, err := onnxrun.Accuracy(m, held)
	if err != nil || before < 0.9 || before > 0.999 {
		t.Fatalf("the original reads %.3f of the digits: %v", before, err)
	}
	for method, limit := range map[compress.Method]struct{ ratio, fall float64 }{compress.Int8Dynamic: {0.30, 0.005},
		compress.Int8Static:  {0.30, 0.005},
		compress.Int4Weights: {0.20, 0.02}, compress.PruneUnstructured: {1.001, 0.05}, compress.PruneStructured: {0.52, 0.15}} {
		var calibration []onnxrun.Value
		if method == compress.Int8Static {
			for _, s := range onnxrun.Digits(200, 5) {
				calibration = append(calibration, onnxrun.Value{Dims: []int{1, 64}, V: s.Pixels[:]})
			}
		}
		p, out, small := squeeze(t, model, method, calibration...)
		after, err := onnxrun.Accuracy(small, held)
		ratio := float64(len(out)) / float64(len(model))
		t.Logf("%s: %.4f -> %.4f, size %.3f, %+v", method, before, after, ratio, p.Layers)
		if err != nil || before-after > limit.fall || ratio > limit.ratio {
			t.Errorf("%s: %.4f falls to %.4f, the size is %.3f: %v", method, before, after, ratio, err)
		}
	}
}

// mix is a model with each form of weight, and random inputs for it.
func mix(rng *rand.Rand, rows, cols int) (model []byte, in onnxrun.Value, w []float64) {
	g := &onnxrun.Graph{Opset: 17}
	g.Value(false, "x", -1, int64(rows))
	g.Value(true, "y", -1, int64(cols))
	v, bias := make([]float32, rows*cols), make([]float32, cols)
	for i := range v {
		v[i] = float32(rng.NormFloat64() * math.Exp(rng.NormFloat64()))
		w = append(w, float64(v[i]))
	}
	for i := range bias {
		bias[i] = float32(rng.NormFloat64())
	}
	packed := rng.IntN(2) == 0
	if rng.IntN(2) == 0 {
		g.Floats("w", packed, v, int64(cols), int64(rows))
		g.Floats("b", packed, bias, int64(cols))
		g.Node("Gemm", []string{"x", "w", "b"}, "y", onnxrun.Int("transB", 1))
		turned := make([]float64, len(w))
		for i := range w {
			turned[i%rows*cols+i/rows] = w[i]
		}
		w = turned
	} else {
		g.Floats("w", packed, v, int64(rows), int64(cols))
		g.Node("MatMul", []string{"x", "w"}, "y")
	}
	in = onnxrun.Value{Dims: []int{3, rows}}
	for range 3 * rows {
		in.V = append(in.V, 2*rng.NormFloat64())
	}
	return g.Bytes(), in, w
}

// The outputs of a compressed layer differ by no more than the steps of weights and activations allow: for each output
// the sum over the rows of |x| times half a step of the weight, and of the weight times half a step of x and its zero.
func TestNew_KeepsOutputsWithinTheStepsOfQuantisation(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		rows, cols := 6+rng.IntN(95), 1+rng.IntN(20)
		model, in, w := mix(rng, rows, cols)
		m, _ := onnxrun.Load(model)
		want, err := onnxrun.Run(m, in)
		must.Do(t, err)
		low, high := 0.0, 0.0
		for _, x := range in.V {
			low, high = min(low, x), max(high, x)
		}
		for method, levels := range map[compress.Method]float64{compress.Int8Dynamic: 127, compress.Int4Weights: 7} {
			p, _, small := squeeze(t, model, method)
			got, err := onnxrun.Run(small, in)
			must.Do(t, err)
			l := p.Layers[0]
			if !(l.Diff <= l.Bound*(1+1e-6)) || l.Bound == 0 {
				t.Errorf("seed %d, %s: the largest difference %g is above %g", seed, method, l.Diff, l.Bound)
			}
			block, stepX := rows, (high-low)/255
			if method == compress.Int4Weights {
				block, stepX = 32, 0
			}
			for i := range got.V {
				bound, col := 1e-4, i%cols
				for r := range rows {
					top := 0.0
					for k := r / block * block; k < min(rows, r/block*block+block); k++ {
						top = max(top, math.Abs(w[k*cols+col]))
					}
					half := top / levels / 2
					bound += (math.Abs(in.V[i/cols*rows+r])+stepX)*half + math.Abs(w[r*cols+col])*stepX
				}
				if math.Abs(got.V[i]-want.V[i]) > bound {
					t.Errorf("seed %d, %s: output %d differs by %g, at most %g", seed, method, i,
						math.Abs(got.V[i]-want.V[i]), bound)
				}
			}
		}
	}
}

// Pruning sets exactly the share to zero, and each weight that stays is at least as large as each that goes.
func TestNew_PrunesTheSmallestWeights(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 4))
		g := &onnxrun.Graph{Opset: 17}
		v := make([]float32, 6*(1+rng.IntN(40)))
		for i := range v {
			v[i] = float32(rng.IntN(9)-4) / 4 // many are equal
			if v[i] == 0 {
				v[i] = 5
			}
		}
		g.Value(false, "x", -1, 6)
		g.Floats("w", false, v, 6, int64(len(v)/6))
		g.Node("MatMul", []string{"x", "w"}, "y")
		g.Value(true, "y", -1, int64(len(v)/6))
		p, out, small := squeeze(t, g.Bytes(), compress.PruneUnstructured)
		if len(out) != len(g.Bytes()) {
			t.Errorf("seed %d: %d bytes become %d", seed, len(g.Bytes()), len(out))
		}
		zeros, gone, stays := 0, 0.0, math.Inf(1)
		must.Do(t, small.Tensors["w"].Floats(func(at int64, part []float32) error {
			for i, x := range part {
				old := math.Abs(float64(v[int(at)+i]))
				if x == 0 {
					zeros, gone = zeros+1, max(gone, old)
				} else {
					stays = min(stays, old)
				}
			}
			return nil
		}))
		if l := p.Layers[0]; zeros != len(v)/2 || l.Zeros != int64(zeros) || gone > stays || l.Diff != gone {
			t.Errorf("seed %d: %d of %d are zero, up to %g; %g stays; %+v", seed, zeros, len(v), gone, stays, l)
		}
	}
}

// A layer that cannot change stays as it is, with its reason, and the others change.
func TestNew_SkipsLayersWithTheirReason(t *testing.T) {
	t.Parallel()
	base := func() *onnxrun.Graph {
		g := &onnxrun.Graph{Opset: 17}
		g.Value(false, "x", -1, 2)
		g.Value(true, "z", -1, 2)
		g.Floats("w", false, []float32{1, 2, 3, 4}, 2, 2)
		g.Node("MatMul", []string{"x", "w"}, "y")
		return g
	}
	for want, add := range map[string]func(g *onnxrun.Graph){
		"alpha is 0.5": func(g *onnxrun.Graph) {
			g.Floats("v", false, []float32{1, 2, 3, 4}, 2, 2)
			g.Node("Gemm", []string{"y", "v"}, "z", onnxrun.Float("alpha", 0.5))
		},
		"transA is set": func(g *onnxrun.Graph) {
			g.Floats("v", false, []float32{1, 2, 3, 4}, 2, 2)
			g.Node("Gemm", []string{"y", "v"}, "z", onnxrun.Int("transA", 1))
		},
		"the model uses the weight in 1 other place as well": func(g *onnxrun.Graph) {
			g.Floats("v", false, []float32{1, 2, 3, 4}, 2, 2)
			g.Node("Add", []string{"y", "v"}, "a")
			g.Node("MatMul", []string{"a", "v"}, "z")
		},
		"no constant": func(g *onnxrun.Graph) { g.Node("Gemm", []string{"y", "y"}, "z") },
		"is an input of the graph": func(g *onnxrun.Graph) {
			g.Value(false, "v", 2, 2)
			g.Floats("v", false, []float32{1, 2, 3, 4}, 2, 2)
			g.Node("MatMul", []string{"y", "v"}, "z")
		},
		"a column of 1 row would take 5 bytes instead of 4": func(g *onnxrun.Graph) {
			g.Floats("v", false, []float32{1, 2}, 1, 2)
			g.Node("Gemm", []string{"y", "v"}, "z")
		},
		"16 bits already": func(g *onnxrun.Graph) {
			g.Tensor("v", onnx.Float16, 9, make([]byte, 8), 2, 2)
			g.Node("MatMul", []string{"y", "v"}, "z")
		},
	} {
		g := base()
		add(g)
		p, _, _ := squeeze(t, g.Bytes(), compress.Int8Dynamic)
		if len(p.Layers) != 2 || p.Layers[0].Skipped != "" || !strings.Contains(p.Layers[1].Skipped, want) {
			t.Errorf("%s: %+v", want, p.Layers)
		}
	}
}

// A weight that a node uses in another way, as an embedding or a bias, keeps its bytes with every method: a change would
// reach that node, too.
func TestNew_KeepsAWeightThatOtherNodesUse(t *testing.T) {
	t.Parallel()
	for what, other := range map[string]func(g *onnxrun.Graph){
		"Gather":      func(g *onnxrun.Graph) { g.Node("Gather", []string{"v", "ids"}, "other") },
		"Add":         func(g *onnxrun.Graph) { g.Node("Add", []string{"y", "v"}, "other") },
		"output":      func(g *onnxrun.Graph) { g.Value(true, "v", 6, 6) },
		"first input": func(g *onnxrun.Graph) { g.Node("MatMul", []string{"v", "y"}, "other") },
	} {
		g := &onnxrun.Graph{Opset: 17}
		g.Value(false, "x", -1, 6)
		g.Value(false, "ids", -1)
		v := make([]float32, 36)
		for i := range v {
			v[i] = float32(i+1) / 8
		}
		g.Floats("w", false, v, 6, 6)
		g.Floats("v", false, v, 6, 6)
		g.Node("MatMul", []string{"x", "w"}, "y")
		g.Node("MatMul", []string{"y", "v"}, "z")
		other(g)
		g.Value(true, "z", -1, 6)
		for _, method := range []compress.Method{compress.Int8Dynamic, compress.Int4Weights, compress.PruneUnstructured} {
			p, _, small := squeeze(t, g.Bytes(), method)
			if l := p.Layers[1]; !strings.Contains(l.Skipped, "in 1 other place as well") || p.Layers[0].Skipped != "" {
				t.Errorf("%s, %s: %+v", what, method, p.Layers)
			}
			same := small.Tensors["v"] != nil && small.Tensors["v"].Floats(func(at int64, part []float32) error {
				if !slices.Equal(part, v[at:int(at)+len(part)]) {
					t.Errorf("%s, %s: the weight changes", what, method)
				}
				return nil
			}) == nil
			if !same {
				t.Errorf("%s, %s: the weight is gone", what, method)
			}
		}
	}
}

// What no method can change is refused with the reason, and so are methods that scrimp does not have.
func TestNew_RefusesModelsWithoutAWeightToChange(t *testing.T) {
	t.Parallel()
	for want, g := range map[string]*onnxrun.Graph{"needs opset 11": {Opset: 9}, "and the model has none": {Opset: 17}} {
		g.Value(false, "x", 1)
		g.Node("Relu", []string{"x"}, "y")
		g.Value(true, "y", 1)
		m, err := onnxrun.Load(g.Bytes())
		must.Do(t, err)
		if _, err := compress.New(m, compress.Options{Method: compress.Int8Dynamic}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if m, err := compress.ParseMethod("zip"); err == nil {
		t.Errorf("zip is %s", m)
	}
}

// Layers that share an input share its quantised form.
func TestNew_QuantisesASharedInputOnce(t *testing.T) {
	t.Parallel()
	g := &onnxrun.Graph{Opset: 17}
	g.Value(false, "x", -1, 2)
	for _, name := range []string{"q", "k"} {
		g.Floats("w"+name, false, []float32{1, -2, 3, 4}, 2, 2)
		g.Node("MatMul", []string{"x", "w" + name}, name)
	}
	g.Node("Add", []string{"q", "k"}, "y")
	g.Value(true, "y", -1, 2)
	_, _, small := squeeze(t, g.Bytes(), compress.Int8Dynamic)
	count := 0
	for _, n := range small.Nodes {
		if n.Op == "DynamicQuantizeLinear" {
			count++
		}
	}
	if count != 1 {
		t.Errorf("%d quantisations of one input", count)
	}
}

// FuzzNew: whatever can be read is compressed or refused, and a copy that was written can be read again.
func FuzzNew(f *testing.F) {
	for seed := range uint64(4) {
		model, _, _ := mix(rand.New(rand.NewPCG(seed, 5)), 8, 3)
		f.Add(model, uint8(seed))
	}
	for which := range compress.Methods {
		f.Add(cnn(1, map[string][]float32{}).Bytes(), uint8(which))
	}
	f.Fuzz(func(t *testing.T, b []byte, which uint8) {
		m, err := onnxrun.Load(b)
		if err != nil {
			return
		}
		ranges := map[string]compress.Range{}
		for _, name := range compress.Activations(m) {
			ranges[name] = compress.Range{Low: -1, High: 3}
		}
		p, err := compress.New(m, compress.Options{Method: compress.Methods[int(which)%len(compress.Methods)], Sparsity: 0.5,
			Ranges: ranges})
		if err != nil {
			return
		}
		var out bytes.Buffer
		if _, err := p.Write(&out); err != nil {
			if !strings.Contains(err.Error(), "not finite") {
				t.Fatal(err)
			}
			return
		}
		if again, err := onnxrun.Load(out.Bytes()); err != nil || len(again.Outputs) != len(m.Outputs) {
			t.Fatalf("the copy: %v", err)
		}
	})
}
