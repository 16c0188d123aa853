package control

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/engine"
	"scrimp/internal/store"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/must"
)

// wide is a store in whose log each allocation requests three machines.
type wide struct{ store.Store }

func (w wide) WholeRecords(ctx context.Context, after uint64, limit int) ([]store.Record, error) {
	list, err := w.Store.WholeRecords(ctx, after, limit)
	for n := range list {
		list[n].Facts = bytes.ReplaceAll(list[n].Facts, []byte(`"nodes":1`), []byte(`"nodes":3`))
	}
	return list, err
}

func (w wide) LatestSnapshot(context.Context) (store.Snapshot, bool, error) {
	return store.Snapshot{}, false, nil
}

// asksForThree returns a server with a job that wants three machines of p and has not requested them yet.
func asksForThree(t *testing.T, p *place, before func(key string)) (*Control, func()) {
	t.Helper()
	folder := t.TempDir()
	s, stop := opened(t, folder, p.engine())
	until(t, "offers", func() (known bool) {
		s.ReadUncommitted(func(m *core.Machine) { known = m.State().Listing("a/a/m/on-demand") != nil })
		return known
	})
	p.away.Store(true) // launches get no answer yet
	must.Do(t, s.Propose(t.Context(), at(s, "g", p.name)))
	until(t, "it is asked for", func() bool { return len(s.Asked(p.name)) == 1 })
	key := s.keyOf("g.1")
	stop()
	p.away.Store(false)
	p.hide(true) // otherwise the first inventory could report machines before the launch does
	before(key)
	st, err := sqlite.Open(folder)
	must.Do(t, err)
	e, now := p.engine(), time.Now().UTC()
	e.Timing.Sweep = time.Hour // so that only the launch reports machines
	s, err = New(t.Context(), wide{st}, []engine.Engine{e}, Config{
		Clock: Clock{Wall: now, Market: now, Speed: 1}, Silence: time.Hour, Snapshot: 1 << 30,
		Log: slog.New(slog.DiscardHandler), Env: func(*engine.Engine, string) map[string]string { return nil },
	})
	must.Do(t, err)
	return s, runs(t, s, st)
}

// runs runs a controller until the function that it returns stops it and closes its store.
func runs(t *testing.T, s *Control, st io.Closer) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return func() {
		cancel()
		<-done
		_ = st.Close()
	}
}

// grantedTo returns the machines of the allocation; nil if it is closed.
func grantedTo(s *Control, allocation string) (ids []string) {
	s.ReadUncommitted(func(m *core.Machine) {
		if a, open := m.Allocation(allocation); open {
			ids = slices.Clone(a.Granted())
		}
	})
	return ids
}

// kinds counts the log's events about allocation g.1 by kind.
func kinds(t *testing.T, s *Control) map[string]int {
	t.Helper()
	list, err := s.store.Records(t.Context(), 0, 1000)
	must.Do(t, err)
	of := map[string]int{}
	for _, r := range list {
		if bytes.Contains(r.Event, []byte(`"g.1"`)) {
			of[r.Kind]++
		}
	}
	return of
}

// hide makes List fail.
func (c *cloud) hide(hidden bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hidden = hidden
}

func (c *cloud) grant(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.part = n
}

// A gang launch ends with one answer. Each machine of a partial grant is reported once, and the server repeats the
// launch until all are granted.
func TestGangLaunch_RepeatsUntilAllAreGranted(t *testing.T) {
	t.Parallel()
	p := &place{name: "a", rate: 1e12}
	s, stop := asksForThree(t, p, func(string) { p.part = 2 })
	defer stop()
	until(t, "a part", func() bool { return len(grantedTo(s, "g.1")) == 2 })
	until(t, "the rest waits", func() bool { return kinds(t, s)[core.LaunchPending{}.Kind()] == 1 })
	if ids := grantedTo(s, "g.1"); len(ids) != 2 || rented(s, "g") != "" {
		t.Fatalf("a part is granted: %v, and the attempt has %q", ids, rented(s, "g"))
	}
	p.grant(0)
	until(t, "the attempt", func() bool { return rented(s, "g") != "" })
	done := core.LaunchDone{}.Kind()
	until(t, "it is durable", func() bool { return kinds(t, s)[done] >= 3 })
	if n := kinds(t, s)[done]; n != 3 || len(p.terminations()) > 0 || grantedTo(s, "g.1") != nil {
		t.Errorf("3 machines are told %d times, ended were %v", n, p.terminations())
	}
}

