// Package load holds what a server has to answer, and how long that takes: traces of requests, the memory that a
// model needs, and the time of a batch, measured or estimated.
package load

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/lib/draw"
)

// Limits of a trace.
const (
	MaxRequests = 5_000_000
	MaxTokens   = 10_000_000 // of one request, in or out
	MaxCount    = 1_000_000  // of one row
	MaxBytesOut = 1e12       // of one request
	MaxWindow   = 400 * 24 * time.Hour
	maxSecond   = 9_000_000_000 // 9e18 ns, below what a time.Duration holds
	maxLine     = 64 << 10
	unixTime    = 1_000_000_000 * time.Second // from here on, seconds are taken as Unix time: 2001-09-09
)

// A Trace is the requests that arrived in a window of time, in their order.
type Trace struct {
	Start  time.Duration // of the window, since 1970 in UTC; since second 0 where the file numbers its seconds so
	Window time.Duration // from the first row to the last
	Dated  bool          // times are dates, or Unix time, so that the hours of the day are known
	At     []time.Duration
	// In and Out are tokens by request; nil where the file has no such column, which is not zero.
	In, Out []int32
	// BytesOut is what all answers together send, and known where Sized is set.
	BytesOut int64
	Sized    bool
}

// Tokens returns the tokens of all requests together, and false where one of the columns is missing.
func (t Trace) Tokens() (in, out int64, ok bool) {
	for i := range t.In {
		in += int64(t.In[i])
	}
	for i := range t.Out {
		out += int64(t.Out[i])
	}
	return in, out, t.In != nil && t.Out != nil
}

// Longest returns the most tokens, in and out, of one request.
func (t Trace) Longest() (n int64) {
	for i := range t.At {
		n = max(n, t.in(i)+t.out(i))
	}
	return n
}

func (t Trace) in(i int) int64 {
	if t.In == nil {
		return 0
	}
	return int64(t.In[i])
}

func (t Trace) out(i int) int64 {
	if t.Out == nil {
		return 0
	}
	return int64(t.Out[i])
}

// The columns of a trace. aliases are the names that the Azure LLM inference traces have for them.
const (
	colTime = iota
	colIn
	colOut
	colBytes
	colCount
	columns
)

var (
	columnNames = [columns]string{"time", "input_tokens", "output_tokens", "bytes_out", "count"}
	aliases     = map[string]int{"timestamp": colTime, "contexttokens": colIn, "generatedtokens": colOut}
)

const headFix = "write the header time,input_tokens,output_tokens,bytes_out,count: only time is required"

// traceReader reads a trace line by line.
type traceReader struct {
	file   string
	line   int
	at     [columns]int // the field that holds a column, -1 for none
	fields int
	rows   int
	dated  bool
	last   time.Duration
	t      Trace
}

func (r *traceReader) wrong(column, cause, fix string) error {
	where := fmt.Sprintf("%s: line %d", r.file, r.line)
	if column != "" {
		where += ": " + column
	}
	return fmt.Errorf("%s: %s: %s", where, cause, fix)
}

// ReadTrace reads CSV with a header. A problem names file, line, field and fix.
func ReadTrace(file string, in io.Reader) (Trace, error) {
	r := &traceReader{file: file}
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 0, 4096), maxLine)
	for s.Scan() {
		r.line++
		text := strings.TrimSpace(strings.TrimPrefix(s.Text(), "\ufeff"))
		if r.line == 1 && strings.HasPrefix(text, "\x1f\x8b") {
			return Trace{}, r.wrong("", "the file is compressed with gzip", "unpack it first: gunzip FILE")
		}
		var err error
		switch fields := strings.Split(text, ","); {
		case r.line == 1:
			err = r.head(fields)
		case text == "":
			continue
		default:
			err = r.row(fields)
		}
		if err != nil {
			return Trace{}, err
		}
	}
	r.line++
	switch err := s.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return Trace{}, r.wrong("", "is longer than 64 KiB", headFix)
	case err != nil:
		return Trace{}, fmt.Errorf("read %s: %w", file, err)
	case r.line == 1:
		return Trace{}, r.wrong("", "the file is empty", headFix)
	case r.rows == 0:
		return Trace{}, r.wrong("", "no request stands below the header", "write a line for each request")
	case len(r.t.At) == 0:
		return Trace{}, fmt.Errorf("%s: the demand is zero: every row has count 0: give a trace with requests", file)
	}
	r.t.Window = r.last
	r.t.Dated = r.dated || r.t.Start >= unixTime
	return r.t, nil
}

func plain(field string) string { return strings.Trim(strings.TrimSpace(field), `"`) }

