package listing

import (
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/market/catalog"
)

// terms sets the total of a committed term, and the mark-up of a managed platform over the raw machine.
func (v *Offer) terms(l catalog.Listing) {
	if total, ok := l.Total(); ok {
		upfront, hourly, hours := l.Upfront, l.Hourly, l.Term.Hours()
		v.Upfront, v.Hourly, v.Hours, v.Total = &upfront, &hourly, &hours, &total
	}
	if over, ok := l.MarkUp(); ok {
		v.MarkUp = &over
	}
}

// withTerms inserts the column of terms and platforms after the third column, if a listing has one.
func withTerms(columns []draw.Column, rows [][]string, list []catalog.Listing) ([]draw.Column, [][]string) {
	if !slices.ContainsFunc(list, func(l catalog.Listing) bool { return !l.Plain() }) {
		return columns, rows
	}
	columns = slices.Insert(slices.Clone(columns), 3, draw.Column{Name: "TERMS", Least: 9})
	for i, l := range list {
		rows[i] = slices.Insert(rows[i], 3, termCell(l))
	}
	return columns, rows
}

// termCell formats how an offer is sold: "reserved-1y-partial-upfront, $876 now, $0.05/h", "preemptible, at most 24h",
// "sagemaker, raw $51.00 +24.1 %", or "-" for the ordinary way.
func termCell(l catalog.Listing) string {
	var parts []string
	if l.Term != "" {
		parts = append(parts, string(l.Term))
	}
	switch {
	case l.Term.Commits() && l.Upfront.IsZero():
		parts = append(parts, "paid by the hour")
	case l.Term.Commits():
		parts = append(parts, money.Format(l.Upfront, l.Offer.Currency, 2)+" now", show.PerHour(l.Hourly, l.Offer.Currency))
	case l.Offer.MaxLifetime > 0:
		parts = append(parts, "at most "+draw.Span(l.Offer.MaxLifetime))
	}
	if l.Platform != "" {
		parts = append(parts, l.Platform)
		text := "raw price unknown"
		if over, ok := l.MarkUp(); ok {
			text = fmt.Sprintf("raw %s %+.1f %%", money.Format(money.Picos(int64(*l.RawPrice)), l.Offer.Currency, 4), over*100)
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

// Apart describes what a list omits because it is sold on other terms, and the flag that lists it.
func Apart(c catalog.Catalog, want catalog.Filter, shown int, p show.Place) string {
	ordinary := func(patterns []string, name string) bool { return len(patterns) == 1 && patterns[0] == name }
	var parts []string
	for _, x := range []struct {
		on   bool
		flag string
		drop func(*catalog.Filter)
	}{
		{ordinary(want.Terms, catalog.NoTerm), "--term '*'", func(f *catalog.Filter) { f.Terms = nil }},
		{ordinary(want.Platforms, catalog.Raw), "--platform '*'", func(f *catalog.Filter) { f.Platforms = nil }},
	} {
		f := want
		x.drop(&f)
		if n := len(c.Match(f)) - shown; x.on && n > 0 {
			parts = append(parts, fmt.Sprintf("%s more with %s", draw.Count(n, "offer"), x.flag))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return draw.Wrap("", "On other terms: "+strings.Join(parts, ", ")+".", p.Columns())
}
