package storetest

import (
	"slices"
	"testing"

	"scrimp/internal/store"
)

// Without removes from want the samples up to dropped that are not in got.
func Without(want, got []Record, dropped uint64) (list []Record) {
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

// Dropped returns a log without its samples up to a number; the last record stays.
func Dropped(list []Record, upTo uint64) []Record {
	last := list[len(list)-1].Seq
	return slices.DeleteFunc(slices.Clone(list), func(r Record) bool { return r.Sample && r.Seq <= upTo && r.Seq != last })
}

// Chained reads the log with a chain that allows missing samples up to upTo.
func Chained(t testing.TB, s store.Store, after, upTo uint64) error {
	t.Helper()
	c := store.Chain{After: after, Dropped: upTo}
	for limit := 5; ; limit += limit / 2 { // pages of growing size
		page, err := s.Records(t.Context(), c.After, limit)
		Must(t, err)
		if len(page) == 0 {
			end, err := s.End(t.Context())
			Must(t, err)
			return c.Ends(end)
		}
		if err := c.AddAll(page); err != nil {
			return err
		}
	}
}

// Whole checks that the log up to a number is chained and that its postings are whole.
func Whole(t testing.TB, s store.Store, upTo uint64) {
	t.Helper()
	for _, after := range []uint64{0, upTo} {
		if err := Chained(t, s, after, upTo); err != nil {
			t.Errorf("read after %d, without samples up to %d: %v", after, upTo, err)
		}
	}
}

// SaveSnapshots saves a snapshot for each event.
func SaveSnapshots(t testing.TB, s store.Store, seqs ...uint64) {
	t.Helper()
	for _, seq := range seqs {
		Must(t, s.SaveSnapshot(t.Context(), store.Snapshot{Seq: seq, Version: 1, State: []byte("{}")}))
	}
}

// Drop drops the samples up to a number, and checks how many went.
func Drop(t testing.TB, s store.Store, upTo uint64, want int) {
	t.Helper()
	if n, err := s.DropSamples(t.Context(), upTo); n != want || err != nil {
		t.Fatalf("samples up to %d: %d dropped (%v), want %d", upTo, n, err, want)
	}
}
