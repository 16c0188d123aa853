package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"scrimp/internal/lib/identity"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// held is a body of a given size whose last bytes never come, until let.
type held struct {
	left int
	let  <-chan struct{}
}

func (h *held) Read(p []byte) (int, error) {
	if h.left == 0 {
		<-h.let
		return 0, io.ErrUnexpectedEOF
	}
	n := min(len(p), h.left)
	for i := range p[:n] {
		p[i] = ' '
	}
	h.left -= n
	return n, nil
}

// sendSlowly sends such a body, and reports the status.
func (w *world) sendSlowly(path, token string, size int, let <-chan struct{}, codes chan<- int) {
	r := httptest.NewRequestWithContext(w.t.Context(), "POST", path, &held{size, let})
	r.Header.Set("Authorization", "Bearer "+token)
	go func() {
		rec := httptest.NewRecorder()
		w.h.ServeHTTP(rec, r)
		codes <- rec.Code
	}()
}

// Endless bodies hold at most 32 MiB of one user, over all tokens; others can submit meanwhile.
func TestBodies_ThatStallHoldLittleMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	grant := identity.Grant{Team: "*", Role: identity.Submitter}
	eve, bob := w.user("eve", grant), w.user("bob", grant)
	var other api.MadeToken
	w.must("POST", "/v1/tokens", api.NewToken{User: "eve"}, &other)
	const most = 32 << 20
	let, codes := make(chan struct{}), make(chan int, 150)
	for n := range 150 {
		w.sendSlowly("/v1/jobs/batch", []string{eve, other.Text}[n%2], 8<<20-1, let, codes)
	}
	for range 140 { // the others wait for what never comes
		if code := <-codes; code != http.StatusTooManyRequests {
			t.Fatalf("answered with %d", code)
		}
	}
	if all, each := w.gate.UserBodies.Held(); all > most || each > most {
		t.Errorf("140 bodies were refused, and the rest holds %d MiB", all>>20)
	}
	if rec, p := w.ask("POST", "/v1/jobs", bob, aJob("good", "")); rec.Code != 200 {
		t.Errorf("another user: %d %+v", rec.Code, p)
	}
	close(let)
	for range 10 {
		<-codes
	}
	if all, _ := w.gate.UserBodies.Held(); all != 0 {
		t.Errorf("%d bytes are held of requests that are over", all)
	}
}

// The server does not read bodies that nobody needs: the result of a command that nobody runs, and the body of a
// request with an unknown token or an invalid signature.
func TestBodies_OfUnknownSendersAreNotRead(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &rents{}, nil)
	as := w.take(w.rent("job"))
	bob := w.user("bob", identity.Grant{Team: "*", Role: identity.Operator})
	for path, c := range map[string]struct {
		token string
		want  int
	}{
		"/v1/agent/exec/none": {as.AttemptToken, http.StatusNoContent}, "/v1/agent/report": {"attempt.a.1.x", http.StatusUnauthorized},
		"/v1/agent/register": {"bootstrap.a.x", http.StatusUnauthorized}, "/v1/agent/pull": {"", http.StatusUnauthorized},
		"/v1/jobs": {"scrimp_x", http.StatusUnauthorized}, "/v1/jobs/none/exec": {bob, http.StatusNotFound},
		"/v1/jobs/none/resume": {bob, http.StatusNotFound}, "/v1/users/x": {bob, http.StatusForbidden},
	} {
		method := "POST"
		if path == "/v1/users/x" {
			method = "PUT"
		}
		r := httptest.NewRequestWithContext(t.Context(), method, path, never{t})
		r.Header.Set("Authorization", "Bearer "+c.token)
		rec := httptest.NewRecorder()
		if w.h.ServeHTTP(rec, r); rec.Code != c.want {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
}

// never is a body that must not be read.
type never struct{ t *testing.T }

func (n never) Read([]byte) (int, error) {
	n.t.Error("the body is read")
	return 0, io.EOF
}

// A body whose Content-Length exceeds the limit of its kind is refused unread.
func TestBody_IsRefusedUnreadWhenTooLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ann := w.user("ann", identity.Grant{Team: "*", Role: identity.Admin})
	w.must("POST", "/v1/jobs", aJob("one", ""), nil)
	for _, path := range []string{"/v1/tokens", "/v1/jobs/one/end", "/v1/jobs/one/pause", "/v1/jobs/one/exec", "/v1/server/stop",
		"/v1/jobs", "/v1/jobs/one/resume", "/v1/jobs/one/reject"} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", path, never{t})
		r.ContentLength = 8<<20 + 1
		r.Header.Set("Authorization", "Bearer "+ann)
		rec := httptest.NewRecorder()
		if w.h.ServeHTTP(rec, r); rec.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
}

