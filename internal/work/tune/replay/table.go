// Package replay plays searchers on tables of recorded learning curves, so that a search costs only the searcher's own
// time. A table is a folder with space.json, configs.csv and curves.csv.
package replay

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"

	"scrimp/internal/lib/lines"
	"scrimp/internal/work/tune"
)

// Bounds of a table.
const (
	MaxConfigs = 100_000
	MaxPoints  = 5_000_000 // epochs of all configurations
	maxSeconds = 1e9       // per epoch
	maxMetric  = 1e300
)

// A Point is an epoch of a configuration.
type Point struct {
	Value   float64 // of the metric; NaN or infinite if the training diverged
	Seconds float64
}

// A Table is the space, the configurations and their curves.
type Table struct {
	*tune.Task
	Configs [][]tune.Value
	Curves  [][]Point // by configuration and epoch
	Best    float64   // the smallest value in the table
	Quarter float64   // the 25 % quantile of the configurations' smallest values
}

// Read reads a table. Errors name the file, the line and the column.
func Read(name string, space, configs, curves io.Reader) (*Table, error) {
	task, err := tune.ReadTask(space, name+"/space.json")
	if err != nil {
		return nil, err
	}
	t := &Table{Task: task}
	if t.Table == "" {
		t.Table = path.Base(name)
	}
	if err := t.readConfigs(configs, name+"/configs.csv"); err != nil {
		return nil, err
	}
	if err := t.readCurves(curves, name+"/curves.csv"); err != nil {
		return nil, err
	}
	if err := t.measure(name + "/curves.csv"); err != nil {
		return nil, err
	}
	return t, nil
}

// sheet is a CSV file with a header.
type sheet struct {
	csv     *csv.Reader
	name    string
	columns []int // indices of the requested columns
	asked   []string
}

func open(r io.Reader, name string, columns ...string) (*sheet, error) {
	s := &sheet{csv: csv.NewReader(lines.Reader(r)), name: name, asked: columns}
	s.csv.ReuseRecord = true
	header, err := s.csv.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s is empty: its first line names the columns", name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, c := range columns {
		at := slices.Index(header, c)
		if at < 0 {
			return nil, fmt.Errorf("%s:1: no column %s", name, c)
		}
		s.columns = append(s.columns, at)
	}
	return s, nil
}

// next reads the requested cells of the next line, or returns io.EOF.
func (s *sheet) next(cells []string) error {
	record, err := s.csv.Read()
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	for i, at := range s.columns {
		cells[i] = record[at]
	}
	return nil
}

// wrong returns an error about a cell of the current line.
func (s *sheet) wrong(cell int, format string, args ...any) error {
	line, _ := s.csv.FieldPos(s.columns[cell])
	return fmt.Errorf("%s:%d: %s %s", s.name, line, s.asked[cell], fmt.Sprintf(format, args...))
}

// whole parses a cell as a whole number from low to high.
func (s *sheet) whole(cells []string, cell, low, high int) (int, error) {
	v, err := strconv.Atoi(cells[cell])
	if err != nil || v < low || v > high {
		return 0, s.wrong(cell, "is %q: give a whole number from %d to %d", cells[cell], low, high)
	}
	return v, nil
}

func (t *Table) readConfigs(r io.Reader, name string) error {
	columns := []string{"config_id"}
	for _, p := range t.Space.Params {
		columns = append(columns, p.Name)
	}
	s, err := open(r, name, columns...)
	if err != nil {
		return err
	}
	cells := make([]string, len(columns))
	for {
		if err := s.next(cells); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if _, err := s.whole(cells, 0, len(t.Configs), len(t.Configs)); err != nil {
			return fmt.Errorf("%w: configurations count from 0", err)
		}
		if len(t.Configs) >= MaxConfigs {
			return fmt.Errorf("%s has more than %d configurations", name, MaxConfigs)
		}
		values := make([]tune.Value, len(t.Space.Params))
		for i := range values {
			if values[i], err = t.Space.Params[i].Read(cells[i+1]); err != nil {
				return s.wrong(i+1, "is wrong: %v", err)
			}
		}
		t.Configs = append(t.Configs, values)
	}
	switch n := len(t.Configs); {
	case n == 0:
		return fmt.Errorf("%s has no configuration: give one a line", name)
	case n*t.MaxEpoch > MaxPoints:
		return fmt.Errorf("%s: %d configurations of %d epochs are more than %d points", name, n, t.MaxEpoch, MaxPoints)
	}
	return nil
}

func (t *Table) readCurves(r io.Reader, name string) error {
	s, err := open(r, name, "config_id", "epoch", "metric", "seconds")
	if err != nil {
		return err
	}
	t.Curves = make([][]Point, len(t.Configs))
	for i := range t.Curves {
		t.Curves[i] = make([]Point, t.MaxEpoch)
		for e := range t.Curves[i] {
			t.Curves[i][e].Seconds = -1
		}
	}
	cells := make([]string, 4)
	for {
		if err := s.next(cells); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if err := t.point(s, cells); err != nil {
			return err
		}
	}
	for i := range t.Curves {
		for e, p := range t.Curves[i] {
			if p.Seconds < 0 {
				return fmt.Errorf("%s: configuration %d has no epoch %d: every configuration has epochs 1 to %d", name, i, e+1,
					t.MaxEpoch)
			}
		}
	}
	return nil
}

// point reads a line of curves.csv.
func (t *Table) point(s *sheet, cells []string) error {
	id, err := s.whole(cells, 0, 0, len(t.Configs)-1)
	if err != nil {
		return err
	}
	e, err := s.whole(cells, 1, 1, t.MaxEpoch)
	if err != nil {
		return err
	}
	v, err := strconv.ParseFloat(cells[2], 64)
	if err != nil || tune.Finite(v) && math.Abs(v) > maxMetric {
		return s.wrong(2, "is %q: give a number, or nan where the training diverged", cells[2])
	}
	sec, err := strconv.ParseFloat(cells[3], 64)
	if err != nil || !(sec >= 0 && sec <= maxSeconds) {
		return s.wrong(3, "is %q: give 0 to %g", cells[3], float64(maxSeconds))
	}
	p := &t.Curves[id][e-1]
	if p.Seconds >= 0 {
		return s.wrong(1, "%d of configuration %d comes twice: remove one of the lines", e, id)
	}
	*p = Point{v, sec}
	return nil
}

// measure computes the reference values of the figures.
func (t *Table) measure(name string) error {
	var bests []float64
	for _, curve := range t.Curves {
		best := math.Inf(1)
		for _, p := range curve {
			if !tune.Finite(p.Value) {
				break // training stops here
			}
			best = math.Min(best, p.Value)
		}
		bests = append(bests, best)
	}
	slices.Sort(bests)
	pos := 0.25 * float64(len(bests)-1)
	k := int(pos)
	next := bests[min(k+1, len(bests)-1)]
	t.Best, t.Quarter = bests[0], bests[k]
	if next > t.Quarter {
		t.Quarter += (pos - float64(k)) * (next - t.Quarter)
	}
	if !tune.Finite(t.Quarter) {
		return fmt.Errorf("%s: three quarters of the configurations diverge in their first epoch: r has no scale", name)
	}
	return nil
}

// Regret returns r of a value: 0 at the table's best, 1 at the best quarter and above.
func (t *Table) Regret(incumbent float64) float64 {
	switch {
	case incumbent <= t.Best:
		return 0
	case incumbent >= t.Quarter:
		return 1
	}
	return (incumbent - t.Best) / (t.Quarter - t.Best)
}
