package state

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Quotes make up most of a log in a quiet week, so they are stored as rows: quotes from one source at one time
// share a header, and each row holds the offer, the price and some flags.

// quotesAt holds the quotes seen at one time from one source.
type quotesAt struct {
	At     time.Time  `json:"at"`
	Source string     `json:"source,omitempty"`
	Quotes []quoteRow `json:"quotes"`
}

// quoteRow is an offer, the price per hour, and a string of flags: p priced, a available, u untried.
type quoteRow struct {
	offer market.OfferID
	rate  money.Rate
	is    string
}

// MarshalJSON encodes the row.
func (r quoteRow) MarshalJSON() ([]byte, error) { return json.Marshal([]any{r.offer, r.rate, r.is}) }

// UnmarshalJSON decodes the output of MarshalJSON.
func (r *quoteRow) UnmarshalJSON(b []byte) error {
	row := []any{&r.offer, &r.rate, &r.is}
	if err := json.Unmarshal(b, &row); err != nil {
		return err
	}
	if len(row) != 3 || r.offer == "" {
		return fmt.Errorf("a quote has %d parts, not 3", len(row))
	}
	return nil
}

// marketText is the stored form of MarketSeen. Earlier builds wrote Quotes.
type marketText struct {
	Offers []market.Offer `json:"offers,omitempty"`
	Seen   []quotesAt     `json:"seen,omitempty"`
	Quotes []market.Quote `json:"quotes,omitempty"`
}

// MarshalJSON writes the quotes as rows and keeps their order.
func (m MarketSeen) MarshalJSON() ([]byte, error) {
	t := marketText{Offers: m.Offers}
	for _, q := range m.Quotes {
		n := len(t.Seen)
		if n == 0 || !t.Seen[n-1].At.Equal(q.At) || t.Seen[n-1].Source != q.Source {
			t.Seen = append(t.Seen, quotesAt{At: q.At, Source: q.Source})
			n++
		}
		is := ""
		for _, f := range []struct {
			so     bool
			letter string
		}{{q.Priced, "p"}, {q.Available, "a"}, {q.Untried, "u"}} {
			if f.so {
				is += f.letter
			}
		}
		t.Seen[n-1].Quotes = append(t.Seen[n-1].Quotes, quoteRow{q.Offer, q.Rate, is})
	}
	return json.Marshal(t)
}

// UnmarshalJSON reads what this or an earlier build wrote.
func (m *MarketSeen) UnmarshalJSON(b []byte) error {
	var t marketText
	if err := json.Unmarshal(b, &t); err != nil {
		return err
	}
	*m = MarketSeen{Offers: t.Offers, Quotes: t.Quotes}
	for _, s := range t.Seen {
		for _, r := range s.Quotes {
			m.Quotes = append(m.Quotes, market.Quote{Offer: r.offer, Rate: r.rate, At: s.At, Source: s.Source,
				Priced: strings.Contains(r.is, "p"), Available: strings.Contains(r.is, "a"),
				Untried: strings.Contains(r.is, "u")})
		}
	}
	return nil
}
