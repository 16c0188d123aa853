package control

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/engine"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

// panicking is an engine whose driver panics at each call while hurt is set.
type panicking struct {
	*place
	hurt atomic.Bool
}

func (p *panicking) fails() {
	if p.hurt.Load() {
		var none []engine.Instance
		_ = none[len(p.name)]
	}
}

func (p *panicking) Launch(ctx context.Context, r engine.Request) ([]engine.Instance, error) {
	p.fails()
	return p.place.Launch(ctx, r)
}

func (p *panicking) List(ctx context.Context) ([]engine.Instance, error) {
	p.fails()
	return p.place.List(ctx)
}

func (p *panicking) Offers(ctx context.Context) ([]market.Offer, []market.Quote, error) {
	p.fails()
	return p.place.Offers(ctx)
}

func (p *panicking) Bills(ctx context.Context, since time.Time) ([]engine.Bill, error) {
	p.fails()
	return p.place.Bills(ctx, since)
}

// An engine whose driver panics counts as one that does not answer: the other engines continue, and once it answers
// again the machine of its job is rented.
func TestDriverPanic_CountsAsNoAnswer(t *testing.T) {
	t.Parallel()
	p := &panicking{place: &place{name: "hurt", rate: 1000}}
	e := p.engine()
	e.Driver = p
	other := &place{name: "well", rate: 1000}
	c, stop := opened(t, t.TempDir(), e, other.engine())
	defer stop()
	c.Priced(t.Context())
	p.hurt.Store(true)
	must.Do(t, c.Propose(t.Context(), at(c, "a", "hurt"), at(c, "b", "well")))
	until(t, "the other engine rents", func() bool { return rented(c, "b") == "well-i-1" })
	until(t, "the engine is away", func() bool {
		err := c.Engines()[0].Err
		return err != nil && strings.Contains(err.Error(), "index out of range")
	})
	if rented(c, "a") != "" {
		t.Error("the engine that panics has rented: the test is void")
	}
	p.hurt.Store(false)
	until(t, "the engine rents once it answers", func() bool { return rented(c, "a") == "hurt-i-1" })
}

// An action that panics runs again after a pause, and so does an engine's answer that makes the server itself panic.
// Both are logged with their stack.
func TestActionPanic_RunsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		tries := 0
		c := &Control{cfg: Config{Log: slog.New(slog.NewTextHandler(&out, nil)), Notify: func(context.Context, core.Notify) {
			if tries++; tries < 3 {
				panic("hostile")
			}
		}}}
		began := time.Now()
		c.act(t.Context(), core.Notify{Job: "a"})
		c.acts.Wait()
		if lasted := time.Since(began); tries != 3 || lasted != 3*time.Second {
			t.Errorf("%d tries in %v, want 3 in 3 s", tries, lasted)
		}
		s := newSource(engine.Engine{Name: "lab", Driver: shut{}}, Clock{})
		c.ask(t.Context(), s, func(context.Context, *source) { panic("hostile") })
		if why := s.away.Load(); why == nil {
			t.Error("the engine is not away")
		}
		if n := strings.Count(out.String(), "panic_test.go"); n < 3 {
			t.Errorf("the log has %d stacks of this test, want 3: %s", n, out.String())
		}
	})
}

// A bill or an offer without a valid currency is dropped: the ledger's columns are text, in which PostgreSQL accepts
// no zero byte, and a failed append ends the server.
func TestBill_WithoutAValidCurrencyIsDropped(t *testing.T) {
	t.Parallel()
	c := &Control{cfg: Config{Log: slog.New(slog.DiscardHandler)}}
	s := newSource(engine.Engine{Name: "lab", Driver: shut{}}, Clock{})
	for currency, sound := range map[money.Currency]bool{"USD": true, "": false, "US\x00": false, "\xff\xfe\xfd": false, "usd": false} {
		if _, ok := c.billed(s, "i", "a", []engine.Line{{Currency: currency}}); ok != sound {
			t.Errorf("a bill in %q is sound: %v", currency, ok)
		}
		o := market.Offer{ID: "o", Provider: "lab", Capacity: market.OnDemand, Currency: currency}
		if err := s.sells(&o, time.Now()); (err == nil) != sound {
			t.Errorf("an offer in %q: %v", currency, err)
		}
	}
}
