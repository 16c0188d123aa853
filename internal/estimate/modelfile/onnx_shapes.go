package modelfile

import (
	"fmt"
	"strings"
)

type totals struct{ params, macs, acts, convs, deep float64 }

// walk adds up the work of a sample. For the operators of convolutional models it infers shapes that the file does not
// state.
func (g *graph) walk() (totals, error) {
	t := totals{params: g.params}
	for _, n := range g.nodes {
		if len(n.out) == 0 {
			continue
		}
		out := g.infer(n)
		switch n.op {
		case "Conv", "ConvTranspose", "Gemm", "MatMul":
			size, ok := volume(out)
			if !ok || len(n.in) < 2 {
				return t, fmt.Errorf("the size of %s, the result of %s, is not known", n.out[0], n.op)
			}
			each, err := g.products(n, out)
			if err != nil {
				return t, err
			}
			if n.op == "Conv" {
				t.convs++
				if g.depthwise(n) {
					t.deep++
				}
			}
			t.macs += size * each
			t.acts += size
		}
	}
	return t, nil
}

// products returns the products per written value.
func (g *graph) products(n node, out []int64) (float64, error) {
	w, in := g.at(n, 1), g.at(n, 0)
	v, ok := volume(w)
	switch n.op {
	case "Conv":
		if !ok || len(w) < 3 || w[0] == 0 {
			return 0, fmt.Errorf("the weights %s have no size", n.in[1])
		}
		return v / float64(w[0]), nil
	case "ConvTranspose":
		return v / float64(max(1, out[1])), nil
	}
	k := int64(-1)
	if len(in) > 0 {
		k = in[len(in)-1]
	}
	if n.one("transA", 0, 0) == 1 && len(in) == 2 {
		k = in[0]
	}
	if k <= 0 && len(w) == 2 {
		k = w[0]
	}
	if k <= 0 {
		return 0, fmt.Errorf("the size of %s, which %s takes in, is not known", n.in[0], n.op)
	}
	return float64(k), nil
}

// depthwise reports whether each channel of a convolution is its own group.
func (g *graph) depthwise(n node) bool {
	w := g.at(n, 1)
	return len(n.ints["group"]) == 1 && n.ints["group"][0] == w[0] && w[0] > 1
}

// at returns the shape of a node's i-th input, or nil if it is unknown.
func (g *graph) at(n node, i int) []int64 {
	if i < len(n.in) {
		return g.shape[n.in[i]]
	}
	return nil
}

// one returns the i-th number of an attribute, or other if it has none.
func (n node) one(name string, i int, other int64) int64 {
	if l := n.ints[name]; i < len(l) {
		return l[i]
	}
	return other
}

func volume(dims []int64) (float64, bool) {
	v := 1.0
	for _, d := range dims {
		if d < 0 {
			return 0, false
		}
		v *= float64(d)
	}
	return v, len(dims) > 0
}

// infer returns the shape of a node's first output, as stated or inferred.
func (g *graph) infer(n node) []int64 {
	if s, ok := g.shape[n.out[0]]; ok {
		if _, whole := volume(s); whole {
			return s
		}
	}
	s := g.shapeOf(n)
	if s != nil {
		g.shape[n.out[0]] = s
	}
	return s
}

// shapeOf infers the shape of a node's output from its inputs; nil is unknown.
func (g *graph) shapeOf(n node) []int64 {
	if f := shapes[n.op]; f != nil {
		return f(g, n, g.at(n, 0))
	}
	if strings.Contains(sameSize, " "+n.op+" ") {
		return g.at(n, 0)
	}
	return nil
}

// shapes maps operators whose output differs in shape from their input.
var shapes = map[string]func(g *graph, n node, in []int64) []int64{
	"Conv": convolved, "MaxPool": pooled, "AveragePool": pooled,
	"GlobalAveragePool": pooledWhole, "GlobalMaxPool": pooledWhole,
	"Flatten": flattened, "Gemm": gemm, "MatMul": product, "Concat": concat,
	"Add": largest, "Sub": largest, "Mul": largest, "Div": largest, "Sum": largest, "Max": largest, "Min": largest,
}

// sameSize lists operators whose output has the shape of their input.
const sameSize = " Relu LeakyRelu Clip Sigmoid Tanh Erf HardSwish HardSigmoid Elu Selu Softmax LogSoftmax " +
	"BatchNormalization InstanceNormalization LayerNormalization GroupNormalization Dropout Identity Cast PRelu " +
	"Softplus Mish Gelu Sqrt Exp Neg Abs Pow LRN "

func convolved(g *graph, n node, in []int64) []int64 {
	w := g.at(n, 1)
	if len(w) < 3 || len(in) != len(w) {
		return nil
	}
	return slide(n, in, w[0], func(i int) int64 { return w[i+2] })
}

func pooled(_ *graph, n node, in []int64) []int64 {
	if len(in) < 3 {
		return nil
	}
	return slide(n, in, in[1], func(i int) int64 { return n.one("kernel_shape", i, 0) })
}

// slide returns the output shape of a window that moves over the last dimensions.
func slide(n node, in []int64, channels int64, kernel func(int) int64) []int64 {
	if len(in) < 3 || channels <= 0 {
		return nil
	}
	out := []int64{in[0], channels}
	spatial := len(in) - 2
	for i := range spatial {
		k, st, di := kernel(i), n.one("strides", i, 1), n.one("dilations", i, 1)
		pad := n.one("pads", i, 0) + n.one("pads", i+spatial, 0)
		if in[i+2] <= 0 || st <= 0 || k <= 0 {
			return nil
		}
		out = append(out, max(1, (in[i+2]+pad-di*(k-1)-1)/st+1))
	}
	return out
}

func pooledWhole(_ *graph, _ node, in []int64) []int64 {
	if len(in) < 3 {
		return nil
	}
	out := []int64{in[0], in[1]}
	for range in[2:] {
		out = append(out, 1)
	}
	return out
}

func flattened(_ *graph, _ node, in []int64) []int64 {
	if v, ok := volume(in); ok && len(in) > 1 && in[0] > 0 {
		return []int64{in[0], int64(v) / in[0]}
	}
	return nil
}

func gemm(g *graph, n node, in []int64) []int64 {
	w := g.at(n, 1)
	if len(w) != 2 || len(in) != 2 {
		return nil
	}
	if n.one("transB", 0, 0) == 1 {
		return []int64{in[0], w[0]}
	}
	return []int64{in[0], w[1]}
}

func product(g *graph, n node, in []int64) []int64 {
	w := g.at(n, 1)
	if len(in) > 1 && len(w) > 1 {
		return append(append([]int64(nil), in[:len(in)-1]...), w[len(w)-1])
	}
	return nil
}

// largest returns the largest input shape; the others are broadcast to it.
func largest(g *graph, n node, best []int64) []int64 {
	for i := range n.in {
		s := g.at(n, i)
		if len(s) < len(best) {
			continue
		}
		if a, _ := volume(s); a > 0 {
			if b, ok := volume(best); !ok || a > b {
				best = s
			}
		}
	}
	return best
}

func concat(g *graph, n node, in []int64) []int64 {
	axis := n.one("axis", 0, 1)
	if axis < 0 {
		axis += int64(len(in))
	}
	if axis < 0 || int(axis) >= len(in) {
		return nil
	}
	out := append([]int64(nil), in...)
	for i := 1; i < len(n.in); i++ {
		s := g.at(n, i)
		if len(s) != len(in) || s[axis] < 0 {
			return nil
		}
		out[axis] += s[axis]
	}
	return out
}
