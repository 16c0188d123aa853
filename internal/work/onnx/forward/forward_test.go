package forward_test

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"scrimp/internal/test/must"
	"scrimp/internal/test/onnxrun"
	"scrimp/internal/work/onnx"
	"scrimp/internal/work/onnx/forward"
)

// graph builds a model with random constants.
type graph struct {
	onnxrun.Graph
	rng *rand.Rand
}

func (g *graph) add(name string, dims ...int64) {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	v := make([]float32, n)
	for i := range v {
		if v[i] = float32(g.rng.NormFloat64()); name == "variance" {
			v[i] = v[i]*v[i] + 0.1
		}
	}
	g.Floats(name, false, v, dims...)
}

func integers(list ...int64) (b []byte) {
	for _, v := range list {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

// images is a network with each operator that both evaluators know.
func images(seed uint64) *graph {
	g := &graph{rng: rand.New(rand.NewPCG(seed, 8))}
	g.Opset = 17
	g.Value(false, "x", -1, 2, 9, 8)
	g.add("w1", 6, 2, 3, 3)
	g.add("b1", 6)
	g.Node("Conv", []string{"x", "w1", "b1"}, "c1", onnxrun.Ints("pads", 1, 1, 1, 1), onnxrun.Ints("strides", 2, 1))
	for _, v := range []string{"scale", "shift", "mean", "variance"} {
		g.add(v, 6)
	}
	g.Node("BatchNormalization", []string{"c1", "scale", "shift", "mean", "variance"}, "n1")
	g.Node("Relu", []string{"n1"}, "r1")
	g.Node("MaxPool", []string{"r1"}, "p1", onnxrun.Ints("kernel_shape", 2, 3), onnxrun.Ints("strides", 1, 2))
	g.add("times", 6, 1, 1)
	g.Node("Mul", []string{"times", "p1"}, "m1")
	g.Node("GlobalAveragePool", []string{"m1"}, "g1")
	g.Node("Flatten", []string{"g1"}, "f1")
	g.add("w2", 6, 4)
	g.add("b2", 4)
	g.Node("MatMul", []string{"f1", "w2"}, "y2")
	g.Node("Add", []string{"b2", "y2"}, "a2")
	g.Tensor("shape", onnx.Int64, 9, integers(-1, 2), 2)
	g.Node("Reshape", []string{"a2", "shape"}, "s2")
	g.add("w3", 5, 2)
	g.add("b3", 1, 5)
	g.Node("Gemm", []string{"s2", "w3", "b3"}, "y3", onnxrun.Int("transB", 1), onnxrun.Float("alpha", 0.5))
	g.Node("Softmax", []string{"y3"}, "z", onnxrun.Int("axis", 1))
	g.Value(true, "z", -1, 5)
	return g
}

// The evaluator computes what the evaluator of the tests computes, which shares no code with it.
func TestRun_EqualsASecondEvaluator(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		g := images(seed)
		m, err := onnxrun.Load(g.Bytes())
		must.Do(t, err)
		in := onnxrun.Value{Dims: []int{2, 2, 9, 8}}
		x := forward.Value{Dims: in.Dims}
		for range 288 {
			x.V = append(x.V, float32(g.rng.NormFloat64()))
			in.V = append(in.V, float64(x.V[len(x.V)-1]))
		}
		want, err := onnxrun.Run(m, in)
		must.Do(t, err)
		net, err := forward.New(m)
		must.Do(t, err)
		seen := map[string]forward.Value{}
		must.Do(t, net.Run(map[string]forward.Value{"x": x}, func(name string, v forward.Value) error {
			seen[name] = v
			return nil
		}))
		for i, v := range seen["z"].V {
			if math.Abs(float64(v)-want.V[i]) > 1e-5 {
				t.Errorf("seed %d: output %d is %g, want %g", seed, i, v, want.V[i])
			}
		}
		if len(seen) != 1+len(m.Nodes) || len(seen["z"].V) != len(want.V) {
			t.Errorf("seed %d: %d values are seen", seed, len(seen))
		}
	}
}

// What scrimp does not compute is refused with the operator or the attribute, before anything runs.
func TestNew_RefusesWhatItDoesNotCompute(t *testing.T) {
	t.Parallel()
	for want, node := range map[string][]byte{
		"does not compute the operator LSTM": onnxrun.NodeBytes("LSTM", []string{"x"}, "y"),
		"the attribute ceil_mode=[1]":        onnxrun.NodeBytes("MaxPool", []string{"x"}, "y", onnxrun.Int("ceil_mode", 1)),
		"the attribute shape=[1]":            onnxrun.NodeBytes("Relu", []string{"x"}, "y", onnxrun.Int("shape", 1)),
		"has 1 inputs, and needs 2":          onnxrun.NodeBytes("MatMul", []string{"x"}, "y"),
	} {
		g := &onnxrun.Graph{Opset: 17}
		g.Value(false, "x", 1)
		g.Raw(1, node)
		g.Value(true, "y", 1)
		m, err := onnxrun.Load(g.Bytes())
		must.Do(t, err)
		if _, err := forward.New(m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Shapes that do not fit are errors that name the node, never a crash.
func TestRun_RefusesShapesThatDoNotFit(t *testing.T) {
	t.Parallel()
	m, err := onnxrun.Load(images(1).Bytes())
	must.Do(t, err)
	net, err := forward.New(m)
	must.Do(t, err)
	for _, dims := range [][]int{{1}, {1, 3, 9, 8}, {1, 2, 1, 1}, {2, 9, 8}, {1, 2, 3, 1}} {
		n := 1
		for _, d := range dims {
			n *= d
		}
		err := net.Run(map[string]forward.Value{"x": {Dims: dims, V: make([]float32, n)}}, func(string, forward.Value) error { return nil })
		if err == nil || !strings.Contains(err.Error(), `"`) {
			t.Errorf("%v: %v", dims, err)
		}
	}
	if err := net.Run(nil, nil); err == nil || !strings.Contains(err.Error(), `input "x"`) {
		t.Errorf("without an input: %v", err)
	}
}

// FuzzRun: whatever can be read is computed or refused.
func FuzzRun(f *testing.F) {
	for seed := range uint64(3) {
		f.Add(images(seed).Bytes(), uint8(1), uint8(2), uint8(9), uint8(8))
	}
	f.Fuzz(func(t *testing.T, b []byte, n, c, h, w uint8) {
		m, err := onnxrun.Load(b)
		if err != nil {
			return
		}
		net, err := forward.New(m)
		if err != nil {
			return
		}
		in := map[string]forward.Value{}
		for _, name := range net.Inputs() {
			dims := []int{1 + int(n%3), 1 + int(c%5), 1 + int(h%10), 1 + int(w%10)}
			in[name] = forward.Value{Dims: dims, V: make([]float32, dims[0]*dims[1]*dims[2]*dims[3])}
		}
		work := 0
		_ = net.Run(in, func(_ string, v forward.Value) error { // an error is an answer; a crash is not
			if work += len(v.V); work > 1<<16 {
				return context.Canceled
			}
			return nil
		})
	})
}
