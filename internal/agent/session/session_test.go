package session

import (
	"context"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/agent/logship"
	"scrimp/internal/agent/wire"
	"scrimp/internal/test/eventually"
	"scrimp/internal/wire/api"
)

// typist is the server's side of a session.
type typist struct {
	wire.Server // the other methods are unused

	mu       sync.Mutex
	typed    []byte
	end, bye bool
	news     bool // a change that no answer has reported yet
	size     *api.Terminal
	printed  []byte
	changed  chan struct{}
}

func (s *typist) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.news = true
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *typist) SessionInput(ctx context.Context, _ string, offset int64) (api.SessionInput, error) {
	s.mu.Lock()
	changed, known := s.changed, int64(len(s.typed)) > offset || s.bye || s.news
	s.news = false
	s.mu.Unlock()
	if !known {
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bye {
		return api.SessionInput{}, wire.ErrBad
	}
	return api.SessionInput{Input: s.typed[offset:], End: s.end, Terminal: s.size}, ctx.Err()
}

func (s *typist) SessionOutput(_ context.Context, _ string, offset int64, chunk []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bye {
		return wire.ErrBad
	}
	s.printed = append(s.printed[:offset], chunk...)
	return nil
}

func (s *typist) types(text string) { s.change(func() { s.typed = append(s.typed, text...) }) }

func (s *typist) prints(t *testing.T, text string) {
	t.Helper()
	eventually.True(t, "it prints "+text, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return strings.Contains(string(s.printed), text) })
}

// begin starts a session, and returns a channel for its result.
func (s *typist) begin(t *testing.T, terminal *api.Terminal, command ...string) chan api.ExecResult {
	s.changed, s.size = make(chan struct{}), terminal
	run := Session{Server: s, ID: "s1", Mask: logship.NewMasker(map[string]string{"KEY": "sesame-street"}), HangUp: 100 * time.Millisecond}
	done := make(chan api.ExecResult, 1)
	go func() {
		done <- run.Run(t.Context(), api.Exec{ID: "s1", Command: command, Input: true, Terminal: terminal}, t.TempDir(), os.Environ(), 0)
	}()
	return done
}

// over waits for the end of a session.
func over(t *testing.T, done chan api.ExecResult) api.ExecResult {
	t.Helper()
	select {
	case r := <-done:
		return r
	case <-time.After(eventually.Limit):
		t.Fatalf("the session has not ended after %v", eventually.Limit)
		return api.ExecResult{}
	}
}

// A session's terminal follows the user's size, the command reads what the user types, and Ctrl-C ends it.
func TestSession_ControlsTerminal(t *testing.T) {
	t.Parallel()
	s := &typist{}
	done := s.begin(t, &api.Terminal{Rows: 33, Cols: 101, Kind: "vt100"}, "/bin/sh", "-c",
		"stty size; echo $TERM sesame-street; read x; echo got $x; stty size; while :; do sleep 0.1; done")
	s.prints(t, "33 101\r\nvt100 *************\r\n")
	s.change(func() { s.size = &api.Terminal{Rows: 20, Cols: 66} })
	s.types("hello\n")
	s.prints(t, "got hello")
	s.prints(t, "20 66")
	s.types("\x03")
	if r := over(t, done); r.Exit != 128+int(syscall.SIGINT) || r.Error != "" {
		t.Errorf("it ends with %+v", r)
	}
}

// Without a terminal, the command reads all input until its end, and its exit status is reported.
func TestSession_ReadsInputToEnd(t *testing.T) {
	t.Parallel()
	s := &typist{}
	done := s.begin(t, nil, "/bin/sh", "-c", "wc -c; exit 5")
	for range 10 {
		s.types(strings.Repeat("x", 10_000))
	}
	s.change(func() { s.end = true })
	if r := over(t, done); r.Exit != 5 || strings.TrimSpace(string(s.printed)) != "100000" {
		t.Errorf("%q, %+v", s.printed, r)
	}
}

// A command that nobody follows ends, even if it ignores SIGHUP. A command that cannot run reports an error.
func TestSession_EndsWithItsReader(t *testing.T) {
	t.Parallel()
	for _, terminal := range []*api.Terminal{nil, {Rows: 24, Cols: 80}} {
		s := &typist{}
		done := s.begin(t, terminal, "/bin/sh", "-c", "trap '' HUP; echo up; while :; do sleep 0.1; done")
		s.prints(t, "up")
		s.change(func() { s.bye = true })
		if r := over(t, done); r.Exit == 0 {
			t.Errorf("it ends with %+v", r)
		}
		s = &typist{}
		if r := over(t, s.begin(t, terminal, "/no/such/program")); r.Exit != 127 || r.Error == "" {
			t.Errorf("no program: %+v", r)
		}
		s = &typist{}
		if r := over(t, s.begin(t, terminal)); r.Error == "" {
			t.Errorf("no command: %+v", r)
		}
	}
}
