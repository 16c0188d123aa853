package reader

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"scrimp/internal/work/bill/record"
)

// mostCells bounds the cells whose common form is remembered, and mostCell the bytes of one: most rows of a bill repeat
// the cells of others.
const (
	mostCells = 4_096
	mostCell  = 64
)

// alike returns the row in a form that does not depend on the file's encoding: two files of a bill have the same
// forms, whether they are CSV, JSON lines or Parquet. It leaves out empty cells, as JSON lines do, writes numbers as
// exact decimals ("1.0" is "1") and times as instants in UTC, and takes JSON apart.
func (r *Reader) alike(c record.Record) string {
	list := make([]string, 0, max(len(c.Fields), len(c.Object)))
	if c.Object != nil {
		for key, text := range c.Object {
			list = r.leaves.Pairs(list, key, key+"\x1e", false, text)
		}
	} else {
		for i, text := range c.Fields {
			if i < len(r.header) {
				list = r.leaves.Pairs(list, r.header[i], r.prefixes[i], r.isTime(i), text)
			} else {
				list = r.leaves.Pairs(list, "", "\x1e", false, text) // a field too many
			}
		}
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), "\x1f")
}

// prefixesOf returns the key of each column, as a pair begins.
func prefixesOf(header []string) []string {
	list := make([]string, len(header))
	for i, name := range header {
		list[i] = record.Key(name) + "\x1e"
	}
	return list
}

// isTime reports whether a column holds times, which some files write as 20261130.
func (r *Reader) isTime(column int) bool {
	return column == r.at[fieldStart] || column == r.at[fieldEnd] || column == r.at[fieldPeriodStart] ||
		column == r.at[fieldPeriodEnd]
}

// common returns the form of a cell that all encodings share.
func (r *Reader) common(text string, isTime bool) string {
	first, _ := utf8.DecodeRuneInString(text)
	switch {
	case strings.EqualFold(text, "true") || strings.EqualFold(text, "false"):
		return strings.ToLower(text)
	case !strings.ContainsRune("+-\u2212.,0123456789", first):
		return text
	}
	key := text
	if isTime {
		key = "\x00" + text
	}
	if is, known := r.cells[key]; known {
		return is
	}
	is, number := r.number(text)
	if t, ok := r.instant(text); ok && (isTime || !number) {
		is = t
	}
	if len(text) > mostCell {
		return is
	}
	if r.cells == nil || len(r.cells) >= mostCells {
		r.cells = map[string]string{}
	}
	r.cells[key] = is
	return is
}

// number returns the exact decimal of a number, and the text itself if it is none or names something, as 0123 and 12e4
// do.
func (r *Reader) number(text string) (decimal string, ok bool) {
	m := plainly(text)
	whole := strings.TrimLeft(mantissa(m), "+-")
	exponent := m[len(mantissa(m)):]
	switch {
	case len(whole) > 1 && whole[0] == '0' && whole[1] >= '0' && whole[1] <= '9':
		return text, false
	case exponent != "" && !strings.ContainsAny(whole, ".,") && !strings.ContainsAny(exponent, "+-"):
		return text, false
	}
	n, err := r.numbers.read(text)
	if err != nil || !n.Known {
		return text, false
	}
	return n.Value.String(), true
}

// instant returns a time in UTC.
func (r *Reader) instant(text string) (string, bool) {
	at := strings.IndexFunc(text, func(c rune) bool { return c < '0' || c > '9' })
	if at > 4 || at < 0 && len(text) != len("20060102") || at >= 0 && !strings.ContainsRune("-/.", rune(text[at])) {
		return "", false
	}
	t, _, err := r.dates.read(text)
	return t.Format(time.RFC3339Nano), err == nil
}
