package listing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// Sale is what is for sale, with what the catalogue's sources publish of it.
type Sale struct {
	api.Market
	// Published is the share of machines interrupted within a month, by spot offer; what no
	// source publishes is left out.
	Published map[market.OfferID]Share `json:"published,omitempty"`
}

// Share is a published range, 0 to 1.
type Share struct {
	Low  float64 `json:"interrupted_within_month_low"`
	High float64 `json:"interrupted_within_month_high"`
}

// Text is the table of what is for sale; INTERRUPTIONS is how many machines the
// provider was seen to interrupt, in how much time of all of them, and how many an hour.
func (m Sale) Text(p show.Place) string {
	var rows [][]string
	var paid strings.Builder
	for _, l := range m.Offers {
		rows = append(rows, m.row(l))
		if l.Offer.Reserved.Count > 0 {
			paid.WriteString(draw.Wrap("", reserved(l, p), p.Columns()))
		}
	}
	if list := imaged(m.Offers); len(list) > 0 {
		paid.WriteString(draw.Wrap("", "Machines of "+strings.Join(list, ", ")+" are containers: they run the image that a "+
			"job names.", p.Columns()))
	}
	paid.WriteString(coolingOff(m.Offers, m.Clock.Now, p))
	var away strings.Builder
	for _, e := range m.Away {
		away.WriteString(draw.Wrap(e.What()+" does not answer: ", e.Error, p.Columns()))
	}
	head := draw.Wrap("", fmt.Sprintf("Market %s, %s", cmp.Or(m.Clock.Name, "of the engines"), p.Clock(m.Clock.Speed,
		m.Clock.Now)), p.Columns())
	if len(rows) == 0 {
		return head + draw.Wrap("", "This market offers no machines: scrimp doctor ENGINE says what an engine lacks.",
			p.Columns()) + away.String()
	}
	return head + draw.Grid([]draw.Column{
		{Name: "OFFER", Key: true}, {Name: "CPUS", Right: true, Leaves: 2}, {Name: "MEMORY", Right: true, Leaves: 3},
		{Name: "GPUS", Leaves: 1}, {Name: "PRICE/H", Right: true},
		{Name: "AVAILABLE"}, {Name: "NOTICE", Right: true, Leaves: 4}, {Name: "INTERRUPTIONS", Leaves: 1},
		{Name: "PUBLISHED", Right: true, Leaves: 2},
	}, rows, p.Columns()) + paid.String() + away.String()
}

// row is an offer as a line of the table.
func (m Sale) row(l api.Listing) []string {
	price, there, notice, gpus, seen := "unknown", "no", "-", "-", "-"
	if l.Quote.Priced {
		price = money.Format(money.Picos(int64(l.Quote.Rate)), l.Offer.Currency, 4)
	}
	switch {
	case !l.Cools.IsZero():
		there = "cooling off"
	case l.Quote.Available:
		there = "yes"
	}
	if l.Offer.Capacity == api.Spot {
		notice = "none"
	}
	if l.Offer.Notice > 0 {
		notice = draw.Span(l.Offer.Notice)
	}
	if l.Offer.Accelerators > 0 {
		gpus = fmt.Sprintf("%dx%s", l.Offer.Accelerators, l.Offer.Accelerator)
	}
	if l.Hazard.Served > 0 {
		seen = fmt.Sprintf("%d in %s", l.Hazard.Lost, draw.Span(l.Hazard.Served))
		if l.Hazard.Lost > 0 {
			seen += fmt.Sprintf(", %.2g/h", float64(l.Hazard.Lost)/l.Hazard.Served.Hours())
		}
	}
	published := "-"
	if r, ok := m.Published[market.OfferID(l.Offer.ID)]; ok {
		published = fmt.Sprintf("%.0f-%.0f %%/mo", r.Low*100, r.High*100)
	}
	return []string{l.Offer.ID, fmt.Sprint(l.Offer.CPUs), size.Bytes(l.Offer.Memory).String(), gpus, price, there, notice,
		seen, published}
}

// reserved says what a reserved offer costs whether anybody uses it or not.
func reserved(l api.Listing, p show.Place) string {
	r := l.Offer.Reserved
	if r.Until.Sub(r.From) >= ownFrom {
		return fmt.Sprintf("%s: %s of your own; %s of each hour is owed when nobody uses it", l.Offer.ID,
			draw.Count(r.Count, "machine"), money.Format((l.Quote.Rate-r.Marginal).Until(time.Hour), l.Offer.Currency, 4))
	}
	return fmt.Sprintf("%s: %s, %s paid from %s until %s; unused hours are posted as idle", l.Offer.ID,
		draw.Count(r.Count, "machine"), money.Short(r.Paid, l.Offer.Currency), p.Moment(r.From), p.Moment(r.Until))
}

// mostCooling bounds how many offers of one reason are named.
const mostCooling = 6

// coolingOff says which offers are not asked for a while, and why.
func coolingOff(sale []api.Listing, now time.Time, p show.Place) string {
	var b strings.Builder
	said := map[string][]string{} // offers, by reason
	var order []string
	for _, l := range sale {
		if l.Cools.IsZero() {
			continue
		}
		text := fmt.Sprintf(": not asked for %s: %s", draw.Span(l.Cools.Sub(now)), cmp.Or(show.Clean(l.CoolsFor),
			"a launch was refused"))
		if said[text] == nil {
			order = append(order, text)
		}
		said[text] = append(said[text], l.Offer.ID)
	}
	for _, text := range order {
		list := said[text]
		if n := len(list); n > mostCooling {
			list = append(list[:mostCooling-1:mostCooling-1], fmt.Sprintf("%d more", n-mostCooling+1))
		}
		b.WriteString(draw.Wrap("", strings.Join(list, ", ")+text, p.Columns()))
	}
	return b.String()
}

// imaged are the engines whose machines run the image of a job.
func imaged(sale []api.Listing) (list []string) {
	for _, l := range sale {
		if l.Offer.Images {
			list = append(list, show.Clean(l.Offer.Provider))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// ownFrom is for how long machines are paid for beforehand that are somebody's own.
const ownFrom = 5 * 365 * 24 * time.Hour
