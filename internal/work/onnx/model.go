// Package onnx reads the structure of ONNX models and writes changed copies. It keeps weights on disk: memory holds
// names, nodes and offsets only. Everything that it does not change, also fields that it does not know, is copied byte
// for byte.
package onnx

import (
	"fmt"
	"io"
	"strings"
)

// Element types of tensors.
const (
	Float   = 1
	Uint8   = 2
	Int8    = 3
	Int32   = 6
	Int64   = 7
	Float16 = 10
	BFloat  = 16
)

// Bounds of what is read.
const (
	// MaxFile is the size of the largest file that protobuf allows, in bytes.
	MaxFile   = 1<<31 - 1
	maxFields = 1 << 20 // of a graph and its subgraphs
	maxDepth  = 32      // of subgraphs
	maxDims   = 16
	maxAttrs  = 1 << 12
)

// Field numbers of the messages that are read.
const (
	modelGraph, modelOpset, modelTraining                                      = 7, 8, 20
	graphNode, graphInit, graphInput, graphOutput, graphSparse, graphShapes    = 1, 5, 11, 12, 15, 13
	nodeIn, nodeOut, nodeName, nodeOp, nodeAttr, nodeDomain                    = 1, 2, 3, 4, 5, 7
	tensorDims, tensorType, tensorFloats, tensorName, tensorRaw                = 1, 2, 4, 8, 9
	tensorExternal, tensorLocation                                             = 13, 14
	attrName, attrFloat, attrInt, attrTensor, attrGraph, attrTensors, attrSubs = 1, 2, 3, 5, 6, 10, 11
	attrInts, attrType, attrText, attrFloats, attrTexts                        = 8, 20, 4, 7, 9
)

// Model is the structure of one file.
type Model struct {
	// Opsets maps the domain of each operator set to its version. "" is the domain of ONNX.
	Opsets map[string]int64
	// Nodes are the nodes of the main graph in their order, which computes each value before its use.
	Nodes []Node
	// Tensors are the constant values of the main graph, by name.
	Tensors map[string]*Tensor
	// Inputs and Outputs are the names of the values of the main graph.
	Inputs, Outputs []string
	// Uses counts how often nodes, subgraphs and the outputs of the graph use a value.
	Uses map[string]int

	src    *Source
	open   Opener
	fields []field // of the model
	graph  []field // of the main graph
	names  map[string]bool
	count  int
}

// Opener opens a file of external data by its location in the model.
type Opener func(location string) (io.ReaderAt, int64, error)

// Node is one node of the main graph.
type Node struct {
	Name, Op, Domain string
	In, Out          []string
	// Ints and Floats are its attributes of one number or a list of integers.
	Ints   map[string][]int64
	Floats map[string]float32

	// Texts are its attributes of one text.
	Texts map[string]string
	// Complex names its attributes that are tensors, graphs, types or lists of numbers or texts.
	Complex []string

	field  int     // index in the graph
	fields []field // the fields other than the inputs
}

// Int returns an attribute of one number, or its default.
func (n *Node) Int(name string, standard int64) int64 {
	if v := n.Ints[name]; len(v) > 0 {
		return v[0]
	}
	return standard
}

// Read reads the structure of a model. open may be nil if the model has no external data.
func Read(src *Source, open Opener) (*Model, error) {
	if src.size > MaxFile {
		return nil, fmt.Errorf("%s: has %d bytes; an ONNX file holds at most %d: export it with external data", src.name,
			src.size, MaxFile)
	}
	m := &Model{Opsets: map[string]int64{}, Tensors: map[string]*Tensor{}, Uses: map[string]int{}, src: src, open: open,
		names: map[string]bool{}}
	var graph Span
	err := walk(Span{src, 0, src.size}, func(x field) (err error) {
		if m.fields = append(m.fields, x); len(m.fields) > maxFields {
			return src.torn(x.all.from, fmt.Sprintf("the model has more than %d fields", maxFields))
		}
		switch x.num {
		case modelGraph:
			if graph.src != nil {
				return src.torn(x.all.from, "the model has two graphs")
			}
			graph, err = x.message()
			return err
		case modelTraining:
			return src.torn(x.all.from, "the model has training graphs, which use its weights; export it for inference")
		case modelOpset:
			return m.readOpset(x)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if graph.src == nil {
		return nil, fmt.Errorf("%s: this is no ONNX model: it has no graph; give a file that an exporter wrote", src.name)
	}
	if err := m.readGraph(graph); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Model) readOpset(x field) error {
	s, err := x.message()
	if err != nil {
		return err
	}
	domain, version := "", int64(0)
	err = walk(s, func(x field) (err error) {
		switch x.num {
		case 1:
			domain, err = x.text()
		case 2:
			version = int64(x.val)
		}
		return err
	})
	if err != nil {
		return err
	}
	if domain == "ai.onnx" {
		domain = ""
	}
	if old, twice := m.Opsets[domain]; twice && old != version {
		return m.src.torn(x.all.from, fmt.Sprintf("the operator set %q has the versions %d and %d", domain, old, version))
	}
	m.Opsets[domain] = version
	return nil
}

// readGraph reads the main graph.
func (m *Model) readGraph(g Span) error {
	if err := walk(g, func(x field) error { m.graph = append(m.graph, x); return m.spend(x) }); err != nil {
		return err
	}
	seen := map[string]int{}
	b := scope{m: m, seen: seen}
	if err := b.declare(m.graph); err != nil {
		return err
	}
	for i, x := range m.graph {
		switch x.num {
		case graphNode:
			n, err := b.node(x)
			if err != nil {
				return err
			}
			n.field = i
			m.Nodes = append(m.Nodes, n)
		case graphInit:
			t, err := m.readTensor(x)
			if err != nil {
				return err
			}
			t.field = i
			m.Tensors[t.Name] = t
		}
	}
	return b.outputs(m.graph)
}

// spend counts a field of a graph and refuses more than maxFields of them.
func (m *Model) spend(x field) error {
	if m.count++; m.count > maxFields {
		return m.src.torn(x.all.from, fmt.Sprintf("the graph has more than %d nodes and values", maxFields))
	}
	return nil
}

// Has reports whether some value of the model has the name.
func (m *Model) Has(name string) bool { return m.names[name] }

// Fresh returns a name that no value has, and reserves it.
func (m *Model) Fresh(base string) string {
	base = strings.ReplaceAll(base, "\n", "_")
	name := base
	for i := 2; m.names[name]; i++ {
		name = fmt.Sprintf("%s_%d", base, i)
	}
	m.names[name] = true
	return name
}

// Parameters counts the elements of the tensors of floating-point numbers.
func (m *Model) Parameters() (n int64) {
	for _, t := range m.Tensors {
		if t.Type == Float || t.Type == Float16 || t.Type == BFloat {
			n += t.Count()
		}
	}
	return n
}
