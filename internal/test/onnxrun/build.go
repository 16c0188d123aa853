package onnxrun

import (
	"encoding/binary"
	"math"

	"scrimp/internal/work/onnx"
)

// Graph builds the bytes of an ONNX model.
type Graph struct {
	Opset int64
	graph []byte
	Extra []byte // appended to the model
}

// Value declares an input or an output of floats; -1 is a dimension of any size.
func (g *Graph) Value(output bool, name string, dims ...int64) {
	var shape []byte
	for _, d := range dims {
		if d < 0 {
			shape = onnx.AppendBytes(shape, 1, onnx.AppendBytes(nil, 2, "batch"))
		} else {
			shape = onnx.AppendBytes(shape, 1, onnx.AppendInt(nil, 1, d))
		}
	}
	tensor := onnx.AppendBytes(onnx.AppendInt(nil, 1, onnx.Float), 2, shape)
	kind := onnx.AppendBytes(nil, 1, tensor)
	num := 11
	if output {
		num = 12
	}
	g.graph = onnx.AppendBytes(g.graph, num, onnx.AppendBytes(onnx.AppendBytes(nil, 1, name), 2, kind))
}

// Floats adds a constant of floats, as raw bytes or as packed float_data.
func (g *Graph) Floats(name string, packed bool, v []float32, dims ...int64) {
	num := 9
	if packed {
		num = 4
	}
	var data []byte
	for _, x := range v {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	g.Tensor(name, onnx.Float, num, data, dims...)
}

// Tensor adds a constant whose elements are in field num.
func (g *Graph) Tensor(name string, kind int64, num int, data []byte, dims ...int64) {
	var t []byte
	for _, d := range dims {
		t = onnx.AppendInt(t, 1, d)
	}
	t = onnx.AppendBytes(onnx.AppendInt(t, 2, kind), 8, name)
	g.Raw(5, onnx.AppendBytes(t, num, data))
}

// Raw adds a field to the graph.
func (g *Graph) Raw(num int, data []byte) { g.graph = onnx.AppendBytes(g.graph, num, data) }

// Node adds a node. attrs are encoded attributes.
func (g *Graph) Node(op string, in []string, out string, attrs ...[]byte) {
	g.Raw(1, NodeBytes(op, in, out, attrs...))
}

// NodeBytes encodes a node.
func NodeBytes(op string, in []string, out string, attrs ...[]byte) (n []byte) {
	for _, v := range in {
		n = onnx.AppendBytes(n, 1, v)
	}
	n = onnx.AppendBytes(onnx.AppendBytes(onnx.AppendBytes(n, 2, out), 3, "node_"+out), 4, op)
	for _, a := range attrs {
		n = onnx.AppendBytes(n, 5, a)
	}
	return n
}

// Int encodes an attribute that is an integer.
func Int(name string, v int64) []byte {
	return onnx.AppendInt(onnx.AppendInt(onnx.AppendBytes(nil, 1, name), 3, v), 20, 2)
}

// Ints encodes an attribute that is a list of integers.
func Ints(name string, list ...int64) []byte {
	a := onnx.AppendBytes(nil, 1, name)
	for _, v := range list {
		a = onnx.AppendInt(a, 8, v)
	}
	return onnx.AppendInt(a, 20, 7)
}

// Float encodes an attribute that is a number.
func Float(name string, v float32) []byte {
	a := binary.AppendUvarint(onnx.AppendBytes(nil, 1, name), 2<<3|5)
	return onnx.AppendInt(binary.LittleEndian.AppendUint32(a, math.Float32bits(v)), 20, 1)
}

// GraphBytes returns the bytes of the graph.
func (g *Graph) GraphBytes() []byte { return g.graph }

// Bytes returns the model.
func (g *Graph) Bytes() []byte {
	opset := onnx.AppendInt(onnx.AppendBytes(nil, 1, ""), 2, g.Opset)
	m := onnx.AppendBytes(onnx.AppendInt(nil, 1, 8), 2, "test")
	m = onnx.AppendBytes(m, 7, onnx.AppendBytes(append([]byte{}, g.graph...), 2, "main"))
	return append(onnx.AppendBytes(m, 8, opset), g.Extra...)
}

// External returns a model whose weight of two floats lies in another file.
func External(location, offset, length string) []byte {
	g := &Graph{Opset: 17}
	g.Value(false, "x", -1, 2)
	tensor := onnx.AppendInt(onnx.AppendInt(onnx.AppendInt(nil, 1, 2), 1, 1), 2, onnx.Float)
	tensor = onnx.AppendBytes(tensor, 8, "w")
	for _, e := range [][2]string{{"location", location}, {"offset", offset}, {"length", length}} {
		tensor = onnx.AppendBytes(tensor, 13, onnx.AppendBytes(onnx.AppendBytes(nil, 1, e[0]), 2, e[1]))
	}
	g.Raw(5, onnx.AppendInt(tensor, 14, 1))
	g.Node("MatMul", []string{"x", "w"}, "y")
	g.Value(true, "y", -1, 1)
	return g.Bytes()
}
