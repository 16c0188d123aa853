package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"scrimp/internal/control/replay"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/store"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/must"
)

// keptLog returns the log that an early release wrote.
func keptLog(t *testing.T) (records []store.Record) {
	t.Helper()
	f, err := os.Open("../sim/testdata/log-2.jsonl")
	must.Do(t, err)
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l struct {
			Event, Facts json.RawMessage
			Postings     []ledger.Posting
		}
		var e core.Event
		must.Do(t, json.Unmarshal(lines.Bytes(), &l))
		must.Do(t, json.Unmarshal(l.Event, &e))
		records = append(records, store.Record{
			Seq: uint64(len(records) + 1), Tenant: e.Tenant, At: e.At, Kind: e.Body.Kind(), Key: e.Key, Event: l.Event, Facts: l.Facts, Postings: l.Postings,
		})
	}
	return records
}

// cut is a store whose log starts after an event.
type cut struct {
	store.Store
	after uint64
}

func (c cut) WholeRecords(ctx context.Context, after uint64, most int) ([]store.Record, error) {
	return c.Store.WholeRecords(ctx, max(after, c.after), most)
}

// This release opens a database of an earlier release whatever its snapshots look like, because the log contains
// everything. If the log has gaps, it refuses instead of guessing.
func TestRestore_OpensADatabaseOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	records := keptLog(t)
	m := state.New()
	var halfway json.RawMessage
	half := uint64(len(records) / 2)
	for _, r := range records {
		e, facts, err := replay.Decode(r)
		must.Do(t, err)
		if m.Replay(r.Seq, e, facts, r.Postings); m.Seq() == half {
			if halfway, err = m.Snapshot(); err != nil {
				t.Fatal(err)
			}
		}
	}
	want, err := m.Snapshot()
	must.Do(t, err)
	now := time.Now().UTC()
	for _, c := range []struct {
		name    string
		seq     uint64
		version int
		state   string
		parts   int
		without uint64 // events missing from the log
		warns   bool
		fails   string
	}{
		{name: "no snapshot"},
		{name: "one of this release", seq: half, version: state.SnapshotVersion, state: string(halfway)},
		{name: "one of this release, and of the log what follows it", seq: half, version: state.SnapshotVersion, state: string(halfway), without: half},
		{name: "one of version 4", seq: half, version: 4, state: `{"version":4,"seq":1}`, warns: true},
		{name: "one of version 2", seq: half, version: 2, state: `{"version":2,"jobs":[{"id":"a","epoch":"x"}]}`, warns: true},
		{name: "one of a later release", seq: half, version: 99, state: `[]`, warns: true},
		{name: "one that is damaged", seq: half, version: state.SnapshotVersion, state: string(halfway[:len(halfway)/2]), warns: true},
		{name: "one whose part is damaged", seq: half, version: state.SnapshotVersion, parts: 1, state: `{"jobs":[{"id":`, warns: true},
		{name: "one of version 4, and of the log what follows it", seq: half, version: 4, state: `{}`, without: half, fails: fmt.Sprintf("events 1 to %d are in no log, only in a snapshot, and the snapshot cannot be read: it has version 4, and this release reads version %d: start once the release of scrimp that wrote it", half, state.SnapshotVersion)},
		{name: "one of version 4, and no log", seq: uint64(len(records)), version: 4, state: `{}`, without: uint64(len(records)), fails: fmt.Sprintf("events 1 to %d are in no log", len(records))},
		{name: "no snapshot, and a log without its beginning", without: 3, fails: "events 1 to 3 are missing from the log: restore a backup"},
	} {
		t.Run(c.name, func(t *testing.T) {
			st, err := sqlite.Open(t.TempDir())
			must.Do(t, err)
			defer func() { _ = st.Close() }()
			must.Do(t, st.Append(t.Context(), records))
			if c.version > 0 {
				s := store.Snapshot{Seq: c.seq, Version: c.version, State: json.RawMessage(c.state), Parts: c.parts}
				if c.parts > 0 {
					s.New, s.State = []int{0}, json.RawMessage(fmt.Sprintf(`{"version":%d,"part":512,"jobs":1,"seq":%d}`, c.version, c.seq))
					must.Do(t, st.SaveParts(t.Context(), c.seq, map[int]json.RawMessage{0: json.RawMessage(c.state)}))
				}
				must.Do(t, st.SaveSnapshot(t.Context(), s))
			}
			var log bytes.Buffer
			got, err := New(t.Context(), cut{st, c.without}, engineOf("shut", shut{}, time.Hour), Config{Clock: Clock{Wall: now, Market: now, Speed: 1}, Log: slog.New(slog.NewTextHandler(&log, nil))})
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("it opens with %v, want %q", err, c.fails)
				}
				return
			}
			must.Do(t, err)
			snap, err := got.machine.Snapshot()
			if err != nil || !bytes.Equal(snap, want) {
				t.Errorf("the state is another than that of the log: %v", err)
			}
			if warned := strings.Contains(log.String(), "passed over"); warned != c.warns {
				t.Errorf("the log of the server says %q", log.String())
			}
		})
	}
}
