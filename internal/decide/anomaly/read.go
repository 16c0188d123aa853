package anomaly

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/lib/lines"
)

// Row is one row of a file.
type Row struct {
	Text  string // the timestamp as written
	Time  time.Time
	Value float64
	Known bool   // false: the value is missing
	Note  string // the oddity of the row, with file and line; empty if none
}

// Reader reads a series from a CSV file with the columns timestamp and value, in any order and among others.
type Reader struct {
	name      string
	in        *csv.Reader
	at, value int
	rows      int
	before    time.Time
	steps     []time.Duration // the newest steps, to recognize a gap
}

const columnsFix = "write a header with the columns timestamp and value, and below it rows such as " +
	"2026-10-15 08:00:00,42.5"

// NewReader reads the header. Errors contain the name.
func NewReader(name string, in io.Reader) (*Reader, error) {
	r := &Reader{name: name, in: csv.NewReader(lines.Reader(in))}
	r.in.ReuseRecord = true
	header, err := r.in.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: the file is empty: %s", name, columnsFix)
	}
	if err != nil {
		return nil, r.wrong(err)
	}
	find := func(column string) int {
		return slices.IndexFunc(header, func(h string) bool {
			return strings.EqualFold(strings.TrimSpace(strings.TrimPrefix(h, "\ufeff")), column)
		})
	}
	if r.at, r.value = find("timestamp"), find("value"); r.at < 0 || r.value < 0 {
		return nil, fmt.Errorf("%s:1: the header %.80q lacks timestamp or value: %s", name, strings.Join(header, ","),
			columnsFix)
	}
	return r, nil
}

// wrong adds the file and line to a CSV error.
func (r *Reader) wrong(err error) error {
	if bad, ok := errors.AsType[*csv.ParseError](err); ok {
		return fmt.Errorf("%s:%d: this is not a CSV row: %w", r.name, bad.Line, bad.Err)
	}
	return fmt.Errorf("read %s: %w", r.name, err)
}

// Next returns the next row, and io.EOF after the last. Errors name the file, the line and the fix.
func (r *Reader) Next() (row Row, err error) {
	cells, err := r.in.Read()
	switch {
	case errors.Is(err, io.EOF) && r.rows == 0:
		return Row{}, fmt.Errorf("%s: there is no row below the header: %s", r.name, columnsFix)
	case errors.Is(err, io.EOF):
		return Row{}, io.EOF
	case err != nil:
		return Row{}, r.wrong(err)
	}
	r.rows++
	line, _ := r.in.FieldPos(r.value)
	where := fmt.Sprintf("%s:%d", r.name, line)
	row.Text = cells[r.at]
	if row.Time, err = parseTime(strings.TrimSpace(row.Text)); err != nil {
		return Row{}, fmt.Errorf("%s: %w", where, err)
	}
	text := strings.TrimSpace(cells[r.value])
	if row.Value, row.Known, err = parseValue(text); err != nil {
		return Row{}, fmt.Errorf("%s: %w", where, err)
	}
	switch odd := r.odd(row.Time); {
	case !row.Known:
		row.Note = fmt.Sprintf("%s: the value is missing (%q): the row has no score", where, text)
	case math.Abs(row.Value) > largest:
		row.Note = fmt.Sprintf("%s: the value %s counts as %.0e", where, text, math.Copysign(largest, row.Value))
	case odd != "":
		row.Note = where + ": " + odd
	}
	return row, nil
}

// gapOf is the number of usual steps that make a gap.
const gapOf = 20

// odd describes an oddity in the time of a row; empty if there is none.
func (r *Reader) odd(at time.Time) string {
	before := r.before
	r.before = at
	if r.rows == 1 {
		return ""
	}
	step := at.Sub(before)
	if step < 0 {
		return "the time is before that of the row above: rows are scored in the order of the file"
	}
	usual := time.Duration(0)
	if len(r.steps) == 9 {
		usual = slices.Sorted(slices.Values(r.steps))[4]
		r.steps = r.steps[1:]
	}
	r.steps = append(r.steps, step)
	if usual > 0 && step/gapOf > usual {
		return fmt.Sprintf("no row for %s before this one; rows are usually %s apart", step, usual)
	}
	return ""
}

// missing lists the words for a missing value.
var missing = []string{"", "nan", "null", "none", "na", "n/a"}

func parseValue(text string) (v float64, known bool, err error) {
	if slices.Contains(missing, strings.ToLower(text)) {
		return 0, false, nil
	}
	v, err = strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, false, fmt.Errorf("the value %.40q is not a finite number: write one with a point, as in 42.5, or leave "+
			"it empty where it is missing", text)
	}
	return v, true, nil
}

var forms = []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04",
	"2006-01-02T15:04", "2006-01-02 15:04:05Z07:00", time.DateOnly}

// parseTime reads a time; without a zone it is UTC. A number is Unix seconds, or milliseconds from 12 digits on.
func parseTime(text string) (time.Time, error) {
	for _, form := range forms {
		if t, err := time.Parse(form, text); err == nil {
			return t, nil
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err == nil && n > -1e11 && n < 1e11:
		return time.Unix(n, 0).UTC(), nil
	case err == nil && n > -1e14 && n < 1e14:
		return time.UnixMilli(n).UTC(), nil
	}
	return time.Time{}, fmt.Errorf("the timestamp %.40q is not a time: write 2026-10-15 08:00:00, 2026-10-15T08:00:00Z "+
		"or Unix seconds", text)
}
