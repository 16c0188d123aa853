package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/control/replay"
	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/must"
	"scrimp/internal/view/convert"
	"scrimp/internal/wire/api"
)

func (w *world) limit(l budget.Limit) {
	w.t.Helper()
	w.must("PUT", "/v1/budgets", api.SetBudget{Limit: convert.To[*client.Limit](&l)}, nil)
}

func costing(name, team, rest string) string {
	if team != "" {
		team = fmt.Sprintf(`,"team":%q`, team)
	}
	return fmt.Sprintf(`{"spec":{"name":%q,"command":"true"%s%s}}`, name, team, rest)
}

func dollars(n int64) *money.Amount { return new(money.Picos(n * 1e12)) }

// Concurrent submissions never exceed a limit, and finished jobs free their share.
func TestSubmissions_AtOnceNeverExceedALimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Rate = 1e6 })
	w.limit(budget.Limit{Scope: "team:a", Window: budget.Month, Dollars: dollars(50)})
	var all sync.WaitGroup
	codes := make(chan int, 20)
	for i := range 20 {
		all.Go(func() {
			rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName, costing(fmt.Sprintf("j%d", i), "a", `,"budget":{"dollars":"12"}`))
			if codes <- rec.Code; rec.Code != 200 && (rec.Code != http.StatusPaymentRequired || p.Limit == nil || p.Use == nil ||
				p.Fix == "") {
				t.Errorf("%d %+v", rec.Code, p)
			}
		})
	}
	all.Wait()
	close(codes)
	let := 0
	for c := range codes {
		if c == 200 {
			let++
		}
	}
	if let != 4 {
		t.Errorf("%d jobs of $12 are let in under $50, want 4", let)
	}
	if rec, _ := w.ask("POST", "/v1/jobs", auth.OwnerName, costing("other", "b", "")); rec.Code != 200 {
		t.Errorf("another team's job: %d", rec.Code)
	}
	rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName, costing("open", "a", ""))
	if rec.Code != http.StatusPaymentRequired || !strings.Contains(p.Fix, "give the job a budget") {
		t.Errorf("a job without a budget: %d %+v", rec.Code, p)
	}
	var jobs []api.Job
	w.must("GET", "/v1/jobs", nil, &jobs)
	w.must("POST", "/v1/jobs/"+jobs[0].ID+"/end", api.End{}, nil)
	if rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName,
		costing("next", "a", `,"budget":{"dollars":"12"}`)); rec.Code != 200 {
		t.Errorf("after one is over: %d %+v", rec.Code, p)
	}
}

// Concurrent submissions of groups never exceed a limit: each that is let in holds its whole budget at once, however few
// members have begun.
func TestGroups_AtOnceNeverExceedALimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Rate = 1e6 })
	w.limit(budget.Limit{Scope: "team:a", Window: budget.Month, Dollars: dollars(100)})
	var all sync.WaitGroup
	var accepted atomic.Int32
	for i := range 64 {
		all.Go(func() {
			body := inArray(fmt.Sprintf("g%d", i), "a", "0-9%2", `,"budget":{"dollars":"7"}`)
			switch rec, p := w.ask("POST", "/v1/groups", auth.OwnerName, body); {
			case rec.Code == 200:
				accepted.Add(1)
			case rec.Code != http.StatusPaymentRequired || p.Limit == nil || p.Use == nil || p.Fix == "":
				t.Errorf("%d %+v", rec.Code, p)
			}
		})
	}
	all.Wait()
	if accepted.Load() != 14 {
		t.Errorf("%d groups of $7 are let in under $100, want 14", accepted.Load())
	}
	var v api.Budgets
	w.must("GET", "/v1/budgets", nil, &v)
	if len(v.Limits) != 1 || v.Limits[0].Use.Held.Add(v.Limits[0].Use.Spent) != *dollars(98) {
		t.Errorf("the limit shows %+v, want $98 held and spent", v.Limits)
	}
}

