package compress

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"scrimp/internal/lib/draw"
	"scrimp/internal/work/onnx"
)

// maxRows bounds the rows of a weight in int8: a sum of more products of uint8 and int8 may overflow its int32.
const maxRows = math.MaxInt32 / (255 * 128)

// blockSize is the number of weights of a column that share a scale in 4 bits.
const blockSize = 32

// quantise plans the replacement of each MatMul and Gemm whose weight is used by such nodes alone.
func (p *Plan) quantise(method Method) {
	ways := map[string]weight{}
	takes := map[string]int{}
	at := map[int]int{} // from nodes to layers
	for i, n := range p.model.Nodes {
		if n.Domain != "" || n.Op != "MatMul" && n.Op != "Gemm" {
			continue
		}
		l := Layer{Node: nodeName(n), Op: n.Op}
		w, err := p.weightOf(n)
		if errors.Is(err, errNotConstant) && n.Op == "MatMul" && !p.constantFirst(n) {
			continue // a product of two activations, such as attention
		}
		if err == nil {
			l.Weight, l.Rows, l.Columns = w.t.Name, w.rows, w.cols
			err = p.usable(w, method, ways)
		}
		if err != nil {
			l.Skipped = err.Error()
		} else {
			takes[w.t.Name]++
			ways[w.t.Name] = w
		}
		at[i] = len(p.Layers)
		p.Layers = append(p.Layers, l)
	}
	q := &quantiser{p: p, method: method, inputs: map[string][]string{}, weights: map[string]*packed{}}
	for i := range p.model.Nodes {
		k, is := at[i]
		if !is || p.Layers[k].Skipped != "" {
			continue
		}
		name := p.Layers[k].Weight
		if uses := p.model.Uses[name]; uses != takes[name] {
			p.Layers[k].Skipped = usedElsewhere(uses - takes[name]).Error()
			continue
		}
		q.replace(i, k, ways[name])
	}
}

// constantFirst reports whether the first input of a node is a constant of the graph.
func (p *Plan) constantFirst(n onnx.Node) bool {
	return len(n.In) > 0 && p.model.Tensors[n.In[0]] != nil
}

func nodeName(n onnx.Node) string {
	if n.Name == "" && len(n.Out) > 0 {
		return n.Out[0]
	}
	return n.Name
}

// usable refuses weights that callers may replace, that another node uses in the other direction, that are too tall,
// or that would not become smaller.
func (p *Plan) usable(w weight, method Method, ways map[string]weight) error {
	if slices.Contains(p.model.Inputs, w.t.Name) {
		return errors.New("the weight is an input of the graph as well; export with keep_initializers_as_inputs=False")
	}
	if other, known := ways[w.t.Name]; known && other.transposed != w.transposed {
		return errors.New("another node uses the weight transposed")
	}
	if method == Int8Dynamic && w.rows > maxRows {
		return fmt.Errorf("%d products may overflow the sum of 32 bits, at most %d do not", w.rows, maxRows)
	}
	size := w.rows + scaleBytes // of a column
	if method == Int4Weights {
		size = (w.rows + blockSize - 1) / blockSize * (blockSize/2 + scaleBytes)
	}
	if size >= 4*w.rows {
		return fmt.Errorf("a column of %s would take %d bytes instead of %d", draw.Count(int(w.rows), "row"), size, 4*w.rows)
	}
	return nil
}

// smallest is the smallest normal float32: a smaller scale would lose its digits.
const smallest = 0x1p-126

// scaleBytes is the size of a scale.
const scaleBytes = 4

// quantiser adds the nodes and tensors of the quantised layers.
type quantiser struct {
	p       *Plan
	method  Method
	inputs  map[string][]string // the quantised form of an activation: values, scale, zero point
	weights map[string]*packed
}

// packed is a quantised weight and the layers that use it.
type packed struct {
	weight
	block         int64 // rows that share a scale
	levels        float64
	values, scale string
	scales        []float32 // one for each column and block; nil until they are computed
	plan          *Plan
	layers        []int
}

