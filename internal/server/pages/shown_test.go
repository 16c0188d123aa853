package pages

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/html"

	"scrimp/client"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

// everyState lists all states of jobs.
var everyState = []string{"held", "queued", "running", "paused", "succeeded", "failed", "stopped", "cancelled"}

// many returns n jobs, in every state.
func many(n int) []client.Job {
	list := make([]client.Job, n)
	for i := range list {
		j := client.Job{ID: fmt.Sprintf("job-%d", i), Name: "job", State: everyState[i%len(everyState)], Currency: "USD",
			Submitted: now.Add(-time.Hour), Spent: money.Picos(int64(i) * 1_234_567_890_123), Step: int64(i), User: "ann", Team: "vision"}
		if i%2 == 0 {
			j.Budget, j.Total, j.Deadline, j.Odds = new(money.Picos(5e12)), new(int64(100)), new(now.Add(time.Hour)), new(0.5)
		}
		if j.State == "running" {
			rate, err := money.ParseRate("1.25")
			if err != nil {
				panic(err)
			}
			j.Rate = &rate
		}
		list[i] = j
	}
	return list
}

// parse parses a page and fails on bad HTML: duplicate ids, inputs without a label, images without a name.
func parse(t testing.TB, text string) *html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(text))
	must.Do(t, err)
	ids, labels := map[string]bool{}, map[string]bool{}
	walk(root, func(n *html.Node) {
		if id := attr(n, "id"); id != "" {
			if ids[id] {
				t.Errorf("the id %q is there twice", id)
			}
			ids[id] = true
		}
		if n.Data == "label" {
			labels[attr(n, "for")] = true
		}
	})
	walk(root, func(n *html.Node) {
		switch n.Data {
		case "input", "select", "textarea":
			if attr(n, "type") != "hidden" && !labels[attr(n, "id")] && attr(n, "aria-label") == "" {
				t.Errorf("%s %q has no label", n.Data, attr(n, "name"))
			}
		case "svg":
			if attr(n, "aria-label") == "" {
				t.Error("a drawing has no name")
			}
		case "script", "style":
			if n.FirstChild != nil {
				t.Errorf("a %s stands in the page", n.Data)
			}
		}
		for _, a := range n.Attr {
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("<%s> has %s", n.Data, a.Key)
			}
			if (a.Key == "for" || a.Key == "aria-labelledby") && !ids[a.Val] {
				t.Errorf("<%s> names %q, and the page has no such id", n.Data, a.Val)
			}
		}
	})
	return root
}

func walk(n *html.Node, do func(*html.Node)) {
	if n.Type == html.ElementNode {
		do(n)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		walk(c, do)
	}
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// textOf returns all text below a node.
func textOf(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	var b strings.Builder
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		b.WriteString(textOf(c))
	}
	return b.String()
}

// pageOf requests a page and checks its HTML.
func pageOf(t testing.TB, s *Site, path string) *html.Node {
	t.Helper()
	rec := asks(s, "GET", path, "")
	if rec.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, rec.Code, rec.Body)
	}
	return parse(t, rec.Body.String())
}

