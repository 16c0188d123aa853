// Package suite is the tests that every store.Store must pass. The properties are the same for all backends.
package suite

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/store"
	"scrimp/internal/store/logfile"
	"scrimp/internal/test/storetest"
	"scrimp/internal/test/storetest/snapshots"
)

// Run checks every property except FullDisk on a backend.
func Run(t *testing.T, b storetest.Backend) {
	for _, p := range []struct {
		name string
		test func(*testing.T, storetest.Backend)
	}{
		{"what was appended is what is read", readBack},
		{"an append is whole or not there", atomicAppend},
		{"a reader never sees half an append", atomicRead},
		{"the log takes no hole, no overlap and no stray posting", noHole},
		{"a canceled append leaves nothing", canceled},
		{"an idempotency key finds its event, by tenant", seen},
		{"a log that was closed goes on where it ended", reopen},
		{"a snapshot and the events after it give the state of the log alone", snapshots.State},
		{"a snapshot of many parts is read as it was written, and the newest two are kept", snapshots.Parts},
		{"a snapshot that was cut short is not there", snapshots.Torn},
		{"a snapshot takes what has not changed from the one before, and nothing is kept that none needs", snapshots.Shared},
		{"events and postings are never changed or deleted", appendOnly},
		{"a damaged posting is found", damaged},
		{"output is kept by offset, however it is sent", logs},
		{"measurements are appended, replaced whole, and go with the output", measurements},
		{"facts are kept by name", facts},
		{"a backup that is taken under way restores to the same hash", backedUp},
		{"a restoration that was cut short is known, and goes on", cutShort},
		{"a place that holds something is not restored into", notEmpty},
		{"a second server is refused and told why", locked},
		{"kill -9 loses nothing that was acknowledged", killed},
		{"samples lie among the events in the order of the log", snapshots.SamplesMerged},
		{"samples are dropped, but for those that a snapshot needs", snapshots.SamplesDropped},
		{"the last record stays, and the log goes on after it", snapshots.LastStays},
		{"a sample has no facts and no postings", snapshots.SampleWithMore},
		{"an event that is missing is found when samples are gone", snapshots.MissingFound},
		{"a log without its samples is backed up and restored as it is", droppedBackedUp},
		{"a projection moves with its mark, or not at all", projectionMoves},
		{"projections move together, or none does", projectionMovesTogether},
		{"a projection is kept when the store is closed, and can be dropped", projectionKept},
		{"rows of a projection are read in ranges, in byte order", projectionRanges},
		{"records are read by their numbers", recordsAt},
		{"records and postings are small on the disk", sizes},
		{"a database of an older release is refused and told what to do", older},
		{"a newer schema is refused", newer},
	} {
		t.Run(strings.ReplaceAll(p.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			p.test(t, b)
		})
	}
}

func readBack(t *testing.T, b storetest.Backend) {
	s := b.Fresh(t)
	want := new(storetest.Writer).Make(60)
	storetest.Must(t, s.Append(t.Context(), nil))
	storetest.Must(t, s.Append(t.Context(), want[:1]))
	storetest.Must(t, s.Append(t.Context(), want[1:40]))
	storetest.Must(t, s.Append(t.Context(), want[40:]))
	storetest.Same(t, storetest.All(t, s), want)

	page, err := s.Records(t.Context(), 10, 20)
	storetest.Must(t, err)
	storetest.Same(t, page, storetest.Bare(want[10:30]))
	page, err = s.Records(t.Context(), 60, 20)
	storetest.Must(t, err)
	storetest.Same(t, page, nil)
	end, err := s.End(t.Context())
	storetest.Must(t, err)
	if end != 60 {
		t.Errorf("the log ends at %d, want 60", end)
	}
	ticks := slices.DeleteFunc(slices.Clone(want), func(r storetest.Record) bool { return r.Kind != "tick" || r.Seq <= 5 })
	page, err = s.RecordsOf(t.Context(), "tick", 5, 10)
	storetest.Must(t, err)
	storetest.Same(t, page, storetest.Bare(ticks[:10]))

	storetest.Same(t, storetest.All(t, s), want) // with each posting's predecessor, however the log is read
	for _, tenant := range []string{"default", "lab", "nobody"} {
		for _, job := range []string{"", "j-2", "j-none"} {
			want := postings(storetest.All(t, s), func(_ storetest.Record, p ledger.Posting) bool {
				return p.Owner.Tenant == tenant && (job == "" || p.Owner.Job == job)
			})
			if got := collected(t, s.Postings(t.Context(), tenant, job)); !slices.Equal(got, want) {
				t.Errorf("postings of %s %q: %d, want %d in the order of the log", tenant, job, len(got), len(want))
			}
			if tenant != "nobody" && job != "j-none" && len(want) == 0 {
				t.Errorf("no postings of %s %q: the test shows nothing", tenant, job)
			}
		}
	}
	some := postings(storetest.All(t, s), func(r storetest.Record, p ledger.Posting) bool {
		return r.Seq > 10 && r.Seq <= 40 && p.Owner.Tenant == "lab"
	})
	if got := collected(t, s.PostingsOf(t.Context(), "lab", 10, 40)); !slices.Equal(got, some) || len(got) == 0 {
		t.Errorf("postings of the events 11 to 40: %d, want %d in the order of the log", len(got), len(some))
	}
	storetest.Verify(t, s)
}

