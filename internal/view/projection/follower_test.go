package projection_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/store"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/lane"
	"scrimp/internal/view/projection"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// source is the end of a log.
type source struct {
	mu   sync.Mutex
	end  uint64
	more chan struct{}
}

func (s *source) Durable() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

func (s *source) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.more == nil {
		s.more = make(chan struct{})
	}
	return s.more
}

// fill opens a store with n records.
func fill(t testing.TB, n int) (*sqlite.Store, *source) {
	t.Helper()
	st, err := sqlite.Open(t.TempDir())
	must(t, err)
	t.Cleanup(func() { _ = st.Close() })
	for from := 0; from < n; from += 10_000 {
		var list []store.Record
		for seq := from + 1; seq <= min(n, from+10_000); seq++ {
			e := state.Event{At: time.Unix(int64(seq), 0).UTC(), Schema: 1, Tenant: "default", Body: state.Tick{}}
			text, err := json.Marshal(e)
			must(t, err)
			list = append(list, store.Record{Seq: uint64(seq), Tenant: "default", At: e.At, Kind: e.Body.Kind(), Event: text})
		}
		must(t, st.Append(t.Context(), list))
	}
	return st, &source{end: uint64(n)}
}

// follow runs a follower until the returned function is called.
func follow(t testing.TB, log projection.Log, s *source, list ...projection.Projection) (*projection.Follower, func()) {
	t.Helper()
	f := projection.New(log, slog.New(slog.DiscardHandler), list...)
	f.On(s)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f.Follow(ctx) }()
	return f, func() { cancel(); <-done }
}

// sums uses every operation on rows: an appended list of the events, a count of all, and a row that comes and goes.
var sums = projection.Projection{Name: "sums", Version: 1,
	Apply: func(ctx context.Context, r *projection.Record, rows *projection.Rows) error {
		key := fmt.Sprintf("list/%d", r.Seq%7)
		rows.Append(key, fmt.Appendf(nil, "%d,", r.Seq))
		before, err := rows.Get(ctx, "count")
		if err != nil {
			return err
		}
		n := 0
		_, _ = fmt.Sscan(string(before), &n)
		rows.Put("count", fmt.Append(nil, n+1))
		if r.Seq%2 == 0 {
			rows.Delete("odd")
		} else {
			rows.Append("odd", fmt.Append(nil, r.Seq))
		}
		list, err := rows.Get(ctx, key)
		rows.Put("copy/"+key, append([]byte{}, list...))
		return err
	}}

// plain returns the rows of sums after n events, computed a second way.
func plain(n int) map[string]string {
	rows := map[string]string{}
	for seq := 1; seq <= n; seq++ {
		rows[fmt.Sprintf("list/%d", seq%7)] += fmt.Sprint(seq, ",")
	}
	for key, list := range maps.Clone(rows) {
		rows["copy/"+key] = list
	}
	if rows["count"] = fmt.Sprint(n); n%2 == 1 {
		rows["odd"] = fmt.Sprint(n)
	}
	return rows
}

// agrees checks the rows of a projection that works as sums does.
func agrees(t testing.TB, f *projection.Follower, p projection.Projection, n int) {
	t.Helper()
	list, err := f.Range(t.Context(), p, uint64(n), store.Range{Limit: 1000})
	must(t, err)
	want := plain(n)
	if len(list) != len(want) {
		t.Errorf("%d rows, want %d", len(list), len(want))
	}
	for _, r := range list {
		if string(r.Value) != want[r.Key] {
			t.Errorf("row %s is %.100q, want %.100q", r.Key, r.Value, want[r.Key])
		}
	}
}

var errStopped = errors.New("the process is gone")

// stops is a store whose process ends before or after a write.
type stops struct {
	*sqlite.Store
	left  int  // writes until the end
	after bool // the last write is done
	gone  chan struct{}
}

// last does a write unless the process has ended.
func (s *stops) last(write func() error) error {
	if s.left--; s.left > 0 {
		return write()
	}
	if s.left == 0 {
		defer close(s.gone)
		if s.after {
			_ = write()
		}
	}
	return errStopped
}

func (s *stops) Project(ctx context.Context, from, to store.Mark, c map[string]map[string]store.Change) error {
	return s.last(func() error { return s.Store.Project(ctx, from, to, c) })
}

