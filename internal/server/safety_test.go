package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

func TestKey_SubmitsOnceAndConflictsWithAnotherBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ann := w.user("ann", identity.Grant{Team: "*", Role: identity.Submitter})
	bob := w.user("bob", identity.Grant{Team: "*", Role: identity.Submitter})
	body := func(key, name string) string { return `{"key":"` + key + `",` + aJob(name, "")[1:] }
	var ids sync.Map
	var all sync.WaitGroup
	for range 8 { // at once, as an impatient client would
		all.Go(func() {
			rec, p := w.ask("POST", "/v1/jobs", ann, body("k", "one"))
			var j api.Job
			if err := json.Unmarshal(rec.Body.Bytes(), &j); rec.Code != 200 || err != nil {
				t.Errorf("%d %+v %v", rec.Code, p, err)
			}
			ids.Store(j.ID, true)
		})
	}
	all.Wait()
	for id := range ids.Range {
		if id != "one" {
			t.Errorf("the key led to %v", id)
		}
	}
	if rec, p := w.ask("POST", "/v1/jobs", ann, body("k", "two")); rec.Code != http.StatusConflict || p.Field != "key" ||
		p.Fix == "" {
		t.Errorf("another body: %d %+v", rec.Code, p)
	}
	if rec, p := w.ask("POST", "/v1/jobs", ann, `{"key":"k","secrets":{"A":"x"},`+
		aJob("one", "")[1:]); rec.Code != http.StatusConflict {
		t.Errorf("another secret: %d %+v", rec.Code, p)
	}
	if rec, _ := w.ask("POST", "/v1/jobs", bob, body("k", "three")); rec.Code != 200 ||
		strings.Contains(rec.Body.String(), `"one"`) {
		t.Errorf("a key of somebody else is known: %d %s", rec.Code, rec.Body)
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/jobs", strings.NewReader(aJob("one", "")))
	r.Header.Set("Authorization", "Bearer "+ann)
	r.Header.Set("Idempotency-Key", "k")
	rec := httptest.NewRecorder()
	if w.h.ServeHTTP(rec, r); rec.Code != 200 || !strings.Contains(rec.Body.String(), `"id":"one"`) {
		t.Errorf("the key in the header: %d %s", rec.Code, rec.Body)
	}
}

func TestNames_AreNumberedWhenTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, want := range []string{"a", "a-2", "a-3"} {
		var j api.Job
		if w.must("POST", "/v1/jobs", aJob("a", ""), &j); j.ID != want {
			t.Errorf("%s, want %s", j.ID, want)
		}
	}
}

func TestSecrets_AreSealedAndNeverLogged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	const value = "hunter2-hunter2"
	w.must("POST", "/v1/jobs", `{"secrets":{"KEY":"`+value+`"},`+aJob("sealed", "")[1:], nil)
	if got := w.secrets("sealed"); got["KEY"] != value {
		t.Errorf("they do not open: %v", got)
	}
	err := filepath.WalkDir(w.opts.Dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(value)) {
			t.Errorf("%s holds the secret", path)
		}
		if info, _ := e.Info(); info.Mode().Perm()&0o077 != 0 && strings.Contains(path, "secret") {
			t.Errorf("others may read %s", path)
		}
		return err
	})
	must.Do(t, err)
	if strings.Contains(w.log.String(), value) {
		t.Error("the server's log holds the secret")
	}
	other := w.vault().File("other")
	text, _ := os.ReadFile(w.vault().File(w.entry("sealed")))
	os.WriteFile(other, text, 0o600)
	if m, err := w.vault().Open("other"); err == nil {
		t.Errorf("in another job's place they open: %v", m)
	}
	text[len(text)-1] ^= 1
	os.WriteFile(w.vault().File(w.entry("sealed")), text, 0o600)
	if m, err := w.vault().Open(w.entry("sealed")); err == nil {
		t.Errorf("changed, they open: %v", m)
	}
}

func TestAgent_WithANewerProtocolIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/agent/register", strings.NewReader("{}"))
	r.Header.Set("Authorization", "Bearer "+w.gate.Tickets.For(auth.BootstrapTicket, "a.1"))
	r.Header.Set(api.WireHeader, "99")
	rec := httptest.NewRecorder()
	if w.h.ServeHTTP(rec, r); rec.Code != 426 {
		t.Errorf("the route takes an agent from the future: %d", rec.Code)
	}
}

