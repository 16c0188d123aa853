package show_test

import (
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/money"
)

// explain and status use the same words for the start of a waiting job; a running job says nothing about a start.
func TestWaits_SaysWhyAJobWaitsAndWhenItStarts(t *testing.T) {
	t.Parallel()
	j := api.Job{ID: "a", State: "queued", Detail: "waits: the budget of team:vision is spent", Speed: 2, Currency: money.USD,
		Estimate: &api.JobEstimate{Cost: [3]float64{2, 3, 8}, StartS: &[3]float64{7200, 9000, 14400}}}
	const starts = "in about 1h 15m (1h 00m to 2h 00m), costs $2.00 to $8.00 from there on"
	says := strings.Join(strings.Fields(show.Waits(j, false, show.Place{})), " ")
	if says != "It waits: the budget of team:vision is spent. It starts "+starts+", by the forecast." {
		t.Errorf("explain says %q", says)
	}
	if text := strings.Join(strings.Fields(show.Job(j, show.Place{})), " "); !strings.Contains(text, "starts "+starts) {
		t.Errorf("status says %q", text)
	}
	unknown := api.Job{ID: "b", State: "queued", Speed: 1, Currency: money.USD}
	if says := show.Waits(unknown, false, show.Place{}); says != "When it starts is unknown.\n" {
		t.Errorf("of an unknown start explain says %q", says)
	}
	if j.State, j.Phase = "running", "running"; show.Waits(j, false, show.Place{}) != "" {
		t.Error("a running job does not wait")
	}
}
