package catalog

import (
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// terms reads on which terms a row sells, and the price that follows from what is paid up front and
// by the hour. A row that states another price than that is not taken.
func (l *Listing) terms(r map[string]string) Skip {
	term, err := ParseTerm(r["term"])
	if err != nil {
		return Skip{Why: BadRow, Detail: err.Error()}
	}
	l.Term, l.Platform = term, r["platform"]
	switch {
	case l.Platform != "" && !slices.Contains(Platforms, l.Platform):
		return Skip{Why: BadRow, Detail: fmt.Sprintf("platform %.40q is none of %s", l.Platform,
			strings.Join(Platforms, ", "))}
	case term == Preemptible && l.Offer.Capacity != market.Spot:
		return Skip{Why: BadRow, Detail: "preemptible is a term of spot, not of " + string(l.Offer.Capacity)}
	case term.Commits() && l.Offer.Capacity != market.Reserved:
		return Skip{Why: BadRow, Detail: fmt.Sprintf("%s is a term of reserved, not of %s", term, l.Offer.Capacity)}
	case !term.Commits() && r["upfront"]+r["hourly"] != "":
		return Skip{Why: BadRow, Detail: "upfront and hourly belong to a term of one or three years"}
	case !term.Commits():
		return Skip{}
	case r["upfront"]+r["hourly"] == "":
		return Skip{Why: BadRow, Detail: fmt.Sprintf("%s says neither upfront nor hourly", term)}
	}
	return l.commitment(r["upfront"], r["hourly"])
}

// commitment reads the price of a term of years: what is paid up front, by the hour, or both.
func (l *Listing) commitment(upfront, hourly string) Skip {
	var err error
	if upfront != "" {
		if l.Upfront, err = money.Parse(upfront); err != nil {
			return Skip{Why: BadPrice, Detail: upfront}
		}
	}
	if hourly != "" {
		if l.Hourly, err = money.ParseRate(hourly); err != nil {
			return Skip{Why: BadPrice, Detail: hourly}
		}
	}
	rate, ok := l.Term.Effective(l.Upfront, l.Hourly)
	if !ok {
		return Skip{Why: BadPrice, Detail: fmt.Sprintf("upfront %s, hourly %s", upfront, hourly)}
	}
	if l.Quote.Priced && l.Quote.Rate != rate {
		return Skip{Why: BadPrice, Detail: fmt.Sprintf("price %s, and %s up front and %s an hour are %s", l.Quote.Rate,
			l.Upfront, l.Hourly, rate)}
	}
	l.Quote.Rate, l.Quote.Priced = rate, true
	return Skip{}
}
