package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// reader is a browser that reads the dashboard.
type reader struct {
	w      *world
	cookie string
}

// ask sends a request as a browser does: with its cookie, and a form with its origin.
func (b *reader) ask(method, path string, form url.Values) *httptest.ResponseRecorder {
	b.w.t.Helper()
	r := httptest.NewRequestWithContext(b.w.t.Context(), method, "http://dash.example"+path, strings.NewReader(form.Encode()))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://dash.example")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	if b.cookie != "" {
		r.Header.Set("Cookie", b.cookie)
	}
	rec := httptest.NewRecorder()
	b.w.h.ServeHTTP(rec, r)
	for _, c := range rec.Result().Cookies() {
		b.cookie = c.Name + "=" + c.Value
	}
	return rec
}

// shows fails unless the page has the status and contains each text.
func (b *reader) shows(path string, status int, texts ...string) string {
	b.w.t.Helper()
	rec := b.ask("GET", path, nil)
	if rec.Code != status {
		b.w.t.Fatalf("%s: %d, want %d: %s", path, rec.Code, status, rec.Body)
	}
	for _, text := range texts {
		if !strings.Contains(rec.Body.String(), text) {
			b.w.t.Errorf("%s does not have %q", path, text)
		}
	}
	return rec.Body.String()
}

// signedIn returns a reader with a session of the token.
func (w *world) signedIn(token string) *reader {
	w.t.Helper()
	b := &reader{w: w}
	if rec := b.ask("POST", "/sign-in", url.Values{"token": {token}}); rec.Code != http.StatusSeeOther {
		w.t.Fatalf("sign in: %d %s", rec.Code, rec.Body)
	}
	return b
}

