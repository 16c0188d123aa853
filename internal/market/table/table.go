// Package table reads the embedded and the user's tables of prices and facts.
package table

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Read reads CSV rows, keyed by the header.
func Read(text string) ([]map[string]string, error) {
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	r.FieldsPerRecord = -1
	names, err := r.Read()
	switch {
	case errors.Is(err, io.EOF):
		return nil,
			errors.New("it is empty: its first line names the columns, such as provider,region,machine,capacity,price,currency")
	case err != nil:
		return nil, fmt.Errorf("read the first row: %w", err)
	}
	var rows []map[string]string
	for {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		row := map[string]string{}
		for i, c := range cells {
			if i < len(names) {
				row[strings.TrimSpace(names[i])] = strings.TrimSpace(c)
			}
		}
		if len(cells) != len(names) {
			row["!"] = fmt.Sprintf("%d cells, not %d", len(cells), len(names))
		}
		rows = append(rows, row)
	}
}
