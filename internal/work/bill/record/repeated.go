package record

import (
	"crypto/sha256"
	"math"
	"slices"
	"strings"
)

// hash identifies the text of a row.
type hash [16]byte

func hashOf(text string) hash {
	sum := sha256.Sum256([]byte(text))
	return hash(sum[:16])
}

// Columns identifies the rows of a table by their cells, in whatever order the file has its columns.
type Columns struct {
	names string
	order []int
}

// NewColumns returns the columns of a table with this header.
func NewColumns(header []string) *Columns {
	keys, c := make([]string, len(header)), &Columns{order: make([]int, len(header))}
	for i, name := range header {
		keys[i], c.order[i] = Key(name), i
	}
	slices.SortStableFunc(c.order, func(a, b int) int { return strings.Compare(keys[a], keys[b]) })
	slices.Sort(keys)
	c.names = strings.Join(keys, "\x1f")
	return c
}

// Sum identifies a row.
func (c *Columns) Sum(fields []string) hash {
	var b strings.Builder
	b.WriteString(c.names)
	for _, i := range c.order {
		if i < len(fields) { // a torn row has fewer
			b.WriteByte('\x1f')
			b.WriteString(fields[i])
		}
	}
	for i := len(c.order); i < len(fields); i++ { // or more
		b.WriteByte('\x1f')
		b.WriteString(fields[i])
	}
	return hashOf(b.String())
}

// Repeated finds duplicate rows of one file or several. It remembers only the latest rows, so its memory is bounded for
// any file: a provider that repeats a row does so within a few hundred thousand rows.
type Repeated struct {
	Most         int
	files        []string
	young, older map[hash]place
}

// place is where a row stands: the index of its file, and the line.
type place struct{ file, line int32 }

// Begin says that the rows from now on are those of another file.
func (r *Repeated) Begin(file string) { r.files = append(r.files, file) }

// First returns the line of the first identical row, or 0, and its file if that is an earlier one.
func (r *Repeated) First(sum hash, line int) (first int, file string) {
	now := int32(len(r.files))
	at, known := r.young[sum]
	if !known {
		at, known = r.older[sum]
	}
	switch {
	case known && at.file != now:
		return int(at.line), r.files[at.file-1]
	case known:
		return int(at.line), ""
	}
	if r.young == nil || len(r.young) >= r.Most {
		r.young, r.older = map[hash]place{}, r.young
	}
	r.young[sum] = place{now, int32(min(line, math.MaxInt32))}
	return 0, ""
}
