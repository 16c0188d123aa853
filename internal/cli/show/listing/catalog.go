package listing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/market/catalog"
)

// Layer is a source of the catalogue.
type Layer struct {
	Name string     `json:"name"`
	Rows int        `json:"rows"`
	At   *time.Time `json:"written"` // null without a date
}

// Stock counts the catalogue's listings of a provider and a kind of capacity.
type Stock struct {
	Provider string     `json:"provider"`
	Capacity string     `json:"capacity"`
	Machines int        `json:"machines"`
	Regions  int        `json:"regions"`
	Listings int        `json:"listings"`
	Unpriced int        `json:"unpriced"`
	Stale    int        `json:"stale"`
	Newest   *time.Time `json:"newest_price"`
}

// Contents is the output of scrimp catalog show.
type Contents struct {
	Folder  string         `json:"folder"`
	Layers  []Layer        `json:"layers"`
	Stock   []Stock        `json:"stock"`
	Skipped []catalog.Skip `json:"skipped"`
}

// Count sets the counts of each provider.
func (c *Contents) Count(list []catalog.Listing, now time.Time, limits Limits) {
	type sets struct {
		stock             Stock
		machines, regions map[string]bool
	}
	all := map[string]*sets{}
	for _, l := range list {
		key := l.Offer.Provider + "/" + string(l.Offer.Capacity)
		s := all[key]
		if s == nil {
			s = &sets{Stock{Provider: l.Offer.Provider, Capacity: string(l.Offer.Capacity)}, map[string]bool{},
				map[string]bool{}}
			all[key] = s
		}
		s.machines[l.Offer.Machine], s.regions[l.Offer.Region] = true, true
		s.stock.Listings++
		switch {
		case !l.Quote.Priced:
			s.stock.Unpriced++
		case l.Stale(now, limits.of(l)):
			s.stock.Stale++
		}
		if at := l.Quote.At; l.Quote.Priced && !at.IsZero() && (s.stock.Newest == nil || at.After(*s.stock.Newest)) {
			s.stock.Newest = &at
		}
	}
	c.Stock = []Stock{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		s := all[key]
		s.stock.Machines, s.stock.Regions = len(s.machines), len(s.regions)
		c.Stock = append(c.Stock, s.stock)
	}
}

// Text formats the contents for people.
func (c Contents) Text(p show.Place) string {
	var b strings.Builder
	when := func(t *time.Time) string {
		if t == nil {
			return "unknown"
		}
		return p.When(*t)
	}
	var rows [][]string
	for _, l := range c.Layers {
		rows = append(rows, []string{l.Name, fmt.Sprint(l.Rows), when(l.At)})
	}
	b.WriteString(draw.Wrap("", "Catalogue of "+c.Folder+", each layer laid over the one before", p.Columns()))
	b.WriteString(draw.Grid([]draw.Column{{Name: "LAYER", Least: 20}, {Name: "ROWS", Right: true}, {Name: "FROM"}}, rows,
		p.Columns()))
	rows = nil
	for _, s := range c.Stock {
		rows = append(rows, []string{s.Provider, s.Capacity, fmt.Sprint(s.Machines), fmt.Sprint(s.Regions),
			fmt.Sprint(s.Listings), fmt.Sprint(s.Unpriced), fmt.Sprint(s.Stale), when(s.Newest)})
	}
	b.WriteString("\n")
	b.WriteString(draw.Grid([]draw.Column{
		{Name: "PROVIDER", Least: 8}, {Name: "KIND"}, {Name: "MACHINES", Right: true, Leaves: 2},
		{Name: "REGIONS", Right: true, Leaves: 1}, {Name: "OFFERS", Right: true}, {Name: "UNPRICED", Right: true},
		{Name: "OLD", Right: true}, {Name: "NEWEST PRICE"},
	}, rows, p.Columns()))
	b.WriteString(Skipped(c.Skipped, p))
	return b.String()
}

// Skipped lists skipped rows; it returns "" if there are none.
func Skipped(list []catalog.Skip, p show.Place) string {
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	n := 0
	for _, s := range list {
		n += s.Rows()
	}
	fmt.Fprintf(&b, "\n%d rows were skipped\n", n)
	for _, s := range list {
		where := s.Source
		if s.Row > 0 {
			where += fmt.Sprintf(" line %d", s.Row)
		}
		text := show.Words(s.Why)
		if s.Rows() > 1 {
			text = fmt.Sprintf("%d times %s, such as", s.Rows(), text)
		}
		for _, part := range []string{s.Name, s.Detail} {
			if part != "" {
				text += " " + part + ","
			}
		}
		b.WriteString(draw.Wrap("  ", strings.TrimSuffix(cmp.Or(where, "?")+": "+text, ","), p.Columns()))
	}
	return b.String()
}

// Fetched is the result of an update from a source.
type Fetched struct {
	Source  string         `json:"source"`
	Offers  int            `json:"offers"` // of this fetch
	Kept    int            `json:"kept"`   // in the copy, including earlier ones
	Skipped []catalog.Skip `json:"skipped"`
	Summary string         `json:"-"`
	Error   string         `json:"error,omitempty"`
}

// Text formats the result as a line for people.
func (f Fetched) Text(p show.Place) string {
	if f.Error != "" {
		return draw.Wrap(fmt.Sprintf("%-16s ", f.Source), "FAILED: "+f.Error, p.Columns())
	}
	text := fmt.Sprintf("%d offers", f.Offers)
	if f.Kept > f.Offers {
		text += fmt.Sprintf(", %d with those that were there", f.Kept)
	}
	if f.Summary != "" {
		text += "; skipped " + f.Summary
	}
	return draw.Wrap(fmt.Sprintf("%-16s ", f.Source), text, p.Columns())
}
