package compress

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"scrimp/internal/work/onnx"
)

// channels are the outputs of a layer along one axis of its weight, and those that pruning removes.
type channels struct {
	t     *onnx.Tensor
	axis  int
	count int64
	drop  int64 // how many go
	plan  *Plan
	layer int
	gone  []bool // nil until the weights are read
}

// choose returns for each channel whether it goes: those with the smallest L1 norm of their weights, of equal ones the
// first. Norms are sums of the original weights in float64.
func (c *channels) choose() ([]bool, error) {
	if c.gone != nil {
		return c.gone, nil
	}
	norms, most := make([]float64, c.count), make([]float64, c.count)
	stride := strideOf(c.t.Dims, c.axis)
	err := c.t.Floats(func(at int64, v []float32) error {
		for i, x := range v {
			k, size := (at+int64(i))/stride%c.count, math.Abs(float64(x))
			norms[k] += size
			most[k] = max(most[k], size)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	order := make([]int, c.count)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(norms[a], norms[b]) })
	gone, l := make([]bool, c.count), &c.plan.Layers[c.layer]
	for _, k := range order[:c.drop] {
		gone[k] = true
		l.Diff, l.Bound = max(l.Diff, most[k]), max(l.Bound, norms[k])
	}
	c.gone = gone
	return gone, nil
}

// strideOf returns how far apart neighbours along an axis lie.
func strideOf(dims []int64, axis int) int64 {
	n := int64(1)
	for _, d := range dims[axis+1:] {
		n *= d
	}
	return n
}

// cut removes the elements of a tensor that belong to channels that go. A channel covers repeat neighbours along the
// axis.
type cut struct {
	of     *channels
	axis   int
	repeat int64
}

// form says how a value holds channels: along the dimension at fromEnd, counted from the last with 1. A flat value
// holds each channel in neighbouring elements of its last dimension.
type form struct {
	fromEnd int
	flat    bool
	// matrix says that the value has two dimensions.
	matrix bool
}

// tracer follows the channels of one layer through the graph, to all tensors that must shrink with them.
type tracer struct {
	p    *Plan
	of   *channels
	at   map[string]form
	uses map[string]int // of traced values
	cuts map[string]cut // by tensor
}

// trace finds what must shrink with the channels of a node.
func (p *Plan) trace(node int, c *channels, f form) (map[string]cut, error) {
	n := p.model.Nodes[node]
	t := &tracer{p: p, of: c, at: map[string]form{n.Out[0]: f}, uses: map[string]int{}, cuts: map[string]cut{}}
	if err := t.shrink(c.t.Name, c.axis, 1); err != nil {
		return nil, err
	}
	if len(n.In) > 2 && n.In[2] != "" {
		var err error
		if n.Op == "Conv" {
			err = t.vector(n.In[2])
		} else {
			err = t.constant(n.In[2], f)
		}
		if err != nil {
			return nil, err
		}
	}
	for i := node + 1; i < len(p.model.Nodes); i++ {
		if err := t.step(p.model.Nodes[i]); err != nil {
			return nil, err
		}
	}
	for name := range t.at {
		if slices.Contains(p.model.Outputs, name) {
			return nil, errors.New("its channels reach an output of the model")
		}
		if p.model.Uses[name] != t.uses[name] {
			return nil, errors.New("a subgraph uses its output")
		}
	}
	return t.cuts, nil
}

// shrink adds a tensor that loses the channels along an axis.
func (t *tracer) shrink(name string, axis int, repeat int64) error {
	w := t.p.model.Tensors[name]
	if err := w.Readable(); err != nil {
		return fmt.Errorf("%q must shrink: %w", name, err)
	}
	if slices.Contains(t.p.model.Inputs, name) {
		return fmt.Errorf("%q is an input of the graph as well; export with keep_initializers_as_inputs=False", name)
	}
	if n := t.p.model.Uses[name]; n != 1 {
		return usedElsewhere(n - 1)
	}
	t.cuts[name] = cut{t.of, axis, repeat}
	return nil
}

// constant shrinks a constant that a node combines with a value of the form, element by element.
func (t *tracer) constant(name string, f form) error {
	w := t.p.model.Tensors[name]
	if w == nil {
		return fmt.Errorf("it is combined with %q, which is no constant", name)
	}
	axis := len(w.Dims) - f.fromEnd
	if axis < 0 || w.Dims[axis] == 1 {
		return nil // the same value for all channels
	}
	repeat := w.Dims[axis] / t.of.count
	if w.Dims[axis]%t.of.count != 0 || repeat > 1 && !f.flat {
		return fmt.Errorf("%q has the shape %v, which does not fit %d channels", name, w.Dims, t.of.count)
	}
	return t.shrink(name, axis, repeat)
}

// vector shrinks a constant with one element for each channel.
func (t *tracer) vector(name string) error {
	w := t.p.model.Tensors[name]
	if w == nil || len(w.Dims) != 1 || w.Dims[0] != t.of.count {
		return fmt.Errorf("%q is no constant of %d elements", name, t.of.count)
	}
	return t.shrink(name, 0, 1)
}

var (
	// unary are operators that treat each element of their first input alone.
	unary = []string{"Relu", "LeakyRelu", "Sigmoid", "Tanh", "Elu", "Selu", "Celu", "HardSigmoid", "HardSwish", "Mish",
		"Softplus", "Softsign", "ThresholdedRelu", "Gelu", "Erf", "Abs", "Neg", "Identity", "Dropout", "Clip"}
	pairwise = []string{"Add", "Sub", "Mul", "Div"}
	// pools treat each channel of an image alone.
	pools = []string{"MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"}
)

// step follows the channels through one node.
func (t *tracer) step(n onnx.Node) error {
	found := t.inputs(n)
	if len(found) == 0 {
		return nil
	}
	unknown := fmt.Errorf("%s %q uses its channels in a way that scrimp does not know", n.Op, nodeName(n))
	if n.Domain != "" || len(n.Out) == 0 || n.Out[0] == "" {
		return unknown
	}
	for _, out := range n.Out[1:] {
		if out != "" && t.p.model.Uses[out] > 0 {
			return unknown
		}
	}
	f := t.at[n.In[found[0]]]
	first := len(found) == 1 && found[0] == 0
	switch {
	case slices.Contains(unary, n.Op) && first:
		t.at[n.Out[0]] = f
		return nil
	case slices.Contains(pairwise, n.Op):
		return t.pair(n, f, unknown)
	case !first:
		return unknown
	}
	return t.layer(n, f, unknown)
}

// inputs returns the indices of the inputs of a node that have the channels, and counts their uses.
func (t *tracer) inputs(n onnx.Node) (found []int) {
	for i, in := range n.In {
		if _, is := t.at[in]; is && in != "" {
			found = append(found, i)
			t.uses[in]++
		}
	}
	return found
}

// pair follows the channels through an operation on pairs of elements. The other inputs have the same channels, or are
// constants.
func (t *tracer) pair(n onnx.Node, f form, unknown error) error {
	for _, in := range n.In {
		if g, is := t.at[in]; is && g != f {
			return unknown
		} else if is {
			continue
		}
		if err := t.constant(in, f); err != nil {
			return err
		}
	}
	t.at[n.Out[0]] = f
	return nil
}

// layer follows the channels of the first input of a node into a pool, a change of shape, a norm or another layer.
func (t *tracer) layer(n onnx.Node, f form, unknown error) error {
	spread := f.fromEnd > 2 || f.matrix // the channels are an axis before the last one, or that of a matrix
	switch {
	case slices.Contains(pools, n.Op) && f.fromEnd > 2:
		t.at[n.Out[0]] = f
		return nil
	case n.Op == "BatchNormalization" && len(n.In) == 5 && spread && !f.flat:
		for _, in := range n.In[1:] {
			if err := t.vector(in); err != nil {
				return err
			}
		}
		t.at[n.Out[0]] = f
		return nil
	case n.Op == "Flatten" && spread:
		if n.Int("axis", 1) != 1 {
			return unknown
		}
		t.at[n.Out[0]] = form{fromEnd: 1, flat: f.flat || f.fromEnd > 2, matrix: true}
		return nil
	case slices.Contains([]string{"MatMul", "Gemm", "Conv"}, n.Op):
		return t.consumer(n, f, unknown)
	}
	return unknown
}

// consumer shrinks the inputs of a layer.
func (t *tracer) consumer(n onnx.Node, f form, unknown error) error {
	axes, err := t.p.axesOf(n)
	if err != nil {
		return fmt.Errorf("%s %q uses its channels: %w", n.Op, nodeName(n), err)
	}
	w := t.p.model.Tensors[n.In[1]]
	size := w.Dims[axes.in]
	repeat := size / t.of.count
	if f.fromEnd != axes.fromEnd || size%t.of.count != 0 || repeat != 1 && !f.flat {
		return unknown
	}
	return t.shrink(w.Name, axes.in, repeat)
}
