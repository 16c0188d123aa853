// Package calibration shows what the runs of the stages of a pipeline on parts of the data predict for the stages on
// all of it, and what those took.
package calibration

import (
	"fmt"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/sample"
)

// Predicted is what the samples say of a stage on all of the data. With AtMost the figures are bounds from above,
// because one sample does not tell what of the stage is fixed.
type Predicted struct {
	Seconds float64      `json:"seconds"`
	Cost    money.Amount `json:"cost"`
	AtMost  bool         `json:"at_most"`
	Shares  []Share      `json:"shares"` // the data of each sample that says so
}

// Share is how much of the data a sample had: Taken of Of rows or files.
type Share struct {
	Taken int64 `json:"taken"`
	Of    int64 `json:"of"`
}

// shares formats the shares of the samples as percentages.
func (p Predicted) shares() string {
	var list []string
	for _, s := range p.Shares {
		list = append(list, sample.Share(s).Percent())
	}
	return strings.Join(list, ", ")
}

// Samples are the runs of stages on parts of the data, by the name of the stage.
type Samples map[string][]sample.Run

// Add adds the run of a stage on a share of the data. Runs on smaller parts come first.
func (s Samples) Add(stage string, share sample.Share, seconds float64, cost money.Amount) {
	s[stage] = append(s[stage], sample.Run{Share: share, Seconds: seconds, Cost: cost})
}

// Of returns what the samples predict for a stage; nil: it has none.
func (s Samples) Of(stage string) *Predicted {
	p, ok := sample.Predict(s[stage])
	if !ok {
		return nil
	}
	v := &Predicted{Seconds: p.Seconds, Cost: p.Cost, AtMost: p.Bound}
	for _, r := range s[stage] {
		v.Shares = append(v.Shares, Share(r.Share))
	}
	return v
}

// SharesOf returns the share of the data of each stage of a sample: what it took itself, or else the smallest share of
// the stages that it needs, or else the part that the file asks for.
func SharesOf(stages []api.StageState) map[string]sample.Share {
	shares, parts := map[string]sample.Share{}, map[string]string{}
	for _, s := range stages { // each after those that it needs
		if s.Sample == "" {
			continue
		}
		share, known := sample.Share{Taken: s.Taken, Of: s.TakenOf}.Exact()
		for _, need := range s.Needs {
			if above := shares[need]; s.TakenOf == 0 && parts[need] == s.Sample && (!known || above.Less(share)) {
				share, known = above, true
			}
		}
		if p, err := sample.Parse(s.Sample); !known && err == nil {
			share = p.Share()
		}
		shares[s.Name], parts[s.Name] = share, s.Sample
	}
	return shares
}

// Line is a stage on all of the data: what its samples predict and what it took; nil: that is not known.
type Line struct {
	Stage     string
	Predicted Predicted
	Seconds   *float64
	Cost      *money.Amount
}

// Text formats the lines as a table; "" without lines.
func Text(lines []Line, c money.Currency, p show.Place) string {
	if len(lines) == 0 {
		return ""
	}
	var rows [][]string
	note := ""
	for _, s := range lines {
		most, took, cost := "", "-", "-"
		if s.Predicted.AtMost {
			most, note = "≤ ", "≤: one sample does not tell what of a stage is fixed; two, as in sample: [1%, 5%], do\n"
		}
		if s.Seconds != nil {
			took = show.Seconds(*s.Seconds)
		}
		if s.Cost != nil {
			cost = money.Format(*s.Cost, c, 6)
		}
		rows = append(rows, []string{show.Clean(s.Stage), s.Predicted.shares(), most + show.Seconds(s.Predicted.Seconds),
			took, most + money.Format(s.Predicted.Cost, c, 6), cost})
	}
	return fmt.Sprintf("\n%s%s", draw.Grid([]draw.Column{{Name: "BY THE SAMPLE", Key: true},
		{Name: "OF THE DATA", Right: true, Leaves: 2}, {Name: "TIME", Right: true},
		{Name: "ACTUAL", Right: true, Leaves: 1}, {Name: "COST", Right: true}, {Name: "ACTUAL", Right: true}}, rows,
		p.Columns()), note)
}
