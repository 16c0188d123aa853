package forward

import (
	"math"
	"slices"
)

// operator computes the first output of a node.
type operator struct {
	least int      // inputs that it needs
	attrs []string // that it knows
	run   func(c *call) (Value, error)
}

// ops are the operators that scrimp computes.
var ops = operators()

func operators() map[string]operator {
	alone := func(f func(x float64) float64) operator {
		return operator{1, nil, func(c *call) (Value, error) { return each(c.in[0], f), nil }}
	}
	pair := func(f func(a, b float32) float32) operator {
		return operator{2, nil, func(c *call) (Value, error) { return broadcast(c.in[0], c.in[1], f) }}
	}
	windows := []string{"kernel_shape", "strides", "pads", "dilations"}
	return map[string]operator{
		"MatMul":   {2, nil, matMul},
		"Gemm":     {2, []string{"alpha", "beta", "transA", "transB"}, gemm},
		"Conv":     {2, append(windows, "group"), conv},
		"MaxPool":  {1, append(windows, "ceil_mode", "storage_order"), maxPool},
		"Relu":     alone(func(x float64) float64 { return max(0, x) }),
		"Sigmoid":  alone(func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }),
		"Tanh":     alone(math.Tanh),
		"Erf":      alone(math.Erf),
		"Exp":      alone(math.Exp),
		"Sqrt":     alone(math.Sqrt),
		"Abs":      alone(math.Abs),
		"Neg":      alone(func(x float64) float64 { return -x }),
		"Identity": alone(func(x float64) float64 { return x }),
		"Dropout":  {1, []string{"seed"}, func(c *call) (Value, error) { return c.in[0], nil }},
		"LeakyRelu": {1, []string{"alpha"}, func(c *call) (Value, error) {
			alpha := float64(c.number("alpha", 0.01))
			return each(c.in[0], func(x float64) float64 { return max(0, x) + alpha*min(0, x) }), nil
		}},
		"HardSigmoid": {1, []string{"alpha", "beta"}, func(c *call) (Value, error) {
			alpha, beta := float64(c.number("alpha", 0.2)), float64(c.number("beta", 0.5))
			return each(c.in[0], func(x float64) float64 { return max(0, min(1, alpha*x+beta)) }), nil
		}},
		"HardSwish":          alone(func(x float64) float64 { return x * max(0, min(1, x/6+0.5)) }),
		"Clip":               {1, nil, clip},
		"Add":                pair(func(a, b float32) float32 { return a + b }),
		"Sub":                pair(func(a, b float32) float32 { return a - b }),
		"Mul":                pair(func(a, b float32) float32 { return a * b }),
		"Div":                pair(func(a, b float32) float32 { return a / b }),
		"AveragePool":        {1, append(windows, "ceil_mode", "count_include_pad"), averagePool},
		"GlobalAveragePool":  {1, nil, globalAveragePool},
		"BatchNormalization": {5, []string{"epsilon", "momentum", "training_mode"}, batchNormalization},
		"Flatten":            {1, []string{"axis"}, flatten},
		"Reshape":            {2, []string{"allowzero"}, reshape},
		"Softmax":            {1, []string{"axis"}, softmax},
	}
}

func each(v Value, f func(x float64) float64) Value {
	out := Value{v.Dims, make([]float32, len(v.V))}
	for i, x := range v.V {
		out.V[i] = float32(f(float64(x)))
	}
	return out
}

func clip(c *call) (Value, error) {
	low, high := math.Inf(-1), math.Inf(1)
	if v, has := c.optional(1); has && len(v.V) == 1 {
		low = float64(v.V[0])
	}
	if v, has := c.optional(2); has && len(v.V) == 1 {
		high = float64(v.V[0])
	}
	return each(c.in[0], func(x float64) float64 { return min(high, max(low, x)) }), nil
}

// broadcast combines two values element by element, with dimensions of 1 repeated.
func broadcast(a, b Value, f func(a, b float32) float32) (Value, error) {
	rank := max(len(a.Dims), len(b.Dims))
	dims := make([]int, rank)
	stepA, okA := steps(a, rank)
	stepB, okB := steps(b, rank)
	for i := range dims {
		da, db := dimOf(a, rank, i), dimOf(b, rank, i)
		if dims[i] = max(da, db); da != db && da != 1 && db != 1 {
			okA = false
		}
	}
	if !okA || !okB {
		return Value{}, shapes("the values do not broadcast", a, b)
	}
	out, err := empty(dims...)
	if err != nil {
		return out, err
	}
	at := make([]int, rank)
	i, j := 0, 0
	for k := range out.V {
		out.V[k] = f(a.V[i], b.V[j])
		for d := rank - 1; d >= 0; d-- { // the next place
			at[d]++
			i, j = i+stepA[d], j+stepB[d]
			if at[d] < dims[d] {
				break
			}
			i, j, at[d] = i-stepA[d]*dims[d], j-stepB[d]*dims[d], 0
		}
	}
	return out, nil
}

// dimOf returns a dimension of a value that has 1 for those that it lacks.
func dimOf(v Value, rank, i int) int {
	if i -= rank - len(v.Dims); i < 0 {
		return 1
	}
	return v.Dims[i]
}