func (r *traceReader) head(fields []string) error {
	for i := range r.at {
		r.at[i] = -1
	}
	r.fields = len(fields)
	for i, f := range fields {
		name := strings.ToLower(plain(f))
		c := slices.Index(columnNames[:], name)
		if a, ok := aliases[name]; ok {
			c = a
		}
		switch {
		case c < 0 && i == 0:
			return r.wrong("", fmt.Sprintf("%.40q begins no trace of requests", plain(f)), headFix)
		case c < 0:
			return r.wrong("", fmt.Sprintf("%.40q is no column of a trace", plain(f)), headFix)
		case r.at[c] >= 0:
			return r.wrong("", fmt.Sprintf("the column %s stands twice", columnNames[c]), "remove one of them")
		}
		r.at[c] = i
	}
	if r.at[colTime] < 0 {
		return r.wrong("", "has no column time", headFix)
	}
	if r.at[colIn] >= 0 {
		r.t.In = []int32{}
	}
	if r.at[colOut] >= 0 {
		r.t.Out = []int32{}
	}
	r.t.Sized = r.at[colBytes] >= 0
	return nil
}

func (r *traceReader) row(fields []string) error {
	if len(fields) != r.fields {
		return r.wrong("", fmt.Sprintf("has %s, and the header %d", draw.Count(len(fields), "field"), r.fields),
			"write one value for each column")
	}
	at, err := r.when(plain(fields[r.at[colTime]]))
	if err != nil {
		return err
	}
	var v [columns]int64
	v[colCount] = 1
	for c, most := range [columns]int64{colIn: MaxTokens, colOut: MaxTokens, colBytes: MaxBytesOut, colCount: MaxCount} {
		if c == colTime || r.at[c] < 0 {
			continue
		}
		text := plain(fields[r.at[c]])
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || n > most {
			return r.wrong(columnNames[c], fmt.Sprintf("%.40q is %s", text, notWhole(text)),
				fmt.Sprintf("write a whole number from 0 to %d", most))
		}
		v[c] = n
	}
	if int64(len(r.t.At))+v[colCount] > MaxRequests {
		return r.wrong("", fmt.Sprintf("is beyond %d requests", MaxRequests), "give a shorter part of the trace")
	}
	r.rows++
	r.last = at
	for range v[colCount] {
		r.t.At = append(r.t.At, at)
		if r.t.In != nil {
			r.t.In = append(r.t.In, int32(v[colIn]))
		}
		if r.t.Out != nil {
			r.t.Out = append(r.t.Out, int32(v[colOut]))
		}
	}
	r.t.BytesOut += v[colBytes] * v[colCount]
	if r.t.BytesOut > math.MaxInt64/4 { // a row adds at most 1e18
		return r.wrong("bytes_out", "the answers together are larger than 2 EB", "write the bytes of one answer")
	}
	return nil
}

// notWhole says why a text is not a whole number that a column takes.
func notWhole(text string) string {
	switch v, err := strconv.ParseFloat(text, 64); {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return "not a number"
	case v == math.Trunc(v) && !strings.ContainsAny(text, ".eExXpPnN_"):
		return "out of range"
	}
	return "not a whole number"
}

// forms are the ways in which a time may be written; one without a zone is in UTC.
var forms = []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02T15:04:05"}

// when reads the time of a row as the span since the first row. The first row says whether times are numbers.
func (r *traceReader) when(text string) (time.Duration, error) {
	at, number := seconds(text)
	dated := false
	for _, form := range forms {
		if number || dated {
			break
		}
		if t, err := time.Parse(form, text); err == nil && t.Year() >= 1970 && t.Year() < 2250 {
			at, dated = time.Duration(t.UnixNano()), true
		}
	}
	switch {
	case !number && !dated:
		return 0, r.wrong("time", fmt.Sprintf("%.40q is not a time", text),
			fmt.Sprintf("write seconds such as 12.5, at most %d, or 2026-03-01T13:00:00Z", int64(maxSecond)))
	case r.rows > 0 && dated != r.dated:
		return 0, r.wrong("time", fmt.Sprintf("%.40q is written in another way than the row before", text),
			"write all times as seconds, or all as dates")
	case r.rows == 0:
		r.t.Start, r.dated = at, dated
	}
	at -= r.t.Start
	switch {
	case at < r.last:
		return 0, r.wrong("time", fmt.Sprintf("%.40q is before the row above", text), "sort the file by time")
	case at > MaxWindow:
		return 0, r.wrong("time", fmt.Sprintf("%.40q is more than 400 days after the first row", text),
			"give a shorter trace; where times are milliseconds, write seconds")
	}
	return at, nil
}

// seconds reads a plain decimal of seconds, cut off below a nanosecond, and false where it is none or out of range.
func seconds(text string) (time.Duration, bool) {
	whole, frac, point := strings.Cut(text, ".")
	if whole == "" || len(whole) > 10 || point && frac == "" || len(frac) > 30 {
		return 0, false
	}
	for _, c := range whole + frac {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n > maxSecond {
		return 0, false
	}
	nanos, err := strconv.ParseInt((frac + "000000000")[:9], 10, 64)
	return time.Duration(n)*time.Second + time.Duration(nanos), err == nil
}