// postings returns the postings of list that wanted accepts, as text and in the order of the log.
func postings(list []storetest.Record, wanted func(storetest.Record, ledger.Posting) bool) (texts []string) {
	for _, r := range list {
		for _, p := range r.Postings {
			if wanted(r, p) {
				texts = append(texts, storetest.Posted(p))
			}
		}
	}
	return texts
}

// collected reads a store's postings to their end and returns them as text.
func collected(t *testing.T, list iter.Seq2[ledger.Posting, error]) (texts []string) {
	t.Helper()
	for p, err := range list {
		storetest.Must(t, err)
		texts = append(texts, storetest.Posted(p))
	}
	return texts
}

func atomicAppend(t *testing.T, b storetest.Backend) {
	s := b.Fresh(t)
	var w storetest.Writer
	first := w.Make(10)
	storetest.Must(t, s.Append(t.Context(), first))
	batch := w.Make(20)
	broken := slices.Clone(batch)
	last := len(broken) - 2 // seq 29: two postings
	if len(broken[last].Postings) != 2 {
		t.Fatalf("record %d has %d postings, the test wants 2", broken[last].Seq, len(broken[last].Postings))
	}
	broken[last].Postings = slices.Clone(broken[last].Postings)
	broken[last].Postings[1].To = broken[last].Postings[1].From // the database refuses this one
	if err := s.Append(t.Context(), broken); err == nil {
		t.Fatal("a posting from an account to itself was taken")
	}
	storetest.Same(t, storetest.All(t, s), first)
	storetest.Must(t, s.Append(t.Context(), batch)) // the log did not move
	storetest.Same(t, storetest.All(t, s), append(first, batch...))
	storetest.Verify(t, s)
}

