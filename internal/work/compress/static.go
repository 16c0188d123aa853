package compress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"scrimp/internal/work/onnx"
)

// Range is the smallest and the largest value that an activation has on the calibration data.
type Range struct{ Low, High float64 }

// Add widens the range to values.
func (r *Range) Add(list []float32) {
	for _, v := range list {
		r.Low, r.High = min(r.Low, float64(v)), max(r.High, float64(v))
	}
}

// scale returns the step and the level of zero of the 256 levels of uint8 that cover the range and zero.
func (r Range) scale() (step float32, zero uint8) {
	low, high := min(0, r.Low), max(0, r.High)
	if step = float32((high - low) / 255); step < smallest {
		return 1, 0
	}
	return step, uint8(max(0, min(255, math.RoundToEven(-low/float64(step)))))
}

// Activations returns the names of the values whose ranges int8-static needs: the inputs of layers with a weight.
func Activations(m *onnx.Model) (names []string) {
	p := &Plan{model: m}
	for _, n := range m.Nodes {
		if p.prunedBy(n) != nil && m.Tensors[n.In[0]] == nil && !slices.Contains(names, n.In[0]) {
			names = append(names, n.In[0])
		}
	}
	return names
}

// static plans int8-static: it rounds the inputs of each MatMul, Gemm and Conv to uint8 and their weights to int8, as
// pairs of QuantizeLinear and DequantizeLinear around the node, which a runtime fuses into arithmetic of integers.
func (p *Plan) static(ranges map[string]Range) error {
	s := &static{p: p, ranges: ranges, inputs: map[string]string{}, steps: map[string]string{},
		weights: map[string]*levels{}}
	p.edit.Inputs, p.edit.Before = map[int][]string{}, map[int][]onnx.NewNode{}
	uses, at := map[string]int{}, map[int]int{}
	for i, n := range p.model.Nodes {
		w := p.prunedBy(n)
		if w == nil {
			continue
		}
		l := Layer{Node: nodeName(n), Op: n.Op, Weight: w.Name}
		axis, err := s.axis(n, w)
		if err == nil {
			l.Columns = w.Dims[axis]
			l.Rows = w.Count() / l.Columns
			err = s.usable(n, w, l.Rows)
		}
		if err != nil {
			l.Skipped = err.Error()
		} else {
			uses[fmt.Sprint(w.Name, "\n", axis)]++
		}
		at[i] = len(p.Layers)
		p.Layers = append(p.Layers, l)
	}
	for i, n := range p.model.Nodes {
		k, is := at[i]
		if !is || p.Layers[k].Skipped != "" {
			continue
		}
		w := p.prunedBy(n)
		axis, err := s.axis(n, w)
		if err != nil {
			return err
		}
		if others := p.model.Uses[w.Name] - uses[fmt.Sprint(w.Name, "\n", axis)]; others > 0 {
			p.Layers[k].Skipped = usedElsewhere(others).Error()
			continue
		}
		if err := s.replace(i, k, axis); err != nil {
			return err
		}
	}
	return nil
}

// static adds the nodes and tensors of int8-static.
type static struct {
	p       *Plan
	ranges  map[string]Range
	inputs  map[string]string // the rounded form of an activation
	steps   map[string]string // the tensor with its step
	weights map[string]*levels
}

// levels is a weight in int8 with one scale for each place along an axis.
type levels struct {
	t      *onnx.Tensor
	axis   int
	scales []float32
	scale  string // the tensor with the scales
	name   string // of the rounded form
	plan   *Plan
	layers []int
}

// axis returns the dimension of a weight along which its outputs lie.
func (s *static) axis(n onnx.Node, w *onnx.Tensor) (int, error) {
	switch {
	case len(n.Out) != 1 || n.Out[0] == "" || n.In[0] == "" || s.p.model.Tensors[n.In[0]] != nil:
		return 0, errors.New("its first input is a constant")
	case w.Count() == 0:
		return 0, errors.New("the weight is empty")
	case n.Op == "Conv" && len(w.Dims) > 2:
		return 0, nil
	case len(w.Dims) != 2:
		return 0, fmt.Errorf("the weight has the shape %v", w.Dims)
	case n.Op == "Gemm" && n.Int("transB", 0) != 0:
		return 0, nil
	}
	return 1, nil
}

