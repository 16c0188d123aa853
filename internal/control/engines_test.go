package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/engine"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/must"
)

// place is a test engine: a cloud whose offers carry the engine's name.
type place struct {
	cloud
	name  string
	rate  money.Rate
	away  atomic.Bool // calls hang
	bills atomic.Pointer[[]engine.Bill]
	calls atomic.Int32 // calls of Offers
	ping  chan struct{}
}

func (p *place) wait(ctx context.Context) error {
	if p.away.Load() {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return nil
}

func (p *place) Launch(ctx context.Context, r engine.Request) ([]engine.Instance, error) {
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	list, err := p.cloud.Launch(ctx, r)
	for n := range list {
		list[n].ID = p.name + "-" + list[n].ID // each engine has its own
	}
	return list, err
}

func (p *place) Terminate(ctx context.Context, id string) error {
	if err := p.wait(ctx); err != nil {
		return err
	}
	return p.cloud.Terminate(ctx, id[len(p.name)+1:])
}

func (p *place) List(ctx context.Context) ([]engine.Instance, error) {
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	list, err := p.cloud.List(ctx)
	for n := range list {
		list[n].ID = p.name + "-" + list[n].ID
	}
	return list, err
}

func (p *place) Offers(ctx context.Context) ([]market.Offer, []market.Quote, error) {
	p.calls.Add(1)
	o := market.Offer{Provider: p.name, Region: "r", Zone: p.name, Machine: "m", Capacity: market.OnDemand, CPUs: 1, Memory: 1 << 30, Speed: 1, Currency: money.USD}
	o.ID = market.ID(o)
	return []market.Offer{o}, []market.Quote{{Offer: o.ID, Rate: p.rate, Priced: true, Available: true, At: time.Now().UTC(), Source: "test"}}, p.wait(ctx)
}

func (p *place) Bills(context.Context, time.Time) ([]engine.Bill, error) {
	if list := p.bills.Load(); list != nil {
		return *list, nil
	}
	return nil, nil
}

// pushing is a place that reports changes without being polled.
type pushing struct{ *place }

func (p pushing) Watch(ctx context.Context, changed func()) error {
	for {
		select {
		case <-p.ping:
			changed()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *place) engine() engine.Engine {
	e := engineOf(p.name, p, 10*time.Millisecond)[0]
	e.Client = &engine.ClientConfig{Timeout: 200 * time.Millisecond, Tries: 1, Wait: time.Millisecond, MaxWait: time.Millisecond, Jitter: func() float64 { return 0 }}
	return e
}

// opened runs a server with the engines on the folder until stop.
func opened(t *testing.T, folder string, engines ...engine.Engine) (*Control, func()) {
	t.Helper()
	return openedTo(t, folder, false, engines...)
}

// openedTo is opened with a choice of Config.Ends.
func openedTo(t *testing.T, folder string, ends bool, engines ...engine.Engine) (*Control, func()) {
	t.Helper()
	st, err := sqlite.Open(folder)
	must.Do(t, err)
	now := time.Now().UTC()
	s, err := New(t.Context(), st, engines, Config{
		Clock: Clock{Wall: now, Market: now, Speed: 1}, Silence: time.Hour, Ends: ends,
		Log: slog.New(slog.DiscardHandler), Env: func(e *engine.Engine, _ string) map[string]string { return map[string]string{"URL": e.AgentURL} },
	})
	must.Do(t, err)
	return s, runs(t, s, st)
}

func at(c *Control, job string, zones ...string) core.Event {
	e := submission(c, job)
	b := e.Body.(core.JobSubmitted)
	b.Terms.Need, b.Terms.Currency, b.Terms.Nodes, b.Terms.Saves = plan.Need{Requirements: plan.Requirements{Zones: zones}}, money.USD, 1, true
	e.Body = b
	return e
}

// A server that terminates all machines rents none: launches wait for the next server.
func TestEnds_RentsNothing(t *testing.T) {
	t.Parallel()
	a, folder := &place{name: "a", rate: 1e12}, t.TempDir()
	s, stop := openedTo(t, folder, true, a.engine())
	sold := func() (n int) {
		s.ReadUncommitted(func(m *core.Machine) { n = len(slices.Collect(keys(m.Sale()))) })
		return n
	}
	until(t, "it sells", func() bool { return sold() == 1 })
	must.Do(t, s.Propose(t.Context(), at(s, "j")))
	asked := func() (yes bool) {
		s.ReadUncommitted(func(m *core.Machine) { j, ok := m.Job("j"); yes = ok && j.Asked() != nil })
		return yes
	}
	until(t, "a machine is asked for", asked)
	seen := a.calls.Load()
	until(t, "it has polled since", func() bool { return a.calls.Load() > seen+5 })
	if !asked() || rented(s, "j") != "" {
		t.Errorf("it rents %q", rented(s, "j"))
	}
	stop()
	s, stop = opened(t, folder, a.engine())
	defer stop()
	until(t, "the next one rents", func() bool { return rented(s, "j") == "a-i-1" })
}

// Jobs go to the cheaper engine. An engine that hangs delays only its own jobs. A machine missing from one engine's
// list means nothing for the machines of the others. A restarted server keeps both engines.
func TestEngines_AreIndependent(t *testing.T) {
	t.Parallel()
	a, b := &place{name: "a", rate: 2e12}, &place{name: "b", rate: 1e12}
	folder := t.TempDir()
	s, stop := opened(t, folder, a.engine(), b.engine())
	until(t, "both sell", func() bool {
		n := 0
		s.ReadUncommitted(func(m *core.Machine) { n = len(slices.Collect(keys(m.Sale()))) })
		return n == 2
	})
	for job, zones := range map[string][]string{"cheap": nil, "here": {"a"}} {
		must.Do(t, s.Propose(t.Context(), at(s, job, zones...)))
	}
	until(t, "both have machines", func() bool { return rented(s, "cheap") == "b-i-1" && rented(s, "here") == "a-i-1" })

	b.away.Store(true)
	must.Do(t, s.Propose(t.Context(), at(s, "far", "b")))
	must.Do(t, s.Propose(t.Context(), at(s, "near", "a")))
	until(t, "a rents while b hangs", func() bool { return rented(s, "near") == "a-i-2" })
	until(t, "b is shown as away", func() bool {
		e := s.Engines()
		return len(e) == 2 && e[0].Err == nil && e[0].Machines == 2 && e[1].Err != nil && e[1].Machines == 1
	})
	for range 3 { // sweeps of a, whose list has no machine of b
		s.sweep(t.Context(), s.sources[0])
	}
	if rented(s, "cheap") != "b-i-1" || rented(s, "far") != "" {
		t.Errorf("by the list of a, cheap has %q and far %q", rented(s, "cheap"), rented(s, "far"))
	}
	stop()
	b.away.Store(false)
	s, stop = opened(t, folder, a.engine(), b.engine())
	defer stop()
	until(t, "b rents again", func() bool { return rented(s, "far") == "b-i-2" })
	swept(t, s)
	s.sweep(t.Context(), s.sources[1])
	if got := fmt.Sprint(rented(s, "cheap"), rented(s, "here"), rented(s, "near"), len(a.terminations()), len(b.terminations())); got != "b-i-1a-i-1a-i-20 0" {
		t.Errorf("after a restart: %s", got)
	}
}

func keys[K, V any](s func(func(K, V) bool)) func(func(K) bool) {
	return func(yield func(K) bool) { s(func(k K, _ V) bool { return yield(k) }) }
}

// A launch on an engine that is no longer configured is closed. What it rented nevertheless is terminated once the
// engine is configured again, and so is a machine that was waiting to be terminated.
func TestRemovedEngine_KeepsItsMachinesUntilItIsBack(t *testing.T) {
	t.Parallel()
	a, b := &place{name: "a", rate: 2e12}, &place{name: "b", rate: 1e12}
	folder := t.TempDir()
	s, stop := opened(t, folder, a.engine(), b.engine())
	must.Do(t, s.Propose(t.Context(), at(s, "one", "b")))
	until(t, "a machine", func() bool { return rented(s, "one") == "b-i-1" })
	b.away.Store(true) // launches from here on get no answer
	must.Do(t, s.Propose(t.Context(), at(s, "two", "b")))
	stop()
	_, _ = b.cloud.Launch(t.Context(), engine.Request{Key: s.keyOf("two.1"), Offer: "b/b/m/on-demand", Tags: s.tags(core.Launch{Job: "two", Allocation: "two.1"})})
	b.away.Store(false)

	s, stop = opened(t, folder, a.engine())
	until(t, "the launch is closed", func() bool {
		asked := true
		s.ReadUncommitted(func(m *core.Machine) { _, asked = m.Allocation("two.1") })
		return !asked
	})
	must.Do(t, s.Propose(t.Context(), s.event(s.Now(), core.JobEnded{Job: "one"})))
	if e := s.Engines(); len(e) != 2 || e[1].Name != "b" || e[1].Configured || e[1].Machines != 1 {
		t.Errorf("%+v", e)
	}
	stop()
	if n := len(b.terminations()); n > 0 {
		t.Errorf("%d machines of an engine that is not there are ended", n)
	}
	s, stop = opened(t, folder, a.engine(), b.engine())
	defer stop()
	until(t, "both are given back", func() bool { n := b.terminations(); return slices.Contains(n, "i-1") && slices.Contains(n, "i-2") })
}

// A bill that comes long after the end of its machine is booked; one that comes before the end is booked at the end.
func TestLateBill_IsBooked(t *testing.T) {
	t.Parallel()
	a := &place{name: "a", rate: 2e12}
	s, stop := opened(t, t.TempDir(), a.engine())
	defer stop()
	must.Do(t, s.Propose(t.Context(), at(s, "one")))
	until(t, "a machine", func() bool { return rented(s, "one") != "" })
	amount := money.Picos(7e12)
	bill := engine.Bill{Instance: "a-i-1", Key: s.keyOf("one.1"), Lines: []engine.Line{{Amount: amount, Currency: money.USD}}}
	a.bills.Store(&[]engine.Bill{bill, {Instance: "another", Key: "other-1-x.1", Lines: bill.Lines}})
	billed := func() (sum money.Amount) {
		s.ReadUncommitted(func(m *core.Machine) {
			j, _ := m.Job("one")
			sum = j.Attempts()[0].Bill()[""]
		})
		return sum
	}
	swept(t, s)
	if got := billed(); !got.IsZero() {
		t.Errorf("billed %v while it runs", got)
	}
	must.Do(t, s.Propose(t.Context(), s.event(s.Now(), core.JobEnded{Job: "one"})))
	until(t, "the bill is booked", func() bool { return billed() == amount })
}

// The server polls an engine that reports changes when it reports one, and not at each poll.
func TestPushingEngine_IsPolledWhenItReportsAChange(t *testing.T) {
	t.Parallel()
	a := &place{name: "a", rate: 2e12, ping: make(chan struct{})}
	e := a.engine()
	e.Driver, e.Timing.Sweep = pushing{a}, time.Hour
	s, stop := opened(t, t.TempDir(), e)
	defer stop()
	until(t, "it watches, and has been asked", func() bool { return s.sources[0].pushes.Load() && a.calls.Load() > 0 })
	for range 3 {
		before := a.calls.Load()
		a.ping <- struct{}{}
		until(t, "it is asked", func() bool { return a.calls.Load() > before })
	}
	if n := a.calls.Load(); n > 12 { // polling would make a hundred calls a second
		t.Errorf("asked %d times for 3 changes", n)
	}
}

func TestNew_RefusesTwoEnginesOfOneName(t *testing.T) {
	t.Parallel()
	a := &place{name: "a", rate: 2e12}
	_, err := New(t.Context(), nil, []engine.Engine{a.engine(), a.engine()}, Config{})
	if err == nil || errors.Is(err, ErrStopping) {
		t.Errorf("two engines called a: %v", err)
	}
}
