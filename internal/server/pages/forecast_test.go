package pages

import (
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/money"
)

// The overview adds up the forecasts of running jobs, and the rest of the budgets of the others. A job never counts
// twice.
func TestOverview_AddsUpForecasts(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	budget := money.Picos(9e12)
	f.answers["/v1/jobs"] = []client.Job{
		{ID: "a", State: "running", Currency: "USD", Budget: &budget, Outlook: &client.JobOutlook{Cost: [3]float64{1, 2, 3}}},
		{ID: "b", State: "running", Currency: "USD", Outlook: &client.JobOutlook{Cost: [3]float64{0.5, 1, 4.25}}},
		{ID: "c", State: "queued", Currency: "USD", Budget: &budget, Spent: money.Picos(2e12)}, {ID: "d", State: "queued", Currency: "USD"},
	}
	page := asks(s, "GET", "/", "").Body.String()
	for _, want := range []string{"<h2>Will cost</h2>", "$1.50 to $7.25", "forecast of 2 running jobs, 10 % to 90 %", `value="7`,
		"left of the budgets of 1 job", "1 job without a budget: unknown"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
}

// A forecast of 2 h of market time on a clock of speed 2 is an hour.
func TestJob_ShowsForecastAgainstDeadline(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	j := client.Job{ID: "a", State: "running", Currency: "USD", Speed: 2, Submitted: now.Add(-time.Hour), Deadline: new(now.Add(3 * time.Hour)),
		Outlook: &client.JobOutlook{Cost: [3]float64{1, 2, 3}, FinishS: [3]float64{7200, 9000, 14400}}}
	f.answers["/v1/jobs/a"], f.answers["/v1/jobs/a/explain"] = j, []client.Decision{}
	page := asks(s, "GET", "/jobs/a", "").Body.String()
	for _, want := range []string{"$1.00 to $3.00 more by the forecast", "ends in 1h 00m to 2h 00m",
		"1h 00m over; ends 2h 00m to 3h 00m after its submission; deadline after 4h 00m", `x="49.00" y="3" width="24.50"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
}
