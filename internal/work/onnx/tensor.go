package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Tensor is a constant value of the main graph. Its elements stay in the file.
type Tensor struct {
	Name string
	Type int
	Dims []int64

	field    int     // index in the graph
	fields   []field // the fields other than the elements
	raw      []Span  // the elements as bytes, or packed floats, which have the same form
	external bool
	listed   bool // the elements are in a list that is not read, such as int64_data
}

// Count returns the number of elements.
func (t *Tensor) Count() int64 {
	n := int64(1)
	for _, d := range t.Dims {
		n *= d
	}
	return n
}

// maxElements bounds the elements of a tensor, so that its sizes in bytes fit an int64.
const maxElements = 1 << 40

func (m *Model) readTensor(x field) (*Tensor, error) {
	s, err := x.message()
	if err != nil {
		return nil, err
	}
	t := &Tensor{}
	var where []field
	err = walk(s, func(x field) (err error) {
		switch x.num {
		case tensorRaw, tensorFloats:
			return t.elements(x)
		case tensorExternal:
			if where = append(where, x); len(where) > maxDims {
				err = s.src.torn(x.all.from, "a tensor has too many entries of external data")
			}
			return err
		case tensorLocation:
			t.external = x.val == 1
			return nil
		}
		return t.header(x)
	})
	if err == nil {
		err = t.check(s)
	}
	if err == nil && t.external {
		err = m.readExternal(t, where)
	}
	if err == nil && t.Type == Float && !t.listed && t.bytes() != 4*t.Count() {
		err = s.src.torn(s.from, fmt.Sprintf("tensor %q has the shape %v and %d bytes of elements", t.Name, t.Dims,
			t.bytes()))
	}
	if _, twice := m.Tensors[t.Name]; err == nil && twice {
		err = s.src.torn(s.from, fmt.Sprintf("two tensors have the name %q", t.Name))
	}
	return t, err
}

// elements notes where the elements of a tensor lie.
func (t *Tensor) elements(x field) error {
	if x.wire != wireBytes {
		t.listed = true
		return nil
	}
	t.raw = append(t.raw, x.data)
	if len(t.raw) > 1 && x.num == tensorRaw || len(t.raw) > maxAttrs {
		return x.all.src.torn(x.all.from, "a tensor has its elements twice or in too many parts")
	}
	return nil
}

// header reads a field that does not hold elements as bytes.
func (t *Tensor) header(x field) (err error) {
	if t.fields = append(t.fields, x); len(t.fields) > maxAttrs {
		return x.all.src.torn(x.all.from, "a tensor has too many fields")
	}
	switch x.num {
	case tensorDims:
		var more []int64
		if more, err = x.ints(maxDims); err == nil {
			t.Dims = append(t.Dims, more...)
		}
	case tensorType:
		t.Type = int(min(x.val, 1<<16))
	case tensorName:
		t.Name, err = x.text()
	case 5, 6, 7, 10, 11: // lists of other types
		t.listed = true
	}
	return err
}

// check refuses shapes that are negative or too large.
func (t *Tensor) check(s Span) error {
	if len(t.Dims) > maxDims {
		return s.src.torn(s.from, fmt.Sprintf("tensor %q has %d dimensions, at most %d are allowed", t.Name, len(t.Dims),
			maxDims))
	}
	n := int64(1)
	for _, d := range t.Dims {
		if d < 0 || d > maxElements || d > 0 && n > maxElements/d {
			return s.src.torn(s.from, fmt.Sprintf("tensor %q has the impossible shape %v", t.Name, t.Dims))
		}
		n *= d
	}
	return nil
}

func (t *Tensor) bytes() (n int64) {
	for _, s := range t.raw {
		n += s.Len()
	}
	return n
}

