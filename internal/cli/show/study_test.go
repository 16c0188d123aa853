package show_test

import (
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/group"
	"scrimp/internal/lib/money"
)

// The page and the receipt of a search name its limits, and at which gain for another dollar it has stopped.
func TestGroup_SaysAtWhichGainASearchStopped(t *testing.T) {
	g := api.Group{ID: "s", Kind: "study", State: "over", Why: "plateau", Detail: "another dollar gains too little", Currency: money.USD,
		Study: &api.StudyState{Metric: "auc", Maximize: true, Searcher: "default", GPUHours: 3.25, GPULimit: new(40.0),
			WallClock: new(20 * time.Hour), Plateau: &api.StudyPlateau{Patience: 10, PointValue: 2000}, StoppedGain: new(0.00032), Past: 7}}
	page := group.Group(g, show.Place{Width: 200})
	receipt := group.Receipt(api.GroupReceipt{Group: g, Study: &api.StudyReceipt{}}, show.Place{Width: 200})
	for _, want := range []string{"3.25 of 40", "20h", "less than 0.0005 auc for 10 reports", "0.00032 auc for another dollar",
		"another dollar gains too little"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
		if !strings.Contains(receipt, want) {
			t.Errorf("the receipt does not say %q:\n%s", want, receipt)
		}
	}
	if want := "7 configurations of earlier searches"; !strings.Contains(page, want) {
		t.Errorf("the page does not say %q:\n%s", want, page)
	}
	g.Study = &api.StudyState{Metric: "auc", Searcher: "default"}
	for _, no := range []string{"GPU-hours", "wall clock", "plateau  ", "stopped at", "warm start"} {
		if page := group.Group(g, show.Place{Width: 200}); strings.Contains(page, no) {
			t.Errorf("a search without limits says %q:\n%s", no, page)
		}
	}
}