func TestSubmission_ChecksQuotasAndTags(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("PUT", "/v1/teams/a", api.SetTeam{}, nil)
	ann := w.user("ann", identity.Grant{Team: "a", Role: identity.Submitter})
	boss := w.user("boss", identity.Grant{Team: "a", Role: identity.Admin})
	w.must("PUT", "/v1/budgets", api.SetBudget{Tag: "env", Values: []string{"dev"}}, nil)
	if rec, p := w.ask("POST", "/v1/jobs", ann, costing("x", "a", "")); rec.Code != 422 || p.Field != "tags" ||
		!strings.Contains(p.Detail, "write dev") {
		t.Errorf("without its tag: %d %+v", rec.Code, p)
	}
	w.limit(budget.Limit{Scope: "user:ann", Window: budget.Day, Jobs: new(1)})
	w.limit(budget.Limit{Scope: "all", Window: budget.Total, GPUs: new(4)})
	tagged := `,"tags":{"env":"dev"},"budget":{"dollars":"%d"}`
	for _, c := range []struct {
		who  string
		usd  int
		want int
	}{{ann, 10, 200}, {ann, 1, 403}, {boss, 11, 200}} {
		if rec, p := w.ask("POST", "/v1/jobs", c.who, costing("x", "a", fmt.Sprintf(tagged, c.usd))); rec.Code != c.want ||
			c.want != 200 && p.Fix == "" {
			t.Errorf("$%d: %d %+v, want %d", c.usd, rec.Code, p, c.want)
		}
	}
	var v api.Budgets
	w.must("GET", "/v1/budgets", nil, &v)
	if len(v.Limits) != 2 || v.Limits[1].Use.Jobs != 1 || v.Limits[0].Use.Held != *dollars(21) {
		t.Errorf("%+v", v)
	}
	rec, _ := w.ask("GET", "/v1/budgets", ann, nil)
	if strings.Contains(rec.Body.String(), `"all"`) || !strings.Contains(rec.Body.String(), "user:ann") {
		t.Errorf("ann sees %s", rec.Body)
	}
	if rec, p := w.ask("POST", "/v1/jobs", boss,
		costing("x", "a", `,"tags":{"env":"dev"},"resources":{"accelerator":"H100:8"}`)); rec.Code != http.StatusForbidden ||
		!strings.Contains(p.Detail, "needs 8") {
		t.Errorf("a job that can never have so many GPUs: %d %+v", rec.Code, p)
	}
	w.must("PUT", "/v1/budgets", api.SetBudget{Remove: "user:ann/day"}, nil)
	w.must("PUT", "/v1/budgets", api.SetBudget{Tag: "env", Free: true}, nil)
	if rec, p := w.ask("POST", "/v1/jobs", ann, costing("x", "a", `,"budget":{"dollars":"1"}`)); rec.Code != 200 {
		t.Errorf("when the quota and the tag are gone: %d %+v", rec.Code, p)
	}
	for _, bad := range []api.SetBudget{{}, {Remove: "x"}, {Limit: &client.Limit{Scope: "all", Window: "year"}}} {
		if rec, p := w.ask("PUT", "/v1/budgets", auth.OwnerName, bad); rec.Code < 400 || p.Fix == "" {
			t.Errorf("%+v: %d %+v", bad, rec.Code, p)
		}
	}
}