// entries reads messages that consist of a key and a value.
func entries(list []field) (map[string]string, error) {
	entry := map[string]string{}
	for _, x := range list {
		s, err := x.message()
		if err != nil {
			return nil, err
		}
		key, value := "", ""
		err = walk(s, func(x field) (err error) {
			switch x.num {
			case 1:
				key, err = x.text()
			case 2:
				value, err = x.text()
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		entry[key] = value
	}
	return entry, nil
}

// readExternal finds the elements that lie in another file.
func (m *Model) readExternal(t *Tensor, where []field) error {
	entry, err := entries(where)
	if err != nil {
		return err
	}
	bad := func(why string, args ...any) error {
		return fmt.Errorf("%s: tensor %q: external data: %s", m.src.name, t.Name, fmt.Sprintf(why, args...))
	}
	place := entry["location"]
	if place == "" || m.open == nil {
		return bad("no file is named; export the model again")
	}
	in, size, err := m.open(place)
	if err != nil {
		return fmt.Errorf("%s: tensor %q: external data: %w", m.src.name, t.Name, err)
	}
	from := int64(0)
	if v := entry["offset"]; v != "" {
		if from, err = strconv.ParseInt(v, 10, 64); err != nil || from < 0 || from > size {
			return bad("the offset %q lies outside %s, which has %d bytes", v, place, size)
		}
	}
	length := size - from
	if v := entry["length"]; v != "" {
		if length, err = strconv.ParseInt(v, 10, 64); err != nil || length < 0 || length > size-from {
			return bad("the length %q reaches beyond %s, which has %d bytes", v, place, size)
		}
	}
	if t.raw != nil {
		return bad("the model holds elements as well; export it again")
	}
	t.raw = []Span{{NewSource(place, in, size), from, from + length}}
	return nil
}

// inline refuses a tensor of a subgraph or an attribute that has external data.
func (m *Model) inline(x field) error {
	s, err := x.message()
	if err != nil {
		return err
	}
	return walk(s, func(x field) error {
		if x.num == tensorLocation && x.val == 1 {
			return s.src.torn(x.all.from, "a tensor of an attribute or a subgraph has external data, which scrimp does not read")
		}
		return nil
	})
}

// Readable returns why Floats cannot read the elements, or nil.
func (t *Tensor) Readable() error {
	switch {
	case t.Type == Float16 || t.Type == BFloat:
		return errors.New("the weight has 16 bits already; export it as float32")
	case t.Type != Float:
		return errors.New("the weight is not float32")
	case t.listed:
		return errors.New("the weight is a list that is not packed; save it again with onnx.save")
	}
	for _, s := range t.raw {
		if s.Len()%4 != 0 {
			return errors.New("a part of the weight ends within a number; save it again with onnx.save")
		}
	}
	return nil
}

const chunk = 1 << 14 // elements that are read at a time

// Floats calls f with the elements in order, a part at a time. It refuses values that are not finite.
func (t *Tensor) Floats(f func(at int64, v []float32) error) error {
	if err := t.Readable(); err != nil {
		return err
	}
	at, v := int64(0), make([]float32, chunk)
	for _, s := range t.raw {
		for from := s.from; from < s.end; {
			end := min(from+4*chunk, s.end)
			b, err := (Span{s.src, from, end}).load(4 * chunk)
			if err != nil {
				return err
			}
			part := v[:len(b)/4]
			for i := range part {
				bits := binary.LittleEndian.Uint32(b[4*i:])
				if bits>>23&0xff == 0xff {
					return fmt.Errorf("tensor %q: element %d is not finite; train or export the model again", t.Name, at+int64(i))
				}
				part[i] = math.Float32frombits(bits)
			}
			if err := f(at, part); err != nil {
				return err
			}
			at, from = at+int64(len(part)), end
		}
	}
	return nil
}

// Raw returns the elements as bytes if there are at most limit bytes.
func (t *Tensor) Raw(limit int64) ([]byte, error) {
	if t.listed || t.bytes() > limit {
		return nil, fmt.Errorf("tensor %q has no raw elements, or more than %d bytes", t.Name, limit)
	}
	var all []byte
	for _, s := range t.raw {
		b, err := s.load(limit)
		if err != nil {
			return nil, err
		}
		all = append(all, b...)
	}
	return all, nil
}

func float32From(bits uint32) float32 { return math.Float32frombits(bits) }
