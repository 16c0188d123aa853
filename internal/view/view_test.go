package view_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
	"scrimp/internal/store"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/lane"
	"scrimp/internal/view"
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
	return s.more
}

func (s *source) rise(end uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = end
	close(s.more)
	s.more = make(chan struct{})
}

// world is a growing log with the expected results of a reader.
type world struct {
	testing.TB
	store.Store
	*source
	rng       *rand.Rand
	seq       uint64
	submitted map[string]uint64
	said      map[string]map[view.What][]uint64 // by job: the matching events without its submission
	concerned map[uint64][]string               // by event: the jobs that it names, in its order
}

func newWorld(t testing.TB, seed uint64) *world {
	s, err := sqlite.Open(t.TempDir())
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return &world{TB: t, Store: s, source: &source{more: make(chan struct{})}, rng: rand.New(rand.NewPCG(seed, 1)),
		submitted: map[string]uint64{}, said: map[string]map[view.What][]uint64{},
		concerned: map[uint64][]string{}}
}

func (w *world) job() string { return fmt.Sprintf("j-%d", 1+w.rng.IntN(len(w.submitted))) }

// note records that an event concerns a job.
func (w *world) note(job string, what view.What) {
	if w.submitted[job] == w.seq {
		return
	}
	if w.said[job] == nil {
		w.said[job] = map[view.What][]uint64{}
	}
	if list := w.said[job][what]; !slices.Contains(list, w.seq) {
		w.said[job][what] = append(list, w.seq)
	}
}

// event returns the next event of the log: a new job, a report of a program, or time that passed, each with
// decisions about some jobs.
func (w *world) event() store.Record {
	w.seq++
	e := state.Event{At: time.Unix(int64(w.seq), 0).UTC(), Schema: 1, Tenant: "default"}
	r := store.Record{Seq: w.seq, Tenant: "default", At: e.At}
	var facts []state.Fact
	switch n := w.rng.IntN(4); {
	case n == 0 || len(w.submitted) == 0:
		job := fmt.Sprintf("j-%d", len(w.submitted)+1)
		// a text that looks like another job's submission
		e.Body = state.JobSubmitted{Job: job, Terms: state.Terms{Name: `"body":{"job":"j-1"`}, Spec: json.RawMessage(`{"body":{"job":"j-1"}}`)}
		w.submitted[job] = w.seq
		facts = append(facts, state.JobQueued{Job: job})
		if w.rng.IntN(2) == 0 {
			facts = append(facts, state.Decided{Job: job, Decision: plan.Decision{Why: "wait"}})
		}
	case n == 1:
		job := w.job()
		b := state.Progressed{Attempt: job + ".1", Message: int64(w.seq), Step: int64(w.seq)}
		if r.Sample = w.rng.IntN(2) == 0; !r.Sample {
			b.Values = policy.Values{{Step: 1, Value: 0.5, At: e.At}}
		}
		e.Body = b
		w.note(job, view.Progress)
	default:
		e.Body = state.Tick{}
		facts = append(facts, state.JobChanged{Job: w.job()})
	}
	for !r.Sample && w.rng.IntN(3) == 0 {
		job := w.job()
		facts = append(facts, state.Decided{Job: job, Decision: plan.Decision{Why: `"decided",`}})
		w.note(job, view.Decisions)
	}
	w.names(e.Body, facts)
	r.Kind = e.Body.Kind()
	var err error
	r.Event, err = json.Marshal(e)
	must(w, err)
	r.Facts, err = state.EncodeFacts(facts)
	must(w, err)
	return r
}

// names notes which jobs the event names.
func (w *world) names(body state.Body, facts []state.Fact) {
	var jobs []string
	switch b := body.(type) {
	case state.JobSubmitted:
		jobs = append(jobs, b.Job)
	case state.Progressed:
		jobs = append(jobs, strings.TrimSuffix(b.Attempt, ".1"))
	}
	for _, f := range facts {
		switch f := f.(type) {
		case state.JobQueued:
			jobs = append(jobs, f.Job)
		case state.JobChanged:
			jobs = append(jobs, f.Job)
		case state.Decided:
			jobs = append(jobs, f.Job)
		}
	}
	for i, job := range jobs {
		if !slices.Contains(jobs[:i], job) {
			w.concerned[w.seq] = append(w.concerned[w.seq], job)
		}
	}
}

// write appends n events.
func (w *world) write(n int) {
	w.Helper()
	list := make([]store.Record, n)
	for i := range list {
		list[i] = w.event()
	}
	must(w, w.Append(w.Context(), list))
	w.rise(w.seq)
}

// follow starts a view, which runs until the returned function is called.
func (w *world) follow() (*view.View, func()) {
	f := projection.New(w, slog.New(slog.DiscardHandler), view.Projections()...)
	f.On(w)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f.Follow(ctx) }()
	return view.New(w, f), func() { cancel(); <-done }
}

