package catalog

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/table"
)

// Overlay adds the user's own prices and discounts on top of c. The text is a listings file in which provider, region,
// machine and capacity may be patterns, with an optional column discount (25% or 0.25):
//
//	provider,region,machine,capacity,price,currency,discount,accelerator,accelerators,cpus,memory_gib,at
//	aws,*,p5*,on-demand,,,25%,,,,,
//	slurm,cluster,a100-node,reserved,0.90,USD,,A100-SXM-80GB,8,64,512,2026-11-01
//	aws,,storage-gb-month,,0.021,USD,,,,,,2026-11-01
//
// A discount applies to each listing that the row selects. Optional columns are term and platform: a row without them
// selects raw machines that are paid by use. The price of a term is its total per hour. A price replaces those of the
// selected listings. If the row has no pattern and selects none, it adds a machine of the user's own; for
// storage-gb-month, transfer-gb-region and transfer-gb-out it sets the price of a gigabyte. Rows apply in order. A zero
// price is valid here: the machine is prepaid. Overlay skips and counts a row that selects nothing, and a price that a
// later row for the same machines replaces. Prices in rows without a day are dated at, for example the time when the
// file was last written.
func (c Catalog) Overlay(source, text string, at time.Time) (Catalog, error) {
	rows, err := table.Read(text)
	if err != nil {
		return c, fmt.Errorf("read prices of %s: %w", source, err)
	}
	for _, name := range []string{"provider", "machine"} {
		if len(rows) > 0 {
			if _, ok := rows[0][name]; !ok {
				return c, fmt.Errorf("read prices of %s: no column %s", source, name)
			}
		}
	}
	out := Catalog{Listings: slices.Clone(c.Listings), Skipped: slices.Clone(c.Skipped), Own: slices.Clone(c.Own)}
	last := map[[4]string]int{} // the row of the last price of each
	for i, r := range rows {
		skip := out.lay(source, at, r)
		if skip.Why != "" {
			skip.Source, skip.Row, skip.Name = source, i+2, r["provider"]+" "+r["machine"]
			out.Skipped = append(out.Skipped, skip)
			continue
		}
		if r["price"] == "" {
			continue
		}
		key := [4]string{r["provider"], r["region"], r["machine"], r["capacity"]}
		if n, ok := last[key]; ok {
			out.Skipped = append(out.Skipped, Skip{Source: source, Row: n + 2, Name: r["provider"] + " " + r["machine"],
				Why: Duplicate, Detail: fmt.Sprintf("line %d has another price of the same", i+2)})
		}
		last[key] = i
	}
	out.sort()
	return out, nil
}

// lay applies one row, or returns why it is skipped.
func (c *Catalog) lay(source string, day time.Time, r map[string]string) Skip {
	if r["!"] != "" || r["provider"] == "" || r["machine"] == "" {
		return Skip{Why: BadRow, Detail: "provider or machine is missing"}
	}
	if (r["price"] == "") == (r["discount"] == "") {
		return Skip{Why: BadRow, Detail: "it says neither or both of price and discount"}
	}
	if slices.Contains(notMachines, r["machine"]) {
		x, skip := transferRate(r, source, day)
		if skip.Why == "" {
			c.Own = append([]TransferRate{x}, c.Own...) // the last row counts
		}
		return skip
	}
	f := Filter{Providers: []string{r["provider"]}, Machines: []string{r["machine"]},
		Terms: []string{cmp.Or(r["term"], NoTerm)}, Platforms: []string{cmp.Or(r["platform"], Raw)}}
	if r["region"] != "" {
		f.Regions = []string{r["region"]}
	}
	if err := f.Check(); err != nil {
		return Skip{Why: BadRow, Detail: err.Error()}
	}
	takes := func(l Listing) bool {
		return f.Takes(l) && (r["capacity"] == "" || matchAny([]string{r["capacity"]}, string(l.Offer.Capacity)))
	}
	if r["discount"] != "" {
		return c.discount(r["discount"], source, takes)
	}
	q, currency, skip := priced(r, source, day)
	if skip.Why != "" || c.reprice(q, currency, takes) {
		return skip
	}
	return c.add(r, q, currency)
}