// A new limit counts jobs that already ran, warns once, and stops them.
func TestBudget_WarnsOnceAndStopsJobsWhenSpent(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, hooked)
	said := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		// Changes of limits must not wait for the webhook.
		rec, _ := w.ask("PUT", "/v1/budgets", auth.OwnerName, api.SetBudget{Remove: "none"})
		if rec.Code != http.StatusNotFound || r.Context().Err() != nil {
			t.Errorf("changes of limits wait for the webhook: %d, %v", rec.Code, r.Context().Err())
		}
		said <- string(b)
	}))
	defer hook.Close()
	w.must("POST", "/v1/jobs", aJob("old", "a"), nil)
	id := w.booting(1)[0]
	w.event(core.AttemptStarted{Attempt: id, Message: 1}, time.Hour)
	w.limit(budget.Limit{Scope: "team:a", Window: budget.Total, Dollars: new(money.Picos(5e11)), Warn: []float64{0.5},
		Notify: hook.URL + "/secret"})
	for range 3 {
		must.Do(t, w.budgets.Poll(t.Context()))
	}
	if len(said) != 2 {
		t.Fatalf("%d warnings, want one at half and one at the limit", len(said))
	}
	if a, b := <-said, <-said; !strings.Contains(a, `"share":0.5`) || !strings.Contains(b, `"share":1`) ||
		!strings.Contains(b, `"dollars":"0.5`) {
		t.Errorf("%s\n%s", a, b)
	}
	w.control.Read(func(m *core.Machine) {
		if j, _ := m.Job("old"); j.Ending() != core.Stopped && j.State() != core.Stopped {
			t.Errorf("the job is %s, ending %q", j.State(), j.Ending())
		} else if why := cmp.Or(j.EndingWhy(), j.Why()); why != core.LimitSpent ||
			!strings.Contains(j.Detail(), "team:a/total") {
			t.Errorf("the job is stopped for %q, %q; nobody stopped it but its limit", why, j.Detail())
		}
	})
	var v api.Budgets
	w.must("GET", "/v1/budgets", nil, &v)
	if l := v.Limits[0]; l.Use.Spent.Cmp(money.Picos(1e12)) < 0 || l.Breach == nil || l.Use.Unbounded != "old" {
		t.Errorf("%+v", l)
	}
	if strings.Contains(w.log.String(), "secret") {
		t.Error("the log has the webhook's address")
	}
}

// Limits and tags are in the log, so a replay knows them; the server imports those of an old release, which are
// beside the log, once.
func TestLimits_OfOldReleasesAreImportedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	old := budget.Rules{Limits: []budget.Limit{{Scope: "team:a", Window: budget.Month, Dollars: dollars(50)}},
		Tags: budget.Tags{"env": {"dev"}}}
	text, err := json.Marshal(old)
	must.Do(t, err)
	must.Do(t, w.store.PutMeta(t.Context(), "budgets", string(text)))
	if rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName, costing("x", "a", "")); rec.Code != 422 || p.Field != "tags" {
		t.Errorf("before anybody looked at the budgets: %d %+v", rec.Code, p)
	}
	var v api.Budgets
	w.must("GET", "/v1/budgets", nil, &v)
	if len(v.Limits) != 1 || *v.Limits[0].Limit.Dollars != *dollars(50) || len(v.Tags) != 1 {
		t.Errorf("%+v", v)
	}
	w.must("PUT", "/v1/budgets", api.SetBudget{Remove: "team:a/month"}, nil)
	w.must("PUT", "/v1/budgets", api.SetBudget{Tag: "env", Free: true}, nil)
	w.limit(budget.Limit{Scope: "all", Window: budget.Day, Jobs: new(3)})
	replayed, sets := state.New(), 0
	for r := range w.eachRecord(t) {
		e, facts, err := replay.Decode(r)
		must.Do(t, err)
		if replayed.Replay(r.Seq, e, facts, r.Postings); e.Body.Kind() == "budgets_set" {
			sets++
		}
	}
	if rules := replayed.Rules(); rules == nil || len(rules.Limits) != 1 || rules.Limits[0].Name() != "all/day" ||
		len(rules.Tags) != 0 {
		t.Errorf("the log says %+v", rules)
	}
	if sets != 4 {
		t.Errorf("%d events set the budgets, want the old ones once and three changes", sets)
	}
	b, err := replayed.Snapshot()
	must.Do(t, err)
	restored, err := core.Restore(b)
	must.Do(t, err)
	if rules, ok := restored.Rules(); !ok || len(rules.Limits) != 1 {
		t.Errorf("the snapshot says %+v", rules)
	}
}

