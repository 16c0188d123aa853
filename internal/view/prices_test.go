package view_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/store"
	"scrimp/internal/test/lane"
)

// observe appends n observations of the market, and gives them to a plain recorder.
func (w *world) observe(n int, plain *market.Recorder) {
	w.Helper()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range n {
		w.seq++
		at := begin.Add(time.Duration(w.seq) * time.Minute)
		var b state.MarketSeen
		for i := range 6 {
			id := market.OfferID(fmt.Sprintf("offer/%d", i))
			if w.rng.IntN(8) == 0 {
				b.Offers = append(b.Offers, market.Offer{ID: id, Provider: fmt.Sprint("at ", w.seq), Currency: "USD",
					Capacity: []market.Capacity{market.Spot, market.OnDemand}[i%2], Notice: time.Minute})
			}
			for range w.rng.IntN(3) { // also before the offer is known, and late ones
				b.Quotes = append(b.Quotes, market.Quote{Offer: id, At: at.Add(-time.Duration(w.rng.IntN(300)) * time.Second),
					Rate: money.Rate(1 + w.rng.IntN(3)), Priced: w.rng.IntN(3) > 0, Available: w.rng.IntN(2) == 0,
					Untried: w.rng.IntN(4) == 0, Source: "test"})
			}
		}
		e := state.Event{At: at, Schema: 1, Tenant: "default", Body: b}
		text, err := json.Marshal(e)
		must(w, err)
		must(w, w.Append(w.Context(), []store.Record{{Seq: w.seq, Tenant: "default", At: at, Kind: b.Kind(), Event: text,
			Sample: w.rng.IntN(2) == 0}}))
		for _, o := range b.Offers {
			plain.Offer(o)
		}
		for _, q := range b.Quotes {
			plain.Quote(q)
		}
	}
	w.rise(w.seq)
}

// The recorded market equals that of all observations in the log, over restarts.
func TestPrices_EqualAllObservationsOfTheLog(t *testing.T) {
	t.Parallel()
	for seed := range uint64(lane.Pick(4, 40)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w, plain := newWorld(t, seed), &market.Recorder{}
			for range 3 {
				v, end := w.follow()
				for range 2 {
					w.observe(1+w.rng.IntN(60), plain)
					w.write(3)
					seen, err := v.Prices(t.Context(), w.seq)
					must(t, err)
					got, gotFirst := seen.Trace("recorded")
					want, wantFirst := plain.Trace("recorded")
					if !gotFirst.Equal(wantFirst) || !reflect.DeepEqual(got, want) {
						t.Fatalf("from %v: %+v\nwant from %v: %+v", gotFirst, got, wantFirst, want)
					}
				}
				end()
			}
			if trace, _ := plain.Trace(""); len(trace.Lines) < 4 {
				t.Errorf("%d offers with a price: the test shows little", len(trace.Lines))
			}
		})
	}
}
