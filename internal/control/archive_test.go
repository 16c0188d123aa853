package control

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/engine"
	"scrimp/internal/lib/money"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/must"
	"scrimp/internal/view"
	"scrimp/internal/view/projection"
)

// archiving runs a server that archives jobs a moment after their end, until stop.
func archiving(t *testing.T, folder string, engines ...engine.Engine) (*Control, func()) {
	t.Helper()
	st, err := sqlite.Open(folder)
	must.Do(t, err)
	log := slog.New(slog.DiscardHandler)
	f := projection.New(st, log, view.Projections()...)
	now := time.Now().UTC()
	s, err := New(t.Context(), st, engines, Config{Clock: Clock{Wall: now, Market: now, Speed: 1}, Silence: time.Hour, Log: log,
		Env: func(*engine.Engine, string) map[string]string { return nil }, Archive: view.New(st, f)})
	must.Do(t, err)
	f.On(s)
	ctx, cancel := context.WithCancel(t.Context())
	done, followed := make(chan error, 1), make(chan struct{})
	go func() { done <- s.Run(ctx) }()
	go func() { defer close(followed); f.Follow(ctx) }()
	rules := s.Rules()
	rules.ArchiveAfter, rules.ArchiveUnbilled = 20*time.Millisecond, 20*time.Millisecond
	must.Do(t, s.Propose(t.Context(), s.event(s.Now(), core.Configured{Config: rules})))
	return s, func() {
		cancel()
		<-done
		<-followed
		_ = st.Close()
	}
}

// here counts the jobs in memory.
func here(s *Control) (n int) {
	s.ReadUncommitted(func(m *core.Machine) { n = m.Len() })
	return n
}

// An archived job gets its late bill, can be read, keeps its name and can be resumed, also by the next server.
func TestArchivedJob_StaysReachable(t *testing.T) {
	t.Parallel()
	a := &place{name: "a", rate: 2e12}
	folder := t.TempDir()
	s, stop := archiving(t, folder, a.engine())
	must.Do(t, s.Propose(t.Context(), at(s, "one")))
	until(t, "a machine", func() bool { return rented(s, "one") != "" })
	must.Do(t, s.Propose(t.Context(), s.event(s.Now(), core.JobEnded{Job: "one"})))
	until(t, "it is archived", func() bool { return here(s) == 0 })

	billed := func() (sum money.Amount) {
		if !s.Job("one", func(_ *core.Machine, j *core.Job) { sum = j.Attempts()[0].Bill()[""] }) {
			t.Fatal("an archived job is not known")
		}
		return sum
	}
	if got := billed(); !got.IsZero() {
		t.Errorf("billed %v before its bill", got)
	}
	amount := money.Picos(7e12)
	a.bills.Store(&[]engine.Bill{{Instance: "a-i-1", Key: s.keyOf("one.1"), Lines: []engine.Line{{Amount: amount, Currency: money.USD}}}})
	until(t, "its bill is booked", func() bool { return billed() == amount })
	until(t, "it is archived again", func() bool { return here(s) == 0 })
	stop()

	s, stop = archiving(t, folder, a.engine())
	defer stop()
	if got := billed(); got != amount || here(s) > 0 {
		t.Errorf("after a restart it is billed %v, and %d jobs are in memory", got, here(s))
	}
	taken, err := s.Taken(t.Context(), "one", "two")
	if err != nil || !taken["one"] || taken["two"] {
		t.Errorf("names that are taken: %v, %v", taken, err)
	}
	if s.Job("two", func(*core.Machine, *core.Job) {}) {
		t.Error("a job is known that never was")
	}
	for _, b := range []core.Body{core.JobEnded{Job: "two"}, core.JobResumed{Job: "one"}} {
		must.Do(t, s.Propose(t.Context(), s.event(s.Now(), b)))
	}
	var epochs int
	s.ReadUncommitted(func(m *core.Machine) {
		if j, ok := m.Job("one"); ok && j.Reopened() == 1 {
			epochs = len(j.Attempts())
		}
	})
	if epochs == 0 {
		t.Error("an archived job is not taken up again")
	}
}
