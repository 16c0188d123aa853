package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/store"
	"scrimp/internal/store/logfile"
)

// fold is a minimal machine: its state is the hash of all events in order.
func fold(state []byte, list []Record) []byte {
	for _, r := range list {
		sum := sha256.Sum256(append(slices.Clone(state), text(r)...))
		state = sum[:]
	}
	return state
}

func snapshotState(t *testing.T, b Backend) {
	place := b.Place(t)
	s := b.open(t, place)
	if _, ok, err := s.LatestSnapshot(t.Context()); ok || err != nil {
		t.Fatalf("a snapshot that nobody wrote: %v, %v", ok, err)
	}
	rng := rand.New(rand.NewPCG(7, 7))
	var w Writer
	for round := range 12 {
		must(t, s.Append(t.Context(), w.Make(1+rng.IntN(9))))
		whole := fold(nil, all(t, s))
		if round%3 == 0 {
			state, err := json.Marshal(whole)
			must(t, err)
			must(t, s.SaveSnapshot(t.Context(), store.Snapshot{Seq: w.Next - 1, Version: 3, State: state}))
		}
		snap, ok, err := s.LatestSnapshot(t.Context())
		must(t, err)
		if !ok || snap.Version != 3 {
			t.Fatalf("the snapshot: %v, version %d", ok, snap.Version)
		}
		var state []byte
		must(t, json.Unmarshal(snap.State, &state))
		rest, err := s.WholeRecords(t.Context(), snap.Seq, 1000)
		must(t, err)
		if !bytes.Equal(fold(state, rest), whole) {
			t.Fatalf("round %d: snapshot at %d and %d events after it give another state than the whole log", round,
				snap.Seq, len(rest))
		}
		if round%4 == 0 {
			must(t, s.Close())
			s = b.open(t, place)
		}
	}
}

func snapshotParts(t *testing.T, b Backend) {
	place := b.Place(t)
	s := b.open(t, place)
	must(t, s.Append(t.Context(), new(Writer).Make(9)))
	rng := rand.New(rand.NewPCG(1, 1))
	big := make([]byte, 9<<20+17) // not a whole number of parts
	for i := range big {
		big[i] = "0123456789abcdef"[rng.IntN(16)]
	}
	check := func(seq uint64, state []byte) {
		t.Helper()
		snap, ok, err := s.LatestSnapshot(t.Context())
		must(t, err)
		if !ok || snap.Seq != seq || !bytes.Equal(snap.State, state) {
			t.Fatalf("the newest snapshot: %v, at %d with %d bytes; want %d with %d, and the same bytes", ok, snap.Seq,
				len(snap.State), seq, len(state))
		}
	}
	for _, c := range []struct {
		seq   uint64
		state []byte
	}{{1, big}, {2, big[5:]}, {3, []byte("{}")}, {4, big[1:]}, {4, []byte(`"again, shorter"`)}, {5, nil}, {6, big},
		{7, []byte("{}")}} {
		must(t, s.SaveSnapshot(t.Context(), store.Snapshot{Seq: c.seq, Version: 1, State: c.state}))
		check(c.seq, c.state)
	}
	must(t, s.SaveSnapshot(t.Context(), store.Snapshot{Seq: 3, Version: 1, State: []byte("late")}))
	check(7, []byte("{}")) // an older one does not become the newest
	must(t, b.Exec(t, place, "DELETE FROM snapshot WHERE seq = 7"))
	check(6, big) // the one before is whole
	must(t, b.Exec(t, place, "DELETE FROM snapshot WHERE seq = 6"))
	if snap, ok, err := s.LatestSnapshot(t.Context()); ok || err != nil {
		t.Errorf("a third snapshot is kept, at %d: %v", snap.Seq, err)
	}
}

func snapshotTorn(t *testing.T, b Backend) {
	place := b.Place(t)
	s := b.open(t, place)
	must(t, s.Append(t.Context(), new(Writer).Make(9)))
	must(t, s.SaveSnapshot(t.Context(), store.Snapshot{Seq: 4, Version: 1, State: []byte(`"whole"`)}))
	for part := range 3 { // as after a crash before the last step
		must(t, b.Exec(t, place, fmt.Sprintf("INSERT INTO snapshot_part (seq, part, bytes) VALUES (8, %d, CAST('torn' "+
			"AS %s))", part, b.blob())))
	}
	snap, ok, err := s.LatestSnapshot(t.Context())
	must(t, err)
	if !ok || snap.Seq != 4 || string(snap.State) != `"whole"` {
		t.Errorf("the newest snapshot is at %d: %q", snap.Seq, snap.State)
	}
	must(t, s.SaveSnapshot(t.Context(), store.Snapshot{Seq: 8, Version: 1, State: []byte(`"x"`)}))
	if snap, ok, err = s.LatestSnapshot(t.Context()); err != nil || !ok || snap.Seq != 8 || string(snap.State) != `"x"` {
		t.Errorf("after the next: at %d %q, %v", snap.Seq, snap.State, err)
	}
}

