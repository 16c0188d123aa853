// Package intake holds what the readers of published prices share: the page, and the count of the rows that they skip.
package intake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
)

// ErrForm reports a page in another format than expected.
var ErrForm = errors.New("the page has another form")

// Page holds pages of a source and what is needed to read them.
type Page struct {
	Source   string
	Provider string           // for tables without a provider; the name of a cluster, which also becomes its region
	Shapes   catalog.Catalog  // known machine types
	At       time.Time        // when the page was read, for prices without a time
	Spot     *catalog.Catalog // spot listings for the advisor's rates
}

// Tally counts skipped rows, and keeps an example for each reason.
type Tally struct {
	Source string
	Skips  []catalog.Skip
}

// Skip counts a row that a reader does not use, with the reason.
func (t *Tally) Skip(why, name, detail string) {
	i := slices.IndexFunc(t.Skips, func(s catalog.Skip) bool { return s.Why == why })
	if i < 0 {
		t.Skips = append(t.Skips, catalog.Skip{Source: t.Source, Name: name, Why: why, Detail: detail, Count: 1})
		return
	}
	t.Skips[i].Count++
}

// Decode decodes JSON without converting numbers.
func Decode(page []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(page, []byte("\ufeff"))))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", ErrForm, err)
	}
	return nil
}

// Summary formats the skipped rows as one line: "12 other_use, 1 zero_price".
func Summary(skipped []catalog.Skip) string {
	count := map[string]int{}
	var order []string
	for _, s := range skipped {
		if count[s.Why] == 0 {
			order = append(order, s.Why)
		}
		count[s.Why] += s.Rows()
	}
	slices.Sort(order)
	parts := make([]string, len(order))
	for i, why := range order {
		parts[i] = fmt.Sprintf("%d %s", count[why], why)
	}
	return strings.Join(parts, ", ")
}

// Rows returns the number of skipped rows.
func (t Tally) Rows() int {
	n := 0
	for _, s := range t.Skips {
		n += s.Rows()
	}
	return n
}

// SellFor returns shape as sold in a region for a committed term with valid payments.
func SellFor(shape catalog.Listing, region string, t catalog.Terms, currency money.Currency,
	q market.Quote) catalog.Listing {
	q.Rate, q.Priced = t.Term.Effective(t.Upfront, t.Hourly)
	return catalog.SellTerm(catalog.Sell(shape, region, "", market.Reserved, q, currency), t, q)
}
