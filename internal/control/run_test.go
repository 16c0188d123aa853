package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/store"
	"scrimp/internal/test/must"
)

// gate is a log in memory whose appends wait for permission.
type gate struct {
	store.Store
	leave   chan error
	records [][]store.Record
}

func (g *gate) LatestSnapshot(context.Context) (store.Snapshot, bool, error) {
	return store.Snapshot{}, false, nil
}
func (g *gate) WholeRecords(context.Context, uint64, int) ([]store.Record, error) { return nil, nil }
func (g *gate) End(context.Context) (uint64, error)                               { return 0, nil }
func (g *gate) Place(context.Context) (string, error)                             { return "here", nil }
func (g *gate) Meta(context.Context, string) (string, bool, error)                { return "", false, nil }
func (g *gate) AllMeta(context.Context) (map[string]string, error)                { return nil, nil }
func (g *gate) PutMeta(context.Context, string, string) error                     { return nil }
func (g *gate) Append(_ context.Context, records []store.Record) error {
	err := <-g.leave
	if err == nil {
		g.records = append(g.records, slices.Clone(records))
	}
	return err
}

// gated runs a Control on a gate after its first event, the configuration, is written.
func gated(t *testing.T) (c *Control, g *gate, ran <-chan error, stop func()) {
	t.Helper()
	g = &gate{leave: make(chan error)}
	now := time.Now().UTC()
	c, err := New(t.Context(), g, engineOf("shut", shut{}, time.Hour), Config{Clock: Clock{Wall: now, Market: now, Speed: 1}, Silence: time.Hour, Log: slog.New(slog.DiscardHandler)})
	must.Do(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	g.leave <- nil
	synctest.Wait()
	return c, g, done, cancel
}

func submission(c *Control, id string) core.Event {
	return core.Event{At: c.Now(), Schema: core.Schema, Tenant: "default", Key: id, Body: core.JobSubmitted{Job: id, Terms: core.Terms{Name: id}}}
}

// The core steps on while a transaction is written. Events that arrive meanwhile share the next transaction, and
// nobody sees or is promised what is not durable.
func TestRun_StepsWhileATransactionIsWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, g, ran, stop := gated(t)
		told := make(chan string, 100)
		tell := func(id string) {
			go func() {
				if err := c.Propose(t.Context(), submission(c, id), c.event(c.Now(), core.Audited{})); err != nil {
					t.Error(err)
				}
				told <- id
			}()
			synctest.Wait()
		}
		tell("a")
		g.leave <- nil
		synctest.Wait()
		if got := <-told; got != "a" {
			t.Fatalf("%s is told", got)
		}
		for i := range 9 {
			tell(fmt.Sprint("b", i))
		}
		if len(told) > 0 {
			t.Fatal("an event is acknowledged that is not written")
		}
		stepped := 0
		c.ReadUncommitted(func(m *core.Machine) { stepped = m.Len() })
		if stepped != 10 {
			t.Errorf("%d of 10 jobs are stepped while the first is written", stepped)
		}
		if !c.Job("a", func(*core.Machine, *core.Job) {}) { // must not block
			t.Error("a job that is durable is not known")
		}
		if c.Job("nobody", func(*core.Machine, *core.Job) {}) {
			t.Error("a job that nobody submitted is known")
		}
		seen := make(chan string, 2)
		for _, read := range []struct {
			name string
			do   func()
		}{
			{"the state", func() { c.Read(func(*core.Machine) {}) }},
			{"a job that is being written", func() { c.Job("b8", func(*core.Machine, *core.Job) {}) }},
		} {
			go func() { read.do(); seen <- read.name }()
			synctest.Wait()
		}
		g.leave <- nil // permits the first transaction
		synctest.Wait()
		if len(told) != 1 || len(seen) > 0 {
			t.Errorf("after the first of them is written %d are acknowledged and %d readers are answered", len(told), len(seen))
		}
		g.leave <- nil // permits the second, with all others
		synctest.Wait()
		if len(told) != 9 || len(seen) != 2 {
			t.Errorf("after all are written %d of 9 are acknowledged, %d readers are answered", len(told), len(seen))
		}
		stop()
		if err := <-ran; !errors.Is(err, context.Canceled) {
			t.Errorf("the run ends with %v", err)
		}
		var sizes []int
		next := uint64(1)
		for _, batch := range g.records {
			sizes = append(sizes, len(batch))
			for _, r := range batch {
				if r.Seq != next {
					t.Fatalf("event %d is written where %d belongs", r.Seq, next)
				}
				next++
			}
		}
		if want := []int{2, 2, 2, 16}; !slices.Equal(sizes, want) {
			t.Errorf("the transactions have %v events, want %v", sizes, want)
		}
	})
}

