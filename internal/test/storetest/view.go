package storetest

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"

	"scrimp/internal/store"
)

// rows returns additions to a view.
func rows(of ...string) store.ViewRows {
	r := store.ViewRows{Events: map[string][]byte{}}
	for i := 0; i < len(of); i += 2 {
		r.Events[of[i]] = append(r.Events[of[i]], of[i+1]...)
	}
	return r
}

func viewSays(t testing.TB, s store.Store, mark store.ViewMark, of ...string) {
	t.Helper()
	got, err := s.ViewMark(t.Context())
	must(t, err)
	if got != mark {
		t.Errorf("the mark is %+v, want %+v", got, mark)
	}
	for i := 0; i < len(of); i += 2 {
		events, err := s.JobEvents(t.Context(), of[i])
		must(t, err)
		if !bytes.Equal(events, []byte(of[i+1])) {
			t.Errorf("of %s it says %q, want %q", of[i], events, of[i+1])
		}
	}
}

func viewMoves(t *testing.T, b Backend) {
	s := b.fresh(t)
	zero := store.ViewMark{}
	one, two := store.ViewMark{Seq: 3, Kept: 2, Sum: "a"}, store.ViewMark{Seq: 5, Kept: 5, Sum: "b"}
	viewSays(t, s, zero, "j-1", "")
	must(t, s.MoveView(t.Context(), zero, one, rows("j-1", "\x00\xff'", "j-2", "x")))
	viewSays(t, s, one, "j-1", "\x00\xff'", "j-2", "x", "j-3", "")
	for _, from := range []store.ViewMark{zero, two, {Seq: 3, Kept: 2, Sum: "b"}, {Seq: 3, Kept: 3, Sum: "a"}} {
		if err := s.MoveView(t.Context(), from, two, rows("j-1", "again")); !errors.Is(err, store.ErrConflict) {
			t.Errorf("moved from %+v: %v, want ErrConflict", from, err)
		}
	}
	viewSays(t, s, one, "j-1", "\x00\xff'", "j-2", "x")
	must(t, s.MoveView(t.Context(), one, two, rows("j-1", "\x80\x00", "j-3", "y")))
	viewSays(t, s, two, "j-1", "\x00\xff'\x80\x00", "j-2", "x", "j-3", "y")
	three := store.ViewMark{Seq: 9, Kept: 5, Sum: "b"}
	must(t, s.MoveView(t.Context(), two, three, store.ViewRows{})) // nothing to add
	viewSays(t, s, three, "j-3", "y")
}

func viewKept(t *testing.T, b Backend) {
	place := b.Place(t)
	s := b.open(t, place)
	mark := store.ViewMark{Seq: 1 << 40, Kept: 7, Sum: "a"}
	must(t, s.MoveView(t.Context(), store.ViewMark{}, mark, rows("j", "abc")))
	must(t, s.Close())
	s = b.open(t, place)
	viewSays(t, s, mark, "j", "abc")
	must(t, s.ClearView(t.Context()))
	viewSays(t, s, store.ViewMark{}, "j", "")
	must(t, s.MoveView(t.Context(), store.ViewMark{}, mark, rows("j", "d")))
	viewSays(t, s, mark, "j", "d")
}

func recordsAt(t *testing.T, b Backend) {
	s := b.fresh(t)
	want := new(Writer).Make(60)
	must(t, s.Append(t.Context(), want))
	at := func(numbers ...uint64) []Record {
		t.Helper()
		list, err := s.RecordsAt(t.Context(), numbers)
		must(t, err)
		return list
	}
	Same(t, at(), nil)
	Same(t, at(61, 1000), nil)
	Same(t, at(9), bare(want[8:9])) // a sample
	Same(t, at(2, 3, 9, 10, 60, 61), bare([]Record{want[1], want[2], want[8], want[9], want[59]}))
	snapshots(t, s, 20, 30)
	drop(t, s, 20, 3)
	Same(t, at(3, 4, 9, 21), bare([]Record{want[3], want[20]}))
}

func archivedRows(t *testing.T, b Backend) {
	s := b.fresh(t)
	at := store.ViewMark{}
	move := func(rows map[string]store.ArchivedRow) {
		t.Helper()
		next := store.ViewMark{Seq: at.Seq + 1}
		must(t, s.MoveView(t.Context(), at, next, store.ViewRows{Archived: rows}))
		at = next
	}
	row := func(seq, order uint64, state string) store.ArchivedRow {
		return store.ArchivedRow{Seq: seq, Order: order, State: state}
	}
	move(map[string]store.ArchivedRow{"a": row(10, 3, "failed"), "b": row(11, 1, "succeeded"), "c": row(12, 7, "failed")})
	move(map[string]store.ArchivedRow{"a": {}, "d": row(13, 5, "succeeded"), "none": {}})
	move(map[string]store.ArchivedRow{"a": row(14, 3, "succeeded"), "c": row(15, 7, "cancelled")})
	found, err := s.Archived(t.Context(), []string{"a", "b", "e"})
	must(t, err)
	want := map[string]store.ArchivedRow{"a": row(14, 3, "succeeded"), "b": row(11, 1, "succeeded")}
	if !maps.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
	all := []store.ArchivedRow{row(11, 1, "succeeded"), row(14, 3, "succeeded"), row(13, 5, "succeeded"),
		row(15, 7, "cancelled")}
	for i, name := range []string{"b", "a", "d", "c"} {
		all[i].Name = name
	}
	for _, c := range []struct {
		page store.ArchivedPage
		want []store.ArchivedRow
	}{
		{store.ArchivedPage{Limit: 10}, all},
		{store.ArchivedPage{Limit: 2}, all[:2]},
		{store.ArchivedPage{Limit: 2, Backwards: true}, all[2:]},
		{store.ArchivedPage{Limit: 10, After: 1, Before: 7}, all[1:3]},
		{store.ArchivedPage{Limit: 1, Before: 7, Backwards: true}, all[2:3]},
		{store.ArchivedPage{Limit: 10, State: "cancelled"}, all[3:]},
		{store.ArchivedPage{Limit: 10, After: 7}, nil},
	} {
		got, err := s.ArchivedPage(t.Context(), c.page)
		must(t, err)
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.page, got, c.want)
		}
	}
	must(t, s.ClearView(t.Context()))
	if found, err = s.Archived(t.Context(), []string{"a"}); len(found) > 0 || err != nil {
		t.Errorf("after it was emptied: %v, %v", found, err)
	}
}
