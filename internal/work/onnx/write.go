package onnx

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
)

// Edit lists the changes of a copy.
type Edit struct {
	// Nodes replaces nodes, by index in Model.Nodes, by others.
	Nodes map[int][]NewNode
	// Drop lists the tensors that the copy does not have.
	Drop map[string]bool
	// Data replaces the elements of tensors, which keep their name and type.
	Data map[string]Elements
	// Dims replaces the shapes of tensors in Data.
	Dims map[string][]int64
	// Inputs replaces the inputs of nodes, by index in Model.Nodes; everything else of such a node stays.
	Inputs map[int][]string
	// Before adds nodes before others, by index in Model.Nodes.
	Before map[int][]NewNode
	// NoShapes leaves out the shapes of values between the nodes, which a copy with other shapes would contradict.
	NoShapes bool
	// Tensors are added to the graph.
	Tensors []NewTensor
	// Opsets are the operator sets that the copy needs besides its own.
	Opsets map[string]int64
}

// Elements writes the elements of a tensor: exactly Size bytes, little-endian.
type Elements struct {
	Size  int64
	Write func(w io.Writer) error
}

// NewTensor is a tensor that an edit adds.
type NewTensor struct {
	Name string
	Type int
	Dims []int64
	Data Elements
}

// NewNode is a node that an edit adds. Its attributes are integers. A node without a name is known by its outputs.
type NewNode struct {
	Name, Op, Domain string
	In, Out          []string
	Ints             map[string]int64
}

// attrKindInt is the type of an attribute that holds one integer.
const attrKindInt = 2

func (n NewNode) encode() []byte {
	var b []byte
	for _, v := range n.In {
		b = AppendBytes(b, nodeIn, v)
	}
	for _, v := range n.Out {
		b = AppendBytes(b, nodeOut, v)
	}
	if n.Name != "" {
		b = AppendBytes(b, nodeName, n.Name)
	}
	b = AppendBytes(b, nodeOp, n.Op)
	for _, k := range slices.Sorted(maps.Keys(n.Ints)) {
		a := AppendInt(AppendInt(AppendBytes(nil, attrName, k), attrInt, n.Ints[k]), attrType, attrKindInt)
		b = AppendBytes(b, nodeAttr, a)
	}
	if n.Domain != "" {
		b = AppendBytes(b, nodeDomain, n.Domain)
	}
	return AppendBytes(nil, graphNode, b)
}

// piece is a part of the output: bytes, a span of the source, or elements.
type piece struct {
	bytes []byte
	span  Span
	make  Elements
}

func (p piece) size() int64 { return int64(len(p.bytes)) + p.span.Len() + p.make.Size }

func sum(list []piece) (n int64) {
	for _, p := range list {
		n += p.size()
	}
	return n
}

// wrap returns the pieces as one field.
func wrap(num int, list []piece) []piece {
	return append([]piece{{bytes: appendHead(nil, num, sum(list))}}, list...)
}

func (t NewTensor) pieces() []piece {
	var b []byte
	for _, d := range t.Dims {
		b = AppendInt(b, tensorDims, d)
	}
	b = AppendBytes(AppendInt(b, tensorType, int64(t.Type)), tensorName, t.Name)
	b = appendHead(b, tensorRaw, t.Data.Size)
	return wrap(graphInit, []piece{{bytes: b}, {make: t.Data}})
}

// with returns the tensor with other elements, and with another shape unless dims is nil.
func (t *Tensor) with(dims []int64, data []piece) []piece {
	var list []piece
	for _, x := range t.fields {
		if dims == nil || x.num != tensorDims {
			list = append(list, piece{span: x.all})
		}
	}
	var shape []byte
	for _, d := range dims {
		shape = AppendInt(shape, tensorDims, d)
	}
	list = append(list, piece{bytes: shape})
	list = append(list, piece{bytes: appendHead(nil, tensorRaw, sum(data))})
	return wrap(graphInit, append(list, data...))
}