func (q *quantiser) replace(node, layer int, w weight) {
	k := q.weights[w.t.Name]
	if k == nil {
		k = q.add(w)
		q.weights[w.t.Name] = k
	}
	k.layers = append(k.layers, layer)
	n := q.p.model.Nodes[node]
	out, bias := n.Out[0], ""
	if len(n.In) > 2 && n.In[2] != "" {
		bias = n.In[2]
		out = q.p.model.Fresh(n.Out[0] + "_product")
	}
	name := nodeName(n)
	var list []onnx.NewNode
	if q.method == Int4Weights {
		list = []onnx.NewNode{{Name: name + "_int4", Op: "MatMulNBits", Domain: "com.microsoft",
			In: []string{n.In[0], k.values, k.scale}, Out: []string{out},
			Ints: map[string]int64{"K": w.rows, "N": w.cols, "bits": 4, "block_size": blockSize}}}
	} else {
		list = q.int8(n, name, out, k)
	}
	if bias != "" {
		list = append(list, onnx.NewNode{Name: name + "_bias", Op: "Add", In: []string{out, bias}, Out: n.Out})
	}
	q.p.edit.Nodes[node] = list
}

// int8 returns the nodes that compute A·B with A quantised to uint8 while the model runs:
// (A/s - z)·B in int32, times s and the scale of each column. Layers with the same input share its quantised form.
func (q *quantiser) int8(n onnx.Node, name, out string, k *packed) (list []onnx.NewNode) {
	m := q.p.model
	in := q.inputs[n.In[0]]
	if in == nil {
		in = []string{m.Fresh(n.In[0] + "_uint8"), m.Fresh(n.In[0] + "_scale"), m.Fresh(n.In[0] + "_zero")}
		q.inputs[n.In[0]] = in
		list = append(list, onnx.NewNode{Name: name + "_quantise", Op: "DynamicQuantizeLinear", In: n.In[:1], Out: in})
	}
	sum, number, scale := m.Fresh(out+"_int32"), m.Fresh(out+"_float"), m.Fresh(out+"_scale")
	return append(list,
		onnx.NewNode{Name: name + "_int8", Op: "MatMulInteger", In: []string{in[0], k.values, in[2]}, Out: []string{sum}},
		onnx.NewNode{Name: name + "_cast", Op: "Cast", In: []string{sum}, Out: []string{number},
			Ints: map[string]int64{"to": onnx.Float}},
		onnx.NewNode{Name: name + "_scales", Op: "Mul", In: []string{in[1], k.scale}, Out: []string{scale}},
		onnx.NewNode{Name: name + "_scaled", Op: "Mul", In: []string{number, scale}, Out: []string{out}})
}

// add plans the tensors of a weight: its values and its scales.
func (q *quantiser) add(w weight) *packed {
	m, e := q.p.model, &q.p.edit
	e.Drop[w.t.Name] = true
	k := &packed{weight: w, plan: q.p, block: w.rows, levels: 127, values: m.Fresh(w.t.Name + "_int8"),
		scale: m.Fresh(w.t.Name + "_scale")}
	values := onnx.NewTensor{Name: k.values, Type: onnx.Int8, Dims: []int64{w.rows, w.cols},
		Data: onnx.Elements{Size: w.rows * w.cols, Write: k.writeInt8}}
	if q.method == Int4Weights {
		k.block, k.levels = blockSize, 7
		blocks := k.blocks()
		values = onnx.NewTensor{Name: k.values, Type: onnx.Uint8, Dims: []int64{w.cols, blocks, blockSize / 2},
			Data: onnx.Elements{Size: w.cols * blocks * blockSize / 2, Write: k.writeInt4}}
		e.Opsets = map[string]int64{"com.microsoft": 1}
	}
	n := w.cols * k.blocks()
	e.Tensors = append(e.Tensors, values, onnx.NewTensor{Name: k.scale, Type: onnx.Float, Dims: []int64{n},
		Data: onnx.FloatElements(n, k.compute)})
	return k
}