// If the disk is full, the write waits: new events are refused with the reason, durable state can be read, and
// everything continues once there is room.
func TestRun_WaitsForAFullDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, g, ran, stop := gated(t)
		told := make(chan error, 1)
		go func() { told <- c.Propose(t.Context(), submission(c, "a")) }()
		synctest.Wait()
		g.leave <- nil
		if err := <-told; err != nil {
			t.Fatal(err)
		}
		go func() { told <- c.Propose(t.Context(), submission(c, "b")) }()
		synctest.Wait()
		for range 100 { // retries
			g.leave <- fmt.Errorf("write: %w", store.ErrFull)
		}
		synctest.Wait()
		if err := c.Full(); !errors.Is(err, store.ErrFull) {
			t.Errorf("a control that cannot write says %v", err)
		}
		if err := c.Propose(t.Context(), submission(c, "c")); !errors.Is(err, store.ErrFull) {
			t.Errorf("an event that there is no room for is answered with %v", err)
		}
		if !c.Job("a", func(*core.Machine, *core.Job) {}) { // must not block
			t.Error("a job that is durable is not shown")
		}
		if len(told) > 0 {
			t.Errorf("what is not written is answered with %v", <-told)
		}
		g.leave <- nil
		if err := <-told; err != nil {
			t.Errorf("what waited for room: %v", err)
		}
		if err := c.Full(); err != nil {
			t.Errorf("with room again: %v", err)
		}
		go func() { told <- c.Propose(t.Context(), submission(c, "c")) }()
		synctest.Wait()
		g.leave <- nil
		if err := <-told; err != nil {
			t.Errorf("with room again: %v", err)
		}
		go func() { told <- c.Propose(t.Context(), submission(c, "d")) }()
		synctest.Wait()
		g.leave <- store.ErrFull
		synctest.Wait()
		stop() // stopping does not wait for room
		synctest.Wait()
		g.leave <- store.ErrFull
		if err := <-told; !errors.Is(err, store.ErrFull) {
			t.Errorf("what was never written is answered with %v", err)
		}
		if err := <-ran; !errors.Is(err, store.ErrFull) {
			t.Errorf("the run ends with %v", err)
		}
	})
}

// A failed write answers its requests with the error, and also the requests stepped after it. Run ends with the
// error.
func TestRun_EndsWhenAWriteFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, g, ran, stop := gated(t)
		defer stop()
		full := errors.New("the disk is full")
		told := make(chan error, 3)
		for i := range 3 {
			go func() { told <- c.Propose(t.Context(), submission(c, fmt.Sprint("j", i))) }()
			synctest.Wait()
		}
		read := make(chan bool, 2)
		go func() { read <- c.Read(func(*core.Machine) {}) }()
		go func() { read <- c.Job("j0", func(*core.Machine, *core.Job) {}) }()
		synctest.Wait()
		if len(read) > 0 || c.Lost() {
			t.Error("a reader is answered, or events are given up, while the write may still succeed")
		}
		g.leave <- full
		for range 2 {
			if <-read {
				t.Error("a reader is shown what is not written")
			}
		}
		if !c.Lost() {
			t.Error("nobody learns that the machine has taken what the log has not")
		}
		for range 3 {
			if err := <-told; !errors.Is(err, full) {
				t.Errorf("who told of an event that is not written hears %v", err)
			}
		}
		if err := <-ran; !errors.Is(err, full) {
			t.Errorf("the run ends with %v", err)
		}
		if len(g.records) != 1 {
			t.Errorf("%d transactions are written", len(g.records))
		}
	})
}