// whole adds a job with everything that the API can return about one.
func whole(f *fake, j client.Job) {
	at := "/v1/jobs/" + j.ID
	f.answers[at] = j
	f.answers[at+"/receipt"] = client.Receipt{Job: j.ID, Currency: "USD", Cost: j.Spent, SubmittedMarket: now.Add(-time.Hour),
		DeadlineMarket: j.Deadline, Uses: map[client.Use]money.Amount{client.Useful: money.Picos(3e12), client.Lost: money.Picos(1e12)},
		Tries: []client.Try{{Attempt: j.ID + ".1", Instance: "i", Offer: j.Detail + "offer", Capacity: "spot", From: now.Add(-time.Hour),
			Begun: new(now.Add(-50 * time.Minute)), Until: now, End: "interrupted", Cost: money.Picos(4e12)}},
		Interruptions: []client.Interruption{{Instance: "i", MarketAt: now, Notice: 4}},
		Spend:         []client.Spent{{At: now.Add(-time.Hour)}, {At: now, Amount: money.Picos(4e12)}}, Budget: j.Budget,
		Tips: []client.Tip{{Text: j.Detail + "save more often"}},
		Data: &client.DataUse{Currency: "USD", Reads: []client.DataRead{{Name: "corpus", Instance: j.Detail + "i", Bytes: 5e9,
			Cost: new(money.Picos(1e12)), Saved: new(money.Amount)}, {Name: "words"}}}}
	loss := []client.CurvePoint{{MarketAt: now.Add(-time.Hour), Value: 2}, {MarketAt: now, Step: 5, Value: 1}}
	f.answers[at+"/curves"] = client.Curves{Curves: []client.Curve{{Metric: "loss", Judges: true, Points: loss},
		{Metric: j.Detail + "acc", Points: loss}}}
	f.answers[at+"/explain"] = []client.Decision{{MarketAt: now, Choice: client.Choice{Take: "a/b", Why: "cheapest",
		Rejected: []client.Rejection{{Offer: "c/d", Why: "costs_more"}}}}}
	f.answers[at+"/telemetry"] = client.Telemetry{Nodes: []client.TelemetryNode{{Buckets: []client.TelemetryBucket{
		{At: now.Add(-2 * time.Minute), Mean: map[string][]*float64{"cpu_utilization_ratio": {nil, new(0.2)}}},
		{At: now.Add(-time.Minute), Mean: map[string][]*float64{"cpu_utilization_ratio": {new(0.5)}}},
		{At: now, Mean: map[string][]*float64{"cpu_utilization_ratio": {new(0.7)}}}}}},
		Figures: map[string]client.Figure{"cpu_utilization_ratio": {Average: 0.6, Peak: 0.7}}}
	f.answers[at+"/kept"] = []client.Outputs{{Kept: now, Files: 3, Bytes: 5}}
	f.answers[at+"/checkpoints"] = []client.Checkpoint{{Name: "0-1", Step: 5, Newest: true}, {Name: "0-0", Damaged: "cut"}}
	f.answers[at+"/log"] = "a line\n"
}

// The label of an attempt begins with its price, whole however long the offer's name is; a waiting job says why in words.
func TestJob_NamesPricesAndReasonsInFull(t *testing.T) {
	t.Parallel()
	rate, err := money.ParseRate("0.0303")
	must.Do(t, err)
	drawing := timeline(client.Receipt{Currency: "USD", Tries: []client.Try{{Attempt: "a.1", Rate: rate, From: now.Add(-time.Hour), Until: now,
		Offer: "cloud/us-east-1a/p5.48xlarge/spot"}}})
	if !strings.Contains(drawing, ">$0.0303/h cloud/") {
		t.Errorf("the price is not in front of the offer: %s", drawing)
	}
	if why := reasonOf(client.Job{State: "queued", Why: "no_offer"}); why != "no matching offers" {
		t.Errorf("it waits for %q", why)
	}
}

func TestPages_AreValidWithNoneOneAndManyJobs(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 8, 50, 1000} {
		f, s := newFake(t)
		list := many(n)
		f.answers["/v1/jobs"] = list
		f.answers["/v1/server"] = client.Server{Jobs: n, Live: n, Market: client.MarketClock{Name: "m", Speed: 1, Now: now}}
		f.answers["/v1/teams"] = []client.Team{{Name: "vision"}, {Name: "text"}}
		for _, path := range []string{"/", "/jobs", "/jobs?sort=spent", "/jobs?name=none&live=1&state=failed"} {
			pageOf(t, s, path)
		}
		for _, j := range list[:min(n, 8)] { // in each state
			whole(f, j)
			pageOf(t, s, "/jobs/"+j.ID)
		}
	}
}

