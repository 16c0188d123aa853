package catalog

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/money"
)

// Term is the terms of a price, if they differ from the ordinary ones of its capacity:
//
//	preemptible                     spot of Google Cloud that ends after 24 h (its spot has no such limit)
//	reserved-1y-no-upfront          bought for one or three years, with no, a partial or all payment up front;
//	                                -convertible behind it is AWS's class that may be exchanged
//	savings-plan-3y-all-upfront     a promised hourly spend on machines of any type
//	instance-savings-plan-1y-…      the same on machines of one family in one region
//	committed-3y                    Google Cloud's commitment to cores, memory and accelerators of one region
//
// An empty Term has no commitment: it is paid by use.
type Term string

// Preemptible is Google Cloud's spot that ends after at most 24 h.
const Preemptible Term = "preemptible"

var terms = regexp.MustCompile(
	`^(?:reserved-[13]y-(?:no|partial|all)-upfront(?:-convertible)?|(?:instance-)?savings-plan-[13]y-` +
		`(?:no|partial|all)-upfront|committed-[13]y)$`)

// ParseTerm parses a term; empty means none.
func ParseTerm(s string) (Term, error) {
	if s == "" || Term(s) == Preemptible || terms.MatchString(s) {
		return Term(s), nil
	}
	return "", fmt.Errorf("term %.40q is none such as reserved-1y-no-upfront, savings-plan-3y-all-upfront, "+
		"committed-1y or preemptible", s)
}

// Years returns how many years must be paid regardless of use; 0 for none.
func (t Term) Years() int {
	switch {
	case strings.Contains(string(t), "-1y"):
		return 1
	case strings.Contains(string(t), "-3y"):
		return 3
	}
	return 0
}

// Commits reports whether the term must be paid regardless of use.
func (t Term) Commits() bool { return t.Years() > 0 }

// hoursPerYear is the sellers' count of hours in a year: 365 days.
const hoursPerYear = 365 * 24

// Hours returns the hours of a term; 0 without a commitment.
func (t Term) Hours() int { return t.Years() * hoursPerYear }

// Effective returns the total cost of an hour of a term: the hourly payment, plus the upfront payment spread over its
// hours, rounded up to the next 1e-12 so that the term never looks cheaper than it is. $876 upfront and $0.05 an hour
// for a year give $0.15. TestEffective_SumsAllPaymentsOverHours checks it. Effective returns false
// without a commitment, or if the rate is out of range.
func (t Term) Effective(upfront money.Amount, hourly money.Rate) (money.Rate, bool) {
	hours := big.NewInt(int64(t.Hours()))
	if hours.Sign() == 0 || upfront.Sign() < 0 || hourly < 0 {
		return 0, false
	}
	n := upfront.Big()
	n.Add(n, new(big.Int).Sub(hours, big.NewInt(1)))
	n.Quo(n, hours)
	n.Add(n, big.NewInt(int64(hourly)))
	return money.Rate(n.Int64()), n.IsInt64() && n.Sign() > 0
}

// Total returns the cost of a whole term, regardless of use.
func (l Listing) Total() (money.Amount, bool) {
	if !l.Term.Commits() || !l.Quote.Priced {
		return money.Amount{}, false
	}
	return l.Upfront.Add(l.Hourly.Until(time.Duration(l.Term.Hours()) * time.Hour)), true
}

// Platforms lists the managed platforms whose prices are compared with raw machines.
var Platforms = []string{"sagemaker", "vertex", "azureml"}

// Filter names of listings without a term, and of raw machines.
const (
	NoTerm = "none"
	Raw    = "raw"
)

// Plain reports whether l is a raw machine that is paid by use.
func (l *Listing) Plain() bool { return l.Term == "" && l.Platform == "" }

// RawMachine returns the machine type below a managed platform: p4d.24xlarge for ml.p4d.24xlarge.
func (l Listing) RawMachine() string {
	if l.Platform == "sagemaker" {
		return strings.TrimPrefix(l.Offer.Machine, "ml.")
	}
	return l.Offer.Machine
}

// Beside adds the raw machine's price to each listing of a managed platform, if the catalogue has it for the same
// region, capacity and currency.
func (c Catalog) Beside(list []Listing) []Listing {
	type key struct{ provider, region, zone, machine, capacity, currency string }
	of := func(l *Listing, machine string) key {
		o := &l.Offer
		return key{o.Provider, o.Region, o.Zone, strings.ToLower(machine), string(o.Capacity), string(o.Currency)}
	}
	raw := map[key]*Listing{}
	for i := range c.Listings {
		if l := &c.Listings[i]; l.Plain() && l.Quote.Priced {
			raw[of(l, l.Offer.Machine)] = l
		}
	}
	out := slices.Clone(list)
	for i := range out {
		out[i].RawPrice = nil
		if out[i].Platform == "" {
			continue
		}
		if l, ok := raw[of(&out[i], out[i].RawMachine())]; ok {
			rate := l.Quote.Rate
			out[i].RawPrice = &rate
		}
	}
	return out
}

// MarkUp returns a managed platform's surcharge relative to the raw machine's price: 0.25 is a quarter more. It returns
// false if either price is unknown.
func (l Listing) MarkUp() (float64, bool) {
	if l.RawPrice == nil || *l.RawPrice <= 0 || !l.Quote.Priced {
		return 0, false
	}
	return l.Quote.Rate.Float()/l.RawPrice.Float() - 1, true
}
