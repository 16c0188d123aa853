package reader

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"scrimp/internal/work/bill/record"
)

// mostCells bounds the cells whose common form is remembered, and mostCell the bytes of such a cell: most rows of a bill
// repeat the cells of others.
const (
	mostCells = 4_096
	mostCell  = 64
	mostTrees = 16 // columns whose last cell in JSON is remembered
)

// alike returns the row in a form that does not depend on the file's encoding: two files of the same bill have the same
// forms, whether they are CSV, JSON lines or Parquet. It leaves out empty cells, as JSON lines do, writes numbers as
// exact decimals ("1.0" is "1") and times as instants in UTC, and takes JSON apart.
func (r *Reader) alike(c record.Record) string {
	list := make([]string, 0, max(len(c.Fields), len(c.Object)))
	if c.Object != nil {
		for key, text := range c.Object {
			list = r.pairs(list, key, key+"\x1e", false, text)
		}
	} else {
		for i, text := range c.Fields {
			if i < len(r.header) {
				list = r.pairs(list, r.header[i], r.prefixes[i], r.isTime(i), text)
			} else {
				list = r.pairs(list, "", "\x1e", false, text) // a field too many
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

// pairs adds a cell to the names and values of a row; an object in JSON has one pair for each of its leaves.
func (r *Reader) pairs(list []string, name, prefix string, isTime bool, text string) []string {
	text = plainText(text)
	if text == "" {
		return list
	}
	if text[0] != '{' && text[0] != '[' {
		return append(list, prefix+r.common(text, isTime))
	}
	if last, is := r.trees[name]; is && last.text == text {
		return append(list, last.pairs...)
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return append(list, prefix+text)
	}
	pairs := r.leaves(nil, name, v)
	if r.trees == nil || len(r.trees) >= mostTrees {
		r.trees = map[string]tree{}
	}
	r.trees[name] = tree{text, pairs}
	return append(list, pairs...)
}

// tree is a cell in JSON, and its leaves.
type tree struct {
	text  string
	pairs []string
}

// leaves adds the leaves of a decoded JSON value.
func (r *Reader) leaves(list []string, name string, v any) []string {
	switch v := named(v).(type) {
	case map[string]any:
		for inner, v := range v {
			list = r.leaves(list, name+"."+inner, v)
		}
	case []any:
		if v = r.elements(v); len(v) > 0 {
			text, _ := json.Marshal(v) // texts, so it cannot fail
			list = append(list, record.Key(name)+"\x1e"+string(text))
		}
	default:
		if text := r.leaf(v); text != "" {
			list = append(list, record.Key(name)+"\x1e"+text)
		}
	}
	return list
}

// named returns a list of {"key": …, "value": …}, as Google writes labels, as an object.
func named(v any) any {
	list, is := v.([]any)
	if !is || len(list) == 0 {
		return v
	}
	object := map[string]any{}
	for _, e := range list {
		pair, _ := e.(map[string]any)
		key, ok := pair["key"].(string)
		value, has := pair["value"]
		_, twice := object[key]
		if !ok || twice || len(pair) > 2 || len(pair) == 2 && !has {
			return v
		}
		object[key] = value
	}
	return object
}

// elements returns a list's elements in their common form, without those that hold nothing.
func (r *Reader) elements(list []any) (out []any) {
	for _, e := range list {
		switch e := named(e).(type) {
		case map[string]any:
			if pairs := r.leaves(nil, "", e); len(pairs) > 0 {
				slices.Sort(pairs)
				out = append(out, pairs)
			}
		case []any:
			if inner := r.elements(e); len(inner) > 0 {
				out = append(out, inner)
			}
		default:
			if text := r.leaf(e); text != "" {
				out = append(out, text)
			}
		}
	}
	return out
}

// plainText returns a cell without what some encodings add: spaces around it, and the word that a database writes for no
// value.
func plainText(text string) string {
	text = strings.TrimSpace(text)
	if text == "NULL" || text == "null" || text == `\N` {
		return ""
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// leaf returns the common form of a text, number or truth value in JSON; "" for null.
func (r *Reader) leaf(v any) string {
	switch v := v.(type) {
	case string:
		return r.common(plainText(v), false)
	case json.Number:
		return r.common(v.String(), false)
	case bool:
		return map[bool]string{true: "true", false: "false"}[v]
	}
	return ""
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
	if at > 4 || at < 0 && len(text) != len("20060102") || at >= 0 && !strings.Contains("-/.", text[at:at+1]) {
		return "", false
	}
	t, _, err := r.dates.read(text)
	return t.Format(time.RFC3339Nano), err == nil
}