// A page shows any text of other users as text.
func TestPages_HostileTextsAreText(t *testing.T) {
	t.Parallel()
	evil := `"><script>alert(1)</script><img src=x onerror=alert(1)>'` + "\x00\x1b[31m\u202etxt" + strings.Repeat("W", 200)
	f, s := newFake(t)
	j := many(1)[0]
	j.State, j.ID, j.Name, j.Detail, j.User, j.Team, j.Project = "running", "evil", evil, evil, evil, evil, evil
	j.Tags, j.Offer, j.Phase, j.Group = map[string]string{evil: evil}, evil, evil, evil
	j.Metrics = map[string]float64{evil: 1}
	whole(f, j)
	f.answers["/v1/jobs/evil/log"] = evil + "\n" + strings.Repeat("x", 1<<20) + "\n"
	f.answers["/v1/jobs"] = []client.Job{j}
	f.answers["/v1/teams"] = []client.Team{{Name: evil}}
	f.answers["/v1/budgets"] = client.Budgets{Currency: "USD", Limits: []client.BudgetLine{{Limit: client.Limit{Scope: evil}}}}
	for _, path := range []string{"/", "/jobs", "/jobs/evil", "/jobs?name=" + strings.Repeat("%22%3E%3Cscript%3E", 9)} {
		rec := asks(s, "GET", path, "")
		text := rec.Body.String()
		root := parse(t, text)
		walk(root, func(n *html.Node) {
			if n.Data == "img" || n.Data == "script" && attr(n, "src") == "" {
				t.Errorf("%s: <%s> is there", path, n.Data)
			}
		})
		if strings.ContainsAny(text, "\x00\x1b\u202e") {
			t.Errorf("%s: what steers a terminal or turns text around is there", path)
		}
		if len(text) > 400<<10 {
			t.Errorf("%s has %d bytes", path, len(text))
		}
	}
}

// amounts returns the exact amounts in the data elements below a node.
func amounts(n *html.Node) (list []money.Amount) {
	walk(n, func(n *html.Node) {
		if n.Data == "data" {
			if a, err := money.Parse(attr(n, "value")); err == nil {
				list = append(list, a)
			}
		}
	})
	return list
}

func TestOverview_ShowsUnknownValuesAsUnknown(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	f.answers["/v1/jobs"] = []client.Job{{ID: "a", State: "running", Currency: "USD"}}
	text := textOf(pageOf(t, s, "/"))
	for _, want := range []string{"Will costunknown", "1 job without an estimate or a budget: unknown", "Saved this monthunknown"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
}

// The stream sends a page once per change, and "gone" once its reader is signed out.
func TestLive_SendsAPageWhenItChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake(t)
		s.Now = func() time.Time { return now }
		f.answers["/v1/jobs"] = many(1)
		begun := time.Now()
		s.Changed = func() <-chan struct{} {
			switch d := time.Since(begun); {
			case d > 20*time.Second:
				f.answers["/v1/me"] = &client.Problem{Status: 401}
			case d > 10*time.Second:
				f.answers["/v1/jobs"] = many(2)
			}
			return nil
		}
		rec := asks(s, "GET", "/live?at=/jobs", "")
		text := rec.Body.String()
		if n := strings.Count(text, "event: main\n"); n != 2 || !strings.HasSuffix(text, "event: gone\ndata: {}\n\n") {
			t.Errorf("%d updates: %.300s", n, text)
		}
		if rec.Header().Get("Content-Type") != "text/event-stream" || strings.Contains(text, "<header") {
			t.Errorf("%v", rec.Header())
		}
	})
}

