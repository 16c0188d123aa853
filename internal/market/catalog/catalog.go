// Package catalog holds what can be bought: facts about accelerators, machine types with their list and spot prices,
// the billing and notice rules of providers, and the user's own prices on top. Every fact names its source; a fact
// without a source is unknown.
//
// hack/catalog writes the built-in rows with their dates. With adds newer rows, and Overlay the user's own.
package catalog

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/figure"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/accelerator"
)

// Risk is a published share of machines interrupted within a month, from Low to High, 0 to 1. The zero value is
// unknown.
type Risk struct {
	Low, High float64
	Known     bool
}

// Listing is an offer of a machine type with a source's price. The quote's Available is always false: a catalogue knows
// no capacity.
type Listing struct {
	Offer market.Offer
	Quote market.Quote // At is zero if the source has no date

	// AcceleratorMemory is the usable memory of one accelerator; 0 if unknown.
	AcceleratorMemory size.Bytes
	Disk              figure.Figure // local, GB
	Network           figure.Figure // Gbit/s
	Link              figure.Figure // GB/s one way between its accelerators, if different from their kind's
	Risk              Risk
	// Listed is the price before the user's discount, if there is one.
	Listed *money.Rate
	// Stated marks the user's own price, which holds until it is changed.
	Stated bool
	// RuleSource is the source of the billing rule and the notice; empty if unknown.
	RuleSource string

	// Term holds the terms of the price; empty for the ordinary terms. For a committed term, Upfront is paid once and
	// Hourly for every hour of the term; the quote's rate spreads both over its hours (Term.Effective).
	Term    Term
	Upfront money.Amount
	Hourly  money.Rate
	// Platform is the managed platform that sells the machine; empty for the raw machine.
	Platform string
	// RawPrice is the price of the raw machine, if Beside found it.
	RawPrice *money.Rate
}

// Spec returns the facts about the listing's accelerator, and false if none are known.
func (l Listing) Spec() (accelerator.Accelerator, bool) { return accelerator.Find(l.Offer.Accelerator) }

// Sold returns the nominal memory of one accelerator, as vendors and people state it: 80 GB for an H100, although the
// driver reports 85.5e9 bytes. It returns 0 if it is unknown.
func (l Listing) Sold() size.Bytes {
	if spec, ok := l.Spec(); ok && spec.Memory > 0 {
		return spec.Memory
	}
	return l.AcceleratorMemory
}

// Age returns the age of the price, and false if its date is unknown.
func (l Listing) Age(now time.Time) (time.Duration, bool) {
	if !l.Quote.Priced || l.Quote.At.IsZero() {
		return 0, false
	}
	return now.Sub(l.Quote.At), true
}

// Stale reports whether the price is older than limit, of unknown age, or dated more than a day in the future (days
// begin elsewhere first), which would make it never stale. A stale price may be shown and ranked, but needs a live
// check before money is spent on it.
func (l Listing) Stale(now time.Time, limit time.Duration) bool {
	age, ok := l.Age(now)
	return !ok || age > limit || age < -24*time.Hour
}

// Fresh returns the age at which the price becomes stale: for the user's own price as for reserved capacity, for others
// by their capacity.
func (l Listing) Fresh() time.Duration {
	if l.Stated && l.Offer.Capacity != market.Spot {
		return Fresh(market.Reserved)
	}
	return Fresh(l.Offer.Capacity)
}

// Fresh returns the age at which a price of that capacity becomes stale: spot prices change by the hour, list prices by
// the quarter, prepaid prices by the year.
func Fresh(c market.Capacity) time.Duration {
	const day = 24 * time.Hour
	switch c {
	case market.Spot:
		return time.Hour
	case market.Reserved:
		return 90 * day
	default:
		return 7 * day
	}
}

// PerDollar returns the dense teraflops at p per currency unit and hour (FP16 stands for the kind's 16-bit format), and
// false if the price or the rate is unknown, or the price is zero.
func (l Listing) PerDollar(p accelerator.Precision) (float64, bool) {
	spec, ok := l.Spec()
	if !ok || !l.Quote.Priced || l.Quote.Rate == 0 {
		return 0, false
	}
	rate, ok := spec.Dense(p)
	if p == accelerator.FP16 {
		rate, ok = spec.Half()
	}
	return rate * float64(l.Offer.Accelerators) / l.Quote.Rate.Float(), ok
}

// Reasons to skip a row or to change it.
const (
	// The same offer appears twice in one source: the first row counts, but of the user's own prices the last.
	Duplicate   = "duplicate"
	Negative    = "negative"     // a negative price
	ZeroPrice   = "zero_price"   // a zero price, which means that there is none
	NoPrice     = "no_price"     // the price is missing
	BadPrice    = "bad_price"    // a price that is not a decimal number, or too large
	BadCurrency = "bad_currency" // an unknown currency
	BadRow      = "bad_row"      // a field is missing or malformed
	NoMachine   = "no_machine"   // a price of a machine without known facts
	OtherUse    = "other_use"    // another operating system, tenancy, term or product
	NoMatch     = "no_match"     // a row of the user's that matches nothing
)

// Skip is a skipped row.
type Skip struct {
	Source string `json:"source"`
	Row    int    `json:"row,omitempty"` // 0 if the source has no rows
	Name   string `json:"name,omitempty"`
	Why    string `json:"why"`
	Detail string `json:"detail,omitempty"`
	Count  int    `json:"count,omitempty"` // rows that this one is an example of; 0 means this one alone
}