func TestTicket_OpensOneTaskForOnePurpose(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &rents{}, nil)
	first, second := w.rent("a"), w.rent("b")
	send := func(token string) int {
		rec, _ := w.ask("POST", "/v1/agent/report", token, api.Report{Attempt: second})
		return rec.Code
	}
	if got := send(w.gate.Tickets.For(auth.AttemptTicket, first)); got != http.StatusForbidden {
		t.Errorf("a report for another attempt: %d", got)
	}
	if got := send(w.gate.Tickets.For(auth.BootstrapTicket, second)); got != http.StatusUnauthorized {
		t.Errorf("a bootstrap token reports: %d", got)
	}
	good := w.gate.Tickets.For(auth.AttemptTicket, second)
	for _, bad := range []string{good[:len(good)-1] + "x", strings.Replace(good, second, first, 1), "attempt.",
		"attempt..", good + "0"} {
		if got := send(bad); got != http.StatusUnauthorized {
			t.Errorf("%q reports: %d", bad, got)
		}
	}
}

func TestOutput_EndlessOutputIsCutWithoutDelay(t *testing.T) {
	t.Parallel()
	w, attempt := rentedWorld(t, func(o *Options) { o.LogLimit = 1 << 20 })
	token := w.gate.Tickets.For(auth.AttemptTicket, attempt)
	chunk := strings.Repeat("x", 256<<10)
	offset := int64(0)
	for range 40 {
		var end api.LogEnd
		rec, p := w.ask("POST", "/v1/agent/logs?offset="+jsonOf(offset), token, chunk)
		if rec.Code != 200 {
			t.Fatalf("at %d: %+v", offset, p)
		}
		json.Unmarshal(rec.Body.Bytes(), &end)
		if end.Offset < offset+int64(len(chunk)) {
			t.Fatalf("%d bytes are kept of %d: the agent would send them again for ever", end.Offset, offset+int64(len(chunk)))
		}
		offset = end.Offset
	}
	kept, _ := w.store.LogEnd(t.Context(), attempt)
	text, _ := w.store.ReadLog(t.Context(), attempt, kept-100, 100)
	if kept < 1<<20 || kept > 2<<20 || !bytes.Contains(text, []byte("longer than 1 MiB")) {
		t.Errorf("%d bytes are kept, which end %q", kept, text)
	}
	rec, p := w.ask("POST", "/v1/agent/report", token, api.Report{Attempt: attempt, Now: time.Now(), LogEnd: 1 << 40})
	var o api.Orders
	if json.Unmarshal(rec.Body.Bytes(), &o); rec.Code != 200 || o.LogEnd != 1<<40 {
		t.Errorf("the agent's backlog is wanted from %d on: %d %+v", o.LogEnd, rec.Code, p)
	}
	var full bool
	w.logPace.Freeze()
	other := w.gate.Tickets.For(auth.AttemptTicket, w.rent("b"))
	for range 70 { // a quarter MiB each: more than the 16 MiB at once
		rec, _ := w.ask("POST", "/v1/agent/logs?offset=0", other, chunk)
		full = full || rec.Code == http.StatusTooManyRequests && rec.Header().Get("Retry-After") != ""
	}
	if !full {
		t.Error("17 MiB at once are taken")
	}
}

func jsonOf(v any) string { b, _ := json.Marshal(v); return string(b) }

func TestTokens_GuessesAreRateLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Rate = 1 })
	w.gate.Pace.Freeze()
	codes := map[int]int{}
	for range 10 {
		rec, _ := w.ask("GET", "/v1/jobs", "scrimp_guess", nil)
		codes[rec.Code]++
	}
	if codes[http.StatusTooManyRequests] == 0 {
		t.Errorf("tokens can be guessed as fast as they come: %v", codes)
	}
}

func TestBadRequests_NameFieldAndFix(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, c := range []struct {
		method, path, body string
		status             int
		field              string
	}{
		{"POST", "/v1/jobs", "", 400, ""}, {"POST", "/v1/jobs", "{", 400, ""}, {"POST", "/v1/jobs", "{} {}", 400, ""},
		{"POST", "/v1/jobs", `{"key":7}`, 400, "key"},
		{"POST", "/v1/jobs", `{"spec":{}}`, 422, "command"}, {"POST", "/v1/jobs", `{"spec":"x"}`, 400, "spec"},
		{"POST", "/v1/jobs", `{"key":"` + strings.Repeat("k", 256) + `",` + aJob("x", "")[1:], 422, "key"},
		{"POST", "/v1/jobs", `{"key":"` + strings.Repeat("k", 9<<20) + `"}`, 413, ""},
		{"GET", "/v1/jobs/none", "", 404, ""}, {"GET", "/v1/jobs/%00", "", 404, ""}, {"GET", "/v1/nothing", "", 404, ""},
		{"DELETE", "/v1/jobs", "", 405, ""}, {"PUT", "/v1/jobs/x", "", 405, ""},
		{"GET", "/v1/audit?after=x", "", 400, "after"}, {"GET", "/v1/audit?limit=0", "", 400, "limit"},
		{"GET", "/v1/audit?limit=5000", "", 400, "limit"},
		{"PUT", "/v1/users/a%20b", "{}", 422, "name"}, {"PUT", "/v1/users/x", `{"grants":[{"team":"none","role":"viewer"}]}`,
			422, "grants"}, {"PUT", "/v1/users/x", `{"grants":[{"team":"*","role":"root"}]}`, 400, ""},
		{"POST", "/v1/tokens", `{"user":"nobody"}`, 422, "user"}, {"DELETE", "/v1/tokens/none", "", 404, ""},
	} {
		rec, p := w.ask(c.method, c.path, auth.OwnerName, c.body)
		if rec.Code != c.status || p.Field != c.field || p.Fix == "" {
			t.Errorf("%s %s %.40q: %d %+v, want %d and field %q", c.method, c.path, c.body, rec.Code, p, c.status, c.field)
		}
	}
}

