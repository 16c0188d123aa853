// Package forward computes the values of small ONNX models of matrices and images in plain Go, so that scrimp sees the
// ranges of activations without a runtime. It is exact in float32 up to the order of sums, and slow: it is for a few
// hundred calibration examples. It refuses operators and attributes that it does not know.
package forward

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"scrimp/internal/work/onnx"
)

// Value is an array. Integers, such as the shape of a Reshape, are exact up to 2^24 and are used as shapes only.
type Value struct {
	Dims []int
	V    []float32
}

// Bounds of what is computed.
const (
	// maxWeights bounds the elements of all constants: a GiB of float32.
	maxWeights = 1 << 28
	// maxValue bounds the elements of one value.
	maxValue = 1 << 27
	// maxProducts bounds the multiplications of one node, about a minute.
	maxProducts = 1 << 36
)

// Net is a model whose operators are all known.
type Net struct {
	m         *onnx.Model
	constants map[string]Value
	inputs    []string
	last      map[string]int // the last node that uses a value
}

// New loads the constants of a model and checks that it can compute each node.
func New(m *onnx.Model) (*Net, error) {
	n := &Net{m: m, constants: map[string]Value{}, last: map[string]int{}}
	total := int64(0)
	for _, t := range m.Tensors {
		if total += t.Count(); total > maxWeights {
			return nil, fmt.Errorf("the model has more than %d weights", maxWeights)
		}
	}
	for name, t := range m.Tensors {
		v, err := constant(t)
		if err != nil {
			return nil, err
		}
		n.constants[name] = v
	}
	for _, in := range m.Inputs {
		if _, is := n.constants[in]; !is {
			n.inputs = append(n.inputs, in)
		}
	}
	for i := range m.Nodes {
		if err := known(&m.Nodes[i]); err != nil {
			return nil, err
		}
		for _, in := range m.Nodes[i].In {
			n.last[in] = i
		}
	}
	return n, nil
}

// Inputs are the names of the values that a run needs.
func (n *Net) Inputs() []string { return n.inputs }

func constant(t *onnx.Tensor) (v Value, err error) {
	if t.Count() == 0 {
		return v, fmt.Errorf("tensor %q has no element", t.Name)
	}
	for _, d := range t.Dims {
		v.Dims = append(v.Dims, int(d))
	}
	switch t.Type {
	case onnx.Float:
		v.V = make([]float32, 0, t.Count())
		return v, t.Floats(func(_ int64, part []float32) error {
			v.V = append(v.V, part...)
			return nil
		})
	case onnx.Int64:
		const most = 1 << 20 // shapes are short
		b, err := t.Raw(most)
		if err != nil || int64(len(b)) != 8*t.Count() {
			return v, errors.Join(err, fmt.Errorf("tensor %q: its integers are not raw bytes; save it again with onnx.save",
				t.Name))
		}
		for i := range t.Count() {
			v.V = append(v.V, float32(int64(binary.LittleEndian.Uint64(b[8*i:]))))
		}
		return v, nil
	}
	return v, fmt.Errorf("tensor %q has the type %d; scrimp computes float32", t.Name, t.Type)
}

// known returns why a node cannot be computed, or nil.
func known(n *onnx.Node) error {
	op, is := ops[n.Op]
	where := fmt.Sprintf("node %q", n.Name)
	if n.Name == "" && len(n.Out) > 0 {
		where = fmt.Sprintf("the node of %q", n.Out[0])
	}
	switch {
	case !is || n.Domain != "":
		return fmt.Errorf("%s: scrimp does not compute the operator %s", where, n.Op)
	case len(n.In) < op.least || slices.Contains(n.In[:op.least], ""):
		return fmt.Errorf("%s (%s) has %d inputs, and needs %d", where, n.Op, len(n.In), op.least)
	case len(n.Out) == 0 || n.Out[0] == "" || slices.ContainsFunc(n.Out[1:], func(o string) bool { return o != "" }):
		return fmt.Errorf("%s (%s) has other than one output", where, n.Op)
	case len(n.Complex) > 0:
		return fmt.Errorf("%s (%s): scrimp does not know the attribute %s", where, n.Op, n.Complex[0])
	}
	return knownAttributes(n, op.attrs, where)
}

