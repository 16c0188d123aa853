package hostd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
)

// still is a computer that runs nothing.
type still struct{}

func (still) Start(string, string, map[string]string) (Process, error) { return Process{}, nil }
func (still) First(string) Process                                     { return Process{} }
func (still) Alive(Process) bool                                       { return true }
func (still) Kill(string, Process) bool                                { return true }
func (still) Boot() (string, time.Time)                                { return "one", time.Unix(1e9, 0) }

// site is a server that machines join.
type site struct {
	*httptest.Server
	mu       sync.Mutex
	status   int // of its answers; 0: it accepts machines
	sessions []string
	conns    []net.Conn
}

func newSite(t *testing.T) *site {
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.URL.Path != JoinPath { // from facts
			return
		}
		s.sessions = append(s.sessions, r.Header.Get(SessionHeader))
		switch {
		case r.Header.Get("Authorization") != "Bearer secret":
			w.WriteHeader(http.StatusUnauthorized)
			return
		case s.status != 0:
			w.WriteHeader(s.status)
			_, _ = io.WriteString(w, `{"title":"not now"}`)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", JoinProtocol)
		s.conns = append(s.conns, conn)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func (s *site) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

func (s *site) conn(t *testing.T, n int) net.Conn {
	t.Helper()
	var c net.Conn
	eventually.True(t, fmt.Sprintf("connection %d", n), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.conns) > n {
			c = s.conns[n]
		}
		return c != nil
	}, func() string { return fmt.Sprint(s.asked(), " asked") })
	return c
}

func (s *site) options(t *testing.T, token string) JoinOptions {
	return JoinOptions{URL: s.URL, Token: token, Options: Options{Dir: t.TempDir(), Processes: still{}}}
}

// The server sends requests over a joined computer's connection. When that ends, the computer joins again under the
// same id, even if the server answers wrongly for a while.
func TestJoin_ReconnectsUnderTheSameID(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- Join(ctx, s.options(t, "secret")) }()
	for n := range 2 {
		conn := s.conn(t, n)
		if _, err := fmt.Fprintf(conn, "{\"id\":7,\"do\":\"ping\"}\n{\"id\":8,\"do\":\"facts\"}\n"); err != nil {
			t.Fatal(err)
		}
		answers := map[int64]Answer{}
		for lines := bufio.NewScanner(conn); len(answers) < 2 && lines.Scan(); {
			var a Answer
			if json.Unmarshal(lines.Bytes(), &a) == nil {
				answers[a.ID] = a
			}
		}
		if a := answers[7]; a.Problem != "" || a.Facts != nil {
			t.Errorf("ping is answered by %+v", a)
		}
		if a := answers[8]; a.Facts == nil || a.Facts.By != s.URL {
			t.Errorf("facts are %+v: want the URL by which it joined", a.Facts)
		}
		s.mu.Lock()
		s.status = []int{http.StatusUnauthorized, 0}[n]
		s.mu.Unlock()
		_ = conn.Close()
		if n > 0 {
			break
		}
		before := s.asked()
		eventually.True(t, "it comes to a server that refuses it now", func() bool { return s.asked() > before }, func() string { return "" })
		s.mu.Lock()
		s.status = 0
		s.mu.Unlock()
	}
	cancel()
	if err := <-over; err != nil {
		t.Errorf("told to end: %v", err)
	}
	for _, session := range s.sessions {
		if session == "" || session != s.sessions[0] {
			t.Errorf("it came as %q and as %q", s.sessions[0], session)
		}
	}
}

// A token that the server has never accepted ends Join; other problems may pass.
func TestJoin_EndsWhenTheTokenIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := Join(t.Context(), s.options(t, "another")); !errors.Is(err, ErrRefused) {
		t.Errorf("with a token that is not taken: %v", err)
	}
	s.status = http.StatusConflict
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	before := s.asked()
	go func() { over <- Join(ctx, s.options(t, "secret")) }()
	eventually.True(t, "it asks again", func() bool { return s.asked() > before+1 }, func() string { return "" })
	cancel()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// A connection without requests is dropped, because a broken network gives no other sign. Each request extends its
// life.
func TestJoin_DropsASilentConnection(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, far) }()
		over := make(chan error, 1)
		began := time.Now()
		go func() { over <- serveStream(t.Context(), near, near.Close, Options{Dir: dir, Processes: still{}}) }()
		const questions, every = 3, quietMost - time.Second
		for range questions {
			time.Sleep(every)
			if _, err := io.WriteString(far, "{\"id\":1,\"do\":\"ping\"}\n"); err != nil {
				t.Fatal(err)
			}
		}
		err := <-over
		if after := time.Since(began); err == nil || !strings.Contains(err.Error(), "has been silent") ||
			after != questions*every+quietMost {
			t.Errorf("after %v: %v", after, err)
		}
	})
}

// The token is sent only to the configured address, never to a redirect.
func TestJoin_DoesNotFollowRedirectsWithTheToken(t *testing.T) {
	t.Parallel()
	other := newSite(t)
	leads := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer leads.Close()
	j := &joiner{JoinOptions: other.options(t, "secret"), session: "s"}
	j.Server = leads.URL
	if stood, err := j.once(t.Context()); stood || err == nil || other.asked() > 0 {
		t.Errorf("joined %v, %v; the other was asked %d times", stood, err, other.asked())
	}
}

// Roots returns the certificates of the system and of the file, which must contain some.
func TestRoots_AddsTheFilesCertificates(t *testing.T) {
	if pool, err := Roots(""); pool != nil || err != nil {
		t.Errorf("without a file: %v, %v", pool, err)
	}
	empty := t.TempDir() + "/ca.pem"
	must.Do(t, os.WriteFile(empty, []byte("none"), 0o600))
	for _, file := range []string{empty, empty + "x"} {
		if _, err := Roots(file); err == nil || !strings.Contains(err.Error(), "ca.pem") {
			t.Errorf("%s: %v", file, err)
		}
	}
}
