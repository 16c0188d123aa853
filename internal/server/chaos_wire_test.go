//go:build !local

package server_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"scrimp/internal/test/pgtest"
)

// chaosWire is a proxy between servers and their database. It delays everything, cuts all connections, or loses the
// response to a commit together with the connection.
type chaosWire struct {
	dir  string
	lose atomic.Int32 // responses to appends still to be lost

	mu    sync.Mutex
	until time.Time // nothing passes before
	lines map[net.Conn]bool
}

func newChaosWire(t testing.TB, c *pgtest.Cluster) *chaosWire {
	dir, err := os.MkdirTemp("", "wire-")
	chaosMust(t, err)
	w := &chaosWire{dir: dir, lines: map[net.Conn]bool{}}
	in, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, ".s.PGSQL.5432"))
	chaosMust(t, err)
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = in.Close()
		w.cut()
		all.Wait()
		_ = os.RemoveAll(dir)
	})
	all.Go(func() {
		for {
			client, err := in.Accept()
			if err != nil {
				return
			}
			server, err := (&net.Dialer{}).DialContext(context.Background(), "unix", c.Socket())
			if err != nil {
				_ = client.Close()
				continue
			}
			both := func() { w.end(client); w.end(server) }
			w.mu.Lock()
			w.lines[client], w.lines[server] = true, true
			w.mu.Unlock()
			var doomed atomic.Bool // an append has passed whose response must be lost
			all.Go(func() { defer both(); w.ask(client, server, &doomed) })
			all.Go(func() { defer both(); w.answer(server, client, &doomed) })
		}
	})
	return w
}

func (w *chaosWire) end(c net.Conn) {
	_ = c.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.lines, c)
}

// cut closes all connections at once.
func (w *chaosWire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.lines {
		_ = c.Close()
	}
}

// hold delays everything for that long.
func (w *chaosWire) hold(d time.Duration) {
	w.mu.Lock()
	w.until = time.Now().Add(d)
	w.mu.Unlock()
	rest(d)
}

func (w *chaosWire) held() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Until(w.until)
}

func (w *chaosWire) ask(from, to net.Conn, doomed *atomic.Bool) {
	b := make([]byte, 1<<16)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if d := w.held(); d > 0 {
			rest(d)
		}
		if bytes.Contains(b[:n], []byte(`"schema":1`)) && w.lose.Add(-1) >= 0 { // the text of events
			doomed.Store(true)
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

func (w *chaosWire) answer(from, to net.Conn, doomed *atomic.Bool) {
	b := make([]byte, 1<<16)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if doomed.Load() && bytes.Contains(b[:n], []byte("SELECT 1")) { // committed, but the server does not learn it
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}