func atomicRead(t *testing.T, b storetest.Backend) {
	s := b.Fresh(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	const batch, batches = 50, 20
	done := make(chan error, 1)
	go func() {
		var w storetest.Writer
		for range batches {
			if err := s.Append(ctx, w.Make(batch)); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for reads := 0; ; reads++ {
		select {
		case err := <-done:
			storetest.Must(t, err)
			if end, _ := s.End(t.Context()); end != batch*batches {
				t.Errorf("the log ends at %d, want %d", end, batch*batches)
			}
			return
		default:
		}
		end, err := s.End(t.Context())
		storetest.Must(t, err)
		if end%batch != 0 {
			t.Fatalf("a reader saw the log end at %d, within an append of %d", end, batch)
		}
		list, err := s.WholeRecords(t.Context(), 0, batch*batches)
		storetest.Must(t, err)
		if len(list)%batch != 0 {
			t.Fatalf("a reader saw %d records: half an append of %d", len(list), batch)
		}
		if want := uint64(len(list)); want > 0 && len(list[want-1].Postings) != int(want%3) {
			t.Fatalf("a reader saw record %d with %d postings", want, len(list[want-1].Postings))
		}
	}
}

func noHole(t *testing.T, b storetest.Backend) {
	s := b.Fresh(t)
	records := new(storetest.Writer).Make(10)
	storetest.Must(t, s.Append(t.Context(), records[:5]))
	for name, bad := range map[string][]storetest.Record{
		"a hole before":    records[6:8],
		"a hole within":    {records[5], records[7]},
		"what is there":    records[4:6],
		"the same twice":   {records[5], records[5]},
		"the wrong way":    {records[6], records[5]},
		"from the start":   records[:1],
		"number zero":      {{Seq: 0, Tenant: "default", At: storetest.Opened, Kind: "tick", Event: []byte("{}")}},
		"the next to last": {records[3]},
	} {
		if err := s.Append(t.Context(), bad); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: %v, want ErrConflict", name, err)
		}
	}
	stray := records[5]
	stray.Postings = records[7].Postings
	if len(stray.Postings) == 0 {
		t.Fatal("the stray posting is none")
	}
	if err := s.Append(t.Context(), []storetest.Record{stray}); err == nil {
		t.Error("a posting of another event was taken")
	}
	storetest.Same(t, storetest.All(t, s), records[:5])
	storetest.Must(t, s.Append(t.Context(), records[5:]))
	storetest.Same(t, storetest.All(t, s), records)
}

func canceled(t *testing.T, b storetest.Backend) {
	s := b.Fresh(t)
	records := new(storetest.Writer).Make(10)
	storetest.Must(t, s.Append(t.Context(), records[:5]))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Append(ctx, records[5:]); !errors.Is(err, context.Canceled) {
		t.Fatalf("append with a canceled context: %v", err)
	}
	storetest.Same(t, storetest.All(t, s), records[:5])
	storetest.Must(t, s.Append(t.Context(), records[5:]))
	storetest.Same(t, storetest.All(t, s), records)
}

func seen(t *testing.T, b storetest.Backend) {
	s := b.Fresh(t)
	records := new(storetest.Writer).Make(30)
	storetest.Must(t, s.Append(t.Context(), records))
	asked := []string{"", "key-x", "' OR ''='", `"]`}
	want := map[string]map[string]uint64{"default": {}, "lab": {}}
	for _, r := range records {
		if r.Key != "" {
			asked, want[r.Tenant][r.Key] = append(asked, r.Key), r.Seq
		}
	}
	if len(want["default"]) == 0 || len(want["lab"]) == 0 {
		t.Fatal("no keys: the test shows nothing")
	}
	for tenant, want := range want { // tenants do not share keys
		got, err := s.Seen(t.Context(), tenant, asked...)
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("keys of %s: %v, %v; want %v", tenant, got, err, want)
		}
		for key, seq := range want {
			if got, err := s.Seen(t.Context(), tenant, key); err != nil || len(got) != 1 || got[key] != seq {
				t.Errorf("%s of %s: %v, %v; want event %d", key, tenant, got, err, seq)
			}
		}
	}
	if got, err := s.Seen(t.Context(), "default"); err != nil || len(got) > 0 {
		t.Errorf("without keys: %v, %v", got, err)
	}
}

func reopen(t *testing.T, b storetest.Backend) {
	place := b.Place(t)
	var w storetest.Writer
	var want []storetest.Record
	for range 3 {
		s := b.At(t, place)
		part := w.Make(4)
		storetest.Must(t, s.Append(t.Context(), part))
		want = append(want, part...)
		storetest.Same(t, storetest.All(t, s), want)
		storetest.Must(t, s.Close())
	}
}

func facts(t *testing.T, b storetest.Backend) {
	place := b.Place(t)
	s := b.At(t, place)
	if v, ok, err := s.Meta(t.Context(), "a"); v != "" || ok || err != nil {
		t.Errorf("a fact that nobody wrote: %q, %v, %v", v, ok, err)
	}
	want := map[string]string{"a": "2", "empty": "", "it's": "né"}
	storetest.Must(t, s.PutMeta(t.Context(), "a", "1"))
	for k, v := range want {
		storetest.Must(t, s.PutMeta(t.Context(), k, v))
	}
	storetest.Must(t, s.Close())
	s = b.At(t, place)
	for k, v := range want {
		if got, ok, err := s.Meta(t.Context(), k); got != v || !ok || err != nil {
			t.Errorf("%s: %q, %v, %v; want %q", k, got, ok, err, v)
		}
	}
	got, err := s.AllMeta(t.Context())
	storetest.Must(t, err)
	if !maps.Equal(got, want) {
		t.Errorf("all facts: %v, want %v", got, want)
	}
}

func measurements(t *testing.T, b storetest.Backend) {
	s := b.Fresh(t)
	is := func(name, want string) {
		t.Helper()
		if got, err := s.Series(t.Context(), name); err != nil || string(got) != want {
			t.Errorf("%s measured %q, %v, want %q", name, got, err, want)
		}
	}
	is("j.1", "")
	storetest.Must(t, s.AppendSeries(t.Context(), "j.1", []byte("one ")))
	storetest.Must(t, s.AppendSeries(t.Context(), "j.1", []byte("two")))
	storetest.Must(t, s.AppendSeries(t.Context(), logfile.Name("j.1", 2), []byte("other")))
	is("j.1", "one two")
	storetest.Must(t, s.PutSeries(t.Context(), "j.1", []byte("2")))
	is("j.1", "2")
	sizes, err := s.AllSeries(t.Context())
	if storetest.Must(t, err); !maps.Equal(sizes, map[string]int64{"j.1": 1, "j.1~2": 5}) {
		t.Errorf("there are %v", sizes)
	}
	if names, err := s.Logs(t.Context()); err != nil || len(names) > 0 {
		t.Errorf("measurements are listed as output: %q, %v", names, err)
	}
	storetest.Must(t, s.DropLog(t.Context(), "j.1"))
	is("j.1", "")
	is("j.1~2", "other")
	for _, bad := range []string{"", "../x", ".hidden", "a/b"} {
		if s.AppendSeries(t.Context(), bad, nil) == nil || s.PutSeries(t.Context(), bad, nil) == nil {
			t.Errorf("%q is taken for the name of an attempt", bad)
		}
	}
}