// A partial grant of a cancelled launch is terminated, and the allocation is closed.
func TestGangLaunch_TerminatesThePartialGrantOfACancelledLaunch(t *testing.T) {
	t.Parallel()
	p := &place{name: "a", rate: 1e12}
	s, stop := asksForThree(t, p, func(string) { p.part = 2 })
	defer stop()
	until(t, "a part", func() bool { return len(grantedTo(s, "g.1")) == 2 })
	p.hide(false)
	must.Do(t, s.Propose(t.Context(), s.event(s.Now(), core.JobEnded{Job: "g"})))
	until(t, "both are given back", func() bool { return len(p.terminations()) == 2 })
	until(t, "the allocation is closed", func() bool { return grantedTo(s, "g.1") == nil })
	until(t, "it is durable", func() bool { return kinds(t, s)[core.LaunchCancelled{}.Kind()] > 0 })
	of := kinds(t, s)
	if of[core.LaunchCancelled{}.Kind()] != 1 || of[core.LaunchDone{}.Kind()] != 2 {
		t.Errorf("the log has %v", of)
	}
}

// If the rest of a launch is refused, its partial grant is reported first: nobody pays for machines that wait for
// others which never come, and a job that may run on fewer starts on them at once.
func TestGangLaunch_ReportsThePartialGrantWithTheRefusal(t *testing.T) {
	t.Parallel()
	p := &place{name: "a", rate: 1e12}
	s, stop := asksForThree(t, p, func(string) { p.part, p.short = 2, true })
	defer stop()
	refused := core.LaunchRefused{}.Kind()
	until(t, "the rest is refused", func() bool { return kinds(t, s)[refused] == 1 })
	if of := kinds(t, s); of[core.LaunchDone{}.Kind()] != 2 || of[core.LaunchPending{}.Kind()] != 0 ||
		grantedTo(s, "g.1") != nil || rented(s, "g") == "" {
		t.Errorf("the log has %v, open is %v", of, grantedTo(s, "g.1"))
	}
}

// A launch that was granted before the server heard of it is reported whole, including the machine that has ended
// since.
func TestGangLaunch_ReportsEarlierGrantsWithTheirEnds(t *testing.T) {
	t.Parallel()
	p := &place{name: "a", rate: 1e12}
	s, stop := asksForThree(t, p, func(key string) {
		list, err := p.cloud.Launch(t.Context(), engine.Request{Key: key, Nodes: 3, Offer: "a/a/m/on-demand"})
		if err != nil || len(list) != 3 {
			t.Fatalf("%v, %v", list, err)
		}
		must.Do(t, p.cloud.Terminate(t.Context(), list[1].ID))
	})
	defer stop()
	phase := func(id string) (is state.InstancePhase) {
		s.ReadUncommitted(func(m *core.Machine) {
			if i := m.State().Instance(id); i != nil {
				is = i.Phase()
			}
		})
		return is
	}
	until(t, "all are told", func() bool { return phase("a-i-1") != "" && phase("a-i-3") != "" })
	until(t, "the end of one is told", func() bool { return kinds(t, s)[core.InstanceEnded{}.Kind()] > 0 })
	if n := kinds(t, s)[core.LaunchDone{}.Kind()]; n != 3 {
		t.Errorf("3 machines are told %d times", n)
	}
}