// knownAttributes returns which attribute of a node cannot be computed, or nil.
func knownAttributes(n *onnx.Node, attrs []string, where string) error {
	for name, v := range n.Texts {
		if name != "auto_pad" || v != "NOTSET" && v != "VALID" {
			return fmt.Errorf("%s (%s): scrimp does not know the attribute %s=%q; export with explicit pads", where, n.Op, name,
				v)
		}
	}
	for name, v := range n.Ints {
		if !slices.Contains(attrs, name) || name == "ceil_mode" && !slices.Equal(v, []int64{0}) {
			return fmt.Errorf("%s (%s): scrimp does not know the attribute %s=%v", where, n.Op, name, v)
		}
	}
	for name := range n.Floats {
		if !slices.Contains(attrs, name) {
			return fmt.Errorf("%s (%s): scrimp does not know the attribute %s", where, n.Op, name)
		}
	}
	return nil
}

// Run computes the model for the values of its inputs. see is called with each input and with each value that a node
// computes; its error ends the run. A value lives until its last use.
func (n *Net) Run(inputs map[string]Value, see func(name string, v Value) error) error {
	live := map[string]Value{}
	for _, name := range n.inputs {
		v, is := inputs[name]
		if !is || len(v.V) == 0 {
			return fmt.Errorf("the input %q has no value", name)
		}
		live[name] = v
		if err := see(name, v); err != nil {
			return err
		}
	}
	for i := range n.m.Nodes {
		node := &n.m.Nodes[i]
		c := call{node: node}
		for _, in := range node.In {
			v, is := live[in]
			if !is {
				v = n.constants[in]
			}
			c.in = append(c.in, v)
		}
		out, err := ops[node.Op].run(&c)
		if err == nil && slices.ContainsFunc(out.V, infinite) {
			err = errors.New("a result is not finite")
		}
		if err != nil {
			return fmt.Errorf("%s %q: %w", node.Op, node.Out[0], err)
		}
		live[node.Out[0]] = out
		if err := see(node.Out[0], out); err != nil {
			return err
		}
		for _, in := range node.In {
			if n.last[in] == i {
				delete(live, in)
			}
		}
	}
	return nil
}

// infinite reports whether a number is not finite.
func infinite(v float32) bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) }

// call is one use of an operator.
type call struct {
	node *onnx.Node
	in   []Value
}

// integer returns an attribute of one integer, or other.
func (c *call) integer(name string, other int) int {
	if v := c.node.Ints[name]; len(v) == 1 {
		return int(v[0])
	}
	return other
}

// number returns an attribute of one number, or other.
func (c *call) number(name string, other float32) float32 {
	if v, has := c.node.Floats[name]; has {
		return v
	}
	return other
}

// optional returns an input that may be absent.
func (c *call) optional(i int) (Value, bool) {
	if i >= len(c.in) || c.node.In[i] == "" {
		return Value{}, false
	}
	return c.in[i], true
}

// empty returns a value of a shape, or an error if it has too many elements.
func empty(dims ...int) (Value, error) {
	n := 1
	for _, d := range dims {
		if d <= 0 || n > maxValue/d {
			return Value{}, fmt.Errorf("the shape %v has no element or more than %d", dims, maxValue)
		}
		n *= d
	}
	return Value{dims, make([]float32, n)}, nil
}

// affordable refuses a node with too many multiplications.
func affordable(outputs, each int) error {
	if each > 0 && outputs > maxProducts/each {
		return fmt.Errorf("%d outputs of %d products take too long here: save batches of fewer examples", outputs, each)
	}
	return nil
}

func shapes(what string, list ...Value) error {
	text := ""
	for _, v := range list {
		text += fmt.Sprintf(" %v", v.Dims)
	}
	return fmt.Errorf("%s, and the shapes are%s", what, text)
}
