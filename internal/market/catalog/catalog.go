// Package catalog holds what can be bought: facts of accelerators, machine types
// with their list and spot prices, how providers bill and warn, and the user's own
// prices laid over them. Every fact names its source; what has none is unknown.
//
// The built-in rows are written by hack/catalog and dated; newer
// ones are laid over them with With, the user's own with Overlay.
package catalog

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// Figure is a number that may be unknown; its zero value is unknown.
type Figure struct {
	V  float64
	OK bool
}

// Known returns the figure v.
func Known(v float64) Figure { return Figure{V: v, OK: true} }

// MarshalJSON writes null for what is unknown.
func (f Figure) MarshalJSON() ([]byte, error) {
	if !f.OK {
		return []byte("null"), nil
	}
	return json.Marshal(f.V)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (f *Figure) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*f = Figure{}
		return nil
	}
	f.OK = true
	return json.Unmarshal(b, &f.V)
}

// Risk is a published share of machines that were interrupted within a month,
// from Low to High, 0 to 1. The zero value is unknown.
type Risk struct {
	Low, High float64
	Known     bool
}

// Listing is an offer of a machine type with the price that a source states.
// The quote's Available is always false: a catalogue knows no capacity.
type Listing struct {
	Offer market.Offer
	Quote market.Quote // At is zero where the source has no date

	// AcceleratorMemory is what one accelerator has, as far as it can be used; 0 is unknown.
	AcceleratorMemory size.Bytes
	Disk              Figure // local, GB
	Network           Figure // Gbit/s
	Link              Figure // GB/s one way between its accelerators, where that is not what their kind has
	Risk              Risk
	// Listed is the price before the user's discount, where there is one.
	Listed *money.Rate
	// Stated says that the price is the user's own: it holds until it is changed.
	Stated bool
	// RuleSource says where billing rule and notice come from; "" where they are unknown.
	RuleSource string

	// Term is the terms on which the price holds; "" is the ordinary ones. Of one that commits, Upfront is paid
	// once and Hourly for every hour of it; the quote's rate is both over its hours (Term.Effective).
	Term    Term
	Upfront money.Amount
	Hourly  money.Rate
	// Platform is the managed platform that sells the machine; "" is the raw machine.
	Platform string
	// RawPrice is that of the raw machine, where Beside has found it.
	RawPrice *money.Rate
}

// Spec returns the facts of the listing's accelerator, and false where none are known.
func (l Listing) Spec() (Accelerator, bool) { return Find(l.Offer.Accelerator) }

// Sold returns the memory of one accelerator as its vendor names it, and so as people do: 80 GB of
// an H100, of which the driver reports 85.5e9 bytes. It is 0 where nothing is known.
func (l Listing) Sold() size.Bytes {
	if spec, ok := l.Spec(); ok && spec.Memory > 0 {
		return spec.Memory
	}
	return l.AcceleratorMemory
}

// Age returns how old the price is, and false where its date is unknown.
func (l Listing) Age(now time.Time) (time.Duration, bool) {
	if !l.Quote.Priced || l.Quote.At.IsZero() {
		return 0, false
	}
	return now.Sub(l.Quote.At), true
}

// Stale reports whether the price is older than limit, of unknown age, or of a day that is
// still to come (more than one, since days begin elsewhere first), which it would never be
// older than: it may be shown and ranked, and is never spent on without a live check.
func (l Listing) Stale(now time.Time, limit time.Duration) bool {
	age, ok := l.Age(now)
	return !ok || age > limit || age < -24*time.Hour
}

// Fresh returns how old the price may be before it is marked: the user's own as long
// as what is paid already, others by their capacity.
func (l Listing) Fresh() time.Duration {
	if l.Stated && l.Offer.Capacity != market.Spot {
		return Fresh(market.Reserved)
	}
	return Fresh(l.Offer.Capacity)
}

// Fresh returns how old a price of that capacity may be before it is marked: a
// spot price moves by the hour, a list by the quarter, what is paid already by the year.
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