// Write writes the model with the changes of e, and returns the size. External data moves into the file.
func (m *Model) Write(w io.Writer, e Edit) (int64, error) {
	var list []piece
	for _, x := range m.fields {
		if x.num == modelGraph {
			list = append(list, wrap(modelGraph, m.graphPieces(e))...)
		} else {
			list = append(list, piece{span: x.all})
		}
	}
	for _, domain := range slices.Sorted(maps.Keys(e.Opsets)) {
		if _, has := m.Opsets[domain]; !has {
			b := AppendInt(AppendBytes(nil, 1, domain), 2, e.Opsets[domain])
			list = append(list, piece{bytes: AppendBytes(nil, modelOpset, b)})
		}
	}
	size := sum(list)
	if size > MaxFile {
		return 0, fmt.Errorf("%s: the result has %d bytes, and an ONNX file holds at most %d: take a method that makes it "+
			"smaller", m.src.name, size, MaxFile)
	}
	for _, p := range list {
		if err := p.write(w); err != nil {
			return 0, err
		}
	}
	return size, nil
}

func (p piece) write(w io.Writer) error {
	if p.span.src != nil {
		return p.span.copyTo(w)
	}
	if p.make.Write == nil {
		_, err := w.Write(p.bytes)
		return err
	}
	c := &counter{w: w}
	if err := p.make.Write(c); err != nil {
		return err
	}
	if c.n != p.make.Size {
		return fmt.Errorf("a tensor has %d bytes instead of %d: the model changed while it was read", c.n, p.make.Size)
	}
	return nil
}

// with returns the node with other inputs.
func (n *Node) with(inputs []string) []piece {
	var b []byte
	for _, v := range inputs {
		b = AppendBytes(b, nodeIn, v)
	}
	list := []piece{{bytes: b}}
	for _, x := range n.fields {
		list = append(list, piece{span: x.all})
	}
	return wrap(graphNode, list)
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// tensor returns the pieces of a tensor that an edit changes. An external one comes into the file.
func (e Edit) tensor(t *Tensor) (pieces []piece, changed bool) {
	data, replaced := e.Data[t.Name]
	switch {
	case e.Drop[t.Name]:
		return nil, true
	case replaced:
		return t.with(e.Dims[t.Name], []piece{{make: data}}), true
	case t.external:
		return t.with(nil, []piece{{span: t.raw[0]}}), true
	}
	return nil, false
}

func (m *Model) graphPieces(e Edit) []piece {
	nodes, tensors := map[int]int{}, map[int]*Tensor{}
	for i, n := range m.Nodes {
		nodes[n.field] = i
	}
	for _, t := range m.Tensors {
		tensors[t.field] = t
	}
	var list []piece
	for i, x := range m.graph {
		switch x.num {
		case graphShapes:
			if e.NoShapes {
				continue
			}
		case graphNode:
			for _, n := range e.Before[nodes[i]] {
				list = append(list, piece{bytes: n.encode()})
			}
			if inputs, replaced := e.Inputs[nodes[i]]; replaced {
				list = append(list, m.Nodes[nodes[i]].with(inputs)...)
				continue
			}
			if others, replaced := e.Nodes[nodes[i]]; replaced {
				for _, n := range others {
					list = append(list, piece{bytes: n.encode()})
				}
				continue
			}
		case graphInit:
			if pieces, changed := e.tensor(tensors[i]); changed {
				list = append(list, pieces...)
				continue
			}
		}
		list = append(list, piece{span: x.all})
	}
	for _, t := range e.Tensors {
		list = append(list, t.pieces()...)
	}
	return list
}

// FloatElements returns float32 elements that f computes when they are written.
func FloatElements(n int64, f func() ([]float32, error)) Elements {
	return Elements{Size: 4 * n, Write: func(w io.Writer) error {
		v, err := f()
		if err != nil {
			return err
		}
		b := make([]byte, 0, 4*len(v))
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		_, err = w.Write(b)
		return err
	}}
}