func (k *packed) blocks() int64 { return (k.rows + k.block - 1) / k.block }

// compute returns the scales: the largest magnitude of a block, divided by the largest level.
func (k *packed) compute() ([]float32, error) {
	if k.scales != nil {
		return k.scales, nil
	}
	blocks := k.blocks()
	scales := make([]float32, k.cols*blocks)
	err := k.t.Floats(func(at int64, v []float32) error {
		row, col := k.at(at)
		for _, x := range v {
			i := col*blocks + row/k.block
			scales[i] = max(scales[i], float32(math.Abs(float64(x))))
			row, col = k.next(row, col)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, s := range scales {
		if scales[i] = float32(float64(s) / k.levels); scales[i] < smallest {
			scales[i] = smallest
		}
	}
	k.scales = scales
	return scales, nil
}

// next returns the place of the element after the one at a row and a column.
func (w weight) next(row, col int64) (nextRow, nextCol int64) {
	if w.transposed {
		if row++; row == w.rows {
			return 0, col + 1
		}
		return row, col
	}
	if col++; col == w.cols {
		return row + 1, 0
	}
	return row, col
}

// levelsOf calls f with the level of each element, in the order of the tensor, and notes the largest difference.
func (k *packed) levelsOf(f func(row, col int64, level int)) error {
	scales, err := k.compute()
	if err != nil {
		return err
	}
	blocks, diff, bound := k.blocks(), 0.0, 0.0
	err = k.t.Floats(func(at int64, v []float32) error {
		row, col := k.at(at)
		for _, x := range v {
			s := float64(scales[col*blocks+row/k.block])
			level := math.RoundToEven(float64(x) / s)
			level = max(-k.levels, min(k.levels, level))
			diff = max(diff, math.Abs(float64(x)-level*s))
			f(row, col, int(level))
			row, col = k.next(row, col)
		}
		return nil
	})
	for _, s := range scales {
		bound = max(bound, float64(s)/2)
	}
	for _, l := range k.layers {
		k.plan.Layers[l].Diff, k.plan.Layers[l].Bound = diff, bound
	}
	return err
}

// writeInt8 writes the levels row by row. A transposed weight needs all its levels in memory.
func (k *packed) writeInt8(w io.Writer) error {
	buffer := make([]byte, 0, 1<<16)
	if k.transposed {
		buffer = make([]byte, k.rows*k.cols)
	}
	var failed error
	err := k.levelsOf(func(row, col int64, level int) {
		if k.transposed {
			buffer[row*k.cols+col] = byte(int8(level))
			return
		}
		if buffer = append(buffer, byte(int8(level))); len(buffer) < cap(buffer) {
			return
		}
		if failed == nil {
			_, failed = w.Write(buffer)
		}
		buffer = buffer[:0]
	})
	if err == nil {
		err = failed
	}
	if err == nil {
		_, err = w.Write(buffer)
	}
	return err
}

// zeroLevel is the level of MatMulNBits that stands for 0.
const zeroLevel = 8

// writeInt4 writes two levels in a byte, column by column, the first in the low bits. The last block of a column is
// filled with zeros.
func (k *packed) writeInt4(w io.Writer) error {
	column := k.blocks() * blockSize / 2
	buffer := make([]byte, k.cols*column)
	for i := range buffer {
		buffer[i] = zeroLevel<<4 | zeroLevel
	}
	err := k.levelsOf(func(row, col int64, level int) {
		b, nibble := &buffer[col*column+row/2], byte(level+zeroLevel)
		if row%2 == 0 {
			*b = *b&0xf0 | nibble
		} else {
			*b = *b&0x0f | nibble<<4
		}
	})
	if err == nil {
		_, err = w.Write(buffer)
	}
	return err
}