// PerDollar returns dense teraflops at p that a currency unit an hour rents (at FP16 those of
// whichever 16 bit format the kind has), and false where price or rate is unknown, or the price is zero.
func (l Listing) PerDollar(p Precision) (float64, bool) {
	spec, ok := l.Spec()
	if !ok || !l.Quote.Priced || l.Quote.Rate == 0 {
		return 0, false
	}
	rate, ok := spec.Dense(p)
	if p == FP16 {
		rate, ok = spec.Half()
	}
	return rate * float64(l.Offer.Accelerators) / l.Quote.Rate.Float(), ok
}

// Why a row was not taken, or not as it stands.
const (
	// the same offer stands twice in one source: of its rows the first counts, of the user's own prices the last
	Duplicate   = "duplicate"
	Negative    = "negative"     // a price below zero
	ZeroPrice   = "zero_price"   // a price of zero, which says that there is none
	NoPrice     = "no_price"     // no price stands there
	BadPrice    = "bad_price"    // a price that is no decimal number, or too large
	BadCurrency = "bad_currency" // no currency that is known
	BadRow      = "bad_row"      // a field is missing or malformed
	NoMachine   = "no_machine"   // a price of a machine of which nothing else is known
	OtherUse    = "other_use"    // another operating system, tenancy, term or product
	NoMatch     = "no_match"     // a row of the user's that touches nothing
)

// Skip is a row that was not taken.
type Skip struct {
	Source string `json:"source"`
	Row    int    `json:"row,omitempty"` // 0 where the source has no rows
	Name   string `json:"name,omitempty"`
	Why    string `json:"why"`
	Detail string `json:"detail,omitempty"`
	Count  int    `json:"count,omitempty"` // rows of which this one is an example; 0 is this one alone
}

// Rows returns how many rows s stands for.
func (s Skip) Rows() int { return max(1, s.Count) }

// Catalog is listings, one an offer, ordered by offer, and what was skipped.
type Catalog struct {
	Listings []Listing
	Skipped  []Skip
	Own      []TransferRate // the user's own prices of keeping and moving data; see Catalog.TransferRate
}

// New returns the catalogue of rows from one source. Of rows for the same offer
// the first is kept, and the others are skipped.
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

// With lays newer over c: an offer in both is taken from newer, unless its price
// is older, unpriced or undated where that of c is not. A risk of interruption
// stays where the listing laid over it states none.
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

// Machine returns a listing of the machine type of a provider for its shape, in
// whatever region and capacity, and false where there is none.
func (c Catalog) Machine(provider, machine string) (Listing, bool) {
	i := slices.IndexFunc(c.Listings, func(l Listing) bool {
		return l.Offer.Provider == provider && l.Platform == "" && strings.EqualFold(l.Offer.Machine, machine)
	})
	if i < 0 {
		return Listing{}, false
	}
	return c.Listings[i], true
}

// Machines returns a listing of each machine type of a provider, ordered by its name.
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

// Sell returns shape as it is sold elsewhere: its region, zone, capacity and
// price replaced, and the provider's rules for that capacity.
func Sell(shape Listing, region, zone string, capacity market.Capacity, q market.Quote,
	currency money.Currency) Listing {
	l := shape
	l.Offer.Region, l.Offer.Zone, l.Offer.Capacity, l.Offer.Currency = region, zone, capacity, currency
	return SellTerm(l, Terms{}, q)
}

// settle gives the listing its name and the provider's rules.
func (l Listing) settle() Listing {
	place := l.Offer
	if place.Zone == "" {
		place.Zone = place.Region // sold by the region
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
	ok = ok && l.Platform == "" // a platform bills and warns in its own way
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

// currencies are the codes of ISO 4217 in which the clouds publish prices.
const currencies = " AED ARS AUD BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR JPY KRW MXN MYR " +
	"NGN NOK NZD PEN PHP PLN RON RUB SAR SEK SGD THB TRY TWD UAH USD VND ZAR "

// ParseCurrency reads a currency's code, and says false where it is none.
func ParseCurrency(s string) (money.Currency, bool) {
	code := strings.ToUpper(strings.TrimSpace(s))
	return money.Currency(code), len(code) == 3 && strings.Contains(currencies, " "+code+" ")
}
