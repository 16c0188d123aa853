package onnx

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Source is a file that is read at random through one page of memory.
type Source struct {
	name string
	in   io.ReaderAt
	size int64
	page []byte
	at   int64 // offset of page
}

const pageSize = 64 << 10

// NewSource returns a source of size bytes. Errors start with name.
func NewSource(name string, in io.ReaderAt, size int64) *Source {
	return &Source{name: name, in: in, size: size}
}

// Span is a range of bytes of a source.
type Span struct {
	src       *Source
	from, end int64
}

// Len returns the length in bytes.
func (s Span) Len() int64 { return s.end - s.from }

// copyTo writes the bytes of the span.
func (s Span) copyTo(w io.Writer) error {
	n, err := io.Copy(w, io.NewSectionReader(s.src.in, s.from, s.Len()))
	if err == nil && n != s.Len() {
		err = fmt.Errorf("%s: ends after %d bytes; it changed while it was read", s.src.name, s.from+n)
	}
	return err
}

// load returns the bytes of a span of at most limit bytes.
func (s Span) load(limit int64) ([]byte, error) {
	if s.Len() > limit {
		return nil, s.src.torn(s.from, fmt.Sprintf("has a text or list of %d bytes, at most %d are allowed", s.Len(), limit))
	}
	b := make([]byte, s.Len())
	if _, err := s.src.in.ReadAt(b, s.from); err != nil && (err != io.EOF || len(b) > 0) {
		return nil, fmt.Errorf("read %s: %w", s.src.name, err)
	}
	return b, nil
}

func (s *Source) torn(at int64, why string) error {
	return fmt.Errorf("%s: byte %d: %s; copy or export the model again", s.name, at, why)
}

// byteAt returns one byte. It reads a page when the byte lies outside the last one.
func (s *Source) byteAt(at int64) (byte, error) {
	if at < s.at || at >= s.at+int64(len(s.page)) {
		if cap(s.page) == 0 {
			s.page = make([]byte, pageSize)
		}
		n := min(pageSize, s.size-at)
		s.page, s.at = s.page[:n], at
		if _, err := s.in.ReadAt(s.page, at); err != nil && err != io.EOF {
			s.page = s.page[:0]
			return 0, fmt.Errorf("read %s: %w", s.name, err)
		}
	}
	return s.page[at-s.at], nil
}

// varint reads a number of at most ten bytes and returns it with the offset of the next byte.
func (s *Source) varint(at, end int64) (v uint64, next int64, err error) {
	for shift := 0; ; shift += 7 {
		if at >= end || shift > 63 {
			return 0, 0, s.torn(at, "a number is cut short")
		}
		b, err := s.byteAt(at)
		if err != nil {
			return 0, 0, err
		}
		if at++; shift == 63 && b > 1 {
			return 0, 0, s.torn(at, "a number has more than 64 bits")
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, at, nil
		}
	}
}

// Wire types of protobuf.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// field is one field of a message.
type field struct {
	num  int
	wire int
	val  uint64 // of wireVarint, wireFixed32 and wireFixed64
	data Span   // of wireBytes, without its length
	all  Span   // with the key
}

// walk calls f with each field of a message, in the order of the file. It refuses a length beyond the message.
func walk(m Span, f func(field) error) error {
	for at := m.from; at < m.end; {
		x, err := m.src.field(at, m.end)
		if err != nil {
			return err
		}
		at = x.all.end
		if err := f(x); err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) field(from, end int64) (x field, err error) {
	key, at, err := s.varint(from, end)
	if err != nil {
		return x, err
	}
	if key>>3 == 0 || key>>3 >= 1<<29 {
		return x, s.torn(from, "this is no ONNX model: a field has no valid number")
	}
	x.num, x.wire = int(key>>3), int(key&7)
	fixed := int64(0)
	switch x.wire {
	case wireVarint:
		x.val, at, err = s.varint(at, end)
	case wireFixed64:
		fixed = 8
	case wireFixed32:
		fixed = 4
	case wireBytes:
		var size uint64
		size, at, err = s.varint(at, end)
		if err == nil && size > uint64(end-at) {
			return x, s.torn(from, fmt.Sprintf("a field claims %d bytes and %d are left", size, end-at))
		}
		if err == nil {
			x.data = Span{s, at, at + int64(size)}
			at = x.data.end
		}
	default:
		return x, s.torn(from, fmt.Sprintf("this is no ONNX model: a field has the wire type %d", x.wire))
	}
	if err != nil {
		return x, err
	}
	if fixed > end-at {
		return x, s.torn(at, "a number is cut short")
	}
	for i := range fixed {
		b, err := s.byteAt(at + i)
		if err != nil {
			return x, err
		}
		x.val |= uint64(b) << (8 * i)
	}
	x.all = Span{s, from, at + fixed}
	return x, nil
}

// message returns the content of a field that must be a message or a text.
func (x field) message() (Span, error) {
	if x.wire != wireBytes {
		return Span{}, x.all.src.torn(x.all.from, fmt.Sprintf("field %d is no message", x.num))
	}
	return x.data, nil
}

const maxText = 64 << 10

func (x field) text() (string, error) {
	s, err := x.message()
	if err != nil {
		return "", err
	}
	b, err := s.load(maxText)
	return string(b), err
}

// ints returns the numbers of a field, packed or alone, at most limit.
func (x field) ints(limit int) (list []int64, err error) {
	switch x.wire {
	case wireVarint:
		return []int64{int64(x.val)}, nil
	case wireBytes:
		for at := x.data.from; at < x.data.end; {
			var v uint64
			if v, at, err = x.data.src.varint(at, x.data.end); err != nil {
				return nil, err
			}
			if list = append(list, int64(v)); len(list) > limit {
				return nil, x.data.src.torn(at, fmt.Sprintf("a list has more than %d numbers", limit))
			}
		}
		return list, nil
	}
	return nil, x.all.src.torn(x.all.from, fmt.Sprintf("field %d holds no integers", x.num))
}

// AppendInt appends a field that holds an integer.
func AppendInt(b []byte, num int, v int64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(num)<<3|wireVarint), uint64(v))
}

// AppendBytes appends a field that holds a text or a message.
func AppendBytes[T ~string | ~[]byte](b []byte, num int, v T) []byte {
	return append(appendHead(b, num, int64(len(v))), v...)
}

// appendHead appends the key and the length of a field of size bytes.
func appendHead(b []byte, num int, size int64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(num)<<3|wireBytes), uint64(size))
}
