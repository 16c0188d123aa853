package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/engine"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/joining"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
)

const joinToken = "join.p.gpu3.secret"

// comes is an engine with a machine that joins; it echoes what the machine sends.
type comes struct {
	shut
	taken  bool
	served chan struct{} // one element per ended connection
}

func (c *comes) Admits(token string) (string, bool) { return "gpu3", token == joinToken }

func (c *comes) Claim(context.Context, string, string) (engine.Seat, error) {
	if c.taken {
		return nil, fmt.Errorf("gpu3: %w", engine.ErrTaken)
	}
	return c, nil
}

func (c *comes) Serve(ctx context.Context, conn net.Conn) error {
	defer close(c.served)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_, err := io.Copy(conn, conn)
	return fmt.Errorf("over: %w", err)
}

func (c *comes) Close() {}

func (c *comes) Joined() []engine.Joined {
	return []engine.Joined{{Name: "gpu3", Since: time.Now(), From: "10.0.0.3:1"}, {Name: "gpu4"}}
}

func (c *comes) Examine(context.Context) []engine.Finding {
	return []engine.Finding{{Name: "gpu3 disk", Text: "full"}}
}

// dial requests to join, and returns the status and the connection.
func (w *world) dial(t *testing.T, site *httptest.Server, head string) (int, net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", site.Listener.Addr().String())
	must.Do(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "GET /v1/agent/join HTTP/1.1\r\nHost: x\r\n%s\r\n", head); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	answer, err := http.ReadResponse(r, nil)
	must.Do(t, err)
	_ = answer.Body.Close()
	return answer.StatusCode, conn, r
}

const upgrade = "Connection: Upgrade\r\nUpgrade: scrimp-hostd-1\r\nScrimp-Session: s\r\n"

func bearer(token string) string { return "Authorization: Bearer " + token + "\r\n" }

// A machine's token lets it join and do nothing else; no other token can join.
func TestJoinToken_OnlyAllowsToJoin(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &comes{}, func(o *Options) { o.Rate = 1e6 })
	for _, r := range table() {
		if r.Scope == open || r.Scope == joiners {
			continue
		}
		rec, p := w.ask(r.Method, strings.ReplaceAll(r.Path, "{id}", "seen"), joinToken, "{}")
		if rec.Code != http.StatusUnauthorized {
			t.Errorf("%s %s: %d %s", r.Method, r.Path, rec.Code, p.Title)
		}
	}
	site := httptest.NewServer(w.h)
	defer site.Close()
	admin := w.user("admin", identity.Grant{Team: "*", Role: identity.Admin})
	for what, token := range map[string]string{"an admin's": admin, "none": "", "the owner's": w.gate.Owner,
		"another machine's": "join.p.gpu4.secret", "a bootstrap's": w.gate.Tickets.For("bootstrap", "a.1")} {
		if code, _, _ := w.dial(t, site, upgrade+bearer(token)); code != http.StatusUnauthorized {
			t.Errorf("with %s token: %d", what, code)
		}
	}
}

// A connection that joins is a stream until the server's lead ends.
func TestJoin_StreamsUntilTheLeadEnds(t *testing.T) {
	t.Parallel()
	c := &comes{served: make(chan struct{})}
	w := newWorldOf(t, c, nil)
	site := httptest.NewServer(w.h)
	defer site.Close()
	for what, head := range map[string]string{"no upgrade": bearer(joinToken),
		"no session":       strings.Replace(upgrade, "Session: s", "Session: ", 1) + bearer(joinToken),
		"a long session":   strings.Replace(upgrade, "Session: s", "Session: "+strings.Repeat("x", 65), 1) + bearer(joinToken),
		"another protocol": strings.Replace(upgrade, "hostd-1", "hostd-9", 1) + bearer(joinToken)} {
		if code, _, _ := w.dial(t, site, head); code != http.StatusUpgradeRequired {
			t.Errorf("%s: %d", what, code)
		}
	}
	c.taken = true
	if code, _, _ := w.dial(t, site, upgrade+bearer(joinToken)); code != http.StatusConflict {
		t.Errorf("where another has the name: %d", code)
	}
	c.taken = false
	code, conn, r := w.dial(t, site, upgrade+bearer(joinToken))
	if code != http.StatusSwitchingProtocols {
		t.Fatalf("it joins: %d", code)
	}
	for n := range 3 {
		if _, err := fmt.Fprintf(conn, "line %d\n", n); err != nil {
			t.Fatal(err)
		}
		if line, err := r.ReadString('\n'); err != nil || line != fmt.Sprintf("line %d\n", n) {
			t.Fatalf("%q, %v", line, err)
		}
	}
	var v client.Server
	w.must("GET", "/v1/server", nil, &v)
	if list := v.Engines[0].Joined; len(list) != 2 || list[0].Name != "gpu3" || list[0].Since.IsZero() || !list[1].Since.IsZero() {
		t.Errorf("the server lists %+v", list)
	}
	var found []client.Finding
	w.must("GET", "/v1/engines/p/findings", nil, &found)
	if len(found) != 1 || found[0].OK || found[0].Text != "full" {
		t.Errorf("what is found of the engine: %+v", found)
	}
	close(w.closed)
	eventually.True(t, "it is cut off with the server", func() bool {
		select {
		case <-c.served:
			return true
		default:
			return false
		}
	}, func() string { return w.log.String() })
}

// A machine that reconnects too often is slowed down, and does not affect others.
func TestJoin_SlowsAMachineThatReconnects(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &comes{taken: true}, nil)
	w.joining.Pace.Freeze()
	site := httptest.NewServer(w.h)
	defer site.Close()
	slowed := 0
	for range joining.Burst + 5 {
		if code, _, _ := w.dial(t, site, upgrade+bearer(joinToken)); code == http.StatusTooManyRequests {
			slowed++
		}
	}
	if slowed != 5 {
		t.Errorf("%d were slowed", slowed)
	}
}

// Only admins see which machines joined.
func TestJoined_IsVisibleToAdminsOnly(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &comes{}, nil)
	viewer := w.user("viewer", identity.Grant{Team: "*", Role: identity.Operator})
	if rec, _ := w.ask("GET", "/v1/server", viewer, nil); rec.Code != 200 || strings.Contains(rec.Body.String(), "gpu3") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}
