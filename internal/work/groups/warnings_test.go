package groups

import (
	"fmt"
	"strings"
	"testing"

	"scrimp/internal/work/study"
)

// played returns trials that report the given values, one an epoch from the first on, and end as over says.
func played(curves [][]float64, over Report) (trials []Trial, reports []Report) {
	for n, values := range curves {
		t := Trial{Phase: Over, Unit: len(values), Values: len(values)}
		for i, v := range values {
			reports = append(reports, Report{Trial: n, Unit: i + 1, Value: v})
		}
		r := over
		r.Trial, r.Phase = n, Over
		trials, reports = append(trials, t), append(reports, r)
	}
	return trials, reports
}

func TestWarnings_SayWhatIsProbablyWrong(t *testing.T) {
	epochs := study.Fidelity{Name: study.Epoch, Min: 1, Max: 4}
	rises, falls := []float64{1, 2, 3, 4}, []float64{4, 3, 2, 1}
	for name, c := range map[string]struct {
		spec    study.Spec
		curves  [][]float64
		over    Report
		ignored int
		want    []string // a part of each sentence
	}{
		"nothing":            {spec: study.Spec{Metric: "loss", Fidelity: epochs}},
		"falls, as asked":    {spec: study.Spec{Metric: "loss", Fidelity: epochs}, curves: [][]float64{falls, falls}},
		"rises, as asked":    {spec: study.Spec{Metric: "auc", Maximize: true, Fidelity: epochs}, curves: [][]float64{rises, rises}},
		"rises, not asked":   {study.Spec{Metric: "auc", Fidelity: epochs}, [][]float64{rises, rises}, Report{}, 0, []string{"should it be maximize"}},
		"falls, not asked":   {study.Spec{Metric: "loss", Maximize: true, Fidelity: epochs}, [][]float64{falls, falls}, Report{}, 0, []string{"should it be minimize"}},
		"one rises":          {spec: study.Spec{Metric: "loss", Fidelity: epochs}, curves: [][]float64{rises, falls, rises}},
		"a single trial":     {spec: study.Spec{Metric: "loss", Fidelity: epochs}, curves: [][]float64{rises}},
		"too few values":     {spec: study.Spec{Metric: "loss", Fidelity: epochs}, curves: [][]float64{{1, 2}, {1, 2}}, over: Report{Cut: true}},
		"no value":           {study.Spec{Metric: "loss", Fidelity: epochs}, [][]float64{{}, {}}, Report{}, 0, []string{"2 trials have ended without a value of loss: does"}},
		"no epoch":           {study.Spec{Metric: "loss", Fidelity: epochs}, [][]float64{{}}, Report{}, 7, []string{"without epoch 1 or later"}},
		"no value, no units": {study.Spec{Metric: "loss"}, [][]float64{{}}, Report{}, 7, []string{"a trial has ended without a value of loss: does"}},
		"failed":             {study.Spec{Metric: "loss", Fidelity: epochs}, [][]float64{{}, {}}, Report{Bad: true}, 0, []string{"2 of the 2 trials that have ended failed"}},
		"one failed":         {spec: study.Spec{Metric: "loss", Fidelity: epochs}, curves: [][]float64{{}}, over: Report{Bad: true}},
		"too short":          {study.Spec{Metric: "loss", Fidelity: epochs}, [][]float64{{3, 2}, {3, 2, 1}}, Report{}, 0, []string{"by epoch 3, and none reached 4"}},
		"one is long enough": {spec: study.Spec{Metric: "loss", Fidelity: epochs}, curves: [][]float64{{3, 2}, {3, 2}, falls}},
		"pruned":             {spec: study.Spec{Metric: "loss", Fidelity: epochs}, curves: [][]float64{{3, 2}, {3, 2, 1}}, over: Report{Cut: true}},
	} {
		trials, reports := played(c.curves, c.over)
		got := Warnings(&c.spec, trials, reports, c.ignored)
		if len(got) != len(c.want) || len(got) > 0 && !strings.Contains(fmt.Sprint(got), c.want[0]) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	trials, reports := played([][]float64{{2}, {2}, {3}, {3}, {3}}, Report{})
	reports[1].Bad, reports[3].Bad = true, true // two of five: too few to warn
	trials[4].Broken, reports[9].Bad = true, true
	if got := Warnings(&study.Spec{Metric: "loss", Fidelity: epochs}, trials[:5], reports, 0); strings.Contains(fmt.Sprint(got), "failed") {
		t.Errorf("two of five failed, and one diverged: %q", got)
	}
	trials, reports = played([][]float64{falls, falls}, Report{})
	trials[1].Beyond = true
	got := Warnings(&study.Spec{Metric: "loss", Fidelity: epochs}, trials, reports, 9)
	if len(got) != 1 || !strings.Contains(got[0], "1 of 2 trials train beyond epoch 4") {
		t.Errorf("a program that trains on: %q", got)
	}
}
