package pages

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/client"
)

// now is the present time in all tests.
var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// fake is an API with responses from the test.
type fake struct {
	t       testing.TB
	mu      sync.Mutex
	answers map[string]any // by path, with or without the query
	asked   []string
	body    string // of the last request
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Authorization"))
	body, _ := io.ReadAll(r.Body)
	f.body = string(body)
	if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer good") {
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(client.Problem{Status: 401, Title: "no valid token"})
		return
	}
	v, ok := f.answers[r.Method+" "+r.URL.Path]
	if !ok {
		v, ok = f.answers[r.URL.Path]
	}
	if of, is := v.(func(*http.Request) any); is {
		v = of(r)
	}
	switch v := v.(type) {
	case string:
		_, _ = w.Write([]byte(v))
	case *client.Problem:
		w.WriteHeader(v.Status)
		_ = json.NewEncoder(w).Encode(v)
	default:
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			v = client.Problem{Status: 404, Title: "nothing is served here"}
		}
		if err := json.NewEncoder(w).Encode(v); err != nil {
			f.t.Error(err)
		}
	}
}

// newFake returns a server of one admin without jobs.
func newFake(t testing.TB) (*fake, *Site) {
	f := &fake{t: t, answers: map[string]any{
		"/v1/me": client.Me{User: "ann", Best: client.Admin, Grants: []client.Grant{{Team: "*", Role: client.Admin}},
			Token: "abc"},
		"/v1/server": client.Server{Market: client.MarketClock{Name: "demo", Speed: 120, Now: now}},
		"/v1/costs":  client.Costs{By: "team"}, "/v1/machines": []client.Machine{}, "/v1/budgets": client.Budgets{Currency: "USD"},
		"/v1/jobs": []client.Job{}, "/v1/teams": []client.Team{},
		"/v1/queue/shares": client.QueueShares{Currency: "USD"},
	}}
	f.answers["/v1/totals"] = func(*http.Request) any { return f.byState() }
	s := &Site{API: f, Now: func() time.Time { return now }, Changed: func() <-chan struct{} { return nil },
		Stream: func(string) (func(), error) { return func() {}, nil }}
	return f, s
}

// byState sums the jobs by state in the plainest way.
func (f *fake) byState() client.JobTotals {
	all, _ := f.answers["/v1/jobs"].([]client.Job)
	t := client.JobTotals{By: "state"}
	for _, j := range all {
		if j.Finished != nil {
			continue
		}
		l := client.JobTotal{Name: j.State, Currency: j.Currency, Jobs: 1}
		switch q, known := stillCosts(j); {
		case known:
			l.Foreseen, l.WillCost = 1, &[2]float64{q[0], q[2]}
		case j.Budget != nil:
			l.Unknown, l.Bounded, l.AtMost = 1, 1, new(j.Budget.Sub(j.Spent))
		default:
			l.Unknown = 1
		}
		t.Lines = append(t.Lines, l)
	}
	return t
}

// asks sends a request with the cookie, and the headers that a browser adds to a form.
func asks(s *Site, method, target, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://dash.example:7077"+target, strings.NewReader(body))
	r.AddCookie(&http.Cookie{Name: "scrimp-7077", Value: "good"})
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://dash.example:7077")
	}
	for _, f := range change {
		f(r)
	}
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, r)
	return rec
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func TestPages_LoadNothingFromOtherSites(t *testing.T) {
	t.Parallel()
	_, s := newFake(t)
	for _, path := range []string{"/", "/jobs", "/sign-in", "/jobs/none"} {
		rec := asks(s, "GET", path, "")
		h := rec.Header()
		if h.Get("Content-Security-Policy") != policy || h.Get("X-Frame-Options") != "DENY" ||
			h.Get("Cache-Control") != "no-store" || h.Get("Referrer-Policy") != "same-origin" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s is sent with %v", path, h)
		}
		for _, bad := range []string{"style=", "<style", "onclick", "javascript:", "src=\"http", "href=\"http", "unsafe"} {
			if strings.Contains(rec.Body.String(), bad) {
				t.Errorf("%s has %s", path, bad)
			}
		}
	}
	if strings.Contains(policy, "unsafe") || !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Error(policy)
	}
}

