package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"scrimp/internal/store"
	"scrimp/internal/store/backup"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/storetest"
)

// live appends, prints, notes and takes snapshots until stop is called.
func live(t testing.TB, s store.Store, w *storetest.Writer) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var owned sync.WaitGroup
	owned.Go(func() {
		for round := 0; ctx.Err() == nil; round++ {
			if err := step(s, w, round); err != nil {
				t.Error(err)
				return
			}
		}
	})
	return func() { cancel(); owned.Wait() }
}

func step(s store.Store, w *storetest.Writer, round int) error {
	ctx := context.Background()
	attempt := fmt.Sprintf("j-%d.1", round%7)
	end, err := s.LogEnd(ctx, attempt)
	if err != nil {
		return err
	}
	state, err := json.Marshal(fmt.Sprint("after round ", round))
	if err != nil {
		return err
	}
	_, logged := s.AppendLog(ctx, attempt, end,
		[]byte(strings.Repeat(fmt.Sprintf("%s prints \x00\xff in round %d\n", attempt, round), 20)))
	return errors.Join(
		s.Append(ctx, w.Make(1+round*31%400)), logged,
		s.AppendSeries(ctx, attempt, []byte(fmt.Sprint("measured in round ", round))),
		s.PutMeta(ctx, fmt.Sprintf("fact %d", round%5), fmt.Sprintf("of round %d", round)),
		s.SaveSnapshot(ctx, store.Snapshot{Seq: w.Next - 1, Version: 4, State: state}),
	)
}

// filled returns a store with some of everything, at rest.
func filled(t testing.TB, b storetest.Backend) store.Store {
	t.Helper()
	s := b.Fresh(t)
	var w storetest.Writer
	for round := range 12 {
		storetest.Must(t, step(s, &w, round))
	}
	storetest.Must(t, s.PutSeries(t.Context(), "j-3.1~2", []byte("measured on another machine")))
	_, err := s.AppendLog(t.Context(), "j-silent.1", 0, nil)
	storetest.Must(t, err)
	return s
}

func backedUpTo(t testing.TB, s store.Store) ([]byte, backup.Sum) {
	t.Helper()
	var file bytes.Buffer
	sum, err := backup.Write(t.Context(), s, &file)
	storetest.Must(t, err)
	checked, err := backup.Check(bytes.NewReader(file.Bytes()))
	storetest.Must(t, err)
	if checked != sum {
		t.Fatalf("the backup holds %+v, and %+v was written", checked, sum)
	}
	return file.Bytes(), sum
}

func backedUp(t *testing.T, b storetest.Backend) {
	from := b.Fresh(t)
	least, last := uint64(lane.Pick(700, 1500)), uint64(0)
	var life storetest.Writer
	for n := range 2 {
		stop := live(t, from, &life)
		for end := uint64(0); end < last+least; {
			var err error
			end, err = from.End(t.Context())
			storetest.Must(t, err)
		}
		file, sum := backedUpTo(t, from)
		stop()
		place := b.Place(t)
		to := b.At(t, place)
		got, err := backup.Restore(t.Context(), to, bytes.NewReader(file))
		storetest.Must(t, err)
		storetest.Must(t, to.Close())
		to = b.At(t, place)
		again, err := backup.SumOf(t.Context(), to)
		storetest.Must(t, err)
		if got != sum || again != sum {
			t.Errorf("backup %d is %+v, it restored to %+v and reads %+v", n, sum, got, again)
		}
		if sum.End < least || sum.Facts != 5 || sum.Outputs != 7 || sum.Postings < least*9/10 {
			t.Errorf("backup %d holds %+v: the test shows little", n, sum)
		}
		storetest.Must(t, backup.Ready(t.Context(), to))
		w := storetest.Writer{}
		want := w.Make(int(sum.End))
		storetest.Same(t, storetest.All(t, to), want)
		snap, ok, err := to.LatestSnapshot(t.Context())
		storetest.Must(t, err)
		if !ok || snap.Seq > sum.End || snap.Version != 4 || !strings.HasPrefix(string(snap.State), `"after round`) {
			t.Errorf("the snapshot of the restored: %v, at %d of %d, %q", ok, snap.Seq, sum.End, snap.State)
		}
		storetest.Must(t, to.Append(t.Context(), w.Make(10))) // the log goes on
		storetest.Verify(t, to)
		last = sum.End
	}
}

// torn returns the first bytes of a file and then fails.
func torn(file []byte, n int) io.Reader {
	return io.MultiReader(bytes.NewReader(file[:n]), brokenPipe{})
}

type brokenPipe struct{}

