package group

import (
	"fmt"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/sample"
)

// PredictedStage is what the samples say of a stage on all of the data. With AtMost the figures are bounds from above,
// because one sample does not tell what of the stage is fixed.
type PredictedStage struct {
	Seconds float64      `json:"seconds"`
	Cost    money.Amount `json:"cost"`
	AtMost  bool         `json:"at_most"`
}

// calibrates adds what the samples cost, and what they predict for the stages on all of the data. stages are those of
// the first lines. A sample that was reused predicts nothing: its time is not that of this run.
func (v *PipelineCost) calibrates(stages []api.StageState) {
	runs := map[string][]sample.Run{}
	for i, s := range stages {
		line := &v.Stages[i]
		if s.Sample == "" {
			continue
		}
		if v.Sample == nil {
			v.Sample = new(money.Amount)
		}
		*v.Sample = v.Sample.Add(line.Cost)
		part, err := sample.Parse(s.Sample)
		if err == nil && s.State == "done" && line.Seconds != nil && !line.CostOpen {
			runs[s.Of] = append(runs[s.Of], sample.Run{Part: part, Seconds: *line.Seconds, Cost: line.Cost})
		}
	}
	for i, s := range stages {
		if s.Sample != "" {
			continue
		}
		if p, ok := sample.Predict(runs[s.Name]); ok {
			v.Stages[i].Predicted = &PredictedStage{p.Seconds, p.Cost, p.Bound}
		}
	}
}

// predictedText adds a table of what the samples predicted for each stage and what it took.
func (v *PipelineCost) predictedText(b *strings.Builder, p show.Place) {
	var rows [][]string
	bound := false
	for _, s := range v.Stages {
		x := s.Predicted
		if x == nil {
			continue
		}
		most := ""
		if x.AtMost {
			most, bound = "≤ ", true
		}
		took, cost := "-", "-"
		if s.State == "done" && s.Seconds != nil && !s.CostOpen {
			took, cost = show.Seconds(*s.Seconds), money.Format(s.Cost, v.Currency, 6)
		}
		rows = append(rows, []string{show.Clean(s.Stage), most + show.Seconds(x.Seconds), took,
			most + money.Format(x.Cost, v.Currency, 6), cost})
	}
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", draw.Grid([]draw.Column{{Name: "BY THE SAMPLE", Key: true}, {Name: "TIME", Right: true},
		{Name: "ACTUAL", Right: true, Leaves: 1}, {Name: "COST", Right: true}, {Name: "ACTUAL", Right: true}}, rows,
		p.Columns()))
	if bound {
		p.Fact(b, "bound", "one sample does not tell what of a stage is fixed: sample: [1%%, 5%%] predicts a value")
	}
}
