package state

import "bytes"

// readAppended reads the head of an event in the exact form that Append writes, which most log entries have, in one
// pass. For any other form ok is false and e is unchanged.
func (e *Event) readAppended(b []byte) (kind string, body []byte, ok bool) {
	var v Event
	r := appended{rest: b, ok: len(b) > 0 && b[len(b)-1] == '}'}
	r.skip(`{"kind":`)
	kind = r.text()
	r.skip(`,"at":`)
	r.ok = r.ok && v.At.UnmarshalText([]byte(r.text())) == nil
	r.skip(`,"schema":`)
	v.Schema = r.digit()
	r.skip(`,"tenant":`)
	v.Tenant = r.text()
	for _, f := range [...]struct {
		name string
		to   *string
	}{{`,"actor":`, &v.Actor}, {`,"cause":`, &v.Cause}, {`,"key":`, &v.Key}} {
		if bytes.HasPrefix(r.rest, []byte(f.name)) {
			r.skip(f.name)
			*f.to = r.text()
		}
	}
	r.skip(`,"body":`)
	if !r.ok || v.Schema > Schema || len(r.rest) < 2 {
		return "", nil, false
	}
	*e = v
	return kind, r.rest[:len(r.rest)-1], true
}

// appended reads input in the form of Append. rest is the unread input; ok turns false at the first part that has
// another form.
type appended struct {
	rest []byte
	ok   bool
}

func (r *appended) skip(text string) {
	rest, found := bytes.CutPrefix(r.rest, []byte(text))
	r.rest, r.ok = rest, r.ok && found
}

// text reads a string without escapes.
func (r *appended) text() string {
	if !r.ok || len(r.rest) == 0 || r.rest[0] != '"' {
		r.ok = false
		return ""
	}
	for i, c := range r.rest[1:] {
		switch {
		case c == '"':
			text := string(r.rest[1 : i+1])
			r.rest = r.rest[i+2:]
			return text
		case c < ' ' || c >= 0x7f || c == '\\':
			r.ok = false
			return ""
		}
	}
	r.ok = false
	return ""
}

// digit reads a one-digit number.
func (r *appended) digit() int {
	if !r.ok || len(r.rest) < 2 || r.rest[0] < '0' || r.rest[0] > '9' || r.rest[1] != ',' {
		r.ok = false
		return 0
	}
	n := int(r.rest[0] - '0')
	r.rest = r.rest[1:]
	return n
}