func TestPages_FirstLoadIsSmall(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	f.answers["/v1/jobs"] = many(50)
	sum := 0
	for _, path := range []string{"/jobs", "/assets/" + assets()["dashboard.css"].name, "/assets/" + assets()["dashboard.js"].name,
		"/assets/" + assets()["icon.svg"].name} {
		rec := asks(s, "GET", path, "", header("Accept-Encoding", "gzip"))
		if rec.Code != 200 || rec.Header().Get("Content-Encoding") != "gzip" {
			t.Fatalf("%s: %d %v", path, rec.Code, rec.Header())
		}
		sum += rec.Body.Len()
	}
	t.Logf("the first load is %d bytes", sum)
	if sum > 80<<10 {
		t.Errorf("the first load is %d bytes, 80 KiB are allowed", sum)
	}
}

func TestForms_FromAnotherSiteAreRefused(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	f.answers["POST /v1/jobs/a/end"] = client.Job{}
	for name, change := range map[string]func(*http.Request){
		"another origin":       header("Origin", "http://evil.example"),
		"another port":         header("Origin", "http://dash.example:7078"),
		"a sandbox":            header("Origin", "null"),
		"another site":         header("Sec-Fetch-Site", "cross-site"),
		"another subdomain":    header("Sec-Fetch-Site", "same-site"),
		"nothing that says so": func(r *http.Request) { r.Header.Del("Origin") },
	} {
		for _, path := range []string{"/do", "/sign-in", "/sign-out"} {
			if rec := asks(s, "POST", path, "act=stop&job=a&token=good", change); rec.Code != 403 || rec.Header().Get("Set-Cookie") != "" {
				t.Errorf("%s, %s: %d", name, path, rec.Code)
			}
		}
	}
	if len(f.asked) != 0 {
		t.Errorf("the API was asked: %v", f.asked)
	}
	if rec := asks(s, "POST", "/do", "act=stop&job=a&back=/jobs/a"); rec.Code != 303 || rec.Header().Get("Location") != "/jobs/a" {
		t.Errorf("a form of the site: %d %v", rec.Code, rec.Header())
	}
}

func TestHere_RefusesOtherNames(t *testing.T) {
	t.Parallel()
	h := Here("127.0.0.1:4711", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, want := range map[string]int{"127.0.0.1:4711": 200, "localhost:4711": 200, "127.0.0.1": 421, "evil.example:4711": 421,
		"127.0.0.1.evil.example:4711": 421, "localhost:80": 421, "": 421} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = host
		rec := httptest.NewRecorder()
		if h.ServeHTTP(rec, r); rec.Code != want {
			t.Errorf("%q: %d, want %d", host, rec.Code, want)
		}
	}
}

func TestLocal_ReturnsAddressesOfThisSiteOnly(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{"/jobs?a=b": "/jobs?a=b", "//evil.example": "/", "https://evil.example": "/",
		"/\\evil.example": "/", "jobs": "/", "": "/", "/\r\nSet-Cookie: x": "/", "javascript:alert(1)": "/", "/%2f/evil": "/%2f/evil"} {
		if got := local(to); got != want {
			t.Errorf("%q leads to %q, want %q", to, got, want)
		}
	}
}

func TestSignIn_CreatesAShorterToken(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	soon := now.Add(time.Hour)
	f.answers["/v1/me"] = client.Me{User: "ann", Best: client.Viewer, Expires: &soon}
	f.answers["POST /v1/tokens"] = client.MadeToken{Text: "good session"}
	rec := asks(s, "POST", "/sign-in", "token=good&to=//evil.example")
	c := rec.Result().Cookies()
	if rec.Code != 303 || rec.Header().Get("Location") != "/" || len(c) != 1 || c[0].Value != "good session" ||
		!c[0].HttpOnly || c[0].SameSite != http.SameSiteStrictMode || c[0].MaxAge != 3600 || c[0].Secure {
		t.Errorf("%d %v %+v", rec.Code, rec.Header(), c)
	}
	rec = asks(s, "POST", "/sign-in", "token=good", header("X-Forwarded-Proto", "https"), header("Origin", "https://dash.example:7077"))
	if c := rec.Result().Cookies(); len(c) != 1 || !c[0].Secure || c[0].Name != "__Host-scrimp-7077" {
		t.Errorf("by TLS: %+v", c)
	}
	if rec := asks(s, "POST", "/sign-in", "token=bad"); rec.Code != 401 || len(rec.Result().Cookies()) != 0 || strings.Contains(rec.Body.String(), `value="bad"`) {
		t.Errorf("a wrong token: %d", rec.Code)
	}
}

