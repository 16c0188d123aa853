package pages

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/money"
)

// The overview adds up the forecasts of running and waiting jobs, and the rest of the budgets of the others. The total
// is the sum of the rows. A job never counts twice.
func TestOverview_AddsUpForecasts(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	budget := money.Picos(9e12)
	f.answers["/v1/jobs"] = []client.Job{
		{ID: "a", State: "running", Currency: "USD", Budget: &budget, Outlook: &client.JobOutlook{Cost: [3]float64{1, 2, 3}}},
		{ID: "b", State: "running", Currency: "USD", Outlook: &client.JobOutlook{Cost: [3]float64{0.5, 1, 4.25}}},
		{ID: "c", State: "queued", Currency: "USD", Budget: &budget, Spent: money.Picos(2e12)}, {ID: "d", State: "queued", Currency: "USD"},
		{ID: "e", State: "queued", Currency: "USD", Budget: &budget, Speed: 2,
			Estimate: &client.JobEstimate{Cost: [3]float64{2, 3, 8}, StartS: &[3]float64{7200, 9000, 14400}}},
	}
	page := asks(s, "GET", "/", "").Body.String()
	for _, want := range []string{"<h2>Will cost</h2>", "$3.50 to $15.25",
		"sum of the forecasts of 2 running jobs and 1 waiting job, each 10 % to 90 %", `value="7`,
		"left of the budgets of 1 job", "1 job without an estimate or a budget", "starts in about 1h 15m (1h 00m to 2h 00m)"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	var low, high float64
	rows := regexp.MustCompile(`data-l="will cost"><data[^>]* value="([0-9.]+) ([0-9.]+)"`).FindAllStringSubmatch(page, -1)
	for _, r := range rows {
		x, _ := strconv.ParseFloat(r[1], 64)
		y, _ := strconv.ParseFloat(r[2], 64)
		low, high = low+x, high+y
	}
	if len(rows) != 3 || low != 3.5 || high != 15.25 {
		t.Errorf("%d rows add up to %v and %v", len(rows), low, high)
	}
	if n := strings.Count(page, `data-l="will cost"><span class="unknown">`); n != 2 {
		t.Errorf("%d rows say that the cost is unknown, and two jobs have no estimate", n)
	}
}

// The overview sums all jobs, however many there are, and reads a bounded number of them.
func TestOverview_ReadsABoundedNumberOfJobs(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	f.answers["/v1/jobs"] = many(3)
	f.answers["/v1/totals"] = client.JobTotals{Lines: []client.JobTotal{{Name: "queued", Currency: "USD", Jobs: 1234,
		WillCost: &[2]float64{1, 2}, Foreseen: 1000, Unknown: 234, Bounded: 34, AtMost: new(money.Picos(7e12))}}}
	page := asks(s, "GET", "/", "").Body.String()
	for _, want := range []string{"1000 waiting jobs", "200 jobs without an estimate or a budget", "of 34 jobs without an estimate"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	for _, asked := range f.asked {
		if strings.Contains(asked, "/v1/jobs?") && !regexp.MustCompile(`limit=(8|20|1000) `).MatchString(asked) {
			t.Errorf("it asks %s", asked)
		}
	}
}

// The pages of a job and of jobs say when a waiting job starts and what it costs.
func TestJob_ShowsEstimateWhileItWaits(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	j := client.Job{ID: "a", State: "queued", Currency: "USD", Speed: 2, Submitted: now.Add(-time.Hour),
		Estimate: &client.JobEstimate{Cost: [3]float64{1, 2, 3}, StartS: &[3]float64{7200, 9000, 14400}}}
	f.answers["/v1/jobs/a"], f.answers["/v1/jobs/a/explain"] = j, []client.Decision{}
	f.answers["/v1/jobs"] = []client.Job{j}
	for path, list := range map[string][]string{
		"/jobs/a": {"$1.00 to $3.00 more by the forecast", "It starts in about 1h 15m (1h 00m to 2h 00m), by the forecast."},
		"/jobs":   {"$1.00 to $3.00", "starts in about 1h 15m (1h 00m to 2h 00m)"},
	} {
		page := asks(s, "GET", path, "").Body.String()
		for _, want := range list {
			if !strings.Contains(page, want) {
				t.Errorf("%s does not have %q", path, want)
			}
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

// A page draws a bounded number of metrics, says how many it leaves out, and shows hostile names as text.
func TestJob_DrawsABoundedNumberOfMetrics(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	f.answers["/v1/jobs/a"], f.answers["/v1/jobs/a/explain"] = client.Job{ID: "a", State: "running", Currency: "USD"}, []client.Decision{}
	curves := client.Curves{More: 7}
	for i := range 50 {
		curves.Curves = append(curves.Curves, client.Curve{Metric: "<img src=x onerror=alert(1)>" + strings.Repeat("long", i*i),
			Judges: i == 0, Points: []client.CurvePoint{{MarketAt: now, Value: 1}, {MarketAt: now.Add(time.Minute), Value: 2}}})
	}
	curves.Curves[3].Points = curves.Curves[3].Points[:1] // no curve, and not counted as left out
	f.answers["/v1/jobs/a/curves"] = curves
	page := asks(s, "GET", "/jobs/a", "").Body.String()
	if n := strings.Count(page, `class="chart"`); n != openCurves+foldedCurves {
		t.Errorf("the page has %d drawings", n)
	}
	for _, want := range []string{"24 more metrics</summary>", "26 metrics without a curve on this page", "judges the job"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	if strings.Contains(page, "<img") || len(page) > 200_000 {
		t.Errorf("a name is markup, or the page has %d bytes", len(page))
	}
}