// Rows returns the number of rows that s stands for.
func (s Skip) Rows() int { return max(1, s.Count) }

// Catalog holds listings, one per offer and sorted by offer, and the skipped rows.
type Catalog struct {
	Listings []Listing
	Skipped  []Skip
	Own      []TransferRate // the user's own storage and transfer prices; see Catalog.TransferRate
}

// New returns the catalogue of the rows of one source. It keeps the first row of each offer and skips the others.
func New(source string, rows []Listing, skipped []Skip) Catalog {
	c := Catalog{Skipped: slices.Clone(skipped)}
	seen := map[market.OfferID]bool{}
	for _, r := range rows {
		if seen[r.Offer.ID] {
			c.Skipped = append(c.Skipped, Skip{Source: source, Name: string(r.Offer.ID), Why: Duplicate})
			continue
		}
		seen[r.Offer.ID] = true
		c.Listings = append(c.Listings, r)
	}
	c.sort()
	return c
}

// With adds newer listings on top of c: an offer in both comes from newer, unless its price is older, missing or
// undated and c's is not. An interruption risk is kept if the newer listing has none.
func (c Catalog) With(newer Catalog) Catalog {
	out := Catalog{Skipped: slices.Concat(c.Skipped, newer.Skipped)}
	at := map[market.OfferID]int{}
	for _, l := range c.Listings {
		at[l.Offer.ID] = len(out.Listings)
		out.Listings = append(out.Listings, l)
	}
	for _, l := range newer.Listings {
		i, ok := at[l.Offer.ID]
		if !ok {
			out.Listings = append(out.Listings, l)
			continue
		}
		old := &out.Listings[i]
		if l.Quote.Priced && (!old.Quote.Priced || !l.Quote.At.Before(old.Quote.At)) {
			if !l.Risk.Known {
				l.Risk = old.Risk
			}
			*old = l
		} else if l.Risk.Known && !old.Risk.Known {
			old.Risk = l.Risk
		}
	}
	out.sort()
	return out
}

func (c *Catalog) sort() {
	slices.SortStableFunc(c.Listings, func(a, b Listing) int { return cmp.Compare(a.Offer.ID, b.Offer.ID) })
}

// Machine returns a listing of the provider's machine type for its shape, in any region and capacity, and false if
// there is none.
func (c Catalog) Machine(provider, machine string) (Listing, bool) {
	i := slices.IndexFunc(c.Listings, func(l Listing) bool {
		return l.Offer.Provider == provider && l.Platform == "" && strings.EqualFold(l.Offer.Machine, machine)
	})
	if i < 0 {
		return Listing{}, false
	}
	return c.Listings[i], true
}

// Machines returns a listing of each machine type of a provider, sorted by name.
func (c Catalog) Machines(provider string) []Listing {
	var out []Listing
	seen := map[string]bool{}
	for _, l := range c.Listings {
		if l.Offer.Provider == provider && l.Platform == "" && !seen[l.Offer.Machine] {
			seen[l.Offer.Machine] = true
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b Listing) int { return cmp.Compare(a.Offer.Machine, b.Offer.Machine) })
	return out
}

// Sell returns shape with another region, zone, capacity and price, and the provider's rules for that capacity.
func Sell(shape Listing, region, zone string, capacity market.Capacity, q market.Quote,
	currency money.Currency) Listing {
	l := shape
	l.Offer.Region, l.Offer.Zone, l.Offer.Capacity, l.Offer.Currency = region, zone, capacity, currency
	return SellTerm(l, Terms{}, q)
}

// settle sets the listing's ID and the provider's rules.
func (l Listing) settle() Listing {
	place := l.Offer
	if place.Zone == "" {
		place.Zone = place.Region // sold by region
	}
	l.Offer.ID = market.ID(place)
	if l.Term != "" {
		l.Offer.ID += market.OfferID("/" + l.Term)
	}
	if l.Platform != "" {
		l.Offer.ID += market.OfferID("@" + l.Platform)
	}
	l.Quote.Offer, l.Quote.Available = l.Offer.ID, false
	rule, ok := ruleOn(l.Offer.Provider, l.Offer.Capacity, l.Term)
	ok = ok && l.Platform == "" // a platform has its own billing and notice rules
	l.Offer.Billing, l.Offer.Notice, l.Offer.MaxLifetime, l.RuleSource = market.Billing{}, 0, 0, ""
	if ok {
		l.Offer.Billing, l.Offer.Notice, l.Offer.MaxLifetime, l.RuleSource = rule.Billing, rule.Notice,
			rule.MaxLifetime, rule.Source
	}
	if spec, ok := l.Spec(); ok {
		l.AcceleratorMemory = spec.Usable()
	}
	l.joined()
	return l
}

// currencies lists the ISO 4217 codes in which the clouds publish prices.
const currencies = " AED ARS AUD BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR JPY KRW MXN MYR " +
	"NGN NOK NZD PEN PHP PLN RON RUB SAR SEK SGD THB TRY TWD UAH USD VND ZAR "

// ParseCurrency parses a currency code, and returns false if it is unknown.
func ParseCurrency(s string) (money.Currency, bool) {
	code := strings.ToUpper(strings.TrimSpace(s))
	return money.Currency(code), len(code) == 3 && strings.Contains(currencies, " "+code+" ")
}
