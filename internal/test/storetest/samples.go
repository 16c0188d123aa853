package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"scrimp/internal/store"
	"scrimp/internal/store/backup"
)

// without removes from want the samples up to dropped that are not in got.
func without(want, got []Record, dropped uint64) (list []Record) {
	there := map[uint64]bool{}
	for _, r := range got {
		there[r.Seq] = true
	}
	for _, r := range want {
		if there[r.Seq] || !r.Sample || r.Seq > dropped {
			list = append(list, r)
		}
	}
	return list
}

// dropped returns a log without its samples up to a number; the last record stays.
func dropped(list []Record, upTo uint64) []Record {
	last := list[len(list)-1].Seq
	return slices.DeleteFunc(slices.Clone(list), func(r Record) bool { return r.Sample && r.Seq <= upTo && r.Seq != last })
}

// chained reads the log with a chain that allows missing samples up to upTo.
func chained(t testing.TB, s store.Store, after, upTo uint64) error {
	t.Helper()
	c := store.Chain{After: after, Dropped: upTo}
	for limit := 5; ; limit += limit / 2 { // pages of growing size
		page, err := s.Records(t.Context(), c.After, limit)
		must(t, err)
		if len(page) == 0 {
			end, err := s.End(t.Context())
			must(t, err)
			return c.Ends(end)
		}
		if err := c.AddAll(page); err != nil {
			return err
		}
	}
}

func whole(t testing.TB, s store.Store, upTo uint64) {
	t.Helper()
	for _, after := range []uint64{0, upTo} {
		if err := chained(t, s, after, upTo); err != nil {
			t.Errorf("read after %d, without samples up to %d: %v", after, upTo, err)
		}
	}
}

// snapshots saves a snapshot for each event.
func snapshots(t testing.TB, s store.Store, seqs ...uint64) {
	t.Helper()
	for _, seq := range seqs {
		must(t, s.SaveSnapshot(t.Context(), store.Snapshot{Seq: seq, Version: 1, State: []byte("{}")}))
	}
}

func drop(t testing.TB, s store.Store, upTo uint64, want int) {
	t.Helper()
	if n, err := s.DropSamples(t.Context(), upTo); n != want || err != nil {
		t.Fatalf("samples up to %d: %d dropped (%v), want %d", upTo, n, err, want)
	}
}

