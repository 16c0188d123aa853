package snapshots

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"scrimp/internal/store"
	"scrimp/internal/test/storetest"
)

// SamplesMerged checks that samples are among the events in the order of the log.
func SamplesMerged(t *testing.T, b storetest.Backend) {
	s := b.Fresh(t)
	want := new(storetest.Writer).Make(60)
	for at := 0; at < len(want); at += 12 {
		storetest.Must(t, s.Append(t.Context(), want[at:at+12]))
	}
	samples := 0
	for _, r := range want {
		if r.Sample {
			samples++
		}
	}
	if samples != 10 {
		t.Fatalf("%d samples: the test shows little", samples)
	}
	storetest.Same(t, storetest.All(t, s), want)
	storetest.Whole(t, s, 0)
	for after := range uint64(61) { // wherever a page starts and ends
		for _, limit := range []int{1, 2, 7} {
			page, err := s.Records(t.Context(), after, limit)
			storetest.Must(t, err)
			storetest.Same(t, page, storetest.Bare(want[after:min(int(after)+limit, 60)]))
		}
		storetest.Must(t, storetest.Chained(t, s, after, 0))
	}
	ticks, err := s.RecordsOf(t.Context(), "tick", 3, 4) // 9 is a sample, the others are not
	storetest.Must(t, err)
	storetest.Same(t, ticks, storetest.Bare([]storetest.Record{want[4], want[6], want[8], want[10]}))
	seen, err := s.Seen(t.Context(), "default", "key-9", "key-12")
	if err != nil || !maps.Equal(seen, map[string]uint64{"key-9": 9, "key-12": 12}) {
		t.Errorf("the keys of a sample and an event: %v, %v", seen, err)
	}
}

// SamplesDropped checks that samples can go, except those that a snapshot needs.
func SamplesDropped(t *testing.T, b storetest.Backend) {
	place := b.Place(t)
	s := b.At(t, place)
	var w storetest.Writer
	want := w.Make(60)
	storetest.Must(t, s.Append(t.Context(), want))
	refused := func(upTo uint64) {
		t.Helper()
		if n, err := s.DropSamples(t.Context(), upTo); n != 0 || !errors.Is(err, store.ErrNeeded) {
			t.Errorf("samples up to %d: %d dropped, %v; want ErrNeeded", upTo, n, err)
		}
		storetest.Same(t, storetest.All(t, s), want)
	}
	refused(1) // only a replay of the log gives its state
	storetest.SaveSnapshots(t, s, 20, 40)
	refused(21) // the older one needs it
	refused(60)
	storetest.Drop(t, s, 2, 0)
	storetest.Drop(t, s, 20, 3)
	storetest.Drop(t, s, 20, 0)
	want = storetest.Dropped(want, 20)
	refused(21)
	storetest.SaveSnapshots(t, s, 50) // now 40 is the older one
	storetest.Drop(t, s, 40, 4)
	want = storetest.Dropped(want, 40)
	refused(41)
	storetest.Same(t, storetest.All(t, s), want)
	storetest.Whole(t, s, 40)
	var missing *store.MissingError
	if err := storetest.Chained(t, s, 0, 38); !errors.As(err, &missing) ||
		*missing != (store.MissingError{First: 39, Last: 39}) {
		t.Errorf("who wants the samples after 38 is told %v, want that 39 is missing", err)
	}
	keys, err := s.Seen(t.Context(), "default", "key-9", "key-12", "key-45")
	if err != nil || !maps.Equal(keys, map[string]uint64{"key-12": 12, "key-45": 45}) {
		t.Errorf("keys: %v, %v; want those of what is there", keys, err)
	}
	storetest.Must(t, s.Close())
	s = b.At(t, place)
	more := w.Make(20)
	storetest.Must(t, s.Append(t.Context(), more))
	want = append(want, more...)
	storetest.Same(t, storetest.All(t, s), want)
	storetest.Whole(t, s, 40)
	storetest.Verify(t, s)
	storetest.Must(t, s.Append(t.Context(), w.Make(2*6*1000))) // and in more than one slice
	storetest.SaveSnapshots(t, s, w.Next-2, w.Next-1)
	storetest.Drop(t, s, w.Next-2, 2006)
	storetest.Whole(t, s, w.Next-2)
}

