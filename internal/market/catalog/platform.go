package catalog

import (
	_ "embed" // the facts are part of the program
	"fmt"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/table"
)

//go:embed platforms.csv
var platformRows string

// surcharge is the hourly charge of a managed platform on top of a raw machine's price.
type surcharge struct {
	provider, platform string
	capacity           market.Capacity
	rate               money.Rate // 0 for none, as stated by the platform
	source             string
}

var surcharges = mustSurcharges()

func mustSurcharges() []surcharge {
	rows, err := table.Read(platformRows)
	if err != nil {
		panic("catalog: " + err.Error()) // the rows are part of the program, and a test reads them
	}
	var list []surcharge
	for _, r := range rows {
		rate, err := money.ParseRate(r["surcharge"])
		if err != nil || r["source"] == "" || r["date"] == "" {
			panic(fmt.Sprintf("catalog: surcharge of %s: %v", r["platform"], err))
		}
		list = append(list, surcharge{r["provider"], r["platform"], market.Capacity(r["capacity"]), rate,
			r["source"] + ", " + r["date"]})
	}
	return list
}

// Managed adds the listings of managed platforms that bill the raw machine at its own price plus a published surcharge:
// those of platforms.csv. Listings that a source has for the platform itself stay.
func (c Catalog) Managed() Catalog {
	rows := make([]Listing, 0, len(c.Listings))
	for _, l := range c.Listings {
		for _, s := range surcharges {
			if l.Offer.Provider != s.provider || l.Offer.Capacity != s.capacity || !l.Plain() || !l.Quote.Priced {
				continue
			}
			q := l.Quote
			q.Rate += s.rate
			q.Source += "; " + s.platform + ": " + s.source
			x := SellTerm(l, Terms{Platform: s.platform}, q)
			rows = append(rows, x)
		}
	}
	added := New("platforms", rows, nil)
	out := added.With(c)
	out.Skipped, out.Own = c.Skipped, c.Own
	return out
}

// Terms holds how a listing is sold if not the ordinary way.
type Terms struct {
	Term     Term
	Platform string       // empty for the raw machine
	Upfront  money.Amount // for Term, paid once
	Hourly   money.Rate   // for Term, paid for every hour of it
}

// SellTerm returns l on other terms at the price q.
func SellTerm(l Listing, t Terms, q market.Quote) Listing {
	l.Term, l.Platform, l.Upfront, l.Hourly = t.Term, t.Platform, t.Upfront, t.Hourly
	l.Quote, l.Risk, l.Listed, l.RawPrice = q, Risk{}, nil, nil
	return l.settle()
}
