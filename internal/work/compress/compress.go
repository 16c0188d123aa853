// Package compress changes the weights of an ONNX model so that the model is smaller, and computes how far each weight
// moves. It plans first, from the structure alone; the elements are read when the copy is written.
package compress

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"scrimp/internal/work/onnx"
)

// Method is a way to compress a model.
type Method string

// The methods.
const (
	// Int8Dynamic stores weights as int8 with one scale for each column, and quantises activations while the model runs.
	Int8Dynamic Method = "int8-dynamic"
	// Int8Static stores weights as int8, and rounds activations to uint8 by the ranges that they have on given data.
	Int8Static Method = "int8-static"
	// Int4Weights stores weights in 4 bits with one scale for each block of 32.
	Int4Weights Method = "int4-weights"
	// PruneUnstructured sets the smallest weights to zero.
	PruneUnstructured Method = "prune-unstructured"
	// PruneStructured removes whole output channels, and what uses them.
	PruneStructured Method = "prune-structured"
)

// Methods lists the methods.
var Methods = []Method{Int8Dynamic, Int8Static, Int4Weights, PruneStructured, PruneUnstructured}

// leastOpset is the oldest operator set of ONNX that a method works in.
var leastOpset = map[Method]int64{Int8Dynamic: 11, Int8Static: 13, Int4Weights: 17, PruneStructured: 7,
	PruneUnstructured: 7}

// ParseMethod reads the name of a method.
func ParseMethod(s string) (Method, error) {
	var names []string
	for _, m := range Methods {
		if string(m) == s {
			return m, nil
		}
		names = append(names, string(m))
	}
	return "", fmt.Errorf("%q is none of %s", s, strings.Join(names, ", "))
}

// Layer is what the plan does with the weight of one node.
type Layer struct {
	Node, Op, Weight string
	// Rows are the inputs of the layer and Columns its outputs; for pruning, the first dimension of the weight and the
	// product of the others.
	Rows, Columns int64
	// Skipped is the reason why the weight stays; "" if it changes.
	Skipped string
	// Diff is the largest difference of a weight, and Bound what the method allows. Both are set by Write.
	Diff, Bound float64
	// Zeros counts the weights that pruning has set to zero, or that were zero.
	Zeros int64
	// Removed counts the output channels that pruning removes.
	Removed int64
}

// Plan is a compression that has not been written.
type Plan struct {
	Method Method
	// Layers are the nodes with a weight, in their order.
	Layers []Layer

	model *onnx.Model
	edit  onnx.Edit
}

// Options are the choices for a method.
type Options struct {
	Method Method
	// Sparsity is the share of weights that pruning sets to zero, or of channels that it removes, above 0 and below 1.
	Sparsity float64
	// Ranges are those of the Activations of the model on calibration data, for Int8Static.
	Ranges map[string]Range
}

// New plans the compression of a model. It refuses a model without a weight that the method can change.
func New(m *onnx.Model, o Options) (*Plan, error) {
	version, has := m.Opsets[""]
	if least := leastOpset[o.Method]; !has || version < least {
		return nil, fmt.Errorf("%s needs opset %d, and the model has opset %d: export it with opset_version=17", o.Method,
			least, version)
	}
	p := &Plan{Method: o.Method, model: m,
		edit: onnx.Edit{Nodes: map[int][]onnx.NewNode{}, Drop: map[string]bool{}, Data: map[string]onnx.Elements{}}}
	if o.Method.Prunes() && !(o.Sparsity > 0 && o.Sparsity < 1) {
		return nil, fmt.Errorf("the sparsity %g is not above 0 and below 1", o.Sparsity)
	}
	switch o.Method {
	case PruneUnstructured:
		p.prune(o.Sparsity)
	case Int8Static:
		if err := p.static(o.Ranges); err != nil {
			return nil, err
		}
	case PruneStructured:
		p.pruneChannels(o.Sparsity)
	default:
		p.quantise(o.Method)
	}
	for _, l := range p.Layers {
		if l.Skipped == "" {
			return p, nil
		}
	}
	if len(p.Layers) == 0 {
		return nil, fmt.Errorf("%s changes constant weights of %s, and the model has none", o.Method, opsOf(o.Method))
	}
	l := p.Layers[0]
	return nil, fmt.Errorf("%s can change no weight of the model; %s %q: %s", o.Method, l.Op, l.Node, l.Skipped)
}

// Prunes reports whether the method removes weights and takes a sparsity.
func (m Method) Prunes() bool { return m == PruneStructured || m == PruneUnstructured }

func opsOf(m Method) string {
	if m.Prunes() || m == Int8Static {
		return "MatMul, Gemm and Conv"
	}
	return "MatMul and Gemm"
}

// Write writes the compressed model, sets the differences of the layers, and returns the size in bytes.
func (p *Plan) Write(w io.Writer) (int64, error) { return p.model.Write(w, p.edit) }

// Changed counts the weights of the layers that change, and for prune-structured the parameters that it removes.
func (p *Plan) Changed() (n int64) {
	for name, dims := range p.edit.Dims {
		left := int64(1)
		for _, d := range dims {
			left *= d
		}
		n += p.model.Tensors[name].Count() - left
	}
	if p.Method == PruneStructured {
		return n
	}
	seen := map[string]bool{}
	for _, l := range p.Layers {
		if t := p.model.Tensors[l.Weight]; l.Skipped == "" && t != nil && !seen[l.Weight] {
			seen[l.Weight] = true
			n += t.Count()
		}
	}
	return n
}

// weight is a matrix of inputs by outputs, in the order of its tensor.
type weight struct {
	t          *onnx.Tensor
	rows, cols int64
	transposed bool // the tensor has the shape columns by rows
}

// at returns the row and the column of the element i of the tensor.
func (w weight) at(i int64) (row, col int64) {
	if w.transposed {
		return i % w.rows, i / w.rows
	}
	return i / w.cols, i % w.cols
}

var errNotConstant = errors.New("its second input is no constant of the graph")

// weightOf returns the weight of a MatMul or Gemm, or why the node stays.
func (p *Plan) weightOf(n onnx.Node) (w weight, err error) {
	if len(n.In) < 2 || len(n.Out) != 1 || n.In[0] == "" || n.Out[0] == "" || p.model.Tensors[n.In[1]] == nil {
		return w, errNotConstant
	}
	w.t = p.model.Tensors[n.In[1]]
	if len(w.t.Dims) != 2 {
		return w, fmt.Errorf("the weight has the shape %v and is no matrix", w.t.Dims)
	}
	if n.Op == "Gemm" {
		if err := plainGemm(n); err != nil {
			return w, err
		}
		w.transposed = n.Int("transB", 0) != 0
	}
	w.rows, w.cols = w.t.Dims[0], w.t.Dims[1]
	if w.transposed {
		w.rows, w.cols = w.cols, w.rows
	}
	if w.rows == 0 || w.cols == 0 {
		return w, errors.New("the weight is empty")
	}
	return w, w.t.Readable()
}

// plainGemm refuses a Gemm that is more than A·B + C.
func plainGemm(n onnx.Node) error {
	if n.Int("transA", 0) != 0 {
		return errors.New("transA is set")
	}
	for _, name := range []string{"alpha", "beta"} {
		if v, has := n.Floats[name]; has && v != 1 {
			return fmt.Errorf("%s is %g", name, v)
		}
	}
	return nil
}
