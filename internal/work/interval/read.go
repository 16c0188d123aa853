// Package interval says how sure a difference of two means is, from the value that each example has: it resamples the
// examples with a fixed seed (bootstrap). The same files give the same interval on every machine.
package interval

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/work/pipeline"
)

// The bounds of a file of examples.
const (
	MaxBytes    = 64 << 20
	MaxExamples = 100_000
	minExamples = 10 // with fewer, resamples say too little of what other examples would show
)

// Examples are the values that one run has for a metric.
type Examples struct {
	names  []string // of the examples; nil: the file names none
	values []*big.Rat
}

// Len is how many examples there are.
func (e *Examples) Len() int { return len(e.values) }

// idWords are the columns that name an example.
var idWords = []string{"id", "example"}

// truths are words for the values of an example that is right or wrong.
var truths = map[string]string{"true": "1", "false": "0"}

// Read reads a file of examples: CSV with a header, CSV of one column without one, or JSON lines (by its name,
// *.jsonl). A column that is named id or example names the example. The value is in the column with the metric's name,
// or in the only other one.
func Read(name string, text []byte, metric string) (*Examples, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("%s has %d bytes: keep at most %d", name, len(text), MaxBytes)
	}
	rows := csvRows
	if strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".ndjson") ||
		bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		rows = jsonRows
	}
	e := &Examples{}
	seen := map[string]bool{}
	err := rows(text, metric, func(id, value string, named bool) error {
		if value = strings.ToLower(strings.TrimSpace(value)); truths[value] != "" {
			value = truths[value]
		}
		v, err := pipeline.Decimal(value)
		switch {
		case err != nil:
			return fmt.Errorf("the value of %s: %w", metric, err)
		case len(e.values) == MaxExamples:
			return fmt.Errorf("there are more than %d examples: draw a sample of them", MaxExamples)
		case named && id == "":
			return errors.New("the example has no name")
		case named && seen[id]:
			return fmt.Errorf("the example %.60q is there twice", id)
		case named:
			seen[id] = true
			e.names = append(e.names, id)
		}
		e.values = append(e.values, v)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(e.values) < minExamples {
		return nil, fmt.Errorf("%s has %d examples: an interval needs at least %d", name, len(e.values), minExamples)
	}
	return e, nil
}

// column is where the values of a metric lie among named columns, and where the names of the examples do; -1: they
// have none.
func column(header []string, metric string) (value, id int, err error) {
	id = slices.IndexFunc(header, func(h string) bool { return slices.Contains(idWords, strings.ToLower(h)) })
	last := metric[strings.LastIndexByte(metric, '.')+1:]
	for _, name := range []string{metric, last} {
		if at := slices.Index(header, name); at >= 0 && at != id {
			return at, id, nil
		}
	}
	others := len(header)
	if id >= 0 {
		others--
	}
	if others != 1 {
		return 0, 0, fmt.Errorf("none of its columns is %s: they are %s", metric,
			strings.Join(header[:min(len(header), 20)], ", "))
	}
	if id == 0 {
		return 1, id, nil
	}
	return 0, id, nil
}

// csvRows calls take with each row of a CSV file.
func csvRows(text []byte, metric string, take func(id, value string, named bool) error) error {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))))
	r.ReuseRecord, r.TrimLeadingSpace = true, true
	value, id := 0, -1
	for n := 0; ; n++ {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n == 0 {
			if _, err := pipeline.Decimal(strings.TrimSpace(row[0])); err != nil || len(row) > 1 {
				if value, id, err = column(slices.Clone(row), metric); err != nil {
					return err
				}
				continue
			}
		}
		name := ""
		if id >= 0 {
			name = row[id]
		}
		if err := take(name, row[value], id >= 0); err != nil {
			line, _ := r.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// jsonRows calls take with each object of a file of JSON lines. All of them have the fields of the first.
func jsonRows(text []byte, metric string, take func(id, value string, named bool) error) error {
	value, id := "", ""
	for n, line := range bytes.Split(text, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(line, &fields); err != nil {
			return fmt.Errorf("line %d is no JSON object: %w", n+1, err)
		}
		if value == "" {
			header := make([]string, 0, len(fields))
			for name := range fields {
				header = append(header, name)
			}
			slices.Sort(header)
			at, named, err := column(header, metric)
			if err != nil {
				return err
			}
			if value = header[at]; named >= 0 {
				id = header[named]
			}
		}
		given := strings.Trim(string(fields[id]), `"`)
		if id != "" && given == "null" {
			given = ""
		}
		text := string(fields[value])
		if text == "" {
			return fmt.Errorf("line %d has no %s", n+1, value)
		}
		if err := take(given, text, id != ""); err != nil {
			return fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	return nil
}

// Mean is the exact mean.
func (e *Examples) Mean() *big.Rat {
	sum := new(big.Rat)
	for _, v := range e.values {
		sum.Add(sum, v)
	}
	return sum.Quo(sum, big.NewRat(int64(len(e.values)), 1))
}

// Agrees reports whether the examples have the mean that the metric says, up to half a unit of its last written digit
// or a millionth of its value, whichever is larger. A metric that is no mean of its examples has no interval here.
func (e *Examples) Agrees(metric string) error {
	v, err := pipeline.Decimal(metric)
	if err != nil {
		return err
	}
	digits, _ := v.FloatPrec()
	mantissa, exponent, _ := strings.Cut(strings.ToLower(metric), "e")
	if _, after, found := strings.Cut(mantissa, "."); found { // zeros at the end count
		power, _ := strconv.Atoi(exponent) // 0 without one; Decimal bounds it
		digits = max(digits, len(after)-power)
	}
	unit := new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil))
	unit.Quo(unit, big.NewRat(2, 1))
	near := new(big.Rat).Mul(new(big.Rat).Abs(v), big.NewRat(1, 1_000_000))
	if near.Cmp(unit) < 0 {
		near = unit
	}
	mean := e.Mean()
	if off := new(big.Rat).Sub(mean, v); off.Abs(off).Cmp(near) > 0 {
		return fmt.Errorf("their mean is %s, and the metric is %s: write the value that each example adds to the metric",
			pipeline.Written(mean), metric)
	}
	return nil
}
