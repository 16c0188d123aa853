package modelfile

import (
	"fmt"
	"strings"
)

type totals struct{ params, macs, acts, convs, deep float64 }

// walk adds up the work of a sample; shapes that the file does not state are
// inferred for the operators that convolutional models are made of.
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
			w, in := g.shape[n.in[1]], g.shape[n.in[0]]
			each := 0.0 // products per value that is written
			switch n.op {
			case "Conv":
				v, ok := volume(w)
				if !ok || len(w) < 3 || w[0] == 0 {
					return t, fmt.Errorf("the weights %s have no size", n.in[1])
				}
				each = v / float64(w[0])
				t.convs++
				if len(n.ints["group"]) == 1 && n.ints["group"][0] == w[0] && w[0] > 1 {
					t.deep++
				}
			case "ConvTranspose":
				v, _ := volume(w)
				each = v / float64(max(1, out[1]))
			default:
				k := int64(-1)
				if len(in) > 0 {
					k = in[len(in)-1]
				}
				if len(n.ints["transA"]) == 1 && n.ints["transA"][0] == 1 && len(in) == 2 {
					k = in[0]
				}
				if k <= 0 && len(w) == 2 {
					k = w[0]
				}
				if k <= 0 {
					return t, fmt.Errorf("the size of %s, which %s takes in, is not known", n.in[0], n.op)
				}
				each = float64(k)
			}
			t.macs += size * each
			t.acts += size
		}
	}
	return t, nil
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

// infer is the shape of what a node writes first: as stated, or worked out.
func (g *graph) infer(n node) []int64 {
	if s, ok := g.shape[n.out[0]]; ok {
		if _, whole := volume(s); whole {
			return s
		}
	}
	var in []int64
	if len(n.in) > 0 {
		in = g.shape[n.in[0]]
	}
	s := shapeOf(n, in, func(i int) []int64 {
		if i < len(n.in) {
			return g.shape[n.in[i]]
		}
		return nil
	})
	if s != nil {
		g.shape[n.out[0]] = s
	}
	return s
}

func shapeOf(n node, in []int64, at func(int) []int64) []int64 {
	one := func(name string, i int, other int64) int64 {
		if l := n.ints[name]; i < len(l) {
			return l[i]
		}
		return other
	}
	slide := func(channels int64, kernel func(int) int64) []int64 {
		if len(in) < 3 || channels <= 0 {
			return nil
		}
		out := []int64{in[0], channels}
		spatial := len(in) - 2
		for i := range spatial {
			k, st, di := kernel(i), one("strides", i, 1), one("dilations", i, 1)
			pad := one("pads", i, 0) + one("pads", i+spatial, 0)
			if in[i+2] <= 0 || st <= 0 || k <= 0 {
				return nil
			}
			out = append(out, max(1, (in[i+2]+pad-di*(k-1)-1)/st+1))
		}
		return out
	}
	switch n.op {
	case "Conv":
		w := at(1)
		if len(w) < 3 || len(in) != len(w) {
			return nil
		}
		return slide(w[0], func(i int) int64 { return w[i+2] })
	case "MaxPool", "AveragePool":
		if len(in) < 3 {
			return nil
		}
		return slide(in[1], func(i int) int64 { return one("kernel_shape", i, 0) })
	case "GlobalAveragePool", "GlobalMaxPool":
		if len(in) < 3 {
			return nil
		}
		out := []int64{in[0], in[1]}
		for range in[2:] {
			out = append(out, 1)
		}
		return out
	case "Flatten":
		if v, ok := volume(in); ok && len(in) > 1 && in[0] > 0 {
			return []int64{in[0], int64(v) / in[0]}
		}
	case "Gemm":
		w := at(1)
		if len(w) == 2 && len(in) == 2 {
			if one("transB", 0, 0) == 1 {
				return []int64{in[0], w[0]}
			}
			return []int64{in[0], w[1]}
		}
	case "MatMul":
		w := at(1)
		if len(in) > 1 && len(w) > 1 {
			return append(append([]int64(nil), in[:len(in)-1]...), w[len(w)-1])
		}
	case "Concat":
		return concat(in, one("axis", 0, 1), n, at)
	case "Add", "Sub", "Mul", "Div", "Sum", "Max", "Min":
		best := in
		for i := range n.in {
			if s := at(i); len(s) >= len(best) {
				if a, _ := volume(s); a > 0 {
					if b, ok := volume(best); !ok || a > b {
						best = s
					}
				}
			}
		}
		return best
	default:
		if strings.Contains(sameSize, " "+n.op+" ") {
			return in
		}
	}
	return nil
}

// sameSize are operators that write as much as they read.
const sameSize = " Relu LeakyRelu Clip Sigmoid Tanh Erf HardSwish HardSigmoid Elu Selu Softmax LogSoftmax " +
	"BatchNormalization InstanceNormalization LayerNormalization GroupNormalization Dropout Identity Cast PRelu " +
	"Softplus Mish Gelu Sqrt Exp Neg Abs Pow LRN "

func concat(in []int64, axis int64, n node, at func(int) []int64) []int64 {
	if axis < 0 {
		axis += int64(len(in))
	}
	if axis < 0 || int(axis) >= len(in) {
		return nil
	}
	out := append([]int64(nil), in...)
	for i := 1; i < len(n.in); i++ {
		s := at(i)
		if len(s) != len(in) || s[axis] < 0 {
			return nil
		}
		out[axis] += s[axis]
	}
	return out
}