// usable refuses weights that callers may replace, that would not become smaller, or whose sums may overflow, and
// layers whose input the calibration has not seen.
func (s *static) usable(n onnx.Node, w *onnx.Tensor, rows int64) error {
	if err := s.p.prunable(w); err != nil {
		return err
	}
	if rows > maxRows {
		return fmt.Errorf("%d products may overflow the sum of 32 bits, at most %d do not", rows, maxRows)
	}
	if rows+scaleBytes+1 >= 4*rows {
		return fmt.Errorf("an output has %d weights, which take %d bytes instead of %d", rows, rows+scaleBytes+1, 4*rows)
	}
	if _, seen := s.ranges[n.In[0]]; !seen {
		return fmt.Errorf("the calibration has no values of %q", n.In[0])
	}
	return nil
}

// replace gives a node rounded inputs.
func (s *static) replace(node, layer, axis int) error {
	m, e := s.p.model, &s.p.edit
	n := m.Nodes[node]
	inputs := slices.Clone(n.In)
	inputs[0] = s.activation(node, n.In[0])
	k := s.weights[n.In[1]]
	if k == nil {
		k = &levels{t: m.Tensors[n.In[1]], axis: axis, plan: s.p}
		if err := k.compute(); err != nil {
			return err
		}
		s.weights[n.In[1]] = k
		s.weight(node, k)
	}
	k.layers = append(k.layers, layer)
	inputs[1] = k.name
	if len(n.In) > 2 && n.In[2] != "" {
		bias, err := s.bias(node, n.In[2], n.In[0], k)
		if err != nil {
			return err
		}
		inputs[2] = bias
	}
	e.Inputs[node] = inputs
	return nil
}

// before adds a node before another.
func (s *static) before(node int, n onnx.NewNode) {
	s.p.edit.Before[node] = append(s.p.edit.Before[node], n)
}

// tensor adds a constant whose bytes are known, and returns its name.
func (s *static) tensor(base string, kind int, data []byte, dims ...int64) string {
	name := s.p.model.Fresh(base)
	s.p.edit.Tensors = append(s.p.edit.Tensors, onnx.NewTensor{Name: name, Type: kind, Dims: dims,
		Data: onnx.Elements{Size: int64(len(data)), Write: func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		}}})
	return name
}

// activation adds the rounded form of an activation before the first node that needs it.
func (s *static) activation(node int, name string) string {
	if s.inputs[name] == "" {
		step, zero := s.ranges[name].scale()
		s.steps[name] = s.tensor(name+"_scale", onnx.Float, floatBytes([]float32{step}))
		by := []string{s.steps[name]}
		if zero != 0 { // a missing level is 0 in uint8
			by = append(by, s.tensor(name+"_zero", onnx.Uint8, []byte{zero}))
		}
		q, d := s.p.model.Fresh(name+"_uint8"), s.p.model.Fresh(name+"_rounded")
		s.before(node, onnx.NewNode{Op: "QuantizeLinear", In: append([]string{name}, by...), Out: []string{q}})
		s.before(node, onnx.NewNode{Op: "DequantizeLinear", In: append([]string{q}, by...), Out: []string{d}})
		s.inputs[name] = d
	}
	return s.inputs[name]
}