// Limits are per user, not per token: rate, streams and number of tokens.
func TestTokens_DoNotMultiplyLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Rate = 10 })
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	eve := w.user("eve", identity.Grant{Team: "vision", Role: identity.Viewer})
	tokens := []string{eve}
	for n := range 60 {
		if n == 15 { // the rate limit of requests is another test's
			break
		}
		var made api.MadeToken
		w.must("POST", "/v1/tokens", api.NewToken{User: "eve"}, &made)
		tokens = append(tokens, made.Text)
	}
	w.gate.Pace.Freeze()
	slowed := 0
	for n := range 160 {
		if rec, _ := w.ask("GET", "/v1/me", tokens[n%len(tokens)], nil); rec.Code == http.StatusTooManyRequests {
			slowed++
		}
	}
	if slowed < 100 {
		t.Errorf("%d of 160 requests with 16 tokens were slowed", slowed)
	}
}

// A viewer can create a few tokens at once and a hundred in total, and an admin creates no more for them.
func TestTokens_OfOneUserAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Rate = 100_000 })
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	eve := w.user("eve", identity.Grant{Team: "vision", Role: identity.Viewer})
	before, made := w.control.Durable(), 0
	for range 900 {
		rec, p := w.ask("POST", "/v1/tokens", eve, api.NewToken{})
		if rec.Code == 200 {
			made++
		} else if rec.Code != http.StatusTooManyRequests || p.Fix == "" || rec.Header().Get("Retry-After") == "" {
			t.Fatalf("%d %+v", rec.Code, p)
		}
	}
	if made < 10 || made > 25 {
		t.Errorf("%d of 900 tokens were made at once", made)
	}
	if n := w.control.Durable() - before; n > 200 {
		t.Errorf("900 requests left %d events", n)
	}
	for n := made + 1; n < identity.MostTokens; n++ {
		w.must("POST", "/v1/tokens", api.NewToken{User: "eve"}, nil)
	}
	if rec, p := w.ask("POST", "/v1/tokens", "owner", api.NewToken{User: "eve"}); rec.Code != 422 || p.Field != "user" {
		t.Errorf("token %d: %d %+v", identity.MostTokens+1, rec.Code, p)
	}
}

// Limits on streams and archives are per user, over all tokens.
func TestStreams_OfOneUserDoNotExhaustOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Rate = 100_000 })
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	eve := w.user("eve", identity.Grant{Team: "vision", Role: identity.Viewer})
	bob := w.user("bob", identity.Grant{Team: "vision", Role: identity.Viewer})
	tokens := []string{eve}
	for range 15 {
		var made api.MadeToken
		w.must("POST", "/v1/tokens", api.NewToken{User: "eve"}, &made)
		tokens = append(tokens, made.Text)
	}
	front := httptest.NewServer(w.h)
	defer front.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open := func(token string) int {
		req, _ := http.NewRequestWithContext(ctx, "GET", front.URL+"/v1/events", nil)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		must.Do(t, err)
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp.StatusCode
	}
	held := 0
	for n := range 300 {
		if open(tokens[n%len(tokens)]) == 200 {
			held++
		}
	}
	if held != 100 {
		t.Errorf("with 16 tokens %d streams are open, want 100", held)
	}
	if code := open(bob); code != 200 {
		t.Errorf("another user's: %d", code)
	}
}

// Endless refusals leave a record of the first of each kind, a count, and a line per minute.
func TestRefusals_DoNotFillTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Rate = 100_000 })
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	eve := w.user("eve", identity.Grant{Team: "vision", Role: identity.Submitter})
	w.must("POST", "/v1/jobs", aJob("one", "vision"), nil)
	if rec, p := w.ask("POST", "/v1/jobs", eve, `{"key":"k",`+aJob("two", "")[1:]); rec.Code != 200 {
		t.Fatalf("%d %+v", rec.Code, p)
	}
	if rec, p := w.ask("POST", "/v1/jobs", eve, aJob("over", "vision")); rec.Code != 200 {
		t.Fatalf("%d %+v", rec.Code, p)
	}
	w.must("POST", "/v1/jobs/over/end", api.End{}, nil)
	before := w.control.Durable()
	for n := range 500 {
		for _, r := range [][3]string{{"PUT", fmt.Sprintf("/v1/users/u%d", n), `{}`}, {"GET", "/v1/users", ""}, {"POST", "/v1/jobs", "{}"},
			{"POST", "/v1/jobs/one/exec", `{"command":["id"]}`}, {"DELETE", fmt.Sprintf("/v1/tokens/%d", n), ""},
			{"POST", "/v1/jobs/none/end", "{}"},
			// repeated acts without effect
			{"POST", "/v1/jobs", `{"key":"k",` + aJob("two", "")[1:]}, {"POST", "/v1/jobs/over/end", "{}"}} {
			w.ask(r[0], r[1], eve, r[2])
		}
	}
	if n := w.control.Durable() - before; n == 0 || n > 20 {
		t.Errorf("4,000 requests that change nothing left %d events, want one of each kind", n)
	}
	rec, _ := w.ask("GET", "/metrics", "owner", nil)
	if !strings.Contains(rec.Body.String(), `scrimp_refused_requests_total{user="eve"} 3000`) {
		t.Errorf("the metric does not count them: %s", rec.Body)
	}
	if n := strings.Count(w.log.String(), "requests were refused"); n < 1 || n > 2 {
		t.Errorf("%d lines of the log", n)
	}
}
