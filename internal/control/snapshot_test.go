package control

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/engine"
	"scrimp/internal/market"
	"scrimp/internal/store"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/must"
)

// shut is a provider without offers.
type shut struct{}

func (shut) Launch(context.Context, engine.Request) ([]engine.Instance, error) {
	return nil, engine.ErrNoCapacity
}
func (shut) Terminate(context.Context, string) error         { return engine.ErrNotFound }
func (shut) List(context.Context) ([]engine.Instance, error) { return nil, nil }
func (shut) Offers(context.Context) ([]market.Offer, []market.Quote, error) {
	return nil, nil, nil
}

// counted counts how often records are read.
type counted struct {
	store.Store
	n int
}

func (c *counted) Records(ctx context.Context, after uint64, limit int) ([]store.Record, error) {
	c.n++
	return c.Store.Records(ctx, after, limit)
}

// A server that stops while snapshots are being written restarts with the same state, whichever snapshot it finds,
// and knows every job file.
func TestRestart_FindsTheSameState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	parts := 0
	st, err := sqlite.Open(dir)
	must.Do(t, err)
	now := time.Now().UTC()
	cfg := Config{Clock: Clock{Wall: now, Market: now, Speed: 1}, Silence: time.Hour, Snapshot: 50, Log: slog.New(slog.DiscardHandler)}
	var before json.RawMessage
	jobs := 0
	for range 4 {
		c, err := New(t.Context(), st, engineOf("shut", shut{}, time.Hour), cfg)
		must.Do(t, err)
		if before != nil {
			after, err := c.machine.Snapshot()
			if err != nil || !bytes.Equal(before, after) {
				t.Fatalf("a restart with %d jobs gives another state: %v", jobs, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = c.Run(ctx) }()
		for range 30 {
			var events []core.Event // ten share a transaction
			for range 10 {
				jobs++
				id := fmt.Sprint("j", jobs)
				body := core.JobSubmitted{Job: id, Spec: json.RawMessage(fmt.Sprintf(`{"name":%q}`, id)), Terms: core.Terms{Name: id}}
				events = append(events, core.Event{At: c.Now(), Schema: core.Schema, Tenant: "default", Key: id, Body: body})
			}
			must.Do(t, c.Propose(ctx, events...))
		}
		cancel()
		<-done
		if before, err = c.machine.Snapshot(); err != nil {
			t.Fatal(err)
		}
	}
	snap, ok, err := st.LatestSnapshot(t.Context())
	if err != nil || !ok || snap.Seq < 50 {
		t.Fatalf("no snapshot was written beside %d events: %v %v", jobs, snap.Seq, err)
	}
	c, err := New(t.Context(), st, engineOf("shut", shut{}, time.Hour), cfg)
	must.Do(t, err)
	for part, err := range st.SnapshotParts(t.Context(), snap) {
		if err != nil || len(part) == 0 {
			t.Fatal(err)
		}
		parts++
	}
	if parts < 2 || parts != snap.Parts {
		t.Errorf("the snapshot of %d jobs has %d parts, and names %d", jobs, parts, snap.Parts)
	}
	for i := 1; i <= jobs; i += 7 {
		id := fmt.Sprint("j", i)
		if text, ok, err := c.Spec(t.Context(), id); err != nil || !ok || string(text) != fmt.Sprintf(`{"name":%q}`, id) {
			t.Fatalf("the job file of %s is %q, %v, %v", id, text, ok, err)
		}
	}
	reads := &counted{Store: c.store}
	c.store = reads
	for range 64 { // as many ranks of a gang
		if text, ok, err := c.Spec(t.Context(), "j1"); err != nil || !ok || string(text) != `{"name":"j1"}` {
			t.Fatalf("the job file of j1 is %q, %v, %v", text, ok, err)
		}
	}
	if reads.n > 0 {
		t.Errorf("the log was read %d times for a job file that was read before", reads.n)
	}
	if _, ok, err := c.Spec(t.Context(), "nobody"); ok || err != nil {
		t.Errorf("a job that nobody submitted has a job file: %v", err)
	}
	must.Do(t, st.Close())
}
