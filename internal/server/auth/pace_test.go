package auth

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"scrimp/internal/wire/api"
)

// A client that makes up agent tokens has one rate limit for all of them.
func TestTicketHolder_MadeUpTokensShareOneLimit(t *testing.T) {
	t.Parallel()
	g := &Gate{Tickets: Tickets("key"), Pace: NewPace(1)}
	for n := range 50 {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/agent/register", nil)
		r.Header.Set("Authorization", fmt.Sprintf("Bearer bootstrap.made.up.%d", n))
		name, _ := g.ticketHolder(Access{Scope: Bootstraps}, r)
		g.Pace.take(name, time.Now())
	}
	if n := len(g.Pace.buckets); n != 1 {
		t.Errorf("%d paces are kept for one stranger", n)
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/agent/register", nil)
	r.Header.Set("Authorization", "Bearer "+g.Tickets.For(BootstrapTicket, "a.1"))
	if name, _ := g.ticketHolder(Access{Scope: Bootstraps}, r); name != "agent "+g.Tickets.For(BootstrapTicket, "a.1") {
		t.Errorf("who has a ticket is %s", name)
	}
}

func TestPace_SlowsOneCallerOnly(t *testing.T) {
	t.Parallel()
	p, now := NewPace(10), time.Unix(0, 0)
	taken := 0
	for range 100 {
		if ok, wait := p.take("a", now); ok {
			taken++
		} else if wait <= 0 || wait > 100*time.Millisecond {
			t.Fatalf("wait %v", wait)
		}
	}
	if taken != 20 {
		t.Errorf("%d of 100 at once, want two seconds' worth", taken)
	}
	if ok, _ := p.take("b", now); !ok {
		t.Error("another caller is slowed")
	}
	for range 1000 { // ten seconds
		now = now.Add(10 * time.Millisecond)
		if ok, _ := p.take("a", now); ok {
			taken++
		}
	}
	if taken < 119 || taken > 121 {
		t.Errorf("%d in ten seconds more, want 20 and 100", taken)
	}
}

func TestSpeaks_RefusesOtherProtocolVersionsWithAFix(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		header         string
		oldest, newest int
		status         int
		want           string
	}{
		{"", 1, 1, 200, ""}, {"1", 1, 1, 200, ""}, {"1", 1, 3, 200, ""}, {"3", 1, 3, 200, ""},
		{"", 2, 3, 426, "too old"}, {"1", 2, 3, 426, "too old"}, {"4", 1, 3, 426, "newer"}, {"x", 1, 1, 400, "number"},
		{"-1", 1, 1, 400, "number"}, {"0", 1, 1, 400, "number"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/agent/register", nil)
		if c.header != "" {
			r.Header.Set(api.WireHeader, c.header)
		}
		rec := httptest.NewRecorder()
		if checkVersion(rec, r, c.oldest, c.newest) {
			rec.WriteHeader(200)
		}
		var p api.Problem
		json.Unmarshal(rec.Body.Bytes(), &p)
		if rec.Code != c.status || !strings.Contains(p.Title, c.want) || c.want != "" && p.Fix == "" ||
			rec.Header().Get(api.WireHeader) == "" {
			t.Errorf("version %q at %d to %d: %d %+v", c.header, c.oldest, c.newest, rec.Code, p)
		}
	}
}
