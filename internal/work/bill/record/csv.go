package record

import (
	"errors"
	"io"
	"strings"
)

// mostLines bounds the lines of one CSV row, whose texts may contain newlines.
const mostLines = 1000

// Cells reads the rows of CSV. A row with unbalanced quotes affects only itself: its first line becomes a fault, and
// the next line starts a row again.
type Cells struct {
	*lines
	Comma   byte
	width   int    // number of fields in the header
	spanned []line // lines of a row after its first
}

// A file may have a title above its header: at most mostTitle lines, with fewer than leastColumns fields each.
const (
	mostTitle    = 10
	leastColumns = 4
)

// header reads the first row, which determines the separator. It skips a title, and the line "sep=;" of spreadsheets.
func (c *Cells) header() ([]string, error) {
	var top []line
	for len(top) < mostTitle && (len(top) == 0 || fields(top[len(top)-1].text) < leastColumns) {
		l, err := c.next()
		if errors.Is(err, io.EOF) && len(top) > 0 {
			break
		}
		if err != nil {
			return nil, err
		}
		switch {
		case strings.TrimSpace(l.text) == "":
			continue
		case strings.IndexByte(l.text, 0) >= 0 || l.cut:
			return nil, ErrBinary
		case strings.IndexByte(l.text, '\r') >= 0:
			return nil, errReturn
		}
		top = append(top, l)
	}
	first := top[len(top)-1]
	if fields(first.text) < leastColumns { // there is no title
		first = top[0]
		c.giveBack(top[1:])
	}
	c.Comma = separator(first.text)
	header, ok := split(first.text, c.Comma)
	if !ok {
		return nil, ErrHeader
	}
	c.width = len(header)
	return header, nil
}

func separator(text string) byte {
	best := byte(',')
	for _, mark := range []byte{';', '\t'} {
		if strings.Count(text, string(mark)) > strings.Count(text, string(best)) {
			best = mark
		}
	}
	return best
}

func fields(text string) int { return 1 + strings.Count(text, string(separator(text))) }

// Next returns the next row; io.EOF after the last.
func (c *Cells) Next() (Record, error) {
	first, err := c.next()
	for err == nil && first.text == "" && !first.cut {
		first, err = c.next()
	}
	if err != nil {
		return Record{Line: first.n}, err
	}
	if first.cut {
		return Record{Line: first.n, Fault: errLong.Error()}, nil
	}
	text, whole, err := c.rest(first)
	if err != nil {
		return Record{Line: first.n}, err
	}
	fields, ok := split(text, c.Comma)
	switch {
	case !whole || !ok && len(c.spanned) > 0:
		c.giveBack(c.spanned)
		fields, _ = split(first.text, c.Comma)
		return Record{Line: first.n, Fields: fields, Fault: "the row is torn: a quote does not end"}, nil
	case !ok:
		return Record{Line: first.n, Fields: fields, Fault: "the row is torn: a quote stands within a field"}, nil
	case len(fields) != c.width && len(c.spanned) > 0:
		c.giveBack(c.spanned)
		fields, _ = split(first.text, c.Comma)
		return Record{Line: first.n, Fields: fields, Fault: "the row is torn: a quote does not end"}, nil
	}
	return Record{Line: first.n, Fields: fields}, nil
}

// rest adds lines until every quote is closed, and keeps them in spanned.
func (c *Cells) rest(first line) (text string, whole bool, err error) {
	c.spanned = c.spanned[:0]
	quotes := strings.Count(first.text, `"`)
	if quotes%2 == 0 {
		return first.text, true, nil
	}
	var b strings.Builder
	b.WriteString(first.text)
	for len(c.spanned) < mostLines && b.Len() < c.most {
		l, err := c.next()
		if err != nil {
			return "", false, nil // next meets the error or the file's end again
		}
		c.spanned = append(c.spanned, l)
		b.WriteByte('\n')
		b.WriteString(l.text)
		if quotes += strings.Count(l.text, `"`); quotes%2 == 0 {
			return b.String(), !l.cut, nil
		}
	}
	return "", false, nil
}

// split splits a row into its fields, and returns false for a misplaced quote.
func split(text string, comma byte) (fields []string, ok bool) {
	fields = make([]string, 0, 1+strings.Count(text, string(comma)))
	for {
		if text == "" || text[0] != '"' {
			at := strings.IndexByte(text, comma)
			if at < 0 {
				return append(fields, text), !strings.Contains(text, `"`)
			}
			if fields = append(fields, text[:at]); strings.Contains(text[:at], `"`) {
				return fields, false
			}
			text = text[at+1:]
			continue
		}
		field, rest, ended := quoted(text[1:])
		fields = append(fields, field)
		switch {
		case !ended:
			return fields, false
		case rest == "":
			return fields, true
		case rest[0] != comma:
			return fields, false
		}
		text = rest[1:]
	}
}

// quoted returns the text up to the closing quote, with doubled quotes as one, and the rest.
func quoted(text string) (field, rest string, ended bool) {
	double := false
	for at := 0; ; at += 2 {
		next := strings.IndexByte(text[at:], '"')
		if next < 0 {
			return text, "", false
		}
		if at += next; at+1 < len(text) && text[at+1] == '"' {
			double = true
			continue
		}
		field = text[:at]
		if double {
			field = strings.ReplaceAll(field, `""`, `"`)
		}
		return field, text[at+1:], true
	}
}