// A signed-in user sees and does what their token allows, and nothing of other teams; the session is a token that is
// listed and can be revoked.
func TestDashboard_ShowsAndDoesWhatItsReaderMay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Rate = 1e6 })
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	w.must("PUT", "/v1/teams/text", api.SetTeam{}, nil)
	tokens := map[string]string{}
	for name, g := range map[string]identity.Grant{"ann": {Team: "vision", Role: identity.Submitter},
		"vic": {Team: "vision", Role: identity.Viewer}, "tom": {Team: "text", Role: identity.Admin}} {
		tokens[name] = w.user(name, g)
	}
	if rec, p := w.ask("POST", "/v1/jobs", tokens["ann"], aJob("secret-plan", "vision")); rec.Code >= 300 {
		t.Fatalf("%+v", p)
	}
	ann, vic, tom := w.signedIn(tokens["ann"]), w.signedIn(tokens["vic"]), w.signedIn(tokens["tom"])
	for _, b := range []*reader{ann, vic} {
		b.shows("/jobs", 200, "secret-plan")
		b.shows("/jobs/secret-plan", 200, "secret-plan")
		b.shows("/data/jobs/secret-plan", 200, `"id":"secret-plan"`)
	}
	for _, path := range []string{"/", "/jobs", "/jobs?name=secret"} {
		if text := tom.shows(path, 200); strings.Contains(text, "secret-plan") {
			t.Errorf("%s shows a job of another team", path)
		}
	}
	tom.shows("/jobs/secret-plan", 404, "is not known")
	tom.shows("/data/jobs/secret-plan", 404)
	stop := url.Values{"act": {"cancel"}, "job": {"secret-plan"}, "back": {"/jobs"}}
	if rec := vic.ask("POST", "/do", stop); rec.Code != 403 || !strings.Contains(rec.Body.String(), "this needs the role") {
		t.Errorf("a viewer cancels: %d %s", rec.Code, rec.Body)
	}
	if rec := tom.ask("POST", "/do", stop); rec.Code != 404 {
		t.Errorf("another team cancels: %d", rec.Code)
	}
	if rec := ann.ask("POST", "/do", stop); rec.Code != http.StatusSeeOther {
		t.Errorf("its submitter cancels: %d %s", rec.Code, rec.Body)
	}
	var j api.Job
	if w.must("GET", "/v1/jobs/secret-plan", nil, &j); j.State != "cancelled" {
		t.Errorf("the job is %s", j.State)
	}
	again := url.Values{"act": {"rerun"}, "job": {"secret-plan", "nosuch"}, "back": {"/jobs"}}
	if rec := vic.ask("POST", "/do", again); strings.Contains(rec.Body.String(), "Done for") {
		t.Errorf("a viewer runs a job again: %d %s", rec.Code, rec.Body)
	}
	if rec := ann.ask("POST", "/do", again); rec.Code != 200 || !strings.Contains(rec.Body.String(), "Done for") || !strings.Contains(rec.Body.String(), "nosuch") {
		t.Errorf("of two jobs, one is to run again: %d %s", rec.Code, rec.Body)
	}
	if w.must("GET", "/v1/jobs/secret-plan-2", nil, &j); j.State != "queued" || j.User != "ann" {
		t.Errorf("the job that runs again is %s, of %s", j.State, j.User)
	}
	all := url.Values{"act": {"cancel"}, "all": {"?name=secret-%2A"}, "back": {"/jobs"}}
	if rec := ann.ask("POST", "/do", all); rec.Code != 200 || !strings.Contains(rec.Body.String(), "Cancel 1 job?") ||
		!strings.Contains(rec.Body.String(), "secret-plan-2") {
		t.Errorf("all of ann's that match: %d %s", rec.Code, rec.Body)
	}
	for _, b := range []*reader{vic, tom} {
		if rec := b.ask("POST", "/do", all); rec.Code != 422 || !strings.Contains(rec.Body.String(), "no job that matches") {
			t.Errorf("all that match, for others: %d %s", rec.Code, rec.Body)
		}
	}
	var list []client.Token
	w.must("GET", "/v1/tokens", nil, &list)
	for _, one := range list {
		if one.User == "ann" && one.Note == "dashboard" {
			if one.Expires.Sub(one.Made) > 12*time.Hour {
				t.Errorf("a session lasts %v", one.Expires.Sub(one.Made))
			}
			w.must("DELETE", "/v1/tokens/"+one.ID, nil, nil)
		}
	}
	if rec := ann.ask("GET", "/jobs", nil); rec.Code != http.StatusSeeOther {
		t.Errorf("a session that was revoked: %d", rec.Code)
	}
	was := vic.cookie
	if vic.ask("POST", "/sign-out", nil); (&reader{w, was}).ask("GET", "/", nil).Code != http.StatusSeeOther {
		t.Error("who signed out is signed in")
	}
	for _, r := range []*http.Request{httptest.NewRequest("GET", "/v1/jobs", nil), httptest.NewRequest("POST", "/v1/server/stop", nil)} {
		r.Header.Set("Cookie", tom.cookie)
		rec := httptest.NewRecorder()
		if w.h.ServeHTTP(rec, r); rec.Code != http.StatusUnauthorized {
			t.Errorf("the API takes the cookie for %s: %d", r.URL, rec.Code)
		}
	}
}

func TestDashboard_PagesTenThousandJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Rate = 1e6 })
	const all = 10_000
	for from := 0; from < all; from += 1000 {
		var batch []string
		for i := range 1000 {
			batch = append(batch, strings.Replace(aJob(fmt.Sprintf("job-%05d", from+i), ""), "{", fmt.Sprintf(`{"key":"k%d",`, from+i), 1))
		}
		w.must("POST", "/v1/jobs/batch", "["+strings.Join(batch, ",")+"]", nil)
	}
	w.must("PUT", "/v1/users/ann", api.SetUser{Grants: []client.Grant{{Team: "*", Role: client.Admin}}}, nil)
	b := w.signedIn(w.user("ann", identity.Grant{Team: "*", Role: identity.Admin}))
	text := b.shows("/jobs", 200, "job-09999", "job-09950", `rel="next"`)
	if n := strings.Count(text, `<tr id="job-`); n != 50 || len(text) > 200<<10 {
		t.Errorf("a page has %d jobs and %d bytes", n, len(text))
	}
	b.shows("/jobs?before=job-09950", 200, "job-09949", "job-09900", "Newest")
	b.shows("/jobs?name=0777", 200, "job-07770", "job-00777")
	b.shows("/jobs?sort=name", 200, "job-00000", "job-00049", "Next jobs", "after=job-00049")
	b.shows("/jobs?sort=name&after=job-00049", 200, "job-00050", "job-00099", "First page")
	b.shows("/", 200, "All 10000 that wait or run")
}

