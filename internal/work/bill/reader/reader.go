// Package reader reads the bills of cloud providers: AWS CUR, Azure cost exports, GCP billing exports, OCI cost
// reports, and FOCUS of any provider. It reads row by row, so the size of a file does not matter. Each row becomes
// lines or a problem: nothing is left out.
package reader

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/bill"
	"scrimp/internal/work/bill/record"
)

// sampled is the number of rows that are read ahead to learn how the file writes numbers and dates, and the currency of
// each account.
const sampled = 500

// mostNumber bounds quantities and prices.
var mostNumber, _ = decimal.Parse("1e30")

// Reader reads one bill.
type Reader struct {
	file     string
	form     *form
	kind     string
	from     record.Source
	ahead    []record.Record // sampled and not converted yet
	ended    bool
	torn     string // what is wrong with the rest of the file
	header   []string
	at       columns
	numbers  numbers
	dates    dates
	seen     *record.Repeated
	content  hash.Hash         // of all rows
	columns  *record.Columns   // nil: the records have their sums
	prefixes []string          // of the columns in a row's common form
	cells    map[string]string // the common forms of cells that were met before
	leaves   record.Leaves
	currency map[string]money.Currency // of each account
	lastTags string                    // of the previous row: most rows have the same
	lastRead map[string]string
	lastOK   bool
}

// New reads a bill in CSV or JSON lines, optionally compressed with gzip.
func New(file string, in io.Reader, limits bill.Limits) (*Reader, error) {
	from, header, err := record.Open(in, limits)
	switch {
	case errors.Is(err, record.ErrHeader):
		err = errNoBill
	case errors.Is(err, record.ErrBinary):
		err = fmt.Errorf("%w: give the CSV, JSON lines or Parquet file of %s, packed with gzip or not", err, Kinds)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return newReader(file, from, header, limits)
}

// Table reads a bill from parsed rows, such as those of Parquet. next returns io.EOF at the end.
func Table(file string, header []string, next func() ([]string, error), limits bill.Limits) (*Reader, error) {
	return newReader(file, &record.Table{Rows: next}, header, limits)
}

func newReader(file string, from record.Source, header []string, limits bill.Limits) (*Reader, error) {
	r := &Reader{file: file, from: from, header: header, content: sha256.New()}
	r.leaves.Common = r.common
	r.Beside(&record.Repeated{Most: limits.Repeated})
	for len(r.ahead) < sampled && !r.ended {
		r.fetch()
	}
	if err := r.recognise(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if objects, ok := from.(*record.Objects); ok {
		for i := range r.ahead {
			r.ahead[i] = objects.Arrange(r.ahead[i], r.header)
		}
	}
	if _, is := from.(*record.Objects); !is {
		r.columns, r.prefixes = record.NewColumns(header), prefixesOf(header)
	}
	r.sample()
	return r, nil
}

// fetch reads one more row. A premature end of the file becomes a problem like that of a row.
func (r *Reader) fetch() {
	c, err := r.from.Next()
	switch {
	case errors.Is(err, io.EOF):
		r.ended = true
	case err != nil:
		r.ended = true
		r.torn = err.Error()
		c.Fault = "the file cannot be read from here on: " + r.torn
		r.ahead = append(r.ahead, c)
	default:
		r.ahead = append(r.ahead, c)
	}
}

// Beside makes the reader list rows that another file of the same bill has, too: seen has met the rows of the earlier
// files. Call it before Next.
func (r *Reader) Beside(seen *record.Repeated) {
	r.seen = seen
	r.seen.Begin(r.file)
}

// Digest identifies the rows read so far, however the file is encoded and packed.
func (r *Reader) Digest() string { return string(r.content.Sum(nil)) }

// Torn returns what is wrong with the rest of the file if it ends early, as far as it was read; "" otherwise. Such a
// file also has a problem in place of its last row.
func (r *Reader) Torn() string { return r.torn }

// Kind returns the kind of the bill, such as "AWS CUR 2.0".
func (r *Reader) Kind() string { return r.kind }

// Lacks returns the kind's columns that the file lacks; their values are unknown.
func (r *Reader) Lacks() (names []string) {
	for _, f := range []field{fieldList, fieldEffective, fieldTags, fieldResource} {
		inColumns := f == fieldTags && r.at[fieldJob] >= 0 // each tag has a column
		if aliases := r.form.fields[f]; len(aliases) > 0 && r.at[f] < 0 && !inColumns {
			names = append(names, fieldNames[f])
		}
	}
	return names
}

// Next returns the next row, and io.EOF after the last.
func (r *Reader) Next() (bill.Row, error) {
	if len(r.ahead) == 0 && !r.ended {
		r.fetch()
		if objects, ok := r.from.(*record.Objects); ok && len(r.ahead) > 0 {
			r.ahead[0] = objects.Arrange(r.ahead[0], r.header)
		}
	}
	if len(r.ahead) == 0 {
		return bill.Row{}, io.EOF
	}
	c := r.ahead[0]
	r.ahead = r.ahead[1:]
	return r.understand(c), nil
}