// If present jobs will exceed a limit, the server says when and which ones; for jobs of unknown duration it says
// that. Jobs of another team do not count.
func TestLimit_ForecastsWhenItIsReachedAndByWhichJobs(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, hooked)
	said := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b := make([]byte, 1000)
		n, _ := r.Body.Read(b)
		said <- string(b[:n])
	}))
	defer hook.Close()
	w.must("POST", "/v1/jobs", costing("ten", "a", `,"work":{"time":"10h"},"resources":{"capacity":["on-demand"]}`), nil)
	w.must("POST", "/v1/jobs", costing("other", "b", ""), nil)
	w.booting(2)
	w.limit(budget.Limit{Scope: "team:a", Window: budget.Total, Dollars: new(money.Picos(4e12)), Notify: hook.URL})
	w.limit(budget.Limit{Scope: "team:b", Window: budget.Total, Dollars: new(money.Picos(4e12)), Notify: hook.URL})
	w.limit(budget.Limit{Scope: "user:owner", Window: budget.Total, Dollars: new(money.Picos(1e15))})
	var v api.Budgets
	w.must("GET", "/v1/budgets", nil, &v)
	now := w.control.Now()
	near := func(at *time.Time, hours float64) bool {
		return at != nil && at.Sub(now).Hours() > hours-0.2 && at.Sub(now).Hours() < hours+0.2
	}
	for _, l := range v.Limits {
		o := l.Outlook
		switch l.Limit.Scope {
		case "team:a": // at a dollar per hour
			if !near(l.Breach, 4) || !near(o.Earliest, 4) || o.Chance < 0.9 || len(o.Jobs) != 1 || o.Jobs[0].Job != "ten" ||
				o.UnknownJobs != 0 || o.Spent.Cmp(money.Picos(9e12)) < 0 || o.Spent.Cmp(money.Picos(11e12)) > 0 {
				t.Errorf("%+v, breach %v", o, l.Breach)
			}
		case "team:b":
			if l.Breach != nil || !near(o.Open, 4) || !near(l.AtRate, 4) || o.UnknownJobs != 1 || o.Unknown[0] != "other" ||
				o.Most != nil {
				t.Errorf("%+v", o)
			}
		default:
			if l.Breach != nil || o.Chance != 0 || o.UnknownJobs != 1 {
				t.Errorf("%+v", o)
			}
		}
	}
	for range 3 {
		must.Do(t, w.budgets.Poll(t.Context()))
	}
	if len(said) != 1 {
		t.Fatalf("%d warnings, want one: of the limit that is expected to be reached", len(said))
	}
	if text := <-said; !strings.Contains(text, `"budget":"team:a/total"`) || !strings.Contains(text, `"breach":"`) ||
		!strings.Contains(text, `"job":"ten"`) || strings.Contains(text, `"share":1,`) {
		t.Error(text)
	}
	if len(v.Limits) != 3 {
		t.Errorf("%d limits", len(v.Limits))
	}
}

// A number of machines may be a number or a range; anything else is refused.
func TestNodes_AcceptsANumberOrARange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("PUT", "/v1/teams/a", api.SetTeam{}, nil)
	ann := w.user("ann", identity.Grant{Team: "a", Role: identity.Submitter})
	for text, code := range map[string]int{`4`: 200, `"2..4"`: 200, `1`: 200, `"2+"`: 422, `"4..2"`: 422, `100000`: 422} {
		if rec, p := w.ask("POST", "/v1/jobs", ann, costing("x", "a", `,"nodes":`+text)); rec.Code != code || code != 200 && p.Fix == "" {
			t.Errorf("nodes: %s: %d %+v", text, rec.Code, p)
		}
	}
}
