package market_test

import (
	"reflect"
	"testing"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

func stormy(t *testing.T) market.Trace {
	t.Helper()
	m, err := market.Builtin("stormy", 2, 4*size.GiB)
	must.Do(t, err)
	return m
}

// Between two changes of Next the quote is constant.
func TestNext_MissesNoChange(t *testing.T) {
	m := stormy(t)
	m.Repeat = m.Lines[0].Available[20].To + time.Minute
	for _, l := range m.Lines {
		at := time.Duration(0)
		for at < 3*m.Repeat {
			next, ok := m.Next(l, at)
			if !ok {
				if l.Offer.Capacity == market.Spot {
					t.Fatalf("%s: nothing changes after %v", l.Offer.ID, at)
				}
				break
			}
			if next <= at {
				t.Fatalf("%s: the next change after %v is at %v", l.Offer.ID, at, next)
			}
			q := m.Quote(l, at, time.Time{})
			for x := at; x < next; x += max((next-at)/5, time.Second) {
				if p := m.Quote(l, x, time.Time{}); p.Rate != q.Rate || p.Available != q.Available {
					t.Fatalf("%s: %v at %v, %v at %v, and no change between", l.Offer.ID, q, at, p, x)
				}
			}
			at = next
		}
	}
}

// A drawn market is valid, deterministic in seed, and similar to the one it was fitted to.
func TestFit_DrawnMarketResemblesOriginal(t *testing.T) {
	from := stormy(t)
	fit := market.Fit(from, 0)
	share := func(m market.Trace, n int) (up float64, spans int) {
		var sum time.Duration
		for _, s := range m.Lines[n].Available {
			sum += s.To - s.From
		}
		return float64(sum) / float64(m.Repeat), len(m.Lines[n].Available)
	}
	var up float64
	spans := 0
	const seeds = 20
	for seed := range uint64(seeds) {
		a, err := fit.Generate(from.Repeat, seed)
		must.Do(t, err)
		if b, _ := fit.Generate(from.Repeat, seed); !reflect.DeepEqual(a, b) {
			t.Fatalf("seed %d gives two markets", seed)
		}
		if err := a.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		u, n := share(a, 0)
		up, spans = up+u/seeds, spans+n
	}
	want, n := share(from, 0)
	if up < want-0.1 || up > want+0.1 {
		t.Errorf("spot is there %.2f of the time, %.2f in the market it was fitted to", up, want)
	}
	if mean := float64(spans) / seeds; mean < 0.75*float64(n) || mean > 1.33*float64(n) {
		t.Errorf("%.0f spans in the mean, %d in the market it was fitted to", mean, n)
	}
	if _, err := fit.Generate(time.Second, 1); err == nil {
		t.Error("a market of a second")
	}
}

// An offer that was never available stays unavailable in a drawn market.
func TestFit_UnavailableOfferStaysUnavailable(t *testing.T) {
	o := market.Offer{Provider: "p", Zone: "z", Machine: "m", Capacity: market.Spot, CPUs: 1, Memory: size.GiB, Currency: money.USD}
	o.ID = market.ID(o)
	m := market.Trace{Currency: money.USD, Speed: 1, Repeat: time.Hour, Lines: []market.TraceLine{{Offer: o, Price: []market.Price{{Rate: 1}}, Available: []market.Span{}}}}
	if q := m.Quote(m.Lines[0], 0, time.Time{}); q.Available {
		t.Error("no span, and yet it can be had")
	}
	drawn, err := market.Fit(m, 0).Generate(10*time.Hour, 1)
	must.Do(t, err)
	if len(drawn.Lines[0].Available) != 0 || drawn.Lines[0].Available == nil {
		t.Errorf("it is sold in %v", drawn.Lines[0].Available)
	}
}

// Recording a market quote by quote reproduces it.
func TestRecorder_ReproducesMarket(t *testing.T) {
	m := stormy(t)
	length := 40 * time.Hour
	opened := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var r market.Recorder
	for _, l := range m.Lines {
		r.Offer(l.Offer)
	}
	for _, l := range m.Lines {
		r.Quote(m.Quote(l, 0, opened))
	}
	for _, l := range m.Lines { // line by line, because a recorder needs no order across lines
		for at, ok := m.Next(l, 0); ok && at < length; at, ok = m.Next(l, at) {
			r.Quote(m.Quote(l, at, opened))
		}
	}
	r.Until(opened.Add(length))
	got, first := r.Trace("again")
	if !first.Equal(opened) {
		t.Errorf("it begins %v", first)
	}
	must.Do(t, got.Validate())
	for _, l := range m.Lines {
		k, ok := got.Line(l.Offer.ID)
		if !ok {
			t.Fatalf("%s is missing", l.Offer.ID)
		}
		for at := time.Duration(0); at < length; at += 7 * time.Minute {
			a, b := m.Quote(l, at, opened), got.Quote(k, at, opened)
			if a.Rate != b.Rate || a.Available != b.Available {
				t.Fatalf("%s at %v: %v %v, recorded %v %v", l.Offer.ID, at, a.Rate, a.Available, b.Rate, b.Available)
			}
		}
	}
}
