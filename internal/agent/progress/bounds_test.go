package progress

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"scrimp/internal/wire/api"
)

// However many metrics a program names, and whatever it calls them, the agent holds a bounded number of names, and those that it
// named first stay true.
func TestMetricsWithoutEndAreLeftOut(t *testing.T) {
	var all api.Step
	for i := range 20_000 {
		s, ok, err := Parse(fmt.Appendf(nil, `{"step":%d,"loss":%d,"m%d":1,"n%d":NaN,"%s":1}`, i, i, i, i, strings.Repeat("x", 129)))
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		all = Merge(all, s)
	}
	if len(all.Metrics) != mostMetrics || len(all.Broken) != mostMetrics || all.Metrics["loss"] != 19_999 || all.Step != 19_999 {
		t.Errorf("%d metrics, %d broken, loss %v at %d", len(all.Metrics), len(all.Broken), all.Metrics["loss"], all.Step)
	}
	var one strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&one, `"m%d":1,"n%d":NaN,`, i, i)
	}
	if s, ok, err := Parse([]byte(`{` + one.String() + `"z":1}`)); err != nil || !ok || len(s.Metrics) > mostMetrics || len(s.Broken) > mostMetrics {
		t.Errorf("one report has %d and %d, %v", len(s.Metrics), len(s.Broken), err)
	}
	if _, err := ParseAll([]byte("[" + strings.Repeat(`{"a":1},`, mostReports) + `{"a":1}]`)); err == nil {
		t.Error("a list without end is read")
	}
}

// What is merged is as if all had been said at once, and what was read stays as it was.
func TestMergingKeepsTheNewestOfEach(t *testing.T) {
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
