package modelfile

import (
	"encoding/binary"
	"errors"
	"fmt"

	"scrimp/internal/estimate/shape"
)

// ONNX reads a sample's parameters, multiply-accumulates and written activations from an ONNX model. It reads only
// shapes and never the weights, so a file with external weights suffices.
func ONNX(name string, content []byte) (shape.Model, error) {
	bad := func(field, why, fix string) (shape.Model, error) {
		return shape.Model{}, &Bad{File: name, Field: field, Why: why, Fix: fix}
	}
	g, err := readModel(content)
	if err != nil {
		return bad("", "is neither JSON nor an ONNX model: "+err.Error(), forms)
	}
	if len(g.nodes) == 0 {
		return bad("graph", "has no nodes", forms)
	}
	t, err := g.walk()
	if err != nil {
		return bad("graph", err.Error(), "export it with fixed input sizes, or run onnx.shape_inference.infer_shapes on it")
	}
	if t.macs == 0 {
		return bad("graph", "has no convolution and no matrix product", forms)
	}
	m := shape.Model{Name: g.name, Kind: shape.Conv, Params: t.params, GMACs: t.macs / 1e9, Acts: t.acts / 1e6,
		Source: name}
	if m.Name == "" {
		m.Name = "onnx"
	}
	m.Depth = t.deep > t.convs/4
	return settle(name, m, nil)
}

// field is one field of a protobuf message: a number, or bytes.
type field struct {
	tag  int
	num  uint64
	data []byte
}

var errTorn = errors.New("it is cut short or of another form (copy or export it again)")

// fields calls f with each field of a message.
func fields(b []byte, f func(field) error) error {
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		if n <= 0 || key>>3 == 0 || key>>3 > 1<<28 {
			return errTorn
		}
		b = b[n:]
		x := field{tag: int(key >> 3)}
		switch key & 7 {
		case 0:
			v, n := binary.Uvarint(b)
			if n <= 0 {
				return errTorn
			}
			x.num, b = v, b[n:]
		case 1:
			if len(b) < 8 {
				return errTorn
			}
			b = b[8:]
		case 2:
			size, n := binary.Uvarint(b)
			if n <= 0 || size > uint64(len(b)-n) {
				return errTorn
			}
			x.data, b = b[n:n+int(size)], b[n+int(size):]
		case 5:
			if len(b) < 4 {
				return errTorn
			}
			b = b[4:]
		default:
			return errTorn
		}
		if err := f(x); err != nil {
			return err
		}
	}
	return nil
}

type node struct {
	op      string
	in, out []string
	ints    map[string][]int64
}

type graph struct {
	name   string
	nodes  []node
	shape  map[string][]int64 // of values; -1 is unknown; an unknown first dimension is 1
	weight map[string]bool
	params float64
}

func readModel(b []byte) (*graph, error) {
	g := &graph{shape: map[string][]int64{}, weight: map[string]bool{}}
	found := false
	err := fields(b, func(f field) error {
		if f.tag == 7 && f.data != nil {
			found = true
			return g.read(f.data)
		}
		return nil
	})
	if err == nil && !found {
		err = errors.New("it has no graph")
	}
	return g, err
}

func (g *graph) read(b []byte) error {
	return fields(b, func(f field) error {
		switch f.tag {
		case 1:
			n := node{ints: map[string][]int64{}}
			g.nodes = append(g.nodes, n)
			return g.nodes[len(g.nodes)-1].read(f.data)
		case 2:
			g.name = string(f.data)
		case 5:
			return g.tensor(f.data)
		case 11, 12, 13:
			return g.value(f.data)
		}
		return nil
	})
}

func (n *node) read(b []byte) error {
	return fields(b, func(f field) error {
		switch f.tag {
		case 1:
			n.in = append(n.in, string(f.data))
		case 2:
			n.out = append(n.out, string(f.data))
		case 4:
			n.op = string(f.data)
		case 5:
			var name string
			var list []int64
			err := fields(f.data, func(f field) error {
				switch f.tag {
				case 1:
					name = string(f.data)
				case 3:
					list = []int64{int64(f.num)}
				case 8:
					v, err := ints(f)
					list = append(list, v...)
					return err
				}
				return nil
			})
			n.ints[name] = list
			return err
		}
		return nil
	})
}

// ints reads numbers, packed or one by one.
func ints(f field) ([]int64, error) {
	if f.data == nil {
		return []int64{int64(f.num)}, nil
	}
	var out []int64
	for b := f.data; len(b) > 0; {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errTorn
		}
		out, b = append(out, int64(v)), b[n:]
	}
	return out, nil
}

func (g *graph) tensor(b []byte) error {
	var dims []int64
	var name string
	kind := uint64(0)
	err := fields(b, func(f field) error {
		switch f.tag {
		case 1:
			v, err := ints(f)
			dims = append(dims, v...)
			return err
		case 2:
			kind = f.num
		case 8:
			name = string(f.data)
		}
		return nil
	})
	if err != nil {
		return err
	}
	n := 1.0
	for _, d := range dims {
		if d < 0 || d > 1<<40 {
			return fmt.Errorf("the size %d of %s is absurd", d, name)
		}
		n *= float64(d)
	}
	g.shape[name], g.weight[name] = dims, true
	if kind == 1 || kind == 10 || kind == 11 || kind == 16 { // float, half, double, bfloat16
		g.params += n
	}
	return nil
}

// value reads the shape of an input, an output or an intermediate value.
func (g *graph) value(b []byte) error {
	var name string
	var dims []int64
	shaped := false
	err := fields(b, func(f field) error {
		if f.tag == 1 {
			name = string(f.data)
		}
		if f.tag != 2 {
			return nil
		}
		return fields(f.data, func(f field) error { // TypeProto
			if f.tag != 1 {
				return nil
			}
			return fields(f.data, func(f field) error { // tensor type
				if f.tag != 2 {
					return nil
				}
				shaped = true
				return fields(f.data, func(f field) error { // shape
					if f.tag != 1 {
						return nil
					}
					d := int64(-1)
					err := fields(f.data, func(f field) error {
						if f.tag == 1 {
							d = int64(f.num)
						}
						return nil
					})
					dims = append(dims, d)
					return err
				})
			})
		})
	})
	if err == nil && shaped {
		if len(dims) > 1 {
			dims[0] = 1 // one sample
		}
		if _, ok := g.shape[name]; !ok {
			g.shape[name] = dims
		}
	}
	return err
}