// weight adds the rounded form of a weight before the first node that needs it. Its zero is level 0.
func (s *static) weight(node int, k *levels) {
	m, e := s.p.model, &s.p.edit
	count, values := int64(len(k.scales)), m.Fresh(k.t.Name+"_int8")
	e.Drop[k.t.Name] = true
	e.Tensors = append(e.Tensors, onnx.NewTensor{Name: values, Type: onnx.Int8, Dims: k.t.Dims,
		Data: onnx.Elements{Size: k.t.Count(), Write: k.write}})
	k.scale = s.tensor(k.t.Name+"_scale", onnx.Float, floatBytes(k.scales), count)
	k.name = m.Fresh(k.t.Name + "_rounded")
	s.before(node, onnx.NewNode{Op: "DequantizeLinear", In: []string{values, k.scale}, Out: []string{k.name},
		Ints: map[string]int64{"axis": int64(k.axis)}})
}

// bias adds the rounded form of a bias: int32 in steps of the products, which a runtime adds to their sum. It keeps a
// bias that is no constant vector, that other nodes use, or that does not fit. Its steps are the products of those of
// activation and weight: a node of two constants, which a runtime computes once, is smaller than a third constant.
func (s *static) bias(node int, name, activation string, w *levels) (string, error) {
	m, t := s.p.model, s.p.model.Tensors[name]
	step, _ := s.ranges[activation].scale()
	count := int64(len(w.scales))
	if t == nil || !slices.Equal(t.Dims, []int64{count}) || m.Uses[name] != 1 || t.Readable() != nil ||
		slices.Contains(m.Inputs, name) {
		return name, nil
	}
	data, fits := []byte(nil), true
	err := t.Floats(func(at int64, v []float32) error {
		for i, x := range v {
			product := float32(float64(step) * float64(w.scales[at+int64(i)]))
			level := math.RoundToEven(float64(x) / float64(product))
			if fits = fits && product >= smallest && math.Abs(level) <= math.MaxInt32; fits {
				data = binary.LittleEndian.AppendUint32(data, uint32(int32(level)))
			}
		}
		return nil
	})
	if err != nil || !fits {
		return name, err
	}
	s.p.edit.Drop[name] = true
	values := s.tensor(name+"_int32", onnx.Int32, data, count)
	scale, out := m.Fresh(name+"_scale"), m.Fresh(name+"_rounded")
	s.before(node, onnx.NewNode{Op: "Mul", In: []string{s.steps[activation], w.scale}, Out: []string{scale}})
	s.before(node, onnx.NewNode{Op: "DequantizeLinear", In: []string{values, scale}, Out: []string{out},
		Ints: map[string]int64{"axis": 0}})
	return out, nil
}

func floatBytes(list []float32) (data []byte) {
	for _, v := range list {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return data
}

// compute finds the scales: the largest magnitude of an output, divided by 127.
func (k *levels) compute() error {
	k.scales = make([]float32, k.t.Dims[k.axis])
	stride := strideOf(k.t.Dims, k.axis)
	err := k.t.Floats(func(at int64, v []float32) error {
		for i, x := range v {
			c := (at + int64(i)) / stride % int64(len(k.scales))
			k.scales[c] = max(k.scales[c], float32(math.Abs(float64(x))))
		}
		return nil
	})
	for i, v := range k.scales {
		k.scales[i] = max(smallest, float32(float64(v)/127))
	}
	return err
}

func (k *levels) write(w io.Writer) error {
	stride, diff, bound := strideOf(k.t.Dims, k.axis), 0.0, 0.0
	var buffer []byte
	err := k.t.Floats(func(at int64, v []float32) error {
		buffer = buffer[:0]
		for i, x := range v {
			scale := float64(k.scales[(at+int64(i))/stride%int64(len(k.scales))])
			level := max(-127, min(127, math.RoundToEven(float64(x)/scale)))
			diff = max(diff, math.Abs(float64(x)-level*scale))
			buffer = append(buffer, byte(int8(level)))
		}
		_, err := w.Write(buffer)
		return err
	})
	for _, s := range k.scales {
		bound = max(bound, float64(s)/2)
	}
	for _, l := range k.layers {
		k.plan.Layers[l].Diff, k.plan.Layers[l].Bound = diff, bound
	}
	return err
}
