package record

import (
	"crypto/sha256"
	"math"
	"slices"
	"strings"
)

// Sum identifies the text of a row.
type Sum [16]byte

// SumOf returns what identifies a text.
func SumOf(text string) Sum {
	sum := sha256.Sum256([]byte(text))
	return Sum(sum[:16])
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
func (c *Columns) Sum(fields []string) Sum {
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
	return SumOf(b.String())
}

// Repeated finds rows that a file has twice, and rows that an earlier file of the same bill has, too. It remembers only
// the latest rows, so its memory is bounded for any file: a provider that repeats a row does so within a few hundred
// thousand rows.
type Repeated struct {
	Most  int
	files []string
	same  recent // rows of this file, by their text
	alike recent // rows of all files, whatever their encoding
}

// recent remembers the latest rows.
type recent struct{ young, older map[Sum]place }

// place is where a row stands: the index of its file, and the line.
type place struct{ file, line int32 }

// Begin says that the rows from now on are those of another file.
func (r *Repeated) Begin(file string) { r.files, r.same = append(r.files, file), recent{} }

// First returns the line of the first row that this one repeats, or 0, and its file if that is an earlier one. Within a
// file only a row with the same text is a repetition: a file that has both 1 and 1.0 has two charges. Between files
// alike decides, since one may be CSV and the other Parquet.
func (r *Repeated) First(same, alike Sum, line int) (first int, file string) {
	at := place{int32(len(r.files)), int32(min(line, math.MaxInt32))}
	if was, known := r.alike.first(alike, at, r.Most); known && was.file != at.file {
		return int(was.line), r.files[was.file-1]
	}
	if was, known := r.same.first(same, at, r.Most); known {
		return int(was.line), ""
	}
	return 0, ""
}

// first returns the place of the first row with this sum, and remembers one that is new.
func (r *recent) first(sum Sum, at place, most int) (was place, known bool) {
	if was, known = r.young[sum]; known {
		return was, true
	}
	if was, known = r.older[sum]; known {
		return was, true
	}
	if r.young == nil || len(r.young) >= most {
		r.young, r.older = map[Sum]place{}, r.young
	}
	r.young[sum] = at
	return place{}, false
}
