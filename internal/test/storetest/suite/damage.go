package suite

import (
	"bytes"
	"context"
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
	"scrimp/internal/store/migrations"
	"scrimp/internal/test/storetest"
)

func appendOnly(t *testing.T, b storetest.Backend) {
	place := b.Place(t)
	s := b.At(t, place)
	want := new(storetest.Writer).Make(12)
	storetest.Must(t, s.Append(t.Context(), want))
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
	storetest.Same(t, storetest.All(t, s), want)
}

// damaged changes the database directly, bypassing its guards.
func damaged(t *testing.T, b storetest.Backend) {
	for name, sql := range map[string]string{
		"an amount changed":  "UPDATE posting SET " + b.More() + " WHERE event = 5",
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
			s := b.At(t, place)
			storetest.Must(t, s.Append(t.Context(), new(storetest.Writer).Make(12)))
			tenant := storetest.All(t, s)[4].Tenant
			storetest.Must(t, b.Exec(t, place, b.Unguard("posting_stays", "posting")))
			storetest.Must(t, b.Exec(t, place, b.Unguard("posting_kept", "posting")))
			if err := ledger.Verify(s.Postings(t.Context(), tenant, "")); err != nil {
				t.Fatalf("before: %v", err)
			}
			storetest.Must(t, b.Exec(t, place, sql))
			if err := ledger.Verify(s.Postings(t.Context(), tenant, "")); err == nil ||
				!strings.Contains(err.Error(), "posting ") {
				t.Errorf("found: %v; want the posting named", err)
			}
		})
	}
}

func logs(t *testing.T, b storetest.Backend) {
	s, begun := b.Fresh(t), time.Now()
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
		storetest.Must(t, err)
		want := end
		if at <= end {
			want = max(end, at+int64(len(chunk)))
		}
		if got != want {
			t.Fatalf("%d bytes at %d onto %d: the end is %d, want %d", len(chunk), at, end, got, want)
		}
		end = want
		has, err := s.LogEnd(t.Context(), "j-1.2")
		storetest.Must(t, err)
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
		storetest.Must(t, err)
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
	storetest.Must(t, err)
	for node := range 12 {
		_, err := s.AppendLog(t.Context(), logfile.Name("j-1.3", node), 0, fmt.Appendf(nil, "rank %d", node))
		storetest.Must(t, err)
	}
	for node := range 12 {
		b, err := s.ReadLog(t.Context(), logfile.Name("j-1.3", node), 0, 100)
		storetest.Must(t, err)
		if string(b) != fmt.Sprint("rank ", node) {
			t.Errorf("rank %d has the output %q", node, b)
		}
	}
	names, err := s.Logs(t.Context())
	storetest.Must(t, err)
	if len(names) != 14 || !slices.IsSorted(names) || !slices.Contains(names, "a") || !slices.Contains(names, "j-1.3~11") {
		t.Errorf("names of output: %q", names)
	}
}

// FullDisk checks that a full disk gives a clear error and existing data stays. It needs the right to mount.
func FullDisk(t *testing.T, b storetest.Backend) {
	place := b.Full(t, 6<<20)
	s := b.At(t, place)
	var w storetest.Writer
	kept := w.Make(20)
	storetest.Must(t, s.Append(t.Context(), kept))
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
	storetest.Same(t, storetest.All(t, s), kept) // reads continue
	storetest.Must(t, s.Close())
	s = b.At(t, place)
	storetest.Same(t, storetest.All(t, s), kept)
	storetest.Verify(t, s)
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

func older(t *testing.T, b storetest.Backend) {
	place := b.Old(t)
	for range 2 { // the first leaves it unchanged
		s, err := b.Open(t.Context(), place)
		if err == nil {
			_ = s.Close()
			t.Fatal("a database of an older release was opened")
		}
		for _, want := range []string{"older release of scrimp", "keep this data", "empty"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v; want %q", err, want)
			}
		}
	}
}

func newer(t *testing.T, b storetest.Backend) {
	place := b.Place(t)
	s := b.At(t, place)
	storetest.Must(t, s.Close())
	storetest.Must(t, b.Exec(t, place, fmt.Sprintf("INSERT INTO schema_version (version, at) VALUES (%d, '2030-01-01')",
		migrations.Schema(b.Name)+1)))
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
	storetest.Must(t, err)
	if len(times) == 0 || times[0].Offset != 0 || times[0].At.Before(begun.Truncate(time.Millisecond)) ||
		times[0].At.After(time.Now()) {
		t.Errorf("the output came at %v, and it was sent from %v on", times, begun)
	}
	if more, err := s.LogTimes(t.Context(), "j-1.2", len(times)); len(more) != 0 || err != nil {
		t.Errorf("times after the last: %v, %v", more, err)
	}
}