func (s *stops) DropProjection(ctx context.Context, name string) error {
	return s.last(func() error { return s.Store.DropProjection(ctx, name) })
}

// A process that ends before or after any of its writes loses no event and counts none twice.
func TestFollow_StoppedBetweenWritesLosesNothing(t *testing.T) {
	t.Parallel()
	const events = 5300 // six pieces
	newer := sums
	newer.Version = 2
	for seed := range uint64(lane.Pick(4, 40)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			st, src := fill(t, events)
			for range 6 { // processes
				p := sums
				if rng.IntN(3) == 0 {
					p = newer // drops the rows of the other version first
				}
				log := &stops{Store: st, left: 1 + rng.IntN(4), after: rng.IntN(2) == 0, gone: make(chan struct{})}
				f, end := follow(t, log, src, p)
				ctx, cancel := context.WithCancel(t.Context())
				reached := make(chan struct{})
				go func() { defer close(reached); _ = f.Wait(ctx, p, events) }()
				select {
				case <-log.gone:
				case <-reached:
				}
				cancel()
				<-reached
				end()
			}
			f, end := follow(t, st, src, newer)
			defer end()
			agrees(t, f, newer, events)
			marks, err := st.Marks(t.Context())
			must(t, err)
			if len(marks) != 1 || marks["sums/2"].Seq != events {
				t.Errorf("marks %v, want those of version 2 only", marks)
			}
		})
	}
}

// A projection with a new version is rebuilt while the others answer, and says how far it is.
func TestFollow_RebuildsNewVersionWhileOthersAnswer(t *testing.T) {
	t.Parallel()
	st, src := fill(t, 2500)
	old, other := sums, sums
	other.Name = "other"
	f, end := follow(t, st, src, old, other)
	agrees(t, f, old, 2500)
	agrees(t, f, other, 2500)
	end()

	reached, open := make(chan struct{}), make(chan struct{})
	slow := sums
	slow.Version = 2
	slow.Apply = func(ctx context.Context, r *projection.Record, rows *projection.Rows) error {
		if r.Seq == 1500 { // in its second piece
			close(reached)
			<-open
		}
		return sums.Apply(ctx, r, rows)
	}
	f, end = follow(t, st, src, slow, other)
	defer end()
	<-reached
	agrees(t, f, other, 2500)
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errStopped)
	if err := f.Wait(gone, slow, 1); !errors.Is(err, errStopped) {
		t.Errorf("the rebuilt one answered: %v", err)
	}
	close(open)
	agrees(t, f, slow, 2500)
}

// While one projection is rebuilt, another keeps up with the log.
func TestFollow_RebuildDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	st, src := fill(t, 20_000)
	other := sums
	other.Name = "other"
	f, end := follow(t, st, src, other)
	agrees(t, f, other, 20_000)
	end()
	seen := uint64(0) // by the rebuilt projection when the other had read the whole log
	rebuilt := sums
	rebuilt.Apply = func(ctx context.Context, r *projection.Record, rows *projection.Rows) error {
		if r.Seq == 3000 { // the log grows meanwhile
			text, err := json.Marshal(state.Event{At: r.At, Schema: 1, Tenant: "default", Body: state.Tick{}})
			if err == nil {
				err = st.Append(ctx, []store.Record{{Seq: 20_001, Tenant: "default", At: r.At, Kind: r.Kind, Event: text}})
			}
			if err != nil {
				return err
			}
			src.mu.Lock()
			src.end++
			src.mu.Unlock()
		}
		if r.Seq <= 20_000 {
			seen = r.Seq
		}
		return sums.Apply(ctx, r, rows)
	}
	first := uint64(0)
	counted := other
	counted.Apply = func(ctx context.Context, r *projection.Record, rows *projection.Rows) error {
		if first == 0 {
			first = seen
		}
		return other.Apply(ctx, r, rows)
	}
	f, end = follow(t, st, src, rebuilt, counted)
	defer end()
	agrees(t, f, counted, 20_001)
	agrees(t, f, rebuilt, 20_001)
	if first == 0 || first > 5000 {
		t.Errorf("the other read the new event when the rebuild was at %d, want right after the piece with event 3000", first)
	}
}

// idle is a store whose projections do not advance.
type idle struct{ store.Store }

