package compress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"scrimp/internal/lib/draw"
	"scrimp/internal/work/onnx"
)

// axes are the dimensions of a weight along which the inputs and the outputs of its layer lie. fromEnd is the
// dimension of the output's channels, counted from the last with 1.
type axes struct{ in, out, fromEnd int }

// axesOf returns the axes of the weight of a MatMul, Gemm or Conv, or why it has none that pruning understands.
func (p *Plan) axesOf(n onnx.Node) (axes, error) {
	w := p.prunedBy(n)
	switch {
	case w == nil || len(n.Out) != 1 || n.Out[0] == "" || n.In[0] == "":
		return axes{}, errNotConstant
	case w.Count() == 0:
		return axes{}, errors.New("the weight is empty")
	case n.Op == "Conv":
		if groups := n.Int("group", 1); groups != 1 {
			return axes{}, fmt.Errorf("its convolution has %d groups", groups)
		}
		if len(w.Dims) < 3 {
			return axes{}, fmt.Errorf("the weight has the shape %v", w.Dims)
		}
		return axes{in: 1, out: 0, fromEnd: len(w.Dims) - 1}, nil
	case len(w.Dims) != 2:
		return axes{}, fmt.Errorf("the weight has the shape %v and is no matrix", w.Dims)
	case n.Op == "Gemm":
		if n.Int("transA", 0) != 0 {
			return axes{}, errors.New("transA is set")
		}
		if n.Int("transB", 0) != 0 {
			return axes{in: 1, out: 0, fromEnd: 1}, nil
		}
	}
	return axes{in: 0, out: 1, fromEnd: 1}, nil
}

// pruneChannels plans that each layer loses the share of its output channels with the smallest weights, and that what
// uses them shrinks. A layer whose channels reach something that is not understood stays.
func (p *Plan) pruneChannels(sparsity float64) {
	tensors := map[string]map[int]cut{}
	for i, n := range p.model.Nodes {
		w := p.prunedBy(n)
		if w == nil {
			continue
		}
		l := Layer{Node: nodeName(n), Op: n.Op, Weight: w.Name}
		cuts, err := map[string]cut(nil), error(nil)
		a, err := p.axesOf(n)
		if err == nil {
			l.Columns = w.Dims[a.out]
			l.Rows = w.Count() / l.Columns
			c := &channels{t: w, axis: a.out, count: l.Columns, drop: int64(sparsity * float64(l.Columns)), plan: p,
				layer: len(p.Layers)}
			if l.Removed = c.drop; c.drop == 0 {
				err = fmt.Errorf("%g of %s is less than one", sparsity, draw.Count(int(c.count), "channel"))
			} else {
				cuts, err = p.trace(i, c, form{fromEnd: a.fromEnd, matrix: n.Op == "Gemm"})
			}
		}
		if err != nil {
			l.Skipped, l.Removed = err.Error(), 0
		}
		for name, c := range cuts {
			if tensors[name] == nil {
				tensors[name] = map[int]cut{}
			}
			tensors[name][c.axis] = c
		}
		p.Layers = append(p.Layers, l)
	}
	p.edit.NoShapes, p.edit.Dims = true, map[string][]int64{}
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		s := &shrunk{t: p.model.Tensors[name], cuts: tensors[name]}
		dims, size := slices.Clone(s.t.Dims), int64(4)
		for axis, c := range s.cuts {
			dims[axis] -= c.of.drop * c.repeat
		}
		for _, d := range dims {
			size *= d
		}
		p.edit.Dims[name], p.edit.Data[name] = dims, onnx.Elements{Size: size, Write: s.write}
	}
}

// shrunk is a tensor that loses elements along axes.
type shrunk struct {
	t    *onnx.Tensor
	cuts map[int]cut
}

func (s *shrunk) write(w io.Writer) error {
	type test struct {
		gone                 []bool
		stride, size, repeat int64
	}
	var tests []test
	for _, axis := range slices.Sorted(maps.Keys(s.cuts)) {
		c := s.cuts[axis]
		gone, err := c.of.choose()
		if err != nil {
			return err
		}
		tests = append(tests, test{gone, strideOf(s.t.Dims, axis), s.t.Dims[axis], c.repeat})
	}
	var buffer []byte
	return s.t.Floats(func(at int64, v []float32) error {
		buffer = buffer[:0]
		for i, x := range v {
			if !slices.ContainsFunc(tests, func(t test) bool {
				return t.gone[(at+int64(i))/t.stride%t.size/t.repeat]
			}) {
				buffer = binary.LittleEndian.AppendUint32(buffer, math.Float32bits(x))
			}
		}
		_, err := w.Write(buffer)
		return err
	})
}
