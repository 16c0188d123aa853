package onnx

import "fmt"

// scope reads the nodes of a graph and checks that each value is computed once, before its use.
type scope struct {
	m     *Model
	seen  map[string]int // the values that are visible, with the number of graphs that define them
	depth int            // 0 for the main graph
}

// declare makes the inputs and constants of a graph visible.
func (b *scope) declare(fields []field) error {
	for _, x := range fields {
		name, err := "", error(nil)
		switch x.num {
		case graphInput:
			name, err = nameIn(x, 1)
			if b.depth == 0 {
				b.m.Inputs = append(b.m.Inputs, name)
			}
		case graphInit:
			name, err = nameIn(x, tensorName)
			if err == nil && b.depth > 0 {
				err = b.m.inline(x)
			}
		case graphSparse:
			var s Span
			if s, err = x.message(); err == nil {
				err = walk(s, func(x field) (err error) {
					if x.num == 1 {
						name, err = nameIn(x, tensorName)
					}
					return err
				})
			}
		default:
			continue
		}
		if err != nil {
			return err
		}
		b.define(name)
	}
	return nil
}

func (b *scope) define(name string) {
	b.seen[name]++
	b.m.names[name] = true
}

// nameIn returns the text of a field of a message.
func nameIn(x field, num int) (name string, err error) {
	s, err := x.message()
	if err != nil {
		return "", err
	}
	err = walk(s, func(x field) (err error) {
		if x.num == num {
			name, err = x.text()
		}
		return err
	})
	return name, err
}

func (b *scope) node(x field) (n Node, err error) {
	s, err := x.message()
	if err != nil {
		return n, err
	}
	n.Ints, n.Floats, n.Texts = map[string][]int64{}, map[string]float32{}, map[string]string{}
	var attrs []field
	err = walk(s, func(x field) (err error) {
		if len(n.In)+len(n.Out)+len(attrs) > maxAttrs {
			return s.src.torn(x.all.from, fmt.Sprintf("a node has more than %d values and attributes", maxAttrs))
		}
		if x.num != nodeIn && b.depth == 0 {
			n.fields = append(n.fields, x)
		}
		var text string
		switch x.num {
		case nodeIn:
			text, err = x.text()
			n.In = append(n.In, text)
		case nodeOut:
			text, err = x.text()
			n.Out = append(n.Out, text)
		case nodeName:
			n.Name, err = x.text()
		case nodeOp:
			n.Op, err = x.text()
		case nodeDomain:
			n.Domain, err = x.text()
		case nodeAttr:
			attrs = append(attrs, x)
		}
		return err
	})
	if err != nil {
		return n, err
	}
	if n.Domain == "ai.onnx" {
		n.Domain = ""
	}
	err = b.connect(&n, x, attrs)
	return n, err
}

// connect checks that the inputs of a node are visible, reads its attributes and makes its outputs visible.
func (b *scope) connect(n *Node, x field, attrs []field) error {
	for _, in := range n.In {
		if in == "" { // an optional input that is absent
			continue
		}
		if b.seen[in] == 0 {
			return x.all.src.torn(x.all.from, fmt.Sprintf("node %q (%s) uses %q, which no earlier node computes: the graph "+
				"has a cycle or is not sorted", n.Name, n.Op, in))
		}
		b.m.Uses[in]++
	}
	for _, a := range attrs {
		if err := b.attribute(n, a); err != nil {
			return err
		}
	}
	for _, out := range n.Out {
		if out == "" {
			continue
		}
		if b.seen[out] > 0 {
			return x.all.src.torn(x.all.from, fmt.Sprintf("node %q (%s) computes %q a second time", n.Name, n.Op, out))
		}
		b.define(out)
	}
	return nil
}

func (b *scope) attribute(n *Node, a field) error {
	s, err := a.message()
	if err != nil {
		return err
	}
	name := ""
	var ints []int64
	var number *float32
	var word *string
	other := false
	err = walk(s, func(x field) (err error) {
		switch x.num {
		case attrName:
			name, err = x.text()
		case attrInt:
			ints = []int64{int64(x.val)}
		case attrFloat:
			v := float32From(uint32(x.val))
			number = &v
		case attrText:
			var v string
			v, err = x.text()
			word = &v
		case attrInts:
			var more []int64
			more, err = x.ints(maxAttrs)
			if ints = append(ints, more...); len(ints) > maxAttrs {
				err = s.src.torn(x.all.from, fmt.Sprintf("an attribute has more than %d numbers", maxAttrs))
			}
		case attrTensor, attrTensors:
			other = true
			err = b.m.inline(x)
		case attrGraph, attrSubs:
			other = true
			err = b.subgraph(x)
		case attrFloats, attrTexts:
			other = true
		}
		return err
	})
	if ints != nil {
		n.Ints[name] = ints
	}
	if word != nil {
		n.Texts[name] = *word
	}
	if other {
		n.Complex = append(n.Complex, name)
	}
	if number != nil {
		n.Floats[name] = *number
	}
	return err
}

// subgraph reads the graph in an attribute: it sees the values of the graphs around it.
func (b *scope) subgraph(x field) error {
	s, err := x.message()
	if err != nil {
		return err
	}
	inner := scope{m: b.m, seen: b.seen, depth: b.depth + 1}
	if inner.depth > maxDepth {
		return s.src.torn(x.all.from, fmt.Sprintf("the model has subgraphs more than %d deep", maxDepth))
	}
	var fields []field
	if err := walk(s, func(x field) error { fields = append(fields, x); return b.m.spend(x) }); err != nil {
		return err
	}
	if err := inner.declare(fields); err != nil {
		return err
	}
	var own []string
	for _, x := range fields {
		if x.num != graphNode {
			continue
		}
		n, err := inner.node(x)
		if err != nil {
			return err
		}
		own = append(own, n.Out...)
	}
	if err := inner.outputs(fields); err != nil {
		return err
	}
	return inner.leave(fields, own)
}

// leave hides the values of a subgraph again.
func (b *scope) leave(fields []field, own []string) error {
	for _, name := range own {
		if name != "" {
			b.seen[name]--
		}
	}
	undo := scope{m: &Model{names: map[string]bool{}}, seen: map[string]int{}, depth: 1}
	for _, x := range fields {
		if x.num == graphInput || x.num == graphInit || x.num == graphSparse {
			if err := undo.declare([]field{x}); err != nil {
				return err
			}
		}
	}
	for name, n := range undo.seen {
		b.seen[name] -= n
	}
	return nil
}

// outputs checks that the outputs of a graph are computed.
func (b *scope) outputs(fields []field) error {
	for _, x := range fields {
		if x.num != graphOutput {
			continue
		}
		name, err := nameIn(x, 1)
		if err != nil {
			return err
		}
		if b.seen[name] == 0 {
			return x.all.src.torn(x.all.from, fmt.Sprintf("nothing computes the output %q", name))
		}
		b.m.Uses[name]++
		if b.depth == 0 {
			b.m.Outputs = append(b.m.Outputs, name)
		}
	}
	return nil
}
