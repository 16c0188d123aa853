// Package snapshots has the tests of snapshots and of the samples that a store drops before them.
package snapshots

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"scrimp/internal/store"
	"scrimp/internal/test/storetest"
)

// fold is a minimal machine: its state is the hash of all events in order.
func fold(state []byte, list []storetest.Record) []byte {
	for _, r := range list {
		sum := sha256.Sum256(append(slices.Clone(state), storetest.Text(r)...))
		state = sum[:]
	}
	return state
}

// State checks that a snapshot and the events after it give the state of the whole log.
func State(t *testing.T, b storetest.Backend) {
	place := b.Place(t)
	s := b.At(t, place)
	if _, ok, err := s.LatestSnapshot(t.Context()); ok || err != nil {
		t.Fatalf("a snapshot that nobody wrote: %v, %v", ok, err)
	}
	rng := rand.New(rand.NewPCG(7, 7))
	var w storetest.Writer
	for round := range 12 {
		storetest.Must(t, s.Append(t.Context(), w.Make(1+rng.IntN(9))))
		whole := fold(nil, storetest.All(t, s))
		if round%3 == 0 {
			state, err := json.Marshal(whole)
			storetest.Must(t, err)
			storetest.Must(t, s.SaveSnapshot(t.Context(), store.Snapshot{Seq: w.Next - 1, Version: 3, State: state}))
		}
		snap, ok, err := s.LatestSnapshot(t.Context())
		storetest.Must(t, err)
		if !ok || snap.Version != 3 {
			t.Fatalf("the snapshot: %v, version %d", ok, snap.Version)
		}
		var state []byte
		storetest.Must(t, json.Unmarshal(snap.State, &state))
		rest, err := s.WholeRecords(t.Context(), snap.Seq, 1000)
		storetest.Must(t, err)
		if !bytes.Equal(fold(state, rest), whole) {
			t.Fatalf("round %d: snapshot at %d and %d events after it give another state than the whole log", round,
				snap.Seq, len(rest))
		}
		if round%4 == 0 {
			storetest.Must(t, s.Close())
			s = b.At(t, place)
		}
	}
}

// Parts checks that a snapshot of many parts is read as it was written, and that the newest two stay.
func Parts(t *testing.T, b storetest.Backend) {
	place := b.Place(t)
	s := b.At(t, place)
	storetest.Must(t, s.Append(t.Context(), new(storetest.Writer).Make(9)))
	rng := rand.New(rand.NewPCG(1, 1))
	big := make([]byte, 9<<20+17) // not a whole number of parts
	for i := range big {
		big[i] = "0123456789abcdef"[rng.IntN(16)]
	}
	check := func(seq uint64, state []byte) {
		t.Helper()
		snap, ok, err := s.LatestSnapshot(t.Context())
		storetest.Must(t, err)
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
		storetest.Must(t, s.SaveSnapshot(t.Context(), store.Snapshot{Seq: c.seq, Version: 1, State: c.state}))
		check(c.seq, c.state)
	}
	storetest.Must(t, s.SaveSnapshot(t.Context(), store.Snapshot{Seq: 3, Version: 1, State: []byte("late")}))
	check(7, []byte("{}")) // an older one does not become the newest
	storetest.Must(t, b.Exec(t, place, "DELETE FROM snapshot WHERE seq = 7"))
	check(6, big) // the one before is whole
	storetest.Must(t, b.Exec(t, place, "DELETE FROM snapshot WHERE seq = 6"))
	if snap, ok, err := s.LatestSnapshot(t.Context()); ok || err != nil {
		t.Errorf("a third snapshot is kept, at %d: %v", snap.Seq, err)
	}
}

// Torn checks that a snapshot that was cut short does not count.
func Torn(t *testing.T, b storetest.Backend) {
	place := b.Place(t)
	s := b.At(t, place)
	storetest.Must(t, s.Append(t.Context(), new(storetest.Writer).Make(9)))
	storetest.Must(t, s.SaveSnapshot(t.Context(), store.Snapshot{Seq: 4, Version: 1, State: []byte(`"whole"`)}))
	for part := range 3 { // as after a crash before the last step
		storetest.Must(t, b.Exec(t, place, fmt.Sprintf("INSERT INTO snapshot_part (seq, part, bytes) "+
			"VALUES (8, %d, CAST('torn' AS %s))", part, b.Blob())))
	}
	snap, ok, err := s.LatestSnapshot(t.Context())
	storetest.Must(t, err)
	if !ok || snap.Seq != 4 || string(snap.State) != `"whole"` {
		t.Errorf("the newest snapshot is at %d: %q", snap.Seq, snap.State)
	}
	storetest.Must(t, s.SaveSnapshot(t.Context(), store.Snapshot{Seq: 8, Version: 1, State: []byte(`"x"`)}))
	if snap, ok, err = s.LatestSnapshot(t.Context()); err != nil || !ok || snap.Seq != 8 || string(snap.State) != `"x"` {
		t.Errorf("after the next: at %d %q, %v", snap.Seq, snap.State, err)
	}
}
