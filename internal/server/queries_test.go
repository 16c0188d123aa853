package server

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/server/auth"
	"scrimp/internal/test/must"
)

// extremes are hostile values for a number in a query.
var extremes = []string{"-1", "0", "1", "-0", "+1", "NaN", "Inf", "-Inf", "1e400", "1e30", "0x10", "1_000", "1.5", "²",
	"9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551616", strings.Repeat("9", 5000),
	"1h", "-1h", "9999999h", "2562047h47m16.854775807s", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "1;2", "\x00", "\xff", "%"}

// words are parameters that are not numbers and may be anything.
var words = []string{"os", "arch", "key", "durable", "prefix", "delimiter", "page", "refused", "by", "user", "team", "name",
	"tag", "state", "live", "attention", "follow", "timestamps", "attempts", "format", "currency", "expected", "work", "rerun", "from",
	"job", "project", "provider", "region", "group", "machine", "category", "attempt", "instance", "use", "kind", "scope",
	"confidence", "rule", "rented"}

// Every number in a query is accepted, or refused with a 4xx status that names the parameter.
func TestQueries_EveryNumberIsAcceptedOrNamed(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &rents{}, func(o *Options) { o.Rate = 1e6 })
	as := w.take(w.rent("job"))
	var described struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
		}
	}
	must.Do(t, json.Unmarshal(OpenAPI("test"), &described))
	asked, taken := 0, 0
	for path, methods := range described.Paths {
		for method, o := range methods {
			for _, p := range o.Parameters {
				if p.In != "query" || p.Name == "follow" { // which never ends
					continue
				}
				for _, text := range extremes {
					also := map[string]string{"/v1/agent/blobs/list": "&prefix=jobs/job/", "/v1/agent/logs": "&offset=0"}[path]
					target := strings.NewReplacer("{id}", "job", "{name}", "x", "{session}", "x").Replace(path) + "?" + p.Name + "=" +
						url.QueryEscape(text) + also
					token := auth.OwnerName
					if strings.HasPrefix(path, "/v1/agent/") {
						token = as.AttemptToken
					}
					if path == "/v1/events" && (text == "0" || text == "1" || text == "+1" || text == "-0") {
						continue // it never ends
					}
					rec, said := w.ask(strings.ToUpper(method), target, token, "{}")
					asked++
					switch code := rec.Code; {
					case code < 300:
						taken++
					case code >= 500:
						t.Errorf("%s %s: %d %s %s", method, target, code, said.Title, said.Detail)
					case said.Field == "spec", code == http.StatusNotFound && strings.Contains(path, "exec"): // the number is accepted
					case code == http.StatusNotFound && strings.HasSuffix(path, "/trials"): // the same; a job has no trials
					case !slices.Contains(words, p.Name) && said.Field != p.Name:
						t.Errorf("%s %.120s: %d names %q: %s", method, target, code, said.Field, said.Title)
					}
				}
			}
		}
	}
	if asked < 800 || taken < 100 {
		t.Errorf("the test is void: %d requests, %d of them taken", asked, taken)
	}
}

// No answer is given, and no change made, with a parameter that nobody reads: it is named, or the request is refused
// before.
func TestQueries_UnknownParameterIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &rents{}, func(o *Options) { o.Rate = 1e6 })
	w.rent("job")
	w.must("PUT", "/v1/users/zoe", `{}`, nil)
	named := 0
	for _, r := range table() {
		if r.Scope == auth.Open || r.Scope > auth.OfOwnJob {
			continue
		}
		path := strings.NewReplacer("{id}", "job", "{name}", "x", "{session}", "x").Replace(r.Path)
		rec, said := w.ask(r.Method, path+"?dry_run=true", auth.OwnerName, "{}")
		if said.Field == "dry_run" && rec.Code == http.StatusBadRequest {
			named++
		} else if rec.Code < 400 || rec.Code >= 500 {
			t.Errorf("%s %s: %d %s", r.Method, path, rec.Code, said.Title)
		}
	}
	if named < 80 {
		t.Errorf("the test is void: %d routes name the parameter", named)
	}
	if rec, _ := w.ask("POST", "/v1/users/zoe/erase?dry_run=true", auth.OwnerName, "{}"); rec.Code != http.StatusBadRequest {
		t.Errorf("an erasure that is no dry run: %d", rec.Code)
	}
	for _, body := range []string{"null", "", `{"dry_run":true,"dry_run":false}`} {
		if rec, _ := w.ask("POST", "/v1/users/zoe/erase", auth.OwnerName, body); rec.Code != http.StatusBadRequest {
			t.Errorf("an erasure by %q: %d", body, rec.Code)
		}
	}
	w.must("POST", "/v1/users/zoe/erase", `{"dry_run":true}`, nil)
}

// A parameter without a value, such as month=$UNSET, is named and refused unless its description says what empty means.
func TestQueries_EmptyParameterIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &rents{}, func(o *Options) { o.Rate = 1e6 })
	w.rent("job")
	named := 0
	for _, r := range table() {
		if !r.forUsers() {
			continue
		}
		path := strings.NewReplacer("{id}", "job", "{name}", "x", "{session}", "x").Replace(r.Path)
		for _, q := range r.Query {
			name, does, _ := strings.Cut(q, ":")
			rec, said := w.ask(r.Method, path+"?"+name+"=", auth.OwnerName, "{}")
			refused := rec.Code == http.StatusBadRequest && said.Field == name && strings.Contains(said.Title, "is empty")
			switch {
			case strings.Contains(does, "empty"):
				if rec.Code != http.StatusOK {
					t.Errorf("%s %s?%s=: %d %s", r.Method, path, name, rec.Code, said.Title)
				}
			case refused:
				named++
			case rec.Code != http.StatusNotFound: // the route looks for its job or group first
				t.Errorf("%s %s?%s=: %d %s", r.Method, path, name, rec.Code, said.Title)
			}
		}
	}
	if named < 80 {
		t.Errorf("the test is void: %d parameters are named", named)
	}
	if rec, said := w.ask("GET", "/v1/jobs?tag=a&tag=", auth.OwnerName, nil); said.Title != "this parameter is empty" {
		t.Errorf("one of two tags is empty: %d %s", rec.Code, said.Title)
	}
}

// A body that its route would ignore is refused.
func TestQueries_BodyThatNobodyReadsIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &rents{}, func(o *Options) { o.Rate = 1e6 })
	tried := 0
	for _, r := range table() {
		if r.In != nil || r.Method == http.MethodGet || !r.forUsers() {
			continue
		}
		tried++
		path := strings.NewReplacer("{id}", "x", "{name}", "x").Replace(r.Path)
		if rec, said := w.ask(r.Method, path, auth.OwnerName, `{"dry_run":true}`); rec.Code != http.StatusBadRequest && rec.Code != http.StatusNotFound {
			t.Errorf("%s %s: %d %s", r.Method, path, rec.Code, said.Title)
		}
	}
	if tried < 5 {
		t.Errorf("the test is void: %d routes", tried)
	}
	for body, want := range map[string]int{`{"serve":false}`: http.StatusBadRequest, " {} ": http.StatusOK, "": http.StatusOK} {
		if rec, said := w.ask("POST", "/v1/dashboard", auth.OwnerName, body); rec.Code != want {
			t.Errorf("%q: %d %s", body, rec.Code, said.Title)
		}
	}
}
