package pages

import (
	"html"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/money"
)

// Groups of jobs link to the filtered list, keep the filters of the page, and never show an unknown cost as zero.
func TestJobs_GroupsLinkToTheirJobs(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	f.answers["/v1/totals"] = client.JobTotals{By: "tag:model", More: 3, Lines: []client.JobTotal{
		{Name: "<b>&x", Currency: "USD", Jobs: 4, States: map[string]int{"running": 3, "queued": 1}, Spent: money.Picos(1_500_000_000_000),
			WillCost: &[2]float64{1, 3}, Foreseen: 3, Unknown: 1},
		{Name: "(none)", Currency: "USD", Jobs: 1, States: map[string]int{"queued": 1}, Unknown: 1},
		{Name: "old", Currency: "USD", Jobs: 1, States: map[string]int{"failed": 1}}},
		Total: []client.JobTotal{{Currency: "USD", Jobs: 9, States: map[string]int{"running": 3, "queued": 2, "failed": 4}}}}
	page := asks(s, "GET", "/jobs?by=tag&tag=model&team=vision", "").Body.String()
	parse(t, page)
	page = html.UnescapeString(page)
	for _, want := range []string{`href="/jobs?tag=model%3D%3Cb%3E%26x&team=vision"`, `href="/jobs?state=queued&tag=model%3D%28none%29&team=vision"`,
		`href="/jobs?state=failed&team=vision">4 failed`, "$1.00 to $3.00", "and 1 job unknown", `class="unknown">unknown</span>`, "3 more groups",
		"scrimp jobs --by tag:model --team vision", "/data/totals?by=tag%3Amodel&team=vision", "Tag model"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	if asked := strings.Join(f.asked, "\n"); !strings.Contains(asked, "/v1/totals?by=tag%3Amodel&team=vision") || strings.Contains(asked, "/v1/jobs?") {
		t.Errorf("it asks\n%s", asked)
	}
	if rec := asks(s, "GET", "/jobs?by=tag", ""); rec.Code != 400 || !strings.Contains(rec.Body.String(), "write its KEY under Tag") {
		t.Errorf("by tag without a key: %d", rec.Code)
	}
}

// A group of one tag among the jobs with another links to the jobs, and to their postings, that have both.
func TestJobs_GroupsOfATagKeepTheOtherTags(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	f.answers["/v1/totals"] = client.JobTotals{By: "tag:model", Lines: []client.JobTotal{{Name: "lm", Currency: "USD", Jobs: 1,
		States: map[string]int{"failed": 1}, Spent: money.Picos(5)}}}
	page := html.UnescapeString(asks(s, "GET", "/jobs?by=tag:model&tag=run%3D7&tag=set", "").Body.String())
	for _, want := range []string{`href="/jobs?tag=run%3D7&tag=set&tag=model%3Dlm"`, "--tag 'run=7' --tag set", `name="tag" value="set"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	page = html.UnescapeString(asks(s, "GET", "/jobs?by=tag:model&tag=run%3D7", "").Body.String())
	if want := "tag=run%3D7&tag=model%3Dlm"; !strings.Contains(page, "/data/export/costs?") || strings.Count(page, want) < 2 {
		t.Errorf("the page does not have the postings of %s", want)
	}
	f.answers["/v1/jobs"] = many(2)
	asks(s, "GET", "/jobs?tag=&tag=run%3D7&tag=set", "")
	if last := f.asked[len(f.asked)-1]; !strings.Contains(last, "tag=run%3D7&tag=set") {
		t.Errorf("it asks %s", last)
	}
}

// The foot of the page names the command that lists the same jobs.
func TestJobs_NameTheCommandOfTheirFilter(t *testing.T) {
	t.Parallel()
	_, s := newFake(t)
	for query, want := range map[string]string{"": "scrimp jobs", "state=failed&sort=spent": "scrimp jobs --status failed --sort cost",
		"attention=1&team=vision": "scrimp jobs --attention --team vision", "live=1&name=lm": "scrimp queue --name '*lm*'",
		"by=team&attention=1": "scrimp jobs --attention --by team", "sort=rate": "scrimp jobs"} {
		page := html.UnescapeString(asks(s, "GET", "/jobs?"+query, "").Body.String())
		if !strings.Contains(page, "in a terminal: <code>"+want+"</code>") {
			t.Errorf("%q does not name %s", query, want)
		}
	}
}

// A job that is over says whether it met its deadline and by how much, and counts down no more.
func TestJob_SaysWhetherItMetItsDeadline(t *testing.T) {
	t.Parallel()
	at := now.Add(97 * time.Minute)
	for _, c := range []struct {
		state    string
		finished *time.Time
		want     string
	}{{"running", nil, "in 1h 37m"}, {"succeeded", new(now.Add(-3 * time.Minute)), "met 1h 40m early"}, {"succeeded", &at, ">met<"},
		{"failed", new(now.Add(-3 * time.Minute)), "failed 1h 40m before it"}, {"cancelled", new(at.Add(time.Hour)), "missed by 1h 00m"}} {
		f, s := newFake(t)
		j := client.Job{ID: "a", State: c.state, Currency: "USD", Submitted: now.Add(-time.Hour), Deadline: &at, Finished: c.finished}
		f.answers["/v1/jobs/a"], f.answers["/v1/jobs/a/explain"], f.answers["/v1/jobs"] = j, []client.Decision{}, []client.Job{j}
		for _, path := range []string{"/jobs/a", "/jobs"} {
			page := asks(s, "GET", path, "").Body.String()
			if !strings.Contains(page, c.want) || c.finished != nil && strings.Contains(page, "in 1h 37m") {
				t.Errorf("%s of a job that is %s does not say %q", path, c.state, c.want)
			}
			if c.finished != nil && path == "/jobs/a" && !strings.Contains(page, "it was <time") {
				t.Errorf("%s does not say when the deadline was", path)
			}
		}
	}
}