func appendOnly(t *testing.T, b Backend) {
	place := b.Place(t)
	s := b.open(t, place)
	want := new(Writer).Make(12)
	must(t, s.Append(t.Context(), want))
	for _, c := range []struct{ sql, words string }{
		{"UPDATE event SET at = 1 WHERE seq = 4", "events are never changed"},
		{"DELETE FROM event WHERE seq = 12", "events are never deleted"},
		{"UPDATE posting SET job = 'x'", "postings are never changed"},
		{"UPDATE sample SET at = 1 WHERE seq = 3", "samples are never changed"},
		{"DELETE FROM posting WHERE event = 5", "postings are never deleted"},
	} {
		if err := b.Exec(t, place, c.sql); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v; want it refused with %q", c.sql, err, c.words)
		}
	}
	Same(t, all(t, s), want)
}

// damaged changes the database directly, bypassing its guards.
func damaged(t *testing.T, b Backend) {
	for name, sql := range map[string]string{
		"an amount changed":  "UPDATE posting SET " + b.more() + " WHERE event = 5",
		"an owner changed":   "UPDATE posting SET job = 'j-9' WHERE event = 5",
		"an account changed": "UPDATE posting SET target = 'cost/compute/idle' WHERE event = 5",
		"a hash changed": "UPDATE posting SET hash = (SELECT p.hash FROM posting p WHERE p.event = 2 AND p.line = 0) " +
			"WHERE event = 5 AND line = 0",
		"another's rest": "UPDATE posting SET rest = (SELECT p.rest FROM posting p WHERE p.event = 2 AND p.line = 0) " +
			"WHERE event = 5",
		"the rest cut off":   "UPDATE posting SET rest = substr(rest, 1, 20) WHERE event = 5",
		"a posting deleted":  "DELETE FROM posting WHERE event = 5 AND line = 0",
		"all of one deleted": "DELETE FROM posting WHERE event = 5",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := b.Place(t)
			s := b.open(t, place)
			must(t, s.Append(t.Context(), new(Writer).Make(12)))
			tenant := all(t, s)[4].Tenant
			must(t, b.Exec(t, place, b.unguard("posting_stays", "posting")))
			must(t, b.Exec(t, place, b.unguard("posting_kept", "posting")))
			if err := ledger.Verify(s.Postings(t.Context(), tenant, "")); err != nil {
				t.Fatalf("before: %v", err)
			}
			must(t, b.Exec(t, place, sql))
			if err := ledger.Verify(s.Postings(t.Context(), tenant, "")); err == nil ||
				!strings.Contains(err.Error(), "posting ") {
				t.Errorf("found: %v; want the posting named", err)
			}
		})
	}
}

func (b Backend) blob() string {
	if b.Name == "postgres" {
		return "bytea"
	}
	return "BLOB"
}

// more returns SQL that increases an amount by the smallest unit.
func (b Backend) more() string {
	if b.Name == "postgres" {
		return "amount = amount + 0.000000000001"
	}
	return "picos = picos + 1"
}

func (b Backend) unguard(trigger, table string) string {
	if b.Name == "postgres" {
		return "DROP TRIGGER " + trigger + " ON " + table
	}
	return "DROP TRIGGER " + trigger
}

func logs(t *testing.T, b Backend) {
	s, begun := b.fresh(t), time.Now()
	rng := rand.New(rand.NewPCG(3, 3))
	whole := make([]byte, 100_000)
	for i := range whole {
		whole[i] = byte(rng.Uint32())
	}
	sendInPieces(t, s, rng, whole)
	if got := readInPieces(t, s, rng); !bytes.Equal(got, whole) {
		t.Error("what is read is not what was sent")
	}
	timed(t, s, begun)
	if b, err := s.ReadLog(t.Context(), "j-none", 0, 10); len(b) != 0 || err != nil {
		t.Errorf("the output of nobody: %q, %v", b, err)
	}
	if end, err := s.LogEnd(t.Context(), "j-none"); end != 0 || err != nil {
		t.Errorf("the end of nobody's output: %d, %v", end, err)
	}
	for _, bad := range []string{"", "../x", "a/b", ".hidden", `a\b`, "a\x00b"} {
		if _, err := s.AppendLog(t.Context(), bad, 0, []byte("x")); err == nil {
			t.Errorf("output of %q was taken", bad)
		}
		if _, err := s.ReadLog(t.Context(), bad, 0, 10); err == nil {
			t.Errorf("output of %q was read", bad)
		}
	}
	manyLogs(t, s)
}

