// Package onnxrun computes small ONNX models in plain Go, so tests compare a compressed model with its original. It
// knows the operators of these tests only.
package onnxrun

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"scrimp/internal/work/onnx"
)

// Value is an array of any type; its elements are exact in float64.
type Value struct {
	Dims []int
	V    []float64
}

// Load reads a model from memory.
func Load(b []byte) (*onnx.Model, error) {
	return onnx.Read(onnx.NewSource("model", bytes.NewReader(b), int64(len(b))), nil)
}

// Run computes the first output of a model from its first input. It runs the nodes in order.
func Run(m *onnx.Model, in Value) (Value, error) {
	e := env{}
	for name, t := range m.Tensors {
		v, err := constant(t)
		if err != nil {
			return Value{}, err
		}
		e[name] = v
	}
	e[m.Inputs[0]] = in
	for _, n := range m.Nodes {
		op := ops[n.Op]
		if op == nil {
			return Value{}, fmt.Errorf("the evaluator does not know %s", n.Op)
		}
		op(e, n)
	}
	return e[m.Outputs[0]], nil
}

type env map[string]Value

func constant(t *onnx.Tensor) (v Value, err error) {
	b, err := t.Raw(1 << 28)
	if err != nil {
		return v, err
	}
	for _, d := range t.Dims {
		v.Dims = append(v.Dims, int(d))
	}
	for i := range int(t.Count()) {
		switch t.Type {
		case onnx.Float:
			v.V = append(v.V, float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))))
		case onnx.Int8:
			v.V = append(v.V, float64(int8(b[i])))
		case onnx.Uint8:
			v.V = append(v.V, float64(b[i]))
		case onnx.Int32:
			v.V = append(v.V, float64(int32(binary.LittleEndian.Uint32(b[4*i:]))))
		case onnx.Int64:
			v.V = append(v.V, float64(int64(binary.LittleEndian.Uint64(b[8*i:]))))
		default:
			return v, fmt.Errorf("the evaluator does not know the type %d", t.Type)
		}
	}
	return v, nil
}

var ops = map[string]func(env, onnx.Node){
	"MatMul": func(e env, n onnx.Node) { e[n.Out[0]] = product(e[n.In[0]], e[n.In[1]], 0) },
	"MatMulInteger": func(e env, n onnx.Node) {
		e[n.Out[0]] = product(e[n.In[0]], e[n.In[1]], e[n.In[2]].V[0])
	},
	"Gemm": func(e env, n onnx.Node) {
		b := e[n.In[1]]
		if t := n.Ints["transB"]; len(t) > 0 && t[0] == 1 {
			b = transpose(b)
		}
		y := product(e[n.In[0]], b, 0)
		if a, has := n.Floats["alpha"]; has {
			y = each(y, func(x float64) float64 { return float64(a) * x })
		}
		if len(n.In) > 2 {
			y = broadcast(y, e[n.In[2]], func(a, b float64) float64 { return a + b })
		}
		e[n.Out[0]] = y
	},
	"Add": func(e env, n onnx.Node) {
		e[n.Out[0]] = broadcast(e[n.In[0]], e[n.In[1]], func(a, b float64) float64 { return a + b })
	},
	"Mul": func(e env, n onnx.Node) {
		e[n.Out[0]] = broadcast(e[n.In[0]], e[n.In[1]], func(a, b float64) float64 { return a * b })
	},
	"Relu":                  func(e env, n onnx.Node) { e[n.Out[0]] = each(e[n.In[0]], relu) },
	"Cast":                  func(e env, n onnx.Node) { e[n.Out[0]] = e[n.In[0]] },
	"Softmax":               func(e env, n onnx.Node) { e[n.Out[0]] = softmax(e[n.In[0]]) },
	"Transpose":             func(e env, n onnx.Node) { e[n.Out[0]] = transpose(e[n.In[0]]) },
	"Reshape":               func(e env, n onnx.Node) { e[n.Out[0]] = reshape(e[n.In[0]], e[n.In[1]].V) },
	"DynamicQuantizeLinear": quantize,
	"QuantizeLinear":        quantizeBy,
	"DequantizeLinear":      dequantize,
	"Conv":                  convolve,
	"MaxPool":               func(e env, n onnx.Node) { e[n.Out[0]] = maxPool(e[n.In[0]], n) },
	"GlobalAveragePool":     func(e env, n onnx.Node) { e[n.Out[0]] = means(e[n.In[0]]) },
	"BatchNormalization":    normalize,
	"Flatten": func(e env, n onnx.Node) {
		x := e[n.In[0]]
		e[n.Out[0]] = Value{[]int{x.Dims[0], len(x.V) / x.Dims[0]}, x.V}
	},
	"MatMulNBits": nbits,
}