// steps returns how far the neighbours along each dimension lie apart: 0 for a dimension of 1.
func steps(v Value, rank int) ([]int, bool) {
	list, n := make([]int, rank), 1
	for i := rank - 1; i >= 0; i-- {
		if d := dimOf(v, rank, i); d > 1 {
			list[i] = n
			n *= d
		}
	}
	return list, n == len(v.V)
}

// matMul multiplies rows by a matrix.
func matMul(c *call) (Value, error) {
	a, b := c.in[0], c.in[1]
	if len(b.Dims) != 2 || len(a.Dims) < 2 || a.Dims[len(a.Dims)-1] != b.Dims[0] {
		return Value{}, shapes("scrimp multiplies rows by a matrix", a, b)
	}
	out, err := empty(append(slices.Clone(a.Dims[:len(a.Dims)-1]), b.Dims[1])...)
	if err == nil {
		err = affordable(len(out.V), b.Dims[0])
	}
	if err == nil {
		product(out.V, a.V, b.V, b.Dims[0], b.Dims[1], 1)
	}
	return out, err
}

// product adds scale times the product of rows of k elements and a k by n matrix.
func product(out, a, b []float32, k, n int, scale float64) {
	sums := make([]float64, n)
	for i := range len(a) / k {
		clear(sums)
		for l, x := range a[i*k : (i+1)*k] {
			if x == 0 {
				continue
			}
			for j, y := range b[l*n : (l+1)*n] {
				sums[j] += float64(x) * float64(y)
			}
		}
		for j, s := range sums {
			out[i*n+j] += float32(scale * s)
		}
	}
}

func transpose(v Value) Value {
	r, c := v.Dims[0], v.Dims[1]
	out := Value{[]int{c, r}, make([]float32, len(v.V))}
	for i, x := range v.V {
		out.V[i%c*r+i/c] = x
	}
	return out
}

func gemm(c *call) (Value, error) {
	a, b := c.in[0], c.in[1]
	if len(a.Dims) != 2 || len(b.Dims) != 2 {
		return Value{}, shapes("Gemm multiplies two matrices", a, b)
	}
	if c.integer("transA", 0) != 0 {
		a = transpose(a)
	}
	if c.integer("transB", 0) != 0 {
		b = transpose(b)
	}
	if a.Dims[1] != b.Dims[0] {
		return Value{}, shapes("the inner dimensions differ", a, b)
	}
	out, err := empty(a.Dims[0], b.Dims[1])
	if err == nil {
		err = affordable(len(out.V), b.Dims[0])
	}
	if err != nil {
		return out, err
	}
	product(out.V, a.V, b.V, b.Dims[0], b.Dims[1], float64(c.number("alpha", 1)))
	if bias, has := c.optional(2); has {
		beta := c.number("beta", 1)
		sum, err := broadcast(out, bias, func(x, y float32) float32 { return x + beta*y })
		if err != nil || !slices.Equal(sum.Dims, out.Dims) {
			return out, shapes("the bias does not fit", out, bias)
		}
		return sum, nil
	}
	return out, nil
}

func flatten(c *call) (Value, error) {
	x, axis, rows := c.in[0], c.integer("axis", 1), 1
	if axis < 0 {
		axis += len(x.Dims)
	}
	if axis < 0 || axis > len(x.Dims) {
		return Value{}, shapes("the axis of Flatten does not exist", x)
	}
	for _, d := range x.Dims[:axis] {
		rows *= d
	}
	return Value{[]int{rows, len(x.V) / rows}, x.V}, nil
}

func reshape(c *call) (Value, error) {
	x, shape := c.in[0], c.in[1]
	out, known, open := Value{V: x.V}, 1, -1
	for i, v := range shape.V {
		d := int(v)
		switch {
		case d == 0 && i < len(x.Dims) && c.integer("allowzero", 0) == 0:
			d = x.Dims[i]
		case d == -1 && open < 0:
			open, d = i, 1
		case d <= 0 || d > maxValue:
			return out, shapes("Reshape has a shape that does not fit", x)
		}
		if known *= d; known > maxValue {
			return out, shapes("Reshape has a shape that does not fit", x)
		}
		out.Dims = append(out.Dims, d)
	}
	if open >= 0 {
		out.Dims[open] = len(x.V) / known
		known *= out.Dims[open]
	}
	if known != len(x.V) {
		return out, shapes("Reshape has a shape that does not fit", x)
	}
	return out, nil
}

// softmax is Softmax of opset 13 and later.
func softmax(c *call) (Value, error) {
	x, axis := c.in[0], c.integer("axis", -1)
	if axis < 0 {
		axis += len(x.Dims)
	}
	if axis < 0 || axis >= len(x.Dims) {
		return Value{}, shapes("the axis of Softmax does not exist", x)
	}
	stride, size := 1, x.Dims[axis]
	for _, d := range x.Dims[axis+1:] {
		stride *= d
	}
	out := Value{x.Dims, make([]float32, len(x.V))}
	for from := range len(x.V) {
		if from/stride%size != 0 {
			continue
		}
		top, sum := math.Inf(-1), 0.0
		for i := range size {
			top = max(top, float64(x.V[from+i*stride]))
		}
		for i := range size {
			sum += math.Exp(float64(x.V[from+i*stride]) - top)
		}
		for i := range size {
			out.V[from+i*stride] = float32(math.Exp(float64(x.V[from+i*stride])-top) / sum)
		}
	}
	return out, nil
}
