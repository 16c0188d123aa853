package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Report is the result of a whole run.
type Report struct {
	Base, Now string // commits
	Form      string // quick or full
	Machine   string // processors, and the load at the beginning and at the end
	Rows      []Row
	Notes     []string // what could not be measured, and where; paths of the results
}

// Table writes the report for people.
func (r Report) Table(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "base %s\nnow  %s\n%s form, %s\n\n", r.Base, r.Now, r.Form, r.Machine); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	line := func(cells ...string) { _, _ = fmt.Fprintln(t, strings.Join(cells, "\t")) } // Flush returns the error
	line("FIGURE", "UNIT", "BASE", "MEDIAN", "NOW", "MEDIAN", "RATIO", "LIMIT", "VERDICT")
	for _, row := range r.Rows {
		cells := []string{row.Name, row.Unit}
		for _, s := range []Samples{row.Base, row.Now} {
			best, median := "-", "-"
			if v, ok := s.Best(row.Higher); ok {
				best = number(v)
			}
			if v, ok := s.Median(); ok {
				median = number(v)
			}
			cells = append(cells, best, median)
		}
		ratio := "-"
		if v, ok := row.RatioOf(); ok {
			ratio = fmt.Sprintf("%.2f", v)
		}
		line(append(cells, ratio, row.LimitText(), string(row.Verdict()))...)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, n := range r.Notes {
		if _, err := fmt.Fprintln(w, "\n"+n); err != nil {
			return err
		}
	}
	return nil
}

// JSON writes the run as one object, and then each figure as one, one per line.
func (r Report) JSON(w io.Writer) error {
	out := json.NewEncoder(w)
	if err := out.Encode(map[string]any{
		"base": r.Base, "now": r.Now, "form": r.Form, "machine": r.Machine, "verdict": worst(r.Rows), "notes": r.Notes,
	}); err != nil {
		return err
	}
	for _, row := range r.Rows {
		o := map[string]any{
			"figure": row.Name, "unit": row.Unit, "base": row.Base, "now": row.Now,
			"more_is_better": row.Higher, "verdict": row.Verdict(),
		}
		if v, ok := row.RatioOf(); ok {
			o["ratio"] = v
		}
		if row.Ratio > 0 {
			o["limit_ratio"] = row.Ratio
		}
		if row.Most > 0 {
			o["limit"] = row.Most
		}
		if err := out.Encode(o); err != nil {
			return err
		}
	}
	return nil
}
