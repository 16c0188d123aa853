//go:build !local

package store_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"scrimp/internal/store"
	"scrimp/internal/store/postgres"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/pgtest"
	"scrimp/internal/test/storetest"
)

// wire is a proxy in front of a database that loses chosen answers, or goes silent.
type wire struct {
	dir    string
	lose   atomic.Int32 // answers to appends still to be lost
	lost   atomic.Int32
	frozen atomic.Bool
	dead   atomic.Int32 // connections opened before this count swallow what is sent, as behind a firewall that forgot them
	lines  atomic.Int32
	thaw   chan struct{}
	hold   atomic.Bool   // the next append stays on the way until its client has given up and the wire thaws
	held   chan struct{} // closed when an append is held
}

func newWire(t testing.TB, c *pgtest.Cluster) *wire {
	dir, err := os.MkdirTemp("", "wire-")
	must(t, err)
	w := &wire{dir: dir, thaw: make(chan struct{}), held: make(chan struct{})}
	in, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	must(t, err)
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		_ = in.Close()
		all.Wait()
		_ = os.RemoveAll(dir)
	})
	all.Go(func() {
		for {
			client, err := in.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", c.Socket())
			if err != nil {
				_ = client.Close()
				continue
			}
			both := func() { _ = client.Close(); _ = server.Close() }
			context.AfterFunc(ctx, both)
			var doomed atomic.Bool // an append has gone through whose answer must be lost
			line := w.lines.Add(1)
			all.Go(func() { defer both(); w.ask(client, server, line, &doomed) })
			all.Go(func() { defer both(); w.answer(server, client, &doomed) })
		}
	})
	return w
}

// address returns the database's address through the wire.
func (w *wire) address(direct string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(direct, "postgres://postgres@/"), "?")
	return pgtest.Address(name, w.dir)
}

// forget makes all existing connections swallow what is sent from now on.
func (w *wire) forget() { w.dead.Store(w.lines.Load()) }

func (w *wire) ask(from, to net.Conn, line int32, doomed *atomic.Bool) {
	b := make([]byte, 1<<20)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if w.frozen.Load() {
			<-w.thaw
		}
		if line <= w.dead.Load() {
			continue
		}
		if strings.Contains(string(b[:n]), `{"at": "x"`) { // the text of the records
			if w.hold.CompareAndSwap(true, false) {
				close(w.held)
				// A client that gives up makes the database cancel the append and then says goodbye. Without this
				// wait, the cancellation could arrive first, and there would be no append.
				bye, err := from.Read(b[n:])
				if err != nil {
					return
				}
				n += bye
				<-w.thaw
			}
			if w.lose.Add(-1) >= 0 {
				doomed.Store(true)
			}
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

func (w *wire) answer(from, to net.Conn, doomed *atomic.Bool) {
	b := make([]byte, 1<<20)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if doomed.Load() && strings.Contains(string(b[:n]), "SELECT 1") { // the append is done, and its answer is lost
			w.lost.Add(1)
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// An append whose answer is lost has happened, and is not repeated.
func lostAnswer(t *testing.T, c *pgtest.Cluster) {
	address := c.Database(t)
	wire := newWire(t, c)
	s := replica(t, settings(placeOf(t, wire.address(address))))
	must(t, s.TryLead(t.Context()))
	var w storetest.Writer
	for range 10 {
		wire.lose.Store(2)
		must(t, s.Append(t.Context(), w.Make(7)))
	}
	if n := wire.lost.Load(); n < 10 {
		t.Fatalf("%d answers were lost: the test shows nothing", n)
	}
	wantWritten(t, s, 70)
}

// A leader that cannot reach the database knows by itself that it may no longer lead, before another can lead. Its
// write fails and leaves the log sound.
func cutOff(t *testing.T, c *pgtest.Cluster) {
	address := c.Database(t)
	wire := newWire(t, c)
	cfg := settings(placeOf(t, wire.address(address)))
	cfg.Lease, cfg.Patience = time.Second, 0
	s := replica(t, cfg)
	must(t, s.TryLead(t.Context()))
	var w storetest.Writer
	must(t, s.Append(t.Context(), w.Make(7)))
	wire.frozen.Store(true)
	err := s.Append(t.Context(), w.Make(3)) // waits one lease
	if err == nil || errors.Is(err, store.ErrDeposed) || !strings.Contains(err.Error(), "reachable from here?") {
		t.Fatalf("an append into a dead line: %v", err)
	}
	t.Logf("as a user reads it: %v", err)
	if s.Leads() {
		t.Error("a lease after it was cut off it still leads")
	}
	cfg.URL = address
	next := replica(t, cfg)
	must(t, next.Lead(t.Context()))
	close(wire.thaw) // what was sent arrives at last
	wire.frozen.Store(false)
	w = storetest.Writer{}
	must(t, next.Append(t.Context(), w.Make(9)[7:]))
	if err := s.Append(t.Context(), w.Make(1)); !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrDeposed) {
		t.Errorf("the one that was cut off writes: %v", err)
	}
	wantWritten(t, next, 9)
}

// An append that was given up arrives after all: the leader notices before it writes again, and continues behind it.
func lateWrite(t *testing.T, c *pgtest.Cluster) {
	address := c.Database(t)
	wire := newWire(t, c)
	cfg := settings(placeOf(t, wire.address(address)))
	cfg.Lease = time.Hour
	s := replica(t, cfg)
	must(t, s.TryLead(t.Context()))
	var w storetest.Writer
	must(t, s.Append(t.Context(), w.Make(7)))
	wire.hold.Store(true)
	brief, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-wire.held
		cancel()
	}()
	late := w.Make(3)
	if err := s.Append(brief, late); !errors.Is(err, context.Canceled) {
		t.Fatalf("an append that is given up on the way: %v", err)
	}
	close(wire.thaw)
	eventually.True(t, "the append is there", func() bool {
		end, err := s.End(t.Context())
		must(t, err)
		return end == 10
	})
	if err := s.Append(t.Context(), late); !errors.Is(err, store.ErrConflict) {
		t.Errorf("the same again: %v, want ErrConflict", err)
	}
	must(t, s.Append(t.Context(), w.Make(5)))
	wantWritten(t, s, 15)
}

// A follower on connections that have died silently takes over all the same, and a leader on such connections
// continues to write.
func deadLines(t *testing.T, c *pgtest.Cluster) {
	address := c.Database(t)
	wire := newWire(t, c)
	cfg := settings(placeOf(t, address))
	cfg.Lease, cfg.Patience = time.Hour, time.Minute
	first := replica(t, cfg)
	must(t, first.TryLead(t.Context()))
	cfg.URL, cfg.Lease = wire.address(address), time.Second
	next := replica(t, cfg)
	if err := next.TryLead(t.Context()); !errors.Is(err, store.ErrLocked) {
		t.Fatalf("a second leader: %v", err)
	}
	wire.forget()
	must(t, first.Close())
	must(t, next.Lead(t.Context()))
	var w storetest.Writer
	must(t, next.Append(t.Context(), w.Make(7)))
	wire.forget()
	must(t, next.Append(t.Context(), w.Make(3))) // no other server wants to lead
	wantWritten(t, next, 10)
	must(t, next.Close())
	cfg.Patience = 0
	last := replica(t, cfg)
	must(t, last.TryLead(t.Context()))
	wire.frozen.Store(true)
	err := last.PutMeta(t.Context(), "a", "b")
	close(wire.thaw)
	if !postgres.Away(err) {
		t.Errorf("a write that had no answer is taken for another fault: %v", err)
	}
}
