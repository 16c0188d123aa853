package state

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scrimp/internal/test/must"
	_ "scrimp/internal/test/sameseed"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// MarketSeen round-trips and keeps its order, also in the format of earlier builds.
func TestMarketSeenJSON_RoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m MarketSeen
		at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		for n := range rapid.IntRange(0, 6).Draw(t, "quotes") {
			at = at.Add(time.Duration(rapid.IntRange(0, 1).Draw(t, "later")) * time.Nanosecond)
			m.Quotes = append(m.Quotes, market.Quote{Offer: market.OfferID(fmt.Sprint("p/z/", n)), At: at,
				Rate:   money.Rate(rapid.Int64Range(0, 1<<60).Draw(t, "rate")),
				Priced: rapid.Bool().Draw(t, "priced"), Available: rapid.Bool().Draw(t, "available"),
				Untried: rapid.Bool().Draw(t, "untried"),
				Source:  rapid.SampledFrom([]string{"", "trace a", "b"}).Draw(t, "source")})
		}
		if rapid.Bool().Draw(t, "offers") {
			m.Offers = []market.Offer{{ID: "p/z/0", Provider: "p", Capacity: market.Spot, CPUs: 2, Speed: 1}}
		}
		text, err := json.Marshal(m)
		must.Do(t, err)
		old, err := json.Marshal(struct {
			Offers []market.Offer `json:"offers,omitempty"`
			Quotes []market.Quote `json:"quotes,omitempty"`
		}{m.Offers, m.Quotes})
		must.Do(t, err)
		for _, b := range [][]byte{text, old} {
			var back MarketSeen
			if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, m) {
				t.Fatalf("%s reads back as %+v, %v; it was %+v", b, back, err, m)
			}
		}
		if n := len(m.Quotes); n > 0 && len(text) > len(old) {
			t.Errorf("%d quotes take %d bytes, and took %d", n, len(text), len(old))
		}
	})
	for _, bad := range []string{`{"seen":[{"quotes":[["a","1"]]}]}`, `{"seen":[{"quotes":[["a",1,2,3]]}]}`,
		`{"seen":[{"quotes":[["","1","p"]]}]}`, `{"seen":[{"quotes":[null]}]}`} {
		if err := json.Unmarshal([]byte(bad), &MarketSeen{}); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}
