package pages

import (
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// daysPage shows the costs of the last days, stacked by name.
type daysPage struct {
	By     string
	Bys    []option
	Spans  []option
	Tables []daysTable // one per currency
	Until  string      // last day
	Older  string      // address of the days before these
	asked  string
	back   int
	first  time.Time
}

func (p *daysPage) twin() string { return p.asked }

// command returns the command that sums days until now.
func (p *daysPage) command() string {
	return commandOf("scrimp costs", url.Values{"by": {p.By}, "since": {fmt.Sprint(p.back, "d")}}, "by", "since")
}

// Whole returns the address of the charges of a day, as a file.
func (p *daysPage) Whole(day time.Time) string { return p.whole(day, day) }

// All returns the address of the charges of all days of the page.
func (p *daysPage) All() string { return p.whole(p.first, p.first.AddDate(0, 0, p.back-1)) }

func (p *daysPage) whole(first, last time.Time) string {
	return postingsOf("since", first.Format(time.DateOnly), "until", last.AddDate(0, 0, 1).Format(time.DateOnly))
}

// Of returns the address of those charges of an address that a column of a table sums.
func (p *daysPage) Of(t daysTable, address string, column int) string {
	by := cmp.Or(p.By, "team")
	if t.Others && column == mostStacked {
		return without(address, by, t.Names[:mostStacked])
	}
	return namedIn(address, by, t.Names[column])
}

// daysTable holds the costs of each day in a currency. The columns add up to the total.
type daysTable struct {
	Currency money.Currency
	Names    []string // of the columns, most expensive first
	Others   bool     // the last column sums all other names
	Rows     []dayRow
	Sums     []money.Amount // of the columns
	Total    money.Amount
	Drawing  template.HTML
}

type dayRow struct {
	Day   time.Time
	Costs []money.Amount
	Total money.Amount
}

const (
	mostStacked = 5 // names with a colour of their own
	otherNames  = "others"
)

// dayCosts are costs by currency, name and day.
type dayCosts map[money.Currency]map[string][]money.Amount

// days reads the costs of whole days of market time in UTC; the last one is today, up to now.
func days(v *visit) (any, error) {
	q := v.r.URL.Query()
	p := &daysPage{By: q.Get("by"), back: 14}
	for _, o := range []option{{Value: "", Text: "team"}, {Value: "project", Text: "project"},
		{Value: "user", Text: "user"}, {Value: "kind", Text: "kind of job"},
		{Value: "provider", Text: "provider"}, {Value: "region", Text: "region"},
		{Value: "sku", Text: "machine type or SKU"}, {Value: "category", Text: "category"}} {
		o.Chosen = o.Value == p.By
		p.Bys = append(p.Bys, o)
	}
	for _, n := range []int{14, 30} {
		o := option{Value: fmt.Sprint(n), Text: fmt.Sprintf("the last %d days", n)}
		if o.Chosen = q.Get("days") == o.Value; o.Chosen {
			p.back = n
		}
		p.Spans = append(p.Spans, o)
	}
	at := v.server.Market.Now.UTC()
	if text := q.Get("until"); text != "" {
		var err error
		if at, err = time.Parse(time.DateOnly, text); err != nil {
			return nil, &client.Problem{Status: http.StatusBadRequest, Title: "until is no day", Field: "until",
				Fix: "write it like " + v.now.UTC().Format(time.DateOnly)}
		}
	}
	p.first = time.Date(at.Year(), at.Month(), at.Day()-p.back+1, 0, 0, 0, 0, time.UTC)
	first := p.first
	p.Until = at.Format(time.DateOnly)
	p.Older = "/costs/days?" + url.Values{"by": {p.By}, "days": {fmt.Sprint(p.back)},
		"until": {first.AddDate(0, 0, -1).Format(time.DateOnly)}}.Encode()
	all := dayCosts{}
	for n := 0; n < p.back; n += 2 {
		two, err := p.compare(v, first, n, n+1)
		if refused(err, "after") { // that day has not begun
			two, err = p.compare(v, first, n, n-1)
			for i := range two.Lines {
				two.Lines[i].After = money.Amount{}
			}
		}
		if refused(err, "before") {
			break
		}
		if no, ok := errors.AsType[*client.Problem](err); ok && no.Status == http.StatusNotFound {
			continue // nothing was spent on these days
		}
		if err != nil {
			return nil, err
		}
		for _, l := range two.Lines {
			all.add(l.Currency, l.Name, n, p.back, l.Before)
			all.add(l.Currency, l.Name, n+1, p.back, l.After)
		}
	}
	for _, c := range slices.Sorted(maps.Keys(all)) {
		p.Tables = append(p.Tables, tableOf(c, all[c], first, p.back))
	}
	return p, nil
}

// compare reads the costs of two days, which are counted from the first one.
func (p *daysPage) compare(v *visit, first time.Time, before, after int) (two client.Why, err error) {
	ask := url.Values{"before": {first.AddDate(0, 0, before).Format(time.DateOnly)},
		"after": {first.AddDate(0, 0, after).Format(time.DateOnly)}}
	if p.By != "" {
		ask.Set("by", p.By)
	}
	p.asked = "/v1/why?" + ask.Encode()
	err = v.get(p.asked, &two)
	return two, err
}

// refused reports whether an error is about the field of a request.
func refused(err error, field string) bool {
	no, ok := errors.AsType[*client.Problem](err)
	return ok && no.Status == http.StatusBadRequest && no.Field == field
}

// add adds the cost of a name on a day, of so many days.
func (all dayCosts) add(c money.Currency, name string, day, of int, a money.Amount) {
	if a.IsZero() {
		return
	}
	if all[c] == nil {
		all[c] = map[string][]money.Amount{}
	}
	if all[c][name] == nil {
		all[c][name] = make([]money.Amount, of)
	}
	all[c][name][day] = all[c][name][day].Add(a)
}

// tableOf lists the costs of each day, of the most expensive names and of the others together.
func tableOf(c money.Currency, costs map[string][]money.Amount, first time.Time, back int) daysTable {
	t := daysTable{Currency: c}
	whole := map[string]money.Amount{}
	for name, list := range costs {
		for _, a := range list {
			whole[name] = whole[name].Add(a)
		}
	}
	t.Names = slices.SortedFunc(maps.Keys(costs), func(a, b string) int {
		if by := whole[b].Cmp(whole[a]); by != 0 {
			return by
		}
		return strings.Compare(a, b)
	})
	rest := []string{}
	if len(t.Names) > mostStacked {
		rest = t.Names[mostStacked:]
		t.Names, t.Others = append(slices.Clone(t.Names[:mostStacked]), otherNames), true
	}
	t.Sums = make([]money.Amount, len(t.Names))
	for day := range back {
		row := dayRow{Day: first.AddDate(0, 0, day)}
		for i, name := range t.Names {
			var a money.Amount
			if t.Others && i == mostStacked {
				for _, other := range rest {
					a = a.Add(costs[other][day])
				}
			} else {
				a = costs[name][day]
			}
			row.Costs, row.Total, t.Sums[i] = append(row.Costs, a), row.Total.Add(a), t.Sums[i].Add(a)
		}
		t.Rows, t.Total = append(t.Rows, row), t.Total.Add(row.Total)
	}
	t.Drawing = stacked(t)
	return t
}

// Sizes of the drawing of stacked costs.
const (
	stackedWide, stackedHigh = 1100.0, 220.0
	stackedLeft              = 70.0
)

// stacked draws a column for each day, with a part for each name.
func stacked(t daysTable) template.HTML {
	most := 0.0
	for _, row := range t.Rows {
		most = max(most, row.Total.Float())
	}
	if most <= 0 {
		return ""
	}
	step := (stackedWide - stackedLeft) / float64(len(t.Rows))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %.0f %.0f" role="img" `+
		`aria-label="Costs by day, stacked; the table has the figures">`,
		stackedWide, stackedHigh+30)
	for _, share := range []float64{0, 0.5, 1} {
		y := 10 + (stackedHigh-10)*(1-share)
		fmt.Fprintf(&b, `<line class="grid" x1="%.0f" x2="%.0f" y1="%.1f" y2="%.1f"/>`+
			`<text class="end" x="%.0f" y="%.1f">%s</text>`, stackedLeft, stackedWide, y, y, stackedLeft-8, y+4,
			template.HTMLEscapeString(money.ShortFloat(most*share, t.Currency)))
	}
	for n, row := range t.Rows {
		x, y := stackedLeft+step*(float64(n)+0.15), stackedHigh
		for i, a := range row.Costs {
			high := max(0, a.Float()) / most * (stackedHigh - 10)
			if high <= 0 {
				continue
			}
			y -= high
			fmt.Fprintf(&b, `<rect class="part %s" x="%.1f" y="%.1f" width="%.1f" height="%.2f">`+
				`<title>%s, %s: %s</title></rect>`, partClass(i), x, y, step*0.7, high, row.Day.Format("2006-01-02"),
				template.HTMLEscapeString(nameOr(t.Names[i])),
				template.HTMLEscapeString(money.Short(a, t.Currency)))
		}
		if every := max(1, len(t.Rows)/14); n%every == 0 {
			fmt.Fprintf(&b, `<text class="mid" x="%.1f" y="%.1f">%s</text>`, x+step*0.35, stackedHigh+20,
				row.Day.Format("2 Jan"))
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// partClass names the colour of a part.
func partClass(i int) string {
	if i < len(classes) {
		return classes[i]
	}
	return "rest"
}

// nameOr returns the name of a line of costs for people.
func nameOr(name string) string {
	if name == "" {
		return "(none)"
	}
	return draw.Cut(name, 40)
}
