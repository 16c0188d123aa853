package pipeline

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"scrimp/internal/work/pipeline/workpath"
)

// Drift lets a stage begin only if columns of a CSV file have drifted from those of a reference. The server measures it
// when the stage's turn comes, without a machine.
type Drift struct {
	File      string `json:"file"`      // of the work folder, or an output of another stage
	Reference string `json:"reference"` // likewise
	Test      string `json:"test"`      // psi or ks
	Above     string `json:"above"`     // the stage begins if the value of a column is above this decimal
	// Columns are those that are compared; none: all columns of the reference.
	Columns []string `json:"columns,omitempty"`
}

// DriftTests are the tests of a Drift.
var DriftTests = []string{"psi", "ks"}

// Bounds of a Drift.
const (
	maxDriftColumns = 200
	keptColumns     = 20 // columns that a verdict lists
)

// checkColumns reports what is wrong with the columns of on_drift.
func checkColumns(names []string) error {
	if len(names) > maxDriftColumns {
		return fmt.Errorf("there are %d columns: name at most %d", len(names), maxDriftColumns)
	}
	for i, name := range names {
		if name == "" || len(name) > MaxText || slices.Contains(names[:i], name) {
			return fmt.Errorf("column %.60q is empty, too long or there twice", name)
		}
	}
	return nil
}

// checkDrift reports what is wrong with on_drift of a stage, and gives its paths their one form.
func (s *Stage) checkDrift() error {
	if s.Drift == nil {
		return nil
	}
	c := *s.Drift
	var err error
	if c.File, err = workpath.Clean(c.File); err != nil {
		return fmt.Errorf("file: %w", err)
	}
	if c.Reference, err = workpath.Clean(c.Reference); err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	above, err := Decimal(c.Above)
	switch {
	case c.File == c.Reference:
		return errors.New("file and reference are the same file: name two")
	case !slices.Contains(DriftTests, c.Test):
		return fmt.Errorf("test is %.40q: write psi or ks", c.Test)
	case err != nil || above.Sign() < 0 || above.Cmp(big.NewRat(1000, 1)) > 0 || len(c.Above) > 40:
		return fmt.Errorf("above is %.40q: write a number from 0, such as 0.2 for psi or 0.1 for ks", c.Above)
	}
	if err := checkColumns(c.Columns); err != nil {
		return err
	}
	for _, p := range []string{c.File, c.Reference} {
		if workpath.Within(s.Outs, p) {
			return fmt.Errorf("the stage makes %s itself: name what is there before it begins", p)
		}
	}
	s.Drift = &c
	return nil
}

// Files are the files that the stage compares.
func (d *Drift) Files() []string {
	if d == nil {
		return nil
	}
	return []string{d.File, d.Reference}
}

// Text describes the drift in a few words.
func (d *Drift) Text() string {
	return fmt.Sprintf("%s of %s > %s", strings.ToUpper(d.Test), d.File, d.Above)
}

// DriftVerdict is the measured drift, and whether it lets the stage begin.
type DriftVerdict struct {
	Drift
	Pass bool   `json:"pass"`
	Why  string `json:"why"` // a sentence
	// Values are the drifts of the columns, largest first, as decimals.
	Values []ColumnDrift `json:"values"`
}

// ColumnDrift is the drift of a column.
type ColumnDrift struct {
	Column string `json:"column"`
	Drift  string `json:"drift"`
}

// Verdict judges the drifts of columns, largest first.
func (d *Drift) Verdict(list []ColumnDrift) (v DriftVerdict, err error) {
	v.Drift = *d
	above, err := Decimal(d.Above)
	if err != nil {
		return v, err
	}
	if len(list) == 0 {
		return v, errors.New("no column was compared")
	}
	largest, err := Decimal(list[0].Drift)
	if err != nil {
		return v, err
	}
	v.Pass = largest.Cmp(above) > 0
	is := "is not above"
	if v.Pass {
		is = "is above"
	}
	v.Why = fmt.Sprintf("%s of %s in %s is %s, which %s %s", strings.ToUpper(d.Test), list[0].Column, d.File,
		list[0].Drift, is, d.Above)
	v.Values = list[:min(len(list), keptColumns)]
	return v, nil
}

// MakerOf returns the stage that makes a path from all of the data, or -1.
func (s *Spec) MakerOf(p string) int {
	return slices.IndexFunc(s.Stages, func(x Stage) bool {
		return x.Sample == "" && workpath.Within(x.Outs, p)
	})
}