func TestPages_WithoutASessionLeadToTheSignIn(t *testing.T) {
	t.Parallel()
	_, s := newFake(t)
	for _, cookie := range []string{"", "scrimp-7077=bad", "scrimp-80=good"} {
		for path, want := range map[string][2]string{"/": {"/sign-in", "/sign-in?ended=1"}, "/jobs?state=failed": {
			"/sign-in?to=%2Fjobs%3Fstate%3Dfailed", "/sign-in?ended=1&to=%2Fjobs%3Fstate%3Dfailed"}} {
			rec, had := asks(s, "GET", path, "", header("Cookie", cookie)), 0
			if cookie == "scrimp-7077=bad" {
				had = 1
			}
			if rec.Code != 303 || rec.Header().Get("Location") != want[had] {
				t.Errorf("%q: %s: %d to %q", cookie, path, rec.Code, rec.Header().Get("Location"))
			}
		}
		// a form leads back to its page, which says that it changed nothing
		for path, want := range map[string]string{"/do": "/sign-in?ended=unsent&to=%2Fjobs%3Fstate%3Dfailed",
			"/submit": "/sign-in?ended=unsent&to=%2Fsubmit"} {
			rec := asks(s, "POST", path, "act=stop&job=a&back=/jobs?state%3Dfailed", header("Cookie", cookie))
			if at := rec.Header().Get("Location"); rec.Code != 303 || at != want {
				t.Errorf("%q: %s: %d to %q", cookie, path, rec.Code, at)
			} else if text := asks(s, "GET", at, "").Body.String(); !strings.Contains(text, "Your form changed nothing") {
				t.Errorf("%s does not say that the form changed nothing", at)
			}
		}
		if rec := asks(s, "GET", "/live?at=/", "", header("Cookie", cookie)); rec.Code != 204 {
			t.Errorf("a stream without a session: %d", rec.Code)
		}
		if rec := asks(s, "GET", "/data/jobs", "", header("Cookie", cookie)); rec.Code == 200 {
			t.Errorf("data without a session: %d", rec.Code)
		}
	}
}

func TestLinks_WorkOnceAndExpire(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	s.Owner = func(r *http.Request) *http.Request { r.Header.Set("Authorization", "Bearer good owner"); return r }
	clock := now
	s.Now = func() time.Time { return clock }
	key := s.Link()
	rec := asks(s, "GET", "/open?to=/jobs&key="+key, "", header("Cookie", ""))
	c := rec.Result().Cookies()
	if rec.Code != 200 || len(c) != 1 || !c[0].HttpOnly || c[0].SameSite != http.SameSiteStrictMode ||
		rec.Header().Get("Refresh") != "0; url=/jobs" || strings.Contains(rec.Body.String(), key) {
		t.Fatalf("%d %v", rec.Code, rec.Header())
	}
	if rec := asks(s, "GET", "/open?key="+key, ""); rec.Code != 403 || len(rec.Result().Cookies()) != 0 {
		t.Errorf("a link that was used: %d", rec.Code)
	}
	cookie := header("Cookie", c[0].Name+"="+c[0].Value)
	if rec := asks(s, "GET", "/", "", cookie); rec.Code != 200 {
		t.Errorf("the cookie: %d", rec.Code)
	}
	if rec := asks(s, "GET", "/open?to=/jobs&key="+key, "", cookie); rec.Code != 200 || rec.Header().Get("Refresh") != "0; url=/jobs" {
		t.Errorf("a link that was used, in the browser that used it: %d", rec.Code)
	}
	for name, bad := range map[string]string{"the key": key, "a token": "good", "nothing": ""} {
		if rec := asks(s, "GET", "/", "", header("Cookie", c[0].Name+"="+bad)); rec.Code != 303 {
			t.Errorf("%s as a cookie: %d", name, rec.Code)
		}
	}
	late := s.Link()
	clock = clock.Add(linkLife)
	if rec := asks(s, "GET", "/open?key="+late, ""); rec.Code != 403 {
		t.Errorf("a link that is too old: %d", rec.Code)
	}
	clock = now.Add(sessionLife)
	if rec := asks(s, "GET", "/", "", cookie); rec.Code != 303 {
		t.Errorf("a session that is over: %d", rec.Code)
	}
	clock = now
	other := asks(s, "GET", "/open?key="+s.Link(), "").Result().Cookies()[0]
	cookie = header("Cookie", other.Name+"="+other.Value)
	asks(s, "POST", "/sign-out", "", cookie)
	if rec := asks(s, "GET", "/", "", cookie); rec.Code != 303 {
		t.Errorf("a session that was signed out: %d", rec.Code)
	}
	for _, asked := range f.asked {
		if !strings.HasSuffix(asked, "Bearer good owner") {
			t.Errorf("the API was asked %s", asked)
		}
	}
}
