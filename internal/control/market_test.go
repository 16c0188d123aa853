package control

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/control/replay"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/must"
)

// sells is a provider some of whose offers make no sense.
type sells struct {
	shut
	offers []market.Offer
	quotes []market.Quote
}

func (s *sells) Offers(context.Context) ([]market.Offer, []market.Quote, error) {
	return s.offers, s.quotes, nil
}

// The log is permanent, so an offer or price that makes no sense must not enter it. It is logged once and does not
// keep out the others.
func TestPollMarket_DropsInvalidOffers(t *testing.T) {
	t.Parallel()
	good := market.Offer{ID: "us-a/c2/spot", Provider: "x", Capacity: market.Spot, CPUs: 2, Currency: money.USD}
	var s sells
	add := func(id market.OfferID, rate money.Rate, change func(*market.Offer)) {
		o := good
		o.ID = id
		if change != nil {
			change(&o)
		}
		s.offers = append(s.offers, o)
		s.quotes = append(s.quotes, market.Quote{Offer: o.ID, Rate: rate, Priced: true, Available: true})
	}
	add("good", 5, nil)
	add("paid already", 0, nil)
	add("pays us", -5, nil)
	add("not a number", 5, func(o *market.Offer) { o.Speed = math.NaN() })
	add("ends before it begins", 5, func(o *market.Offer) { o.MaxLifetime = -time.Second })
	add("of no kind", 5, func(o *market.Offer) { o.Capacity = "" })
	add("", 5, nil)

	st, err := sqlite.Open(t.TempDir())
	must.Do(t, err)
	defer func() { _ = st.Close() }()
	now := time.Now().UTC()
	var log bytes.Buffer
	c, err := New(t.Context(), st, engineOf("x", &s, time.Hour), Config{Clock: Clock{Wall: now, Market: now, Speed: 1}, Silence: time.Hour, Log: slog.New(slog.NewTextHandler(&log, nil))})
	must.Do(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	// Run would poll the market too, so this loop only takes requests.
	go func() {
		defer close(done)
		for {
			select {
			case r := <-c.requests:
				_ = c.commit(ctx, []stepped{c.step(ctx, r)}) // readers see it
			case <-ctx.Done():
				return
			}
		}
	}()
	c.pollMarket(ctx, c.sources[0])
	c.pollMarket(ctx, c.sources[0])
	if n := strings.Count(log.String(), "makes no sense"); n != 5 {
		t.Errorf("%d lines name what makes no sense, want one for each of 5:\n%s", n, &log)
	}
	s.quotes[2].Rate = 7 // the quote is valid again
	c.pollMarket(ctx, c.sources[0])
	cancel()
	<-done

	records, err := st.Records(t.Context(), 0, 100)
	must.Do(t, err)
	var offers, prices []string
	for _, r := range records {
		e, _, err := replay.Decode(r)
		must.Do(t, err)
		seen, ok := e.Body.(core.MarketSeen)
		if !ok {
			continue
		}
		for _, o := range seen.Offers {
			offers = append(offers, string(o.ID))
		}
		for _, q := range seen.Quotes {
			prices = append(prices, string(q.Offer)+" "+q.Rate.String())
		}
	}
	if want := []string{"good", "paid already", "pays us"}; !slices.Equal(offers, want) {
		t.Errorf("offers in the log: %q, want %q", offers, want)
	}
	if want := []string{"good 0.000000000005", "paid already 0", "pays us 0.000000000007"}; !slices.Equal(prices, want) {
		t.Errorf("prices in the log: %q, want %q", prices, want)
	}
}
