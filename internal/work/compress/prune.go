package compress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"scrimp/internal/lib/draw"
	"scrimp/internal/work/onnx"
)

// prune plans that each weight of a MatMul, Gemm or Conv loses its smallest elements.
func (p *Plan) prune(sparsity float64) {
	pruned, weights := map[string]*pruning{}, p.usedAsWeight()
	for _, n := range p.model.Nodes {
		t := p.prunedBy(n)
		if t == nil {
			continue
		}
		l := Layer{Node: nodeName(n), Op: n.Op, Weight: t.Name}
		err := p.prunable(t)
		if others := p.model.Uses[t.Name] - weights[t.Name]; err == nil && others > 0 {
			err = usedElsewhere(others)
		}
		if err != nil {
			l.Skipped = err.Error()
		} else {
			l.Rows, l.Columns = t.Dims[0], t.Count()/t.Dims[0]
			k := pruned[t.Name]
			if k == nil {
				k = &pruning{t: t, zeros: int64(sparsity * float64(t.Count())), plan: p}
				pruned[t.Name] = k
				p.edit.Data[t.Name] = onnx.Elements{Size: 4 * t.Count(), Write: k.write}
			}
			k.layers = append(k.layers, len(p.Layers))
		}
		p.Layers = append(p.Layers, l)
	}
}

// prunedBy returns the constant that a node uses as the weight of a MatMul, Gemm or Conv; nil if it uses none.
func (p *Plan) prunedBy(n onnx.Node) *onnx.Tensor {
	if n.Domain != "" || n.Op != "MatMul" && n.Op != "Gemm" && n.Op != "Conv" || len(n.In) < 2 {
		return nil
	}
	return p.model.Tensors[n.In[1]]
}

// usedAsWeight counts, for each constant, the nodes that use it as a weight.
func (p *Plan) usedAsWeight() map[string]int {
	uses := map[string]int{}
	for _, n := range p.model.Nodes {
		if t := p.prunedBy(n); t != nil {
			uses[t.Name]++
		}
	}
	return uses
}

// usedElsewhere is the reason why a weight stays that n other inputs of nodes or outputs of the graph use, such as an
// embedding that shares it.
func usedElsewhere(n int) error {
	return fmt.Errorf("the model uses the weight in %s as well", draw.Count(n, "other place"))
}

func (p *Plan) prunable(t *onnx.Tensor) error {
	if slices.Contains(p.model.Inputs, t.Name) {
		return errors.New("the weight is an input of the graph as well; export with keep_initializers_as_inputs=False")
	}
	if len(t.Dims) < 2 || t.Count() == 0 {
		return errors.New("the weight is no matrix or is empty")
	}
	return t.Readable()
}

// pruning sets the zeros smallest magnitudes of a tensor to zero; of equal ones, the first.
type pruning struct {
	t      *onnx.Tensor
	zeros  int64
	plan   *Plan
	layers []int
}

// threshold returns the magnitude, as the bits of a float32, of the last element that becomes zero, and how many
// elements of exactly this magnitude do. Bits of positive floats have the order of their values, so that two counts
// of 16 bits each find the element without sorting.
func (k *pruning) threshold() (bits uint32, equal int64, err error) {
	left := k.zeros
	counts := make([]int64, 1<<16)
	find := func(of func(b uint32) (int, bool)) (int, error) {
		clear(counts)
		err := k.t.Floats(func(_ int64, v []float32) error {
			for _, x := range v {
				if i, is := of(math.Float32bits(x) &^ (1 << 31)); is {
					counts[i]++
				}
			}
			return nil
		})
		for i, n := range counts {
			if left <= n {
				return i, err
			}
			left -= n
		}
		return 0, err
	}
	high, err := find(func(b uint32) (int, bool) { return int(b >> 16), true })
	if err != nil {
		return 0, 0, err
	}
	low, err := find(func(b uint32) (int, bool) { return int(b & 0xffff), b>>16 == uint32(high) })
	return uint32(high)<<16 | uint32(low), left, err
}

func (k *pruning) write(w io.Writer) error {
	limit, equal, err := k.threshold()
	if err != nil {
		return err
	}
	diff, zeros := 0.0, int64(0)
	var buffer []byte
	err = k.t.Floats(func(_ int64, v []float32) error {
		buffer = buffer[:0]
		for _, x := range v {
			bits := math.Float32bits(x)
			size := bits &^ (1 << 31)
			if size < limit || size == limit && equal > 0 {
				if size == limit {
					equal--
				}
				diff, bits, size = max(diff, math.Abs(float64(x))), 0, 0
			}
			if size == 0 {
				zeros++
			}
			buffer = binary.LittleEndian.AppendUint32(buffer, bits)
		}
		_, err := w.Write(buffer)
		return err
	})
	for _, l := range k.layers {
		k.plan.Layers[l].Diff, k.plan.Layers[l].Bound = diff, float64(math.Float32frombits(limit))
		k.plan.Layers[l].Zeros = zeros
	}
	return err
}