// discount reduces the prices of the selected listings by a share.
func (c *Catalog) discount(share, source string, takes func(Listing) bool) Skip {
	part, ok := parsePart(share)
	if !ok {
		return Skip{Why: BadPrice, Detail: fmt.Sprintf("discount %q is not a share such as 25%% or 0.25", share)}
	}
	touched := false
	for i, l := range c.Listings {
		if !takes(l) || !l.Quote.Priced {
			continue
		}
		listed := l.Quote.Rate
		if l.Listed == nil {
			c.Listings[i].Listed = &listed
		}
		c.Listings[i].Quote.Rate = off(listed, part)
		if l.Term.Commits() {
			c.Listings[i].cheaper(part)
		}
		c.Listings[i].Quote.Source = l.Quote.Source + "; discount of " + source
		touched = true
	}
	if !touched {
		return Skip{Why: NoMatch}
	}
	return Skip{}
}

// priced parses the user's own price, or returns why it is invalid.
func priced(r map[string]string, source string, day time.Time) (market.Quote, money.Currency, Skip) {
	rate, why := ParsePrice(r["price"])
	if why != "" && why != ZeroPrice {
		return market.Quote{}, "", Skip{Why: why, Detail: r["price"]}
	}
	code := cmp.Or(r["currency"], string(money.USD))
	currency, ok := ParseCurrency(code)
	if !ok {
		return market.Quote{}, "", Skip{Why: BadCurrency, Detail: code}
	}
	q := market.Quote{Rate: rate, Priced: true, Source: source, At: day}
	if r["at"] != "" {
		at, err := ParseTime(r["at"])
		if err != nil {
			return market.Quote{}, "", Skip{Why: BadRow, Detail: err.Error()}
		}
		q.At = at
	}
	return q, currency, Skip{}
}

// reprice replaces the prices of the selected listings, and reports whether there are any.
func (c *Catalog) reprice(q market.Quote, currency money.Currency, takes func(Listing) bool) bool {
	touched := false
	for i := range c.Listings {
		if l := &c.Listings[i]; takes(*l) {
			q.Offer = l.Offer.ID
			l.Quote, l.Offer.Currency, l.Listed, l.Stated = q, currency, nil, true
			if l.Term.Commits() {
				l.Upfront, l.Hourly = money.Amount{}, q.Rate
			}
			touched = true
		}
	}
	return touched
}

// add adds a machine of the user's own.
func (c *Catalog) add(r map[string]string, q market.Quote, currency money.Currency) Skip {
	if strings.ContainsAny(r["provider"]+r["machine"]+r["region"]+r["capacity"], "*?[") || r["region"] == "" ||
		r["capacity"] == "" {
		return Skip{Why: NoMatch}
	}
	if r["cpus"] == "" && r["accelerator"] == "" {
		return Skip{Why: NoMachine, Detail: "it says neither cpus nor accelerator"}
	}
	if r["term"] != "" {
		return Skip{Why: BadRow, Detail: "a term is added with scrimp catalog import, which reads upfront and hourly"}
	}
	r["price"], r["currency"] = "1", string(currency) // replaced below: a listings file allows no zero
	l, skip := listing(r)
	if skip.Why != "" {
		return skip
	}
	q.Offer = l.Offer.ID
	l.Quote, l.Stated = q, true
	c.Listings = append(c.Listings, l)
	return Skip{}
}

// cheaper reduces both payments of a term by parts per million.
func (l *Listing) cheaper(part int64) {
	n := new(big.Int).Mul(l.Upfront.Big(), big.NewInt(million-part))
	if upfront, ok := money.FromBig(n.Quo(n, big.NewInt(million))); ok {
		l.Upfront, l.Hourly = upfront, off(l.Hourly, part)
	}
	if rate, ok := l.Term.Effective(l.Upfront, l.Hourly); ok {
		l.Quote.Rate = rate
	}
}

// million is the unit of discounts.
const million = 1_000_000

// parsePart parses 25% or 0.25 as 250,000 parts per million.
func parsePart(s string) (parts int64, ok bool) {
	number, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	rate, err := money.ParseRate(strings.TrimSpace(number))
	if err != nil {
		return 0, false
	}
	parts = int64(rate) / million // a rate counts 1e-12
	if percent {
		parts /= 100
	}
	return parts, parts > 0 && parts <= million
}

// off reduces r by parts per million, truncated below 1e-12.
func off(r money.Rate, parts int64) money.Rate {
	n := new(big.Int).Mul(big.NewInt(int64(r)), big.NewInt(million-parts))
	return money.Rate(n.Quo(n, big.NewInt(million)).Int64())
}
