package pastruns

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"scrimp/internal/cli/command"
	"scrimp/internal/decide/runhistory"
	"scrimp/internal/estimate/hardware"
	"scrimp/internal/estimate/runs"
)

// TableName is the file in the data folder with measured runs that every estimate learns from.
const TableName = "measured.csv"

// Rows reads the rows to learn from: the tables, and the runs of the data folder as one more table.
func Rows(ctx context.Context, a *command.App, calibrate []string) ([]runs.Row, error) {
	rows, err := Tables(a, calibrate)
	if err != nil {
		return nil, err
	}
	runs, err := Ran(ctx, a, "", false)
	if err != nil {
		a.Notef("note: runs of yours are left out: %v\n", err)
	}
	return append(rows, runhistory.Rows(runs, hardware.Catalogued())...), nil
}

// Tables reads the tables of measured runs.
func Tables(a *command.App, calibrate []string) ([]runs.Row, error) {
	files := append([]string(nil), calibrate...)
	if own := filepath.Join(a.Data, TableName); len(files) == 0 || exists(own) {
		files = append(files, own)
	}
	var rows []runs.Row
	for _, name := range files {
		list, err := ReadTable(name)
		if errors.Is(err, fs.ErrNotExist) && name == filepath.Join(a.Data, TableName) {
			continue
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, sound(a, name, list)...)
	}
	return rows, nil
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// ReadTable reads a table of measured runs.
func ReadTable(name string) ([]runs.Row, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read runs: %w", err)
	}
	defer func() { _ = file.Close() }()
	rows, err := runs.Read(file)
	if err != nil {
		return nil, fmt.Errorf("read runs of %s: %w", name, err)
	}
	return rows, nil
}

// sound returns the rows without an odd cell. It counts and reports the others.
func sound(a *command.App, name string, rows []runs.Row) (list []runs.Row) {
	var first *runs.BadCell
	for _, r := range rows {
		if len(r.Odd) == 0 {
			list = append(list, r)
		} else if first == nil {
			first = r.Odd[0]
		}
	}
	if first != nil {
		a.Notef("note: %d of %d runs of %s are passed over: %v\n", len(rows)-len(list), len(rows), name, first)
	}
	return list
}
