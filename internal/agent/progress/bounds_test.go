package progress

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"scrimp/internal/wire/api"
)

// Merge keeps a bounded number of metrics, whatever their number and names, and those that came
// first stay correct.
func TestMerge_BoundsMetrics(t *testing.T) {
	var all api.Step
	for i := range 20_000 {
		s, ok, err := Parse(fmt.Appendf(nil, `{"step":%d,"loss":%d,"m%d":1,"n%d":NaN,"%s":1}`, i, i, i, i, strings.Repeat("x", 129)))
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		all = Merge(all, s)
	}
	if len(all.Metrics) != maxMetrics || len(all.Broken) != maxMetrics || all.Metrics["loss"] != 19_999 || all.Step != 19_999 {
		t.Errorf("%d metrics, %d broken, loss %v at %d", len(all.Metrics), len(all.Broken), all.Metrics["loss"], all.Step)
	}
	var one strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&one, `"m%d":1,"n%d":NaN,`, i, i)
	}
	if s, ok, err := Parse([]byte(`{` + one.String() + `"z":1}`)); err != nil || !ok || len(s.Metrics) > maxMetrics || len(s.Broken) > maxMetrics {
		t.Errorf("one report has %d and %d, %v", len(s.Metrics), len(s.Broken), err)
	}
	if _, err := ParseAll([]byte("[" + strings.Repeat(`{"a":1},`, maxReports) + `{"a":1}]`)); err == nil {
		t.Error("a list without end is read")
	}
}

// Merging reports gives the same result as one report with everything, and does not change the reports.
func TestMerge_KeepsNewestOfEach(t *testing.T) {
	first := api.Step{Step: 3, Total: 9, Metrics: map[string]float64{"loss": 1, "lr": 2}, Broken: []string{"z", "a"}}
	all := Merge(Merge(api.Step{}, first), api.Step{Epoch: 1.5, Metrics: map[string]float64{"loss": 4}, Broken: []string{"lr", "a"}})
	if all.Step != 3 || all.Total != 9 || all.Epoch != 1.5 || len(all.Metrics) != 1 || all.Metrics["loss"] != 4 ||
		fmt.Sprint(all.Broken) != "[a lr z]" {
		t.Errorf("merged %+v", all)
	}
	if len(first.Metrics) != 2 || math.IsNaN(first.Metrics["loss"]) || fmt.Sprint(first.Broken) != "[z a]" {
		t.Errorf("it changed %+v", first)
	}
}