func (brokenPipe) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func cutShort(t *testing.T, b storetest.Backend) {
	file, sum := backedUpTo(t, filled(t, b))
	place := b.Place(t)
	s := b.At(t, place)
	rng := rand.New(rand.NewPCG(5, 5))
	for n := 0; n < len(file); n += 1 + rng.IntN(len(file)/5) { // further each time
		if _, err := backup.Restore(t.Context(), s, torn(file, n)); !errors.Is(err, backup.ErrDamaged) {
			t.Fatalf("the first %d bytes of %d: %v, want ErrDamaged", n, len(file), err)
		}
		if end, err := s.End(t.Context()); end > 0 || err != nil {
			if err := backup.Ready(t.Context(), s); err == nil ||
				!strings.Contains(err.Error(), "restore the same backup again") {
				t.Fatalf("with %d of %d events it is ready: %v", end, sum.End, err)
			}
			if _, err := backup.Write(t.Context(), s, io.Discard); err == nil {
				t.Fatal("half a store was backed up")
			}
		}
		storetest.Must(t, s.Close())
		s = b.At(t, place)
	}
	got, err := backup.Restore(t.Context(), s, bytes.NewReader(file))
	storetest.Must(t, err)
	storetest.Must(t, backup.Ready(t.Context(), s))
	if got != sum {
		t.Errorf("restored in pieces: %+v, want %+v", got, sum)
	}
	if _, err := backup.Restore(t.Context(), s, bytes.NewReader(file)); err == nil {
		t.Error("a whole store was restored into")
	}
}

func notEmpty(t *testing.T, b storetest.Backend) {
	file, _ := backedUpTo(t, filled(t, b))
	for name, c := range map[string]struct {
		words string
		fill  func(store.Store) error
	}{
		"events": {"not empty", func(s store.Store) error { return s.Append(t.Context(), new(storetest.Writer).Make(3)) }},
		"a fact": {"not empty", func(s store.Store) error { return s.PutMeta(t.Context(), "a", "1") }},
		"output": {"not empty", func(s store.Store) error {
			_, err := s.AppendLog(t.Context(), "j", 0, []byte("x"))
			return err
		}},
		"half of another": {"another backup", func(s store.Store) error {
			list := new(storetest.Writer).Make(1)
			list[0].Event = json.RawMessage(`{"other":1}`)
			return errors.Join(s.PutMeta(t.Context(), "store/restoring", "x"), s.Append(t.Context(), list))
		}},
		"other output": {"other output", func(s store.Store) error {
			_, err := s.AppendLog(t.Context(), "j-2.1", 0, []byte("x"))
			return errors.Join(s.PutMeta(t.Context(), "store/restoring", "x"), err)
		}},
		"more output": {"the restored data differs from the backup", func(s store.Store) error {
			_, err := s.AppendLog(t.Context(), "j-9.1", 0, []byte("x"))
			return errors.Join(s.PutMeta(t.Context(), "store/restoring", "x"), err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := b.Fresh(t)
			storetest.Must(t, c.fill(s))
			if _, err := backup.Restore(t.Context(), s, bytes.NewReader(file)); err == nil ||
				!strings.Contains(err.Error(), c.words) {
				t.Errorf("restored into %s: %v; want %q", name, err, c.words)
			}
		})
	}
}

func droppedBackedUp(t *testing.T, b storetest.Backend) {
	from := b.Fresh(t)
	var w storetest.Writer
	want := w.Make(2001) // more than a page; the last is a sample
	storetest.Must(t, from.Append(t.Context(), want))
	storetest.SaveSnapshots(t, from, 1990, 2001)
	storetest.Drop(t, from, 1990, 332)
	want = storetest.Dropped(want, 1990)
	storetest.Same(t, storetest.All(t, from), want)
	file, sum := backedUpTo(t, from)
	place := b.Place(t)
	to := b.At(t, place)
	for n := len(file) / 3; n < len(file); n += len(file) / 3 {
		if _, err := backup.Restore(t.Context(), to, torn(file, n)); err == nil {
			t.Fatal("a part of it was restored")
		}
	}
	got, err := backup.Restore(t.Context(), to, bytes.NewReader(file))
	storetest.Must(t, err)
	if got != sum {
		t.Errorf("restored: %+v, want %+v", got, sum)
	}
	storetest.Must(t, to.Close())
	to = b.At(t, place)
	storetest.Same(t, storetest.All(t, to), want)
	storetest.Whole(t, to, 1990)
	more := w.Make(30)
	storetest.Must(t, to.Append(t.Context(), more))
	storetest.Same(t, storetest.All(t, to), append(want, more...))
	storetest.Whole(t, to, 1990)
	storetest.Verify(t, to)
	for name, bad := range map[string]storetest.Record{ // they only claim their predecessors
		"a hole":        {Seq: 2040, Kept: 2035},
		"what is there": {Seq: 2031, Kept: 2030},
	} {
		bad.Tenant, bad.At, bad.Kind, bad.Event = "default", storetest.Opened, "tick", []byte("{}")
		if err := to.Copy(t.Context(), []storetest.Record{bad}); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s is copied: %v", name, err)
		}
	}
}
