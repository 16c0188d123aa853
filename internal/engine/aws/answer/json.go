//go:build !local

package answer

import "strings"

// jsonScanner reads JSON as the price list is written: objects, lists and texts of ASCII. Of anything else (numbers,
// true, escapes of Unicode, what is no JSON) it says that it is odd, and reads no further: encoding/json or the SDK
// reads it then.
type jsonScanner struct {
	text  string // what is not read yet
	odd   bool
	depth int
}

// bare are the bytes that a text in quotes may have as they are.
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

// next reports whether the next byte beside white space is c, and goes on behind it.
func (s *jsonScanner) next(c byte) bool {
	s.blank()
	if s.odd || s.text == "" || s.text[0] != c {
		return false
	}
	s.text = s.text[1:]
	return true
}

// must is next of what has to be there.
func (s *jsonScanner) must(c byte) {
	if !s.next(c) {
		s.odd = true
	}
}

// quoted is a text as it stands between its quotes, and whether it has escapes.
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

// escape is the byte that \c stands for; 0: it is none of one byte.
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

// str is a text.
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

// list calls for each value, which is read or skipped then.
func (s *jsonScanner) list(each func()) {
	s.must('[')
	s.until(']', each)
}

// object calls for each value with its key; the value is read or skipped then.
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

// skip reads any value.
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

// whole reports whether all of the text was read, and nothing was odd.
func (s *jsonScanner) whole() bool {
	s.blank()
	return !s.odd && s.text == ""
}