// LastStays checks that the last record stays, and that the log goes on after it.
func LastStays(t *testing.T, b storetest.Backend) {
	place := b.Place(t)
	s := b.At(t, place)
	var w storetest.Writer
	want := w.Make(9)
	storetest.Must(t, s.Append(t.Context(), want))
	storetest.SaveSnapshots(t, s, 9)
	storetest.Drop(t, s, 9, 1)
	for range 2 { // 9 marks the end of the log, and its predecessor
		if end, err := s.End(t.Context()); end != 9 || err != nil {
			t.Errorf("the log ends at %d (%v), want 9", end, err)
		}
		storetest.Same(t, storetest.All(t, s), storetest.Dropped(want, 9))
		storetest.Whole(t, s, 9)
		storetest.Must(t, s.Close())
		s = b.At(t, place)
	}
	want = append(want, w.Make(1)...)
	storetest.Must(t, s.Append(t.Context(), want[9:]))
	storetest.Drop(t, s, 9, 1)
	storetest.Same(t, storetest.All(t, s), storetest.Dropped(want, 9))
	storetest.Whole(t, s, 9)
}

// SampleWithMore checks that a store refuses a sample with facts or postings.
func SampleWithMore(t *testing.T, b storetest.Backend) {
	s := b.Fresh(t)
	list := new(storetest.Writer).Make(12)
	for _, n := range []int{7, 9} { // 8 and 10 have facts and postings
		bad := slices.Clone(list)
		bad[n].Sample = true
		if bad[n].Facts = nil; n == 9 {
			bad[n].Facts, bad[n].Postings = list[n].Facts, nil
		}
		if err := s.Append(t.Context(), bad); err == nil {
			t.Errorf("event %d is taken for a sample", n+1)
		}
	}
	storetest.Must(t, s.Append(t.Context(), list))
	storetest.Same(t, storetest.All(t, s), list)
}

// MissingFound deletes records directly in the database that the store never deletes.
// MissingFound checks that a store finds a missing event when samples are gone.
func MissingFound(t *testing.T, b storetest.Backend) {
	place := b.Place(t)
	s := b.At(t, place)
	want := new(storetest.Writer).Make(63) // the last is a sample
	storetest.Must(t, s.Append(t.Context(), want))
	storetest.SaveSnapshots(t, s, 30, 40)
	storetest.Drop(t, s, 30, 5)
	want = storetest.Dropped(want, 30)
	for _, table := range []string{"event", "posting"} {
		storetest.Must(t, b.Exec(t, place, b.Unguard(table+"_kept", table)))
	}
	storetest.Must(t, b.Exec(t, place, "CREATE TABLE copy_event AS SELECT * FROM event"))
	storetest.Must(t, b.Exec(t, place, "DELETE FROM posting"))
	storetest.Whole(t, s, 30)
	for seq := uint64(1); seq < 63; seq++ {
		r := slices.IndexFunc(want, func(r storetest.Record) bool { return r.Seq == seq })
		if r < 0 {
			continue // dropped
		}
		table := map[bool]string{true: "sample", false: "event"}[want[r].Sample]
		storetest.Must(t, b.Exec(t, place, fmt.Sprintf("CREATE TABLE gone AS SELECT * FROM %s WHERE seq = %d", table, seq)))
		storetest.Must(t, b.Exec(t, place, fmt.Sprintf("DELETE FROM %s WHERE seq = %d", table, seq)))
		for _, after := range []uint64{0, seq - 1} {
			var missing *store.MissingError
			if err := storetest.Chained(t, s, after, 30); !errors.As(err, &missing) ||
				seq < missing.First || seq > missing.Last {
				t.Errorf("%s %d is gone; read after %d: %v", table, seq, after, err)
			}
		}
		storetest.Must(t, b.Exec(t, place, fmt.Sprintf("INSERT INTO %s SELECT * FROM gone", table)))
		storetest.Must(t, b.Exec(t, place, "DROP TABLE gone"))
	}
	storetest.Whole(t, s, 30)
}