// An attacker's text comes back as text, without any effect.
func TestAttacks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("POST", "/v1/jobs", aJob("victim", ""), nil)
	for _, evil := range []string{"' OR '1'='1", "'; DROP TABLE event; --", "victim'--", `" OR ""="`, "victim%00",
		"../victim", "..%2f..%2fetc%2fpasswd", "<script>alert(1)</script>", "%0d%0aSet-Cookie:%20a=b"} {
		path := strings.NewReplacer(" ", "%20", "'", "%27", `"`, "%22", "<", "%3C", ">", "%3E", ";", "%3B", "../",
			"..%2F").Replace(evil)
		for _, route := range []string{"/v1/jobs/" + path, "/v1/jobs/" + path + "/log", "/v1/jobs/" + path + "/receipt",
			"/v1/jobs/" + path + "/outputs", "/v1/jobs/" + path + "/spec"} {
			if rec, _ := w.ask("GET", route, auth.OwnerName, nil); rec.Code != http.StatusNotFound {
				t.Errorf("GET %s: %d %s", route, rec.Code, rec.Body)
			} else if len(rec.Header()["Set-Cookie"]) > 0 || rec.Header().Get("X-Content-Type-Options") != "nosniff" ||
				!strings.Contains(rec.Header().Get("Content-Security-Policy"), "default-src 'none'") {
				t.Errorf("GET %s: headers %v", route, rec.Header())
			}
		}
		w.ask("GET", "/v1/audit?user="+path, auth.OwnerName, nil)
		w.ask("PUT", "/v1/users/"+path, auth.OwnerName, "{}")
		w.ask("POST", "/v1/jobs", auth.OwnerName, api.Submission{Key: evil, Spec: api.Raw(`{"name":"x","command":"true"}`),
			Work: evil})
		w.ask("POST", "/v1/jobs", auth.OwnerName, api.Submission{Key: evil + "2", Spec: api.Raw(`{"name":"x","command":"true"}`),
			Rerun: evil})
	}
	var j api.Job
	w.must("GET", "/v1/jobs/victim", nil, &j)
	var v api.Verified
	if w.must("GET", "/v1/ledger/verify", nil, &v); !v.OK || j.ID != "victim" {
		t.Errorf("after the attacks: %+v, %+v", v, j)
	}
	if rec, _ := w.ask("GET", "/v1/jobs/victim/log", auth.OwnerName, nil); !strings.HasPrefix(rec.Header().Get("Content-Type"),
		"text/plain") {
		t.Errorf("a log is %s", rec.Header().Get("Content-Type"))
	}
}

// A page that a signed-in user opens cannot make their browser act here.
func TestOrigin_OtherSitesCannotAct(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for name, set := range map[string]func(http.Header){
		"a form":          func(h http.Header) { h.Set("Content-Type", "text/plain"); h.Set("Sec-Fetch-Site", "cross-site") },
		"an old browser":  func(h http.Header) { h.Set("Origin", "https://evil.example") },
		"a sibling":       func(h http.Header) { h.Set("Sec-Fetch-Site", "same-site") },
		"without a token": func(h http.Header) { h.Del("Authorization"); h.Set("Cookie", "token="+w.gate.Owner) },
	} {
		r := httptest.NewRequest("POST", "/v1/jobs/x/end", strings.NewReader("{}"))
		r = r.WithContext(auth.OnSocket(r.Context()))
		r.Header.Set("Authorization", "Bearer "+w.gate.Owner)
		set(r.Header)
		rec := httptest.NewRecorder()
		if w.h.ServeHTTP(rec, r); rec.Code != http.StatusForbidden && rec.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
		if len(rec.Header()["Access-Control-Allow-Origin"]) > 0 {
			t.Errorf("%s: other origins may read", name)
		}
	}
}
