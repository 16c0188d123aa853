//go:build !local

package ec2decode

import "strings"

// jsonScanner reads JSON in the form of the price list: objects, lists and ASCII texts. At anything else (numbers,
// true, Unicode escapes, invalid JSON) it sets odd and stops; encoding/json or the SDK then reads the input.
type jsonScanner struct {
	text  string // the unread rest
	odd   bool
	depth int
}

// bare are the bytes that a quoted text may contain unescaped.
var bare = func() (is [256]bool) {
	for c := ' '; c <= '~'; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

func (s *jsonScanner) blank() {
	for s.text != "" && (s.text[0] == ' ' || s.text[0] == '\n' || s.text[0] == '\t' || s.text[0] == '\r') {
		s.text = s.text[1:]
	}
}

// next reports whether the next byte after white space is c, and consumes it.
func (s *jsonScanner) next(c byte) bool {
	s.blank()
	if s.odd || s.text == "" || s.text[0] != c {
		return false
	}
	s.text = s.text[1:]
	return true
}

// must is next for a byte that has to come.
func (s *jsonScanner) must(c byte) {
	if !s.next(c) {
		s.odd = true
	}
}

// quoted returns the raw text between quotes, and whether it contains escapes.
func (s *jsonScanner) quoted() (raw string, escapes bool) {
	s.must('"')
	for at := 0; !s.odd && at < len(s.text); at++ {
		switch c := s.text[at]; {
		case bare[c]:
		case c == '"':
			raw, s.text = s.text[:at], s.text[at+1:]
			return raw, escapes
		case c == '\\' && at+1 < len(s.text) && escape(s.text[at+1]) != 0:
			at++
			escapes = true
		default:
			s.odd = true
		}
	}
	s.odd = true
	return "", false
}

// escape returns the byte that \c stands for; 0 if it is not a one-byte escape.
func escape(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return 0
}

// str reads a text.
func (s *jsonScanner) str() string {
	raw, escapes := s.quoted()
	if !escapes {
		return raw
	}
	text := make([]byte, 0, len(raw))
	for at := 0; at < len(raw); at++ {
		c := raw[at]
		if c == '\\' {
			at++
			c = escape(raw[at])
		}
		text = append(text, c)
	}
	return string(text)
}

// list calls each for every value; each reads or skips it.
func (s *jsonScanner) list(each func()) {
	s.must('[')
	s.until(']', each)
}

// object calls each for every value with its key; each reads or skips the value.
func (s *jsonScanner) object(each func(key string)) {
	s.must('{')
	s.until('}', func() {
		key := s.str()
		s.must(':')
		each(key)
	})
}

func (s *jsonScanner) until(end byte, each func()) {
	if s.next(end) {
		return
	}
	if s.depth++; s.depth > deepest {
		s.odd = true
	}
	for !s.odd {
		if each(); s.next(end) {
			break
		}
		s.must(',')
	}
	s.depth--
}

// skip skips any value.
func (s *jsonScanner) skip() {
	s.blank()
	switch {
	case strings.HasPrefix(s.text, "["):
		s.list(s.skip)
	case strings.HasPrefix(s.text, "{"):
		s.object(func(string) { s.skip() })
	default:
		s.quoted()
	}
}

// whole reports whether all of the text was read and nothing was odd.
func (s *jsonScanner) whole() bool {
	s.blank()
	return !s.odd && s.text == ""
}
