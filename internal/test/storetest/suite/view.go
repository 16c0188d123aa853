package suite

import (
	"errors"
	"slices"
	"testing"

	"scrimp/internal/store"
	"scrimp/internal/test/storetest"
)

// changes returns changes of two projections, each with the same rows.
func changes(of ...string) map[string]map[string]store.Change {
	all := map[string]map[string]store.Change{"a/1": {}, "b/2": {}}
	for i := 0; i < len(of); i += 2 {
		c := store.Change{Value: []byte(of[i+1][1:])}
		c.Append, c.Delete = of[i+1][0] == '+', of[i+1][0] == '-'
		all["a/1"][of[i]], all["b/2"][of[i]] = c, c
	}
	return all
}

// projected checks the marks and all rows of both projections.
func projected(t testing.TB, s store.Store, mark store.Mark, of ...string) {
	t.Helper()
	marks, err := s.Marks(t.Context())
	storetest.Must(t, err)
	for _, name := range []string{"a/1", "b/2"} {
		if got, there := marks[name]; got != mark || there != (mark != store.Mark{}) {
			t.Errorf("the mark of %s is %+v, want %+v", name, got, mark)
		}
		rows, err := s.RowRange(t.Context(), name, store.Range{Limit: 100})
		storetest.Must(t, err)
		var got []string
		for _, r := range rows {
			got = append(got, r.Key, string(r.Value))
		}
		if !slices.Equal(got, of) {
			t.Errorf("the rows of %s are %q, want %q", name, got, of)
		}
	}
}

func projectionMoves(t *testing.T, b storetest.Backend) {
	s := b.Fresh(t)
	zero := store.Mark{}
	one, two := store.Mark{Seq: 3, Kept: 2, Sum: "a"}, store.Mark{Seq: 5, Kept: 5, Sum: "b"}
	projected(t, s, zero)
	storetest.Must(t, s.Project(t.Context(), zero, one, changes("j-1", "+\x00\xff'", "j-2", "=x", "j-4", "=")))
	first := []string{"j-1", "\x00\xff'", "j-2", "x", "j-4", ""}
	projected(t, s, one, first...)
	for _, from := range []store.Mark{zero, two, {Seq: 3, Kept: 2, Sum: "b"}, {Seq: 3, Kept: 3, Sum: "a"}} {
		if err := s.Project(t.Context(), from, two, changes("j-1", "+again")); !errors.Is(err, store.ErrConflict) {
			t.Errorf("moved from %+v: %v, want ErrConflict", from, err)
		}
	}
	projected(t, s, one, first...)
	storetest.Must(t, s.Project(t.Context(), one, two, changes("j-1", "+\x80\x00", "j-2", "=z", "j-3", "=y", "j-4", "-",
		"none", "-")))
	projected(t, s, two, "j-1", "\x00\xff'\x80\x00", "j-2", "z", "j-3", "y")
	three := store.Mark{Seq: 9, Kept: 5, Sum: "b"}
	storetest.Must(t, s.Project(t.Context(), two, three, changes())) // nothing to add
	projected(t, s, three, "j-1", "\x00\xff'\x80\x00", "j-2", "z", "j-3", "y")
}

// projectionMovesTogether checks that no projection moves unless all do.
func projectionMovesTogether(t *testing.T, b storetest.Backend) {
	s := b.Fresh(t)
	one, two := store.Mark{Seq: 1, Sum: "a"}, store.Mark{Seq: 2, Sum: "b"}
	storetest.Must(t, s.Project(t.Context(), store.Mark{}, one, changes("k", "=1")))
	storetest.Must(t, s.Project(t.Context(), one, two, map[string]map[string]store.Change{"b/2": {}}))
	if err := s.Project(t.Context(), one, two, changes("k", "=2")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("one of two was ahead: %v, want ErrConflict", err)
	}
	rows, err := s.Rows(t.Context(), "a/1", []string{"k", "l"})
	storetest.Must(t, err)
	if len(rows) != 1 || string(rows["k"]) != "1" {
		t.Errorf("the rows are %q, want one that did not change", rows)
	}
}

func projectionKept(t *testing.T, b storetest.Backend) {
	place := b.Place(t)
	s := b.At(t, place)
	mark := store.Mark{Seq: 1 << 40, Kept: 7, Sum: "a"}
	storetest.Must(t, s.Project(t.Context(), store.Mark{}, mark, changes("j", "=abc")))
	storetest.Must(t, s.Close())
	s = b.At(t, place)
	projected(t, s, mark, "j", "abc")
	storetest.Must(t, s.DropProjection(t.Context(), "none"))
	storetest.Must(t, s.DropProjection(t.Context(), "a/1"))
	rows, err := s.Rows(t.Context(), "b/2", []string{"j"})
	storetest.Must(t, err)
	if string(rows["j"]) != "abc" {
		t.Errorf("the other projection has %q", rows)
	}
	storetest.Must(t, s.DropProjection(t.Context(), "b/2"))
	projected(t, s, store.Mark{})
	storetest.Must(t, s.Project(t.Context(), store.Mark{}, mark, changes("j", "+d")))
	projected(t, s, mark, "j", "d")
}

func recordsAt(t *testing.T, b storetest.Backend) {
	s := b.Fresh(t)
	want := new(storetest.Writer).Make(60)
	storetest.Must(t, s.Append(t.Context(), want))
	at := func(numbers ...uint64) []storetest.Record {
		t.Helper()
		list, err := s.RecordsAt(t.Context(), numbers)
		storetest.Must(t, err)
		return list
	}
	storetest.Same(t, at(), nil)
	storetest.Same(t, at(61, 1000), nil)
	storetest.Same(t, at(9), storetest.Bare(want[8:9])) // a sample
	some := []storetest.Record{want[1], want[2], want[8], want[9], want[59]}
	storetest.Same(t, at(2, 3, 9, 10, 60, 61), storetest.Bare(some))
	storetest.SaveSnapshots(t, s, 20, 30)
	storetest.Drop(t, s, 20, 3)
	storetest.Same(t, at(3, 4, 9, 21), storetest.Bare([]storetest.Record{want[3], want[20]}))
}

func projectionRanges(t *testing.T, b storetest.Backend) {
	s := b.Fresh(t)
	storetest.Must(t, s.Project(t.Context(), store.Mark{}, store.Mark{Seq: 1}, changes("a/1", "=1", "a/2", "=2",
		"a/30", "=3", "a/4", "=4", "B", "=5", "b", "=6", "\u00e4", "=7")))
	for _, c := range []struct {
		r    store.Range
		want string
	}{
		{store.Range{Limit: 10}, "5123467"}, // in byte order
		{store.Range{Limit: 2}, "51"},
		{store.Range{Limit: 2, Backwards: true}, "67"},
		{store.Range{After: "a/1", Before: "a/4", Limit: 10}, "23"},
		{store.Range{After: "a/", Before: "a/~", Limit: 3, Backwards: true}, "234"},
		{store.Range{After: "b", Limit: 10}, "7"},
		{store.Range{After: "z~", Before: "z~", Limit: 10}, ""},
	} {
		rows, err := s.RowRange(t.Context(), "a/1", c.r)
		storetest.Must(t, err)
		got := ""
		for _, r := range rows {
			got += string(r.Value)
		}
		if got != c.want {
			t.Errorf("%+v: %s, want %s", c.r, got, c.want)
		}
	}
}