// A single-user server serves its pages, and nothing else, on a loopback port, with a link that works once.
func TestDashboard_OfOneUserOpensWithALink(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Idle = time.Hour })
	w.must("POST", "/v1/jobs", aJob("mine", ""), nil)
	ctx, cancel := context.WithCancel(t.Context())
	var runs sync.WaitGroup
	runs.Go(func() { w.runDashboard(ctx) })
	defer runs.Wait()
	defer cancel()
	for _, path := range []string{"/", "/jobs", "/sign-in", "/open"} { // not on the socket
		if rec, _ := w.ask("GET", path, "owner", nil); rec.Code != 404 {
			t.Errorf("%s on the socket: %d", path, rec.Code)
		}
	}
	var at, again api.Dashboard
	w.must("POST", "/v1/dashboard", nil, &at)
	w.must("POST", "/v1/dashboard", nil, &again)
	if at.Address != again.Address || at.Key == again.Key || !strings.HasPrefix(at.Address, "http://127.0.0.1:") {
		t.Fatalf("%+v %+v", at, again)
	}
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ask := func(method, path, host, cookie string) (*http.Response, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, at.Address+path, nil)
		must.Do(t, err)
		if r.Host = strings.TrimPrefix(at.Address, "http://"); host != "" {
			r.Host = host
		}
		if cookie != "" {
			r.Header.Set("Cookie", cookie)
		}
		res, err := browser.Do(r)
		must.Do(t, err)
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		return res, string(text)
	}
	if res, _ := ask("GET", "/jobs", "", ""); res.StatusCode != http.StatusSeeOther {
		t.Errorf("without a session: %d", res.StatusCode)
	}
	if res, _ := ask("GET", "/open?key="+at.Key, "evil.example", ""); res.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("by another name: %d", res.StatusCode)
	}
	res, _ := ask("GET", "/open?key="+at.Key, "", "")
	cookies := res.Cookies()
	if res.StatusCode != 200 || len(cookies) != 1 {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	cookie := cookies[0].Name + "=" + cookies[0].Value
	if res, text := ask("GET", "/jobs", "", cookie); res.StatusCode != 200 || !strings.Contains(text, "mine") {
		t.Errorf("with the session: %d", res.StatusCode)
	}
	for _, path := range []string{"/v1/jobs", "/v1/agent/pull", "/metrics", "/v1/backup"} {
		if res, _ := ask("GET", path, "", cookie); res.StatusCode != 404 {
			t.Errorf("%s is served there: %d", path, res.StatusCode)
		}
	}
	if res, _ := ask("POST", "/do", "", cookie); res.StatusCode != http.StatusForbidden {
		t.Errorf("a form without an origin: %d", res.StatusCode)
	}
}

// The total on the page of costs equals the ledger's exactly.
func TestDashboard_TotalEqualsTheLedger(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	for i := range 3 {
		w.must("POST", "/v1/jobs", aJob(fmt.Sprint("j", i), ""), nil)
	}
	b := w.signedIn(w.user("adm", identity.Grant{Team: "*", Role: identity.Admin}))
	for _, id := range w.booting(3) {
		w.event(core.AttemptStarted{Attempt: id, Message: 1}, time.Hour)
		w.event(core.AttemptEnded{Attempt: id, Message: 2, Reason: "completed"}, time.Hour+time.Minute)
		w.event(core.InstanceEnded{Instance: w.instance(id), Until: w.control.Now().Add(time.Hour + 2*time.Minute),
			Cause: "terminated"}, time.Hour+3*time.Minute)
	}
	var v api.Verified
	w.must("GET", "/v1/ledger/verify", nil, &v)
	if !v.OK || v.Cost.Sign() <= 0 {
		t.Fatalf("%+v", v)
	}
	for _, path := range []string{"/costs", "/costs?by=job", "/costs?by=user&since=30d"} {
		text := b.shows(path, 200)
		_, foot, _ := strings.Cut(text, "<tfoot>")
		_, spent, _ := strings.Cut(foot, `data-l="spent"`)
		spent, _, _ = strings.Cut(spent, "</td>")
		if want := `value="` + v.Cost.String() + `"`; !strings.Contains(spent, want) {
			t.Errorf("%s: the total is %s, the ledger has %s", path, spent, v.Cost)
		}
	}
}