// drop removes all projections.
func (w *world) drop() {
	w.Helper()
	marks, err := w.Marks(w.Context())
	must(w, err)
	for name := range marks {
		must(w, w.DropProjection(w.Context(), name))
	}
}

// agrees compares the view of each job with the log.
func (w *world) agrees(v *view.View) {
	w.Helper()
	for job, submitted := range w.submitted {
		for _, what := range []view.What{view.Decisions, view.Progress, view.Decisions | view.Progress} {
			want := []uint64{submitted}
			for _, one := range []view.What{view.Decisions, view.Progress} {
				if what&one != 0 {
					want = append(want, w.said[job][one]...)
				}
			}
			slices.Sort(want)
			want = slices.Compact(want)
			var got []uint64
			must(w, v.Events(w.Context(), view.Job{ID: job, Submitted: submitted, UpTo: w.seq}, what,
				func(r store.Record) error { got = append(got, r.Seq); return nil }))
			if !slices.Equal(got, want) {
				w.Fatalf("of %s the view says %v of kind %d, and the log %v", job, got, what, want)
			}
		}
	}
}

// The view of a job agrees with its log, however often the view's server restarted, and a reader sees everything
// that was durable before.
func TestEvents_MatchTheLog(t *testing.T) {
	t.Parallel()
	for seed := range uint64(lane.Pick(3, 30)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed)
			for range 2 + w.rng.IntN(3) {
				v, end := w.follow()
				for range w.rng.IntN(3) {
					w.write(1 + w.rng.IntN(80))
					w.agrees(v)
				}
				end()
				w.write(1 + w.rng.IntN(lane.Pick(500, 1500))) // while no view follows
				if w.rng.IntN(4) == 0 {
					w.drop()
				}
			}
			v, end := w.follow()
			w.agrees(v)
			end()
			if len(w.said) < 3 {
				t.Fatalf("%d jobs: the test shows little", len(w.said))
			}
		})
	}
}

// A view that belongs to another log is rebuilt: one with the same numbers, and a shorter one.
func TestView_OfAnotherLogIsRebuilt(t *testing.T) {
	t.Parallel()
	for name, mark := range map[string]func(store.Mark) store.Mark{
		"other events":  func(m store.Mark) store.Mark { m.Sum = "0"; return m },
		"a longer log":  func(m store.Mark) store.Mark { m.Seq += 10; return m },
		"a later event": func(m store.Mark) store.Mark { m.Kept += 10; return m },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 7)
			w.write(100)
			v, end := w.follow()
			w.agrees(v)
			end()
			marks, err := w.Marks(t.Context())
			must(t, err)
			for name, from := range marks {
				must(t, w.Project(t.Context(), from, mark(from), map[string]map[string]store.Change{
					name: {"j-1": {Value: []byte{9}, Append: true}}}))
			}
			v, end = w.follow()
			defer end()
			w.agrees(v)
		})
	}
}

// A lost or damaged view is rebuilt.
func TestView_IsRebuiltWhenLost(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(string) error{
		"lost":    os.Remove,
		"damaged": func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("no database", 1000)), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 8)
			dir := t.TempDir()
			s, err := sqlite.Open(dir)
			must(t, err)
			w.Store = s
			w.write(100)
			v, end := w.follow()
			w.agrees(v)
			end()
			must(t, s.Close())
			must(t, harm(filepath.Join(dir, "view.db")))
			s, err = sqlite.Open(dir)
			must(t, err)
			defer func() { _ = s.Close() }()
			w.Store = s
			v, end = w.follow()
			defer end()
			w.agrees(v)
		})
	}
}

// If two servers follow one log, as during a takeover, both views agree with the log.
func TestView_TwoServersMayFollowOneLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 9)
	a, endA := w.follow()
	b, endB := w.follow()
	for range 3 {
		w.write(80)
		w.agrees(a)
		w.agrees(b)
	}
	endA()
	w.write(80)
	w.agrees(b)
	endB()
}

// Readers do not get dropped samples, but everything else.
func TestEvents_OmitDroppedSamples(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10)
	w.write(150)
	v, end := w.follow()
	defer end()
	w.agrees(v)
	must(t, w.SaveSnapshot(t.Context(), store.Snapshot{Seq: 120, Version: 1, State: []byte("{}")}))
	dropped, err := w.DropSamples(t.Context(), 120)
	must(t, err)
	there := map[uint64]bool{}
	list, err := w.Records(t.Context(), 0, 1000)
	must(t, err)
	for _, r := range list {
		there[r.Seq] = true
	}
	for _, said := range w.said {
		for what, list := range said {
			said[what] = slices.DeleteFunc(list, func(seq uint64) bool { return !there[seq] })
		}
	}
	if dropped == 0 {
		t.Fatal("no sample was dropped: the test shows nothing")
	}
	w.agrees(v)
}