// Fifty pages that are open at one address are rendered once per look, and each gets every change: those of one user,
// and those of users who may only look, with the same rights. The pages of users who may act on their own jobs, and the
// page of a user's own sessions, are rendered for themselves.
func TestLive_RendersOncePerLookForAllWhoSeeTheSame(t *testing.T) {
	t.Parallel()
	const looks, readers = 10, 50
	for _, c := range []struct {
		at   string
		role client.Role
		one  bool // all readers are one user
		want int
	}{
		{"/jobs", client.Admin, true, looks + 1}, {"/jobs", client.Viewer, false, looks + 1},
		{"/jobs", client.Submitter, false, readers * looks}, {"/access", client.Admin, true, readers * looks},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, s := full(t, "sweep")
			s.Now = func() time.Time { return now }
			f.answers["/v1/jobs"] = many(1)
			f.answers["/v1/me"] = func(r *http.Request) any {
				user := "ann"
				if !c.one {
					user = r.Header.Get("Authorization")
				}
				return client.Me{User: user, Best: c.role, Grants: []client.Grant{{Team: "vision", Role: c.role}}}
			}
			begun := time.Now()
			s.Changed = func() <-chan struct{} {
				f.mu.Lock()
				defer f.mu.Unlock()
				switch d := time.Since(begun); {
				case d >= looks*liveBeat:
					f.answers["/v1/me"] = &client.Problem{Status: 401}
				case d > looks*liveBeat/2:
					f.answers["/v1/jobs"] = many(2)
				}
				return nil
			}
			var all sync.WaitGroup
			for i := range readers {
				cookie := fmt.Sprint("scrimp-7077=good", i)
				all.Go(func() {
					text := asks(s, "GET", "/live?at="+c.at, "", header("Cookie", cookie)).Body.String()
					if n := strings.Count(text, "event: main\n"); c.at == "/jobs" && n != 2 || n == 0 {
						t.Errorf("%s: %d updates: %.300s", c.at, n, text)
					}
				})
			}
			all.Wait()
			n := 0
			for _, asked := range f.asked {
				if strings.HasPrefix(asked, map[string]string{"/jobs": "GET /v1/jobs?", "/access": "GET /v1/tokens "}[c.at]) {
					n++
				}
			}
			if n > c.want || n < looks || c.want > looks+1 && n < c.want/2 {
				t.Errorf("%s was rendered %d times for %d readers (%s) in %d looks", c.at, n, readers, c.role, looks)
			}
		})
	}
}

func TestJobs_FiltersAndPagesAreInTheAddress(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	f.answers["/v1/jobs"] = many(3)
	pageOf(t, s, "/jobs?name=lm&state=failed&team=vision&tag=a%3Db&user=ann&before=job-9")
	want := "GET /v1/jobs?before=job-9&limit=50&name=%2Alm%2A&state=failed&tag=a%3Db&team=vision&user=ann Bearer good"
	found := false
	for _, asked := range f.asked {
		found = found || asked == want
	}
	if !found {
		t.Errorf("the API was asked %q, not %s", f.asked, want)
	}
}

// The page shows the buttons that the reader's role allows.
func TestJob_ShowsTheActionsOfTheRole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		role        client.Role
		user, state string
		want        string
	}{
		{client.Viewer, "ann", "running", ""}, {client.Submitter, "bob", "running", ""},
		{client.Submitter, "ann", "running", "stop cancel pause change"}, {client.Operator, "bob", "held", "stop cancel change approve reject"},
		{client.Submitter, "ann", "failed", "resume"}, {client.Admin, "bob", "succeeded", ""},
	} {
		f, s := newFake(t)
		f.answers["/v1/me"] = client.Me{User: "ann", Best: c.role, Grants: []client.Grant{{Team: "vision", Role: c.role}}}
		j := many(1)[0]
		j.User, j.State = c.user, c.state
		whole(f, j)
		got := map[string]bool{}
		walk(pageOf(t, s, "/jobs/"+j.ID), func(n *html.Node) {
			if attr(n, "name") == "act" {
				got[attr(n, "value")] = true
			}
		})
		want := map[string]bool{}
		for _, a := range strings.Fields(c.want) {
			want[a] = true
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s of a job of %s that is %s: %v, want %v", c.role, c.user, c.state, got, want)
		}
	}
}