// sendInPieces appends whole to the output of j-1.2 in chunks that overlap, come twice or leave a hole, and checks
// after each chunk where the store says that the output ends.
func sendInPieces(t *testing.T, s store.Store, rng *rand.Rand, whole []byte) {
	t.Helper()
	end := int64(0)
	for end < int64(len(whole)) {
		at := max(0, end+int64(rng.IntN(3000)-2000))
		chunk := whole[min(at, int64(len(whole))):min(at+int64(rng.IntN(4000)), int64(len(whole)))]
		got, err := s.AppendLog(t.Context(), "j-1.2", at, chunk)
		must(t, err)
		want := end
		if at <= end {
			want = max(end, at+int64(len(chunk)))
		}
		if got != want {
			t.Fatalf("%d bytes at %d onto %d: the end is %d, want %d", len(chunk), at, end, got, want)
		}
		end = want
		has, err := s.LogEnd(t.Context(), "j-1.2")
		must(t, err)
		if has != end {
			t.Fatalf("the store says that the log ends at %d, want %d", has, end)
		}
	}
}

// readInPieces reads the output of j-1.2 from its beginning to its end in parts of random length.
func readInPieces(t *testing.T, s store.Store, rng *rand.Rand) (got []byte) {
	t.Helper()
	for {
		part, err := s.ReadLog(t.Context(), "j-1.2", int64(len(got)), 1+rng.IntN(5000))
		must(t, err)
		if len(part) == 0 {
			return got
		}
		got = append(got, part...)
	}
}

// manyLogs checks that the ranks of a job have outputs of their own, and that the store lists all outputs in order.
func manyLogs(t *testing.T, s store.Store) {
	t.Helper()
	_, err := s.AppendLog(t.Context(), "a", 0, []byte("x"))
	must(t, err)
	for node := range 12 {
		_, err := s.AppendLog(t.Context(), logfile.Name("j-1.3", node), 0, fmt.Appendf(nil, "rank %d", node))
		must(t, err)
	}
	for node := range 12 {
		b, err := s.ReadLog(t.Context(), logfile.Name("j-1.3", node), 0, 100)
		must(t, err)
		if string(b) != fmt.Sprint("rank ", node) {
			t.Errorf("rank %d has the output %q", node, b)
		}
	}
	names, err := s.Logs(t.Context())
	must(t, err)
	if len(names) != 14 || !slices.IsSorted(names) || !slices.Contains(names, "a") || !slices.Contains(names, "j-1.3~11") {
		t.Errorf("names of output: %q", names)
	}
}

// FullDisk checks that a full disk gives a clear error and existing data stays. It needs the right to mount.
func FullDisk(t *testing.T, b Backend) {
	place := b.Full(t, 6<<20)
	s := b.open(t, place)
	var w Writer
	kept := w.Make(20)
	must(t, s.Append(t.Context(), kept))
	var err error
	for range 40 {
		next := w.Make(1)
		for i := range next {
			next[i].Event = json.RawMessage(`"` + random(1<<20) + `"`)
		}
		if err = s.Append(context.Background(), next); err != nil {
			break
		}
		kept = append(kept, next...)
	}
	if err == nil {
		t.Fatal("40 MiB went onto a disk of 6")
	}
	if !errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), "disk") || !strings.Contains(err.Error(), "full") {
		t.Errorf("a full disk says %q", err)
	}
	t.Logf("as a user reads it: %v", err)
	Same(t, all(t, s), kept) // reads continue
	must(t, s.Close())
	s = b.open(t, place)
	Same(t, all(t, s), kept)
	Verify(t, s)
}

// random returns incompressible text.
func random(n int) string {
	rng := rand.New(rand.NewPCG(9, 9))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + rng.IntN(26))
	}
	return string(b)
}

func older(t *testing.T, b Backend) {
	place := b.Old(t)
	for range 2 { // the first leaves it unchanged
		s, err := b.Open(t.Context(), place)
		if err == nil {
			_ = s.Close()
			t.Fatal("a database of an older release was opened")
		}
		for _, want := range []string{"older release of scrimp", "keep the data", "empty"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v; want %q", err, want)
			}
		}
	}
}

func newer(t *testing.T, b Backend) {
	place := b.Place(t)
	s := b.open(t, place)
	must(t, s.Close())
	must(t, b.Exec(t, place, fmt.Sprintf("INSERT INTO schema_version (version, at) VALUES (%d, '2030-01-01')",
		store.Schema(b.Name)+1)))
	if s, err := b.Open(t.Context(), place); err == nil || !strings.Contains(err.Error(), "use a newer program") {
		if err == nil {
			_ = s.Close()
		}
		t.Errorf("a newer schema: %v; want it refused", err)
	}
}

// timed checks the times of an output that was sent since begun.
func timed(t *testing.T, s store.Store, begun time.Time) {
	t.Helper()
	times, err := s.LogTimes(t.Context(), "j-1.2", 0)
	must(t, err)
	if len(times) == 0 || times[0].Offset != 0 || times[0].At.Before(begun.Truncate(time.Millisecond)) ||
		times[0].At.After(time.Now()) {
		t.Errorf("the output came at %v, and it was sent from %v on", times, begun)
	}
	if more, err := s.LogTimes(t.Context(), "j-1.2", len(times)); len(more) != 0 || err != nil {
		t.Errorf("times after the last: %v, %v", more, err)
	}
}