func (idle) Marks(context.Context) (map[string]store.Mark, error) { return nil, nil }

func (idle) Project(ctx context.Context, _, _ store.Mark, _ map[string]map[string]store.Change) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func (idle) WholeRecords(_ context.Context, after uint64, _ int) ([]store.Record, error) {
	return []store.Record{{Seq: after + 1, Kind: "tick"}}, nil
}

// blank has no rows.
var blank = projection.Projection{Name: "blank",
	Apply: func(context.Context, *projection.Record, *projection.Rows) error { return nil }}

// Readers do not wait for a projection that is far behind.
func TestWait_FailsAtOnceWhenFarBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, end := follow(t, idle{}, &source{end: 1_000_000}, blank)
		defer end()
		synctest.Wait()
		began := time.Now()
		var behind *projection.BehindError
		if err := f.Wait(t.Context(), blank, 0); !errors.As(err, &behind) || time.Since(began) > 0 {
			t.Errorf("%v after %v; want at once that it is behind", err, time.Since(began))
		}
	})
}

// A reader of a projection that is being built gets its progress after a while.
func TestWait_FailsWhenTheProjectionIsBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, end := follow(t, idle{}, &source{end: 5}, blank)
		defer end()
		began := time.Now()
		err := f.Wait(t.Context(), blank, 0) // up to the log's end at the start
		var behind *projection.BehindError
		if !errors.As(err, &behind) || *behind != (projection.BehindError{Name: "blank", At: 0, Of: 5}) {
			t.Errorf("%v; want that 0 of 5 events are read", err)
		}
		if waited := time.Since(began); waited > time.Minute {
			t.Errorf("told after %v", waited)
		}
	})
}

// A projection whose Apply panics is tried again, and the server goes on.
func TestFollow_SurvivesAPanic(t *testing.T) {
	t.Parallel()
	st, src := fill(t, 10)
	panicked := false
	p := sums
	p.Apply = func(ctx context.Context, r *projection.Record, rows *projection.Rows) error {
		if r.Seq == 5 && !panicked {
			panicked = true
			panic("planted")
		}
		return sums.Apply(ctx, r, rows)
	}
	f, end := follow(t, st, src, p)
	defer end()
	agrees(t, f, p, 10)
}

// A projection that fails does not stop the others, and goes on once it can.
func TestFollow_FailureOfOneDoesNotStopOthers(t *testing.T) {
	t.Parallel()
	st, src := fill(t, 1500)
	var mended atomic.Bool
	broken, other := sums, sums
	other.Name = "other"
	broken.Apply = func(ctx context.Context, r *projection.Record, rows *projection.Rows) error {
		if r.Seq == 1200 && !mended.Load() {
			return errors.New("planted")
		}
		return sums.Apply(ctx, r, rows)
	}
	f, end := follow(t, st, src, broken, other)
	defer end()
	agrees(t, f, other, 1500)
	mended.Store(true)
	agrees(t, f, broken, 1500)
}

// BenchmarkFollow_Rebuild builds a projection with a row for each event.
func BenchmarkFollow_Rebuild(b *testing.B) {
	const events = 1_000_000
	st, src := fill(b, events)
	b.ResetTimer()
	for b.Loop() {
		p := projection.Projection{Name: "rows", Version: 1,
			Apply: func(_ context.Context, r *projection.Record, rows *projection.Rows) error {
				rows.Put(fmt.Sprintf("%08x", uint32(r.Seq*2654435761)), []byte(strings.Repeat("x", 40)))
				return nil
			}}
		must(b, st.DropProjection(b.Context(), "rows/1"))
		began := time.Now()
		f, end := follow(b, st, src, p)
		for {
			err := f.Wait(b.Context(), p, events)
			var behind *projection.BehindError
			if err == nil {
				break
			}
			if !errors.As(err, &behind) {
				b.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		b.ReportMetric(events/time.Since(began).Seconds(), "rows/s")
		end()
		n := 0
		for after := ""; ; {
			rows, err := st.RowRange(b.Context(), "rows/1", store.Range{After: after, Limit: 10_000})
			must(b, err)
			if len(rows) == 0 {
				break
			}
			n, after = n+len(rows), rows[len(rows)-1].Key
		}
		if n != events {
			b.Fatalf("%d rows, want %d", n, events)
		}
	}
}
