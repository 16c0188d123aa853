//go:build !local

package export

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"scrimp/internal/decide/focus"
)

func parquetHere() error { return nil }

const (
	rowGroup     = 20_000 // rows that are in memory at once
	decimalPlace = 18     // decimals of a DECIMAL(38, 18)
	decimalWidth = 16     // its bytes
)

// node is the type of a column: exact decimals, times in UTC to the microsecond, texts.
func (c column) node() parquet.Node {
	n := parquet.String()
	switch c.kind {
	case focus.Decimal:
		n = parquet.Decimal(decimalPlace, 38, parquet.FixedLenByteArrayType(decimalWidth))
	case focus.Time:
		n = parquet.Timestamp(parquet.Microsecond)
	case focus.Text, focus.JSON:
	}
	if c.null {
		return parquet.Optional(n)
	}
	return n
}

// writeParquet writes rows of CSV, whose first names the columns.
func writeParquet(ctx context.Context, w io.Writer, columns []column, from *csv.Reader) error {
	from.ReuseRecord = true
	head, err := from.Read()
	if err != nil {
		return err
	}
	group := parquet.Group{}
	for i, c := range columns {
		if i >= len(head) || head[i] != c.name {
			return errors.New("the server sends other columns than this program knows: use one version of both")
		}
		group[c.name] = c.node()
	}
	schema := parquet.NewSchema("CostAndUsage", group)
	order := make([]int, len(columns)) // place of each column in the schema, which has them by name
	for place, path := range schema.Columns() {
		order[slices.IndexFunc(columns, func(c column) bool { return c.name == path[0] })] = place
	}
	out := parquet.NewGenericWriter[any](w, schema, parquet.Compression(&parquet.Snappy),
		parquet.MaxRowsPerRowGroup(rowGroup))
	row := make(parquet.Row, len(columns))
	for n := 1; ; n++ {
		record, err := from.Read()
		if errors.Is(err, io.EOF) {
			return out.Close()
		}
		if err == nil && n%rowGroup == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		for i, c := range columns {
			if row[order[i]], err = c.cell(record[i], order[i]); err != nil {
				return fmt.Errorf("row %d: %s: %w", n, c.name, err)
			}
		}
		if _, err := out.WriteRows([]parquet.Row{row}); err != nil {
			return err
		}
	}
}

// cell is a value of the column, whose place in the schema is place. A column that may be null has a value where the
// text is not empty.
func (c column) cell(text string, place int) (parquet.Value, error) {
	v, err := c.value(text)
	if err != nil {
		return v, err
	}
	defined := 0
	if c.null && text != "" {
		defined = 1
	}
	return v.Level(0, defined, place), nil
}

func (c column) value(text string) (v parquet.Value, err error) {
	switch {
	case text == "" && c.null:
		return parquet.Value{}, nil
	case c.kind == focus.Decimal:
		b, err := fixed(text)
		return parquet.FixedLenByteArrayValue(b), err
	case c.kind == focus.Time:
		t, err := time.Parse(time.RFC3339, text)
		return parquet.Int64Value(t.UnixMicro()), err
	}
	return parquet.ByteArrayValue([]byte(text)), nil
}

// fixed is a decimal as a count of 1e-18 in two's complement, the highest byte first.
func fixed(text string) ([]byte, error) {
	whole, part, _ := strings.Cut(text, ".")
	n, ok := new(big.Int).SetString(whole+part+strings.Repeat("0", max(0, decimalPlace-len(part))), 10)
	if !ok || len(part) > decimalPlace || n.BitLen() > 126 {
		return nil, fmt.Errorf("%.50q has no place among 38 digits, 18 of them decimals", text)
	}
	if n.Sign() < 0 {
		n.Add(n, new(big.Int).Lsh(big.NewInt(1), 8*decimalWidth))
	}
	return n.FillBytes(make([]byte, decimalWidth)), nil
}
