//go:build !local

package billfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// batch is the number of rows per read.
const batch = 100

// leaf is a column of the file that holds values.
type leaf struct {
	column int    // in the resulting table
	name   string // within a list or a map
	list   bool
	text   func(parquet.Value) string
}

// tableOf reads the rows of a Parquet file as text.
type tableOf struct {
	header []string
	leaves []leaf
	groups []parquet.RowGroup
	rows   parquet.Rows
	room   []parquet.Row
	ready  [][]string
}

// readParquet returns the columns of a file and a function that reads its rows. A map or a list is one column, in JSON.
func readParquet(in *os.File) (header []string, next func() ([]string, error), err error) {
	defer guard(&err)
	at, err := in.Stat()
	if err != nil {
		return nil, nil, err
	}
	f, err := parquet.OpenFile(in, at.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, nil, fmt.Errorf("open Parquet: %w", err)
	}
	t := &tableOf{groups: f.RowGroups(), room: make([]parquet.Row, batch)}
	t.add(f.Root())
	return t.header, t.next, nil
}

// guard turns a panic of the library into an error: a damaged file must not crash the program.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the Parquet file is damaged: %v", p)
	}
}

// add adds the leaf columns below c, in the order of the values in rows.
func (t *tableOf) add(c *parquet.Column) {
	for _, sub := range c.Columns() {
		switch path := sub.Path(); {
		case !sub.Leaf():
			t.add(sub)
		case sub.MaxRepetitionLevel() > 0:
			name := path[0] // of the whole map or list
			at := slices.Index(t.header, name)
			if at < 0 {
				at = len(t.header)
				t.header = append(t.header, name)
			}
			t.leaves = append(t.leaves, leaf{at, path[len(path)-1], true, textOf(sub.Type())})
		default:
			t.leaves = append(t.leaves, leaf{len(t.header), "", false, textOf(sub.Type())})
			t.header = append(t.header, strings.Join(path, "."))
		}
	}
}

func (t *tableOf) next() (row []string, err error) {
	defer guard(&err)
	for len(t.ready) == 0 {
		if t.rows == nil {
			if len(t.groups) == 0 {
				return nil, io.EOF
			}
			t.rows, t.groups = t.groups[0].Rows(), t.groups[1:]
		}
		n, err := t.rows.ReadRows(t.room)
		for _, r := range t.room[:n] {
			t.ready = append(t.ready, t.fields(r))
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if err != nil || n == 0 {
			_ = t.rows.Close()
			t.rows = nil
		}
	}
	row, t.ready = t.ready[0], t.ready[1:]
	return row, nil
}

// fields returns the texts of a row's columns.
func (t *tableOf) fields(r parquet.Row) []string {
	fields := make([]string, len(t.header))
	lists := map[int][]map[string]string{}
	seen := map[int]int{} // values so far of each leaf in a list
	for _, v := range r {
		l := t.leaves[v.Column()]
		switch {
		case v.IsNull() && !l.list:
		case !l.list:
			fields[l.column] = l.text(v)
		default:
			i := seen[v.Column()]
			seen[v.Column()]++
			for len(lists[l.column]) <= i {
				lists[l.column] = append(lists[l.column], map[string]string{})
			}
			if !v.IsNull() {
				lists[l.column][i][l.name] = l.text(v)
			}
		}
	}
	for column, list := range lists {
		fields[column] = asJSON(list)
	}
	return fields
}

// asJSON encodes the entries of a map as an object, and those of a list as a list.
func asJSON(list []map[string]string) string {
	object := map[string]string{}
	for _, entry := range list {
		name, ok := entry["key"]
		if !ok {
			object = nil
			break
		}
		object[name] = entry["value"]
	}
	list = slices.DeleteFunc(list, func(e map[string]string) bool { return len(e) == 0 })
	var v any = list
	if object != nil {
		v = object
	}
	b, _ := json.Marshal(v) // texts, so it cannot fail
	return string(b)
}

// textOf returns the formatter of a type's values. It writes a binary fraction with as many digits as identify it.
func textOf(t parquet.Type) func(parquet.Value) string {
	if of := t.LogicalType(); of != nil {
		switch of := of.Value.(type) {
		case *format.DecimalType:
			return func(v parquet.Value) string { return decimalText(v, int(of.Scale)) }
		case *format.DateType:
			return func(v parquet.Value) string { return time.Unix(int64(v.Int32())*86400, 0).UTC().Format(time.DateOnly) }
		case *format.TimestampType:
			return func(v parquet.Value) string {
				n := v.Int64()
				switch of.Unit.Value.(type) {
				case *format.MilliSeconds:
					return time.UnixMilli(n).UTC().Format(time.RFC3339Nano)
				case *format.MicroSeconds:
					return time.UnixMicro(n).UTC().Format(time.RFC3339Nano)
				}
				return time.Unix(n/1e9, n%1e9).UTC().Format(time.RFC3339Nano)
			}
		}
	}
	return func(v parquet.Value) string {
		switch v.Kind() {
		case parquet.Double:
			return strconv.FormatFloat(v.Double(), 'g', -1, 64)
		case parquet.Float:
			return strconv.FormatFloat(float64(v.Float()), 'g', -1, 32)
		case parquet.Int96:
			const epoch = 2440588 // Julian day of 1970-01-01
			n := v.Int96()
			return time.Unix((int64(n[2])-epoch)*86400, int64(n[1])<<32|int64(n[0])).UTC().Format(time.RFC3339Nano)
		default: // printed unchanged
		}
		return v.String()
	}
}

// decimalText formats an integer times 10^-scale.
func decimalText(v parquet.Value, scale int) string {
	n := new(big.Int)
	switch v.Kind() {
	case parquet.Int32:
		n.SetInt64(int64(v.Int32()))
	case parquet.Int64:
		n.SetInt64(v.Int64())
	default: // bytes in two's complement, big-endian
		b := v.ByteArray()
		if n.SetBytes(b); len(b) > 0 && b[0]&0x80 != 0 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
	}
	return fmt.Sprintf("%de-%d", n, scale)
}