func samplesMerged(t *testing.T, b Backend) {
	s := b.fresh(t)
	want := new(Writer).Make(60)
	for at := 0; at < len(want); at += 12 {
		must(t, s.Append(t.Context(), want[at:at+12]))
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
	Same(t, all(t, s), want)
	whole(t, s, 0)
	for after := range uint64(61) { // wherever a page starts and ends
		for _, limit := range []int{1, 2, 7} {
			page, err := s.Records(t.Context(), after, limit)
			must(t, err)
			Same(t, page, bare(want[after:min(int(after)+limit, 60)]))
		}
		must(t, chained(t, s, after, 0))
	}
	ticks, err := s.RecordsOf(t.Context(), "tick", 3, 4) // 9 is a sample, the others are not
	must(t, err)
	Same(t, ticks, bare([]Record{want[4], want[6], want[8], want[10]}))
	seen, err := s.Seen(t.Context(), "default", "key-9", "key-12")
	if err != nil || !maps.Equal(seen, map[string]uint64{"key-9": 9, "key-12": 12}) {
		t.Errorf("the keys of a sample and an event: %v, %v", seen, err)
	}
}

func samplesDropped(t *testing.T, b Backend) {
	place := b.Place(t)
	s := b.open(t, place)
	var w Writer
	want := w.Make(60)
	must(t, s.Append(t.Context(), want))
	refused := func(upTo uint64) {
		t.Helper()
		if n, err := s.DropSamples(t.Context(), upTo); n != 0 || !errors.Is(err, store.ErrNeeded) {
			t.Errorf("samples up to %d: %d dropped, %v; want ErrNeeded", upTo, n, err)
		}
		Same(t, all(t, s), want)
	}
	refused(1) // only a replay of the log gives its state
	snapshots(t, s, 20, 40)
	refused(21) // the older one needs it
	refused(60)
	drop(t, s, 2, 0)
	drop(t, s, 20, 3)
	drop(t, s, 20, 0)
	want = dropped(want, 20)
	refused(21)
	snapshots(t, s, 50) // now 40 is the older one
	drop(t, s, 40, 4)
	want = dropped(want, 40)
	refused(41)
	Same(t, all(t, s), want)
	whole(t, s, 40)
	var missing *store.MissingError
	if err := chained(t, s, 0, 38); !errors.As(err, &missing) || *missing != (store.MissingError{First: 39, Last: 39}) {
		t.Errorf("who wants the samples after 38 is told %v, want that 39 is missing", err)
	}
	keys, err := s.Seen(t.Context(), "default", "key-9", "key-12", "key-45")
	if err != nil || !maps.Equal(keys, map[string]uint64{"key-12": 12, "key-45": 45}) {
		t.Errorf("keys: %v, %v; want those of what is there", keys, err)
	}
	must(t, s.Close())
	s = b.open(t, place)
	more := w.Make(20)
	must(t, s.Append(t.Context(), more))
	want = append(want, more...)
	Same(t, all(t, s), want)
	whole(t, s, 40)
	Verify(t, s)
	must(t, s.Append(t.Context(), w.Make(2*6*1000))) // and in more than one slice
	snapshots(t, s, w.Next-2, w.Next-1)
	drop(t, s, w.Next-2, 2006)
	whole(t, s, w.Next-2)
}

func lastStays(t *testing.T, b Backend) {
	place := b.Place(t)
	s := b.open(t, place)
	var w Writer
	want := w.Make(9)
	must(t, s.Append(t.Context(), want))
	snapshots(t, s, 9)
	drop(t, s, 9, 1)
	for range 2 { // 9 marks the end of the log, and its predecessor
		if end, err := s.End(t.Context()); end != 9 || err != nil {
			t.Errorf("the log ends at %d (%v), want 9", end, err)
		}
		Same(t, all(t, s), dropped(want, 9))
		whole(t, s, 9)
		must(t, s.Close())
		s = b.open(t, place)
	}
	want = append(want, w.Make(1)...)
	must(t, s.Append(t.Context(), want[9:]))
	drop(t, s, 9, 1)
	Same(t, all(t, s), dropped(want, 9))
	whole(t, s, 9)
}

func sampleWithMore(t *testing.T, b Backend) {
	s := b.fresh(t)
	list := new(Writer).Make(12)
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
	must(t, s.Append(t.Context(), list))
	Same(t, all(t, s), list)
}

// missingFound deletes records directly in the database that the store never deletes.
func missingFound(t *testing.T, b Backend) {
	place := b.Place(t)
	s := b.open(t, place)
	want := new(Writer).Make(63) // the last is a sample
	must(t, s.Append(t.Context(), want))
	snapshots(t, s, 30, 40)
	drop(t, s, 30, 5)
	want = dropped(want, 30)
	for _, table := range []string{"event", "posting"} {
		must(t, b.Exec(t, place, b.unguard(table+"_kept", table)))
	}
	must(t, b.Exec(t, place, "CREATE TABLE copy_event AS SELECT * FROM event"))
	must(t, b.Exec(t, place, "DELETE FROM posting"))
	whole(t, s, 30)
	for seq := uint64(1); seq < 63; seq++ {
		r := slices.IndexFunc(want, func(r Record) bool { return r.Seq == seq })
		if r < 0 {
			continue // dropped
		}
		table := map[bool]string{true: "sample", false: "event"}[want[r].Sample]
		must(t, b.Exec(t, place, fmt.Sprintf("CREATE TABLE gone AS SELECT * FROM %s WHERE seq = %d", table, seq)))
		must(t, b.Exec(t, place, fmt.Sprintf("DELETE FROM %s WHERE seq = %d", table, seq)))
		for _, after := range []uint64{0, seq - 1} {
			var missing *store.MissingError
			if err := chained(t, s, after, 30); !errors.As(err, &missing) || seq < missing.First || seq > missing.Last {
				t.Errorf("%s %d is gone; read after %d: %v", table, seq, after, err)
			}
		}
		must(t, b.Exec(t, place, fmt.Sprintf("INSERT INTO %s SELECT * FROM gone", table)))
		must(t, b.Exec(t, place, "DROP TABLE gone"))
	}
	whole(t, s, 30)
}

func droppedBackedUp(t *testing.T, b Backend) {
	from := b.fresh(t)
	var w Writer
	want := w.Make(2001) // more than a page; the last is a sample
	must(t, from.Append(t.Context(), want))
	snapshots(t, from, 1990, 2001)
	drop(t, from, 1990, 332)
	want = dropped(want, 1990)
	Same(t, all(t, from), want)
	file, sum := backedUpTo(t, from)
	place := b.Place(t)
	to := b.open(t, place)
	for n := len(file) / 3; n < len(file); n += len(file) / 3 {
		if _, err := backup.Restore(t.Context(), to, torn(file, n)); err == nil {
			t.Fatal("a part of it was restored")
		}
	}
	got, err := backup.Restore(t.Context(), to, bytes.NewReader(file))
	must(t, err)
	if got != sum {
		t.Errorf("restored: %+v, want %+v", got, sum)
	}
	must(t, to.Close())
	to = b.open(t, place)
	Same(t, all(t, to), want)
	whole(t, to, 1990)
	more := w.Make(30)
	must(t, to.Append(t.Context(), more))
	Same(t, all(t, to), append(want, more...))
	whole(t, to, 1990)
	Verify(t, to)
	for name, bad := range map[string][]Record{ // they only claim their predecessors
		"a hole":        {{Seq: 2040, Kept: 2035, Tenant: "default", At: opened, Kind: "tick", Event: []byte("{}")}},
		"what is there": {{Seq: 2031, Kept: 2030, Tenant: "default", At: opened, Kind: "tick", Event: []byte("{}")}},
	} {
		if err := to.Copy(t.Context(), bad); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s is copied: %v", name, err)
		}
	}
}
