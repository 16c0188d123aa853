package sample

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxRow bounds a row in bytes.
const maxRow = 16 << 20

// rowFile reports whether a file has rows of which a sample takes some.
func rowFile(p string) bool {
	return slices.Contains([]string{".csv", ".tsv", ".jsonl", ".ndjson"}, strings.ToLower(path.Ext(p)))
}

// comma is the separator of the fields of a file; 0: its rows have none.
func comma(p string) byte {
	return map[string]byte{".csv": ',', ".tsv": '\t'}[strings.ToLower(path.Ext(p))]
}

// CopyRows writes the rows of a file that the part takes, after its header. Of each block of 1/part rows it takes one,
// at a place that a hash of the block's number gives: no period of the data can hide from it, and the same file
// always gives the same rows. A file with rows gives at least one, and one without is refused. The first row of a CSV
// file is a header if none of its fields is a number; a quoted field may span lines. It returns how many rows it took.
func CopyRows(to io.Writer, from io.Reader, file string, part Part) (share Share, err error) {
	r := rows{in: bufio.NewReaderSize(from, 1<<16), comma: comma(file)}
	var first []byte // kept in case that no row is taken
	taken, n := int64(0), int64(0)
	pick := newPicker(part)
	for {
		row, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return share, fmt.Errorf("%s: %w", file, err)
		}
		switch {
		case r.count == 1 && r.comma != 0 && header(row, r.comma):
		case len(bytes.TrimSpace(row)) == 0:
			continue
		default:
			if n == 0 {
				first = slices.Clone(row)
			}
			if n++; !pick.takes(n - 1) {
				continue
			}
			taken++
		}
		if _, err := to.Write(row); err != nil {
			return share, err
		}
	}
	if n == 0 {
		return share, r.empty(file)
	}
	if taken == 0 {
		taken = 1
		_, err = to.Write(first)
	}
	return Share{taken, n}, err
}

// CheckRows refuses a file without a row. It reads no further than the first.
func CheckRows(from io.Reader, file string) error {
	r := rows{in: bufio.NewReaderSize(from, 1<<16), comma: comma(file)}
	for {
		row, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			return r.empty(file)
		case err != nil:
			return fmt.Errorf("%s: %w", file, err)
		case r.count == 1 && r.comma != 0 && header(row, r.comma), len(bytes.TrimSpace(row)) == 0:
		default:
			return nil
		}
	}
}

// empty says that a file has no row of which a sample could take some.
func (r *rows) empty(file string) error {
	what := "the file is empty"
	if r.count > 0 {
		what = "no row follows the header"
	}
	return fmt.Errorf("%s:%d: %s, so a sample has no data: write rows below it, or name other data in sample.data", file,
		r.count+1, what)
}

// picker takes one row of each block.
type picker struct {
	part  Part
	block int64
	from  int64 // the first row of the block
	to    int64 // the row after its last
	at    int64 // the row that it takes
}

func newPicker(part Part) *picker {
	p := &picker{part: part, block: -1}
	p.next()
	return p
}

// next begins the next block.
func (p *picker) next() {
	p.block++
	end := func(block int64) int64 { return (block*int64(Whole) + int64(p.part) - 1) / int64(p.part) }
	p.from, p.to = end(p.block), end(p.block+1)
	h := fnv.New64a()
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(p.block)))
	v := h.Sum64()
	v ^= v >> 33
	v *= 0xff51afd7ed558ccd // spreads the hash of near numbers
	v ^= v >> 33
	p.at = p.from + int64(v%uint64(p.to-p.from))
}

// takes reports whether the part takes a row. The rows come in order.
func (p *picker) takes(row int64) bool {
	if row == p.to {
		p.next()
	}
	return row == p.at
}

// rows reads the rows of a file, each with its end of line.
type rows struct {
	in    *bufio.Reader
	comma byte
	count int
	row   []byte
}

// next returns the next row, which is valid until the next call.
func (r *rows) next() ([]byte, error) {
	r.row = r.row[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		r.row = append(r.row, part...)
		switch {
		case len(r.row) > maxRow:
			return nil, fmt.Errorf("row %d has more than %d MiB: correct it, or name the data in sample.data", r.count+1,
				maxRow>>20)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || len(r.row) == 0):
			return nil, err
		case err == nil && r.comma != 0 && bytes.Count(r.row, []byte{'"'})%2 == 1: // a quoted field goes on
			continue
		}
		r.count++
		return r.row, nil
	}
}

// header reports whether a row is a header: no field of it is empty or a number.
func header(row []byte, comma byte) bool {
	for field := range bytes.SplitSeq(bytes.TrimRight(row, "\r\n"), []byte{comma}) {
		text := strings.Trim(strings.TrimSpace(string(field)), `"`)
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			return false
		}
	}
	return true
}
