// Package drift measures how far the distribution of columns of a CSV file has moved from that of a reference: by the
// population stability index, or by the two-sample Kolmogorov-Smirnov statistic.
package drift

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The tests.
const (
	PSI = "psi" // population stability index, from 0
	KS  = "ks"  // largest distance of the two distribution functions, 0 to 1
)

// Bounds of a file.
const (
	MaxBytes   = 64 << 20
	MaxRows    = 1_000_000
	MaxColumns = 200
	maxValues  = 10_000 // different texts of a column; further ones count as one
	bins       = 10
	// leastShare replaces the share of an empty bin: the index is infinite without it.
	leastShare = 0.0001
)

// Column is the drift of a column.
type Column struct {
	Name  string
	Value float64 // of the test, rounded to six decimal places
}

// table is a CSV file by columns.
type table struct {
	name    string
	header  []string
	columns [][]string
}

// read reads a CSV file with a header.
func read(name string, text []byte) (*table, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("%s has %d bytes: keep at most %d", name, len(text), MaxBytes)
	}
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))))
	r.ReuseRecord, r.TrimLeadingSpace = true, true
	t := &table{name: name}
	for n := 0; ; n++ {
		row, err := r.Read()
		switch {
		case errors.Is(err, io.EOF) && n < 2:
			return nil, fmt.Errorf("%s has no rows: write a header and a line for each example", name)
		case errors.Is(err, io.EOF):
			return t, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case n > MaxRows:
			return nil, fmt.Errorf("%s has more than %d rows: draw a sample of them", name, MaxRows)
		case len(row) > MaxColumns:
			return nil, fmt.Errorf("%s has %d columns: keep at most %d", name, len(row), MaxColumns)
		}
		if n == 0 {
			for i, h := range row {
				h = strings.TrimSpace(h)
				if h == "" || slices.Contains(t.header, h) {
					return nil, fmt.Errorf("%s: the name of column %d, %.40q, is empty or there twice", name, i+1, h)
				}
				t.header = append(t.header, h)
			}
			t.columns = make([][]string, len(row))
			continue
		}
		for i, v := range row {
			t.columns[i] = append(t.columns[i], strings.TrimSpace(v))
		}
	}
}

// column returns the values of a column.
func (t *table) column(name string) ([]string, error) {
	if i := slices.Index(t.header, name); i >= 0 {
		return t.columns[i], nil
	}
	return nil, fmt.Errorf("%s has no column %.60q: its columns are %s", t.name, name,
		strings.Join(t.header[:min(len(t.header), 20)], ", "))
}

// File is a CSV file.
type File struct {
	Name string
	Text []byte
}

// ksOf compares the numbers of a column; ok is false if one of the files has none.
func ksOf(x []float64, b []string, numeric bool) (v float64, ok bool) {
	y, _ := numbers(b)
	if !numeric || len(y) == 0 {
		return 0, false
	}
	return ks(x, y), true
}

// psiOf compares a column in bins, or text by text if the reference has more than numbers there.
func psiOf(a, b []string, x []float64, missing int, numeric bool) float64 {
	if !numeric {
		return psi(texts(a, b))
	}
	y, missingNow := numbers(b)
	return psi(binned(x, y, missing, len(b)-len(y)-missingNow, missingNow))
}

// Measure compares columns of a file with those of the reference, and returns the drift of each, largest first. Without
// names it compares all columns of the reference; KS then leaves out columns of text.
func Measure(file, reference File, test string, names []string) (list []Column, err error) {
	now, err := read(file.Name, file.Text)
	if err != nil {
		return nil, err
	}
	before, err := read(reference.Name, reference.Text)
	if err != nil {
		return nil, err
	}
	all := names
	if len(all) == 0 {
		all = before.header
	}
	for _, name := range all {
		a, err := before.column(name)
		if err != nil {
			return nil, err
		}
		b, err := now.column(name)
		if err != nil {
			return nil, err
		}
		x, missing := numbers(a)
		numeric := len(x) > 0 && len(x)+missing == len(a)
		v, ok := 0.0, true
		switch {
		case test == KS && !numeric && len(names) == 0:
			continue
		case test == KS:
			v, ok = ksOf(x, b, numeric)
		default:
			v = psiOf(a, b, x, missing, numeric)
		}
		if !ok {
			return nil, fmt.Errorf("column %.60q has no numbers to compare in %s: ks compares numbers, psi texts too", name,
				map[bool]string{true: file.Name, false: reference.Name}[numeric])
		}
		list = append(list, Column{name, math.Round(v*1e6) / 1e6})
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no column of numbers: ks compares numbers, psi texts too", reference.Name)
	}
	slices.SortStableFunc(list, func(a, b Column) int { return cmp.Compare(b.Value, a.Value) })
	return list, nil
}

// numbers returns the finite numbers among values, and how many values are missing: empty, or a word for it.
func numbers(values []string) (list []float64, missing int) {
	for _, v := range values {
		switch strings.ToLower(v) {
		case "", "na", "nan", "null", "none":
			missing++
			continue
		}
		if x, err := strconv.ParseFloat(v, 64); err == nil && !math.IsInf(x, 0) && !math.IsNaN(x) {
			list = append(list, x)
		}
	}
	return list, missing
}

// binned counts numbers in bins that hold a tenth of the reference each. Equal edges are one. Two more bins count
// missing values and texts.
func binned(reference, now []float64, missingBefore, others, missingNow int) (a, b []int) {
	slices.Sort(reference)
	var edges []float64 // upper ones, inclusive; the last bin has none
	for k := 1; k < bins; k++ {
		e := reference[(k*len(reference)+bins-1)/bins-1]
		if len(edges) == 0 || e > edges[len(edges)-1] {
			edges = append(edges, e)
		}
	}
	count := func(list []float64) []int {
		n := make([]int, len(edges)+3)
		for _, x := range list {
			at, _ := slices.BinarySearch(edges, x)
			n[at]++
		}
		return n
	}
	a, b = count(reference), count(now)
	a[len(a)-2], b[len(b)-2] = missingBefore, missingNow
	b[len(b)-1] = others
	return a, b
}

// texts counts different texts.
func texts(reference, now []string) (a, b []int) {
	at := map[string]int{}
	place := func(v string) int {
		i, known := at[v]
		if !known {
			i = min(len(at), maxValues)
			at[v] = i
		}
		if i == len(a) {
			a, b = append(a, 0), append(b, 0)
		}
		return i
	}
	for _, v := range reference {
		i := place(v)
		a[i]++
	}
	for _, v := range now {
		i := place(v)
		b[i]++
	}
	return a, b
}

// psi returns the population stability index of counts: the sum of (p - q) ln(p / q) over the shares.
func psi(reference, now []int) (v float64) {
	of, all := 0, 0
	for i := range reference {
		of, all = of+reference[i], all+now[i]
	}
	for i := range reference {
		if reference[i]+now[i] == 0 {
			continue
		}
		q := max(float64(reference[i])/float64(of), leastShare)
		p := max(float64(now[i])/float64(all), leastShare)
		v += (p - q) * math.Log(p/q)
	}
	return v
}

// ks returns the largest distance of the distribution functions of two samples.
func ks(a, b []float64) (d float64) {
	slices.Sort(a)
	slices.Sort(b)
	for i, j := 0, 0; i < len(a) && j < len(b); {
		x := min(a[i], b[j])
		for i < len(a) && a[i] == x {
			i++
		}
		for j < len(b) && b[j] == x {
			j++
		}
		d = max(d, math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b))))
	}
	return d
}