func relu(x float64) float64 { return max(0, x) }

func each(v Value, f func(float64) float64) Value {
	out := Value{v.Dims, make([]float64, len(v.V))}
	for i, x := range v.V {
		out.V[i] = f(x)
	}
	return out
}

// product multiplies (a - zero) by the matrix b.
func product(a, b Value, zero float64) Value {
	k, n := b.Dims[0], b.Dims[1]
	m := len(a.V) / k
	out := Value{append(append([]int{}, a.Dims[:len(a.Dims)-1]...), n), make([]float64, m*n)}
	for i := range m {
		for l := range k {
			x := a.V[i*k+l] - zero
			for j := range n {
				out.V[i*n+j] += x * b.V[l*n+j]
			}
		}
	}
	return out
}

// broadcast combines a with b, whose shape broadcasts to that of a; or the other way round.
func broadcast(a, b Value, f func(a, b float64) float64) Value {
	if len(a.V) < len(b.V) {
		return broadcast(b, a, func(x, y float64) float64 { return f(y, x) })
	}
	out := Value{a.Dims, make([]float64, len(a.V))}
	for i := range a.V {
		at, rest, step := 0, i, 1 // the place in b
		for d := 1; d <= len(a.Dims); d++ {
			size := a.Dims[len(a.Dims)-d]
			if d <= len(b.Dims) {
				if n := b.Dims[len(b.Dims)-d]; n > 1 {
					at += rest % size * step
					step *= n
				}
			}
			rest /= size
		}
		out.V[i] = f(a.V[i], b.V[at])
	}
	return out
}

func transpose(v Value) Value {
	r, c := v.Dims[0], v.Dims[1]
	out := Value{[]int{c, r}, make([]float64, len(v.V))}
	for i := range r {
		for j := range c {
			out.V[j*r+i] = v.V[i*c+j]
		}
	}
	return out
}

func reshape(v Value, dims []float64) Value {
	out, known, open := Value{V: v.V}, 1, -1
	for i, d := range dims {
		out.Dims = append(out.Dims, int(d))
		if d < 0 {
			open = i
		} else {
			known *= int(d)
		}
	}
	if open >= 0 {
		out.Dims[open] = len(v.V) / known
	}
	return out
}

func softmax(v Value) Value {
	out, n := Value{v.Dims, make([]float64, len(v.V))}, v.Dims[len(v.Dims)-1]
	for from := 0; from < len(v.V); from += n {
		top, sum := math.Inf(-1), 0.0
		for _, x := range v.V[from : from+n] {
			top = max(top, x)
		}
		for i, x := range v.V[from : from+n] {
			out.V[from+i] = math.Exp(x - top)
			sum += out.V[from+i]
		}
		for i := range n {
			out.V[from+i] /= sum
		}
	}
	return out
}

// quantize is DynamicQuantizeLinear of the ONNX specification.
func quantize(e env, n onnx.Node) {
	x := e[n.In[0]]
	low, high := 0.0, 0.0
	for _, v := range x.V {
		low, high = min(low, v), max(high, v)
	}
	scale := (high - low) / 255
	if scale == 0 {
		scale = 1
	}
	zero := math.RoundToEven(max(0, min(255, -low/scale)))
	e[n.Out[0]] = each(x, func(v float64) float64 { return max(0, min(255, math.RoundToEven(v/scale)+zero)) })
	e[n.Out[1]], e[n.Out[2]] = Value{V: []float64{scale}}, Value{V: []float64{zero}}
}

// nbits is MatMulNBits of com.microsoft with 4 bits and no zero points: level 8 stands for 0.
func nbits(e env, n onnx.Node) {
	k, cols, block := int(n.Ints["K"][0]), int(n.Ints["N"][0]), int(n.Ints["block_size"][0])
	values, scales := e[n.In[1]].V, e[n.In[2]].V
	blocks := (k + block - 1) / block
	b := Value{[]int{k, cols}, make([]float64, k*cols)}
	for j := range cols {
		for i := range k {
			at := (j*blocks+i/block)*block + i%block
			level := int(values[at/2]) >> (4 * (at % 2)) & 15
			b.V[i*cols+j] = float64(level-8) * scales[j*blocks+i/block]
		}
	}
	e[n.Out[0]] = product(e[n.In[0]], b, 0)
}
