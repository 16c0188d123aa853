package snapshots

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/store"
	"scrimp/internal/test/must"
	"scrimp/internal/test/storetest"
)

// partsOf returns the head and the parts of a snapshot.
func partsOf(t *testing.T, s store.Store, snap store.Snapshot) []string {
	t.Helper()
	list := []string{string(snap.State)}
	for part, err := range s.SnapshotParts(t.Context(), snap) {
		must.Do(t, err)
		list = append(list, string(part))
	}
	return list
}

// Shared checks that a snapshot shares its unchanged parts with the one before, and that unneeded parts go.
func Shared(t *testing.T, b storetest.Backend) {
	place := b.Place(t)
	s := b.At(t, place)
	storetest.Must(t, s.Append(t.Context(), new(storetest.Writer).Make(40)))
	whole := []string(nil) // the head, and the last saved value of each part
	var earlier store.Snapshot
	base := uint64(0)
	for round := range 8 {
		seq := uint64(4 * (round + 1))
		parts := 3 + 2*round
		whole = append(whole, make([]string, parts+1-len(whole))...)
		whole[0] = fmt.Sprintf(`{"head":%d,"long":%q}`, round, strings.Repeat("x", 5<<20*(round%2)))
		saved, names := changeParts(whole[1:], round)
		storetest.Must(t, s.SaveParts(t.Context(), seq, saved))
		// parts of a snapshot that never completes
		torn := map[int]json.RawMessage{0: []byte(`"torn"`), 999: []byte(`"torn"`)}
		storetest.Must(t, s.SaveParts(t.Context(), seq+1, torn))
		if snap, ok, err := s.LatestSnapshot(t.Context()); err != nil || ok != (round > 0) || snap.Seq != base {
			t.Fatalf("round %d: the snapshot at %d is there before it is saved: %v", round, snap.Seq, err)
		}
		next := store.Snapshot{Seq: seq, Version: 7, State: json.RawMessage(whole[0]), Parts: parts, Base: base, New: names}
		if hole := next; round > 0 {
			hole.Base = 0
			if err := s.SaveSnapshot(t.Context(), hole); err == nil {
				t.Fatalf("round %d: a snapshot with a hole is saved", round)
			}
		}
		storetest.Must(t, s.SaveSnapshot(t.Context(), next))
		base = seq
		if round == 5 {
			storetest.Must(t, s.Close())
			s = b.At(t, place)
		}
		snap := shownWhole(t, s, next, whole)
		if round == 4 {
			earlier = snap
		}
	}
	gone := error(nil)
	for _, err := range s.SnapshotParts(t.Context(), earlier) {
		gone = err
	}
	if !errors.Is(gone, store.ErrGone) {
		t.Errorf("a snapshot that three newer ones have followed is read: %v", gone)
	}
	storetest.Must(t, b.Exec(t, place, "DELETE FROM snapshot WHERE seq = 32")) // the one before it is still whole
	snap, ok, err := s.LatestSnapshot(t.Context())
	if err != nil || !ok || snap.Seq != 28 || len(partsOf(t, s, snap)) != snap.Parts+1 {
		t.Errorf("the snapshot before the newest: %v, %v, at %d", ok, err, snap.Seq)
	}
	unneededPartsGo(t, b, s, place)
	storetest.Must(t, s.Close())
}

// changeParts gives new text to each part that has none and to a third of the others, which differs from round to
// round. It returns the parts that it changed, and their numbers in order.
func changeParts(parts []string, round int) (saved map[int]json.RawMessage, names []int) {
	saved = map[int]json.RawMessage{}
	for n := range parts {
		if parts[n] == "" || n%3 == round%3 {
			parts[n] = fmt.Sprintf(`["%d of %d"]`, n, round)
			saved[n], names = json.RawMessage(parts[n]), append(names, n)
		}
	}
	return saved, names
}

// shownWhole reads the newest snapshot, which must be next; whole is its head and its parts.
func shownWhole(t *testing.T, s store.Store, next store.Snapshot, whole []string) store.Snapshot {
	t.Helper()
	snap, ok, err := s.LatestSnapshot(t.Context())
	if err != nil || !ok || snap.Seq != next.Seq || snap.Version != 7 || snap.Parts != next.Parts {
		t.Fatalf("snapshot %d: %v, %v: %d of version %d with %d parts", next.Seq, ok, err, snap.Seq, snap.Version,
			snap.Parts)
	}
	if got := partsOf(t, s, snap); !slices.Equal(got, whole) {
		t.Fatalf("snapshot %d: %.300q, want %.300q", next.Seq, got, whole)
	}
	one, ok, err := store.Whole(t.Context(), s)
	if want := fmt.Sprintf(`{"head":%s,"parts":[%s]}`, whole[0], strings.Join(whole[1:], ",")); err != nil || !ok ||
		string(one.State) != want || one.Parts != 0 {
		t.Fatalf("snapshot %d: as one value it is %.300q: %v", next.Seq, one.State, err)
	}
	return snap
}

// unneededPartsGo saves snapshots without parts, after those at 28 and 32.
func unneededPartsGo(t *testing.T, b storetest.Backend, s store.Store, place string) {
	t.Helper()
	// A snapshot without parts makes all others unneeded, except those of the snapshot before it.
	storetest.Must(t, s.SaveSnapshot(t.Context(), store.Snapshot{Seq: 36, Version: 7, State: []byte(`"all"`)}))
	storetest.Must(t, s.SaveSnapshot(t.Context(), store.Snapshot{Seq: 37, Version: 7, State: []byte(`"all"`)}))
	storetest.Must(t, b.Exec(t, place, "DELETE FROM snapshot_part WHERE seq >= 36"))
	if err := b.Exec(t, place, "CREATE TABLE nothing_is_left AS SELECT 1/(CASE WHEN count(*) = 0 THEN 1 ELSE 0 END) "+
		"AS ok FROM snapshot_part"); err != nil {
		t.Errorf("parts are kept that no snapshot needs: %v", err)
	}
}
