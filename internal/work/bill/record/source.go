// Package record reads the rows of CSV and of JSON lines, whatever their columns mean. A torn row affects no other row,
// and memory is bounded for any file.
package record

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"scrimp/internal/work/bill"
)

// Record is a row that is not converted yet.
type Record struct {
	Line   int
	Fields []string
	Object map[string]string // of JSON, by key; nil for a table
	Fault  string            // why the row is invalid
	Sum    Sum               // of the whole row; of a table it is that of Columns
}

// Source reads the rows of a file. An error other than io.EOF also ends the file.
type Source interface{ Next() (Record, error) }

// Table reads rows that are already split.
type Table struct {
	line int
	Rows func() ([]string, error)
}

// Errors of files that are not a bill in a supported format.
var (
	errEmpty  = errors.New("the file is empty")
	errZIP    = errors.New("the file is a ZIP archive: unpack it, and name the CSV file that was in it")
	errReturn = errors.New("its lines end with a carriage return only: save it with LF or CRLF line ends")
	// ErrBinary reports a file that is neither text nor in a format that scrimp knows, such as a program or an image.
	ErrBinary = errors.New("the file is no bill that scrimp reads: it is not text")
	errSwells = errors.New("it unpacks to far more than a bill does")
)

// ErrHeader reports a first row that names no columns, because a quote is misplaced.
var ErrHeader = errors.New("the first row has a misplaced quote")

// ErrParquet reports a Parquet file, which New does not read.
var ErrParquet = errors.New("the file is Parquet")

// Open detects the format of a file from its first bytes. The header of JSON lines is nil.
func Open(in io.Reader, limits bill.Limits) (Source, []string, error) {
	packed := &counted{from: in}
	text := bufio.NewReaderSize(packed, 1<<16)
	if start, _ := text.Peek(2); bytes.Equal(start, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(text)
		if err != nil {
			return nil, nil, fmt.Errorf("unpack: %w", err)
		}
		text = bufio.NewReaderSize(&unpacked{counted{from: z}, packed, limits}, 1<<16)
	}
	start, err := text.Peek(1 << 10)
	if order := wideOrder(start); order != nil {
		text = bufio.NewReaderSize(&wide{from: text, order: order}, 1<<16)
		start, err = text.Peek(1 << 10)
	}
	switch {
	case len(start) == 0 && err != nil && !errors.Is(err, io.EOF):
		return nil, nil, err
	case len(bytes.TrimSpace(start)) == 0:
		return nil, nil, errEmpty
	case bytes.HasPrefix(start, []byte("PK\x03\x04")):
		return nil, nil, errZIP
	case bytes.HasPrefix(start, []byte("PAR1")):
		return nil, nil, ErrParquet
	}
	if mark := []byte("\xef\xbb\xbf"); bytes.HasPrefix(start, mark) {
		_, _ = text.Discard(len(mark))
		start = start[len(mark):]
	}
	lines := &lines{in: text, most: limits.Record}
	switch first := bytes.TrimLeftFunc(start, unicode.IsSpace); {
	case len(first) == 0:
		return nil, nil, errEmpty
	case first[0] == '{':
		return &Objects{lines: lines}, nil, nil
	case first[0] == '[':
		return newArray(text, limits.Record), nil, nil
	}
	c := &Cells{lines: lines}
	header, err := c.header()
	return c, header, err
}

// counted counts the bytes read.
type counted struct {
	from io.Reader
	n    int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	return n, err
}

// unpacked fails if a file unpacks to far more than its size.
type unpacked struct {
	counted
	packed *counted
	limits bill.Limits
}

func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.counted.Read(p)
	if u.n > u.limits.Unpacked && u.n > u.limits.Ratio*u.packed.n {
		return 0, fmt.Errorf("%w: %d bytes of %d", errSwells, u.n, u.packed.n)
	}
	return n, err
}

// lines reads a text line by line. It holds at most one line, plus those returned with giveBack.
type lines struct {
	in   *bufio.Reader
	most int // bytes of a line
	n    int // lines read so far
	back []line
}

type line struct {
	n    int
	text string
	cut  bool // the line is longer than most
}

// next returns the next line without its end.
func (l *lines) next() (line, error) {
	if len(l.back) > 0 {
		first := l.back[0]
		l.back = l.back[1:]
		return first, nil
	}
	var text []byte
	cut := false
	for {
		part, err := l.in.ReadSlice('\n')
		if room := l.most - len(text); !cut && len(part) > room {
			part, cut = part[:room], true
			text = append(text, part...)
		} else if !cut {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return line{n: l.n + 1}, err
		case err != nil && len(text) == 0:
			return line{n: l.n + 1}, io.EOF
		}
		l.n++
		text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
		return line{l.n, string(text), cut}, nil
	}
}

// giveBack makes next return the lines again.
func (l *lines) giveBack(list []line) { l.back = slices.Concat(list, l.back) }

// Next returns the next row; io.EOF after the last.
func (t *Table) Next() (Record, error) {
	fields, err := t.Rows()
	t.line++
	return Record{Line: t.line, Fields: fields}, err
}

// Key normalizes a column's name: it removes the differences between exports in case, "_", "/" and blanks. Azure writes
// a column's name in the reader's language followed by the English one: "Maßeinheit (UnitOfMeasure)" becomes
// unitofmeasure.
func Key(name string) string {
	if before, inner, ok := strings.Cut(strings.TrimSpace(name), " ("); ok && before != "" {
		if inner, ok = strings.CutSuffix(inner, ")"); ok && !strings.ContainsFunc(inner, unicode.IsSpace) {
			name = inner
		}
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}
