//go:build !local

package ec2decode

import (
	"bytes"
	"strconv"
	"time"

	smithytime "github.com/aws/smithy-go/time"
)

// xmlScanner reads the XML that EC2 writes: elements without attributes except a namespace, and texts of plain ASCII.
// At anything else (comments, entities, other encodings, a truncated body) it sets odd and stops; encoding/xml then
// reads the input. So it accepts no text that encoding/xml refuses, and needs no errors of its own.
type xmlScanner struct {
	text  []byte // the unread rest
	open  []byte // the name of the last opened element
	empty bool   // that element is <name/>
	odd   bool
	depth int
	lower [48]byte
}

// deepest is the greatest depth of elements: a type's network card is at 6.
const deepest = 32

// declaration begins each answer of EC2.
const declaration = `<?xml version="1.0" encoding="UTF-8"?>`

// plain are the bytes that a text may contain: printable ASCII, newline and tab, without XML's special characters.
// '\r' is excluded, because an XML parser reads it as '
// '.
var plain = func() (is [256]bool) {
	for c := ' '; c <= '~'; c++ {
		is[c] = c != '<' && c != '>' && c != '&'
	}
	is['\n'], is['\t'] = true, true
	return is
}()

// named are the bytes that a name may contain.
var named = func() (is [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") {
		is[c] = true
	}
	return is
}()

// document reads the root's children, and reports whether all of the text had EC2's usual form.
func (s *xmlScanner) document(each func(name []byte)) bool {
	s.text = bytes.TrimPrefix(s.text, []byte(declaration))
	s.blank()
	s.begin()
	s.children(each)
	s.blank()
	return !s.odd && len(s.text) == 0
}

func (s *xmlScanner) blank() {
	s.text = bytes.TrimLeft(s.text, " \n\t")
}

// run returns the plain text up to the next tag.
func (s *xmlScanner) run() []byte {
	n := 0
	for n < len(s.text) && plain[s.text[n]] {
		n++
	}
	v := s.text[:n]
	s.text = s.text[n:]
	return v
}

// namespace is the root's namespace, the only attribute accepted.
const namespace = ` xmlns="`

// begin opens an element.
func (s *xmlScanner) begin() {
	n := 1
	for n < len(s.text) && named[s.text[n]] {
		n++
	}
	if n == 1 || n >= len(s.text) || s.text[0] != '<' || bytes.IndexByte([]byte("-.0123456789"), s.text[1]) >= 0 {
		s.odd = true
		return
	}
	s.open, s.text = s.text[1:n], s.text[n:]
	if rest, ok := bytes.CutPrefix(s.text, []byte(namespace)); ok {
		s.text = rest
		quote := bytes.IndexByte(s.run(), '"')
		if s.text = rest[quote+1:]; quote < 1 || len(s.text) == 0 {
			s.odd = true
			return
		}
	}
	s.empty = s.text[0] == '/'
	if s.empty {
		s.text = s.text[1:]
	}
	if len(s.text) == 0 || s.text[0] != '>' {
		s.odd = true
		return
	}
	s.text = s.text[1:]
}

// end reports whether an element of that name ends here, and consumes the end tag. Any other end tag is odd.
func (s *xmlScanner) end(name []byte) bool {
	if len(s.text) < 2 || s.text[0] != '<' || s.text[1] != '/' {
		return false
	}
	n := 2 + len(name)
	if len(s.text) <= n || s.text[n] != '>' || !bytes.Equal(s.text[2:n], name) {
		s.odd = true
		return false
	}
	s.text = s.text[n+1:]
	return true
}

// children calls each for every child of the last opened element, with its name in lower case, because the SDK
// ignores case. each reads or skips the element.
func (s *xmlScanner) children(each func(name []byte)) {
	if s.odd || s.empty {
		s.empty = false
		return
	}
	name := s.open
	if s.depth++; s.depth > deepest {
		s.odd = true
	}
	for !s.odd {
		if s.run(); s.end(name) {
			break
		}
		if !s.odd {
			s.begin()
		}
		if !s.odd {
			each(s.small(s.open))
		}
	}
	s.depth--
}

// small returns a name in lower case; a name longer than any known one stays unchanged.
func (s *xmlScanner) small(name []byte) []byte {
	if len(name) > len(s.lower) {
		return name
	}
	for n, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		s.lower[n] = c
	}
	return s.lower[:len(name)]
}

func (s *xmlScanner) skip() { s.children(func([]byte) { s.skip() }) }

// field calls each for every child of that name.
func (s *xmlScanner) field(wanted string, each func()) {
	s.children(func(name []byte) {
		if string(name) == wanted {
			each()
		} else {
			s.skip()
		}
	})
}

// value returns the text of an element without children.
func (s *xmlScanner) value() []byte {
	if s.odd || s.empty {
		s.empty = false
		return nil
	}
	name := s.open
	v := s.run()
	if !s.end(name) {
		s.odd = true
	}
	return v
}

func (s *xmlScanner) str() *string {
	v := string(s.value())
	return &v
}

func (s *xmlScanner) number() *int64 {
	n, err := strconv.ParseInt(string(s.value()), 10, 64)
	s.odd = s.odd || err != nil
	return &n
}

func (s *xmlScanner) number32() *int32 {
	n := int32(*s.number())
	return &n
}

func (s *xmlScanner) truth() *bool {
	v, err := strconv.ParseBool(string(s.value()))
	s.odd = s.odd || err != nil
	return &v
}

func (s *xmlScanner) moment() *time.Time {
	at, err := smithytime.ParseDateTime(string(s.value()))
	s.odd = s.odd || err != nil
	return &at
}
