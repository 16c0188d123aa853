package pages

import (
	"encoding/csv"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/money"
)

// costsPage shows what was spent, by whom and for what.
type costsPage struct {
	client.Costs
	Totals []client.CostLine // per currency, over all lines
	Before costsRest         // more expensive lines that other pages list
	After  costsRest         // less expensive ones
	Bys    []option
	Sinces []option
	Tag    string
	CSV    string
	asked  string
	flags  url.Values // of the equivalent command
}

// costsRest sums lines of costs that the page does not list.
type costsRest struct {
	Count int
	Sums  []client.CostLine // per currency
	Path  string            // address of the page that lists them, or the first of them
}

func (p *costsPage) twin() string { return p.asked }

// command returns the scrimp costs command with the page's options.
func (p *costsPage) command() string {
	return commandOf("scrimp costs", p.flags, "by", "since")
}

// commandOf appends those flags that are set to a command.
func commandOf(text string, flags url.Values, names ...string) string {
	for _, flag := range names {
		for _, v := range flags[flag] {
			if v != "" {
				text += " --" + flag + " " + shellWord(v)
			}
		}
	}
	return text
}

// shellWord quotes a text for a shell if it needs that.
func shellWord(text string) string {
	if text != "" && strings.IndexFunc(text, needsQuotes) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// needsQuotes reports whether a character may have a meaning to a shell.
func needsQuotes(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.:", r)
}

// mostLines bounds the lines of costs on a page. Further lines sum the rest, so that the lines add up to the total.
const mostLines = 200

func costs(v *visit) (any, error) {
	p := &costsPage{}
	if err := p.read(v); err != nil {
		return nil, err
	}
	p.Totals = summed("total", p.Lines)
	at := 0
	if text := v.r.URL.Query().Get("from"); text != "" {
		var err error
		if at, err = strconv.Atoi(text); err != nil || at < 0 || at > len(p.Lines) {
			return nil, &client.Problem{Status: http.StatusBadRequest, Title: "from is no line of these costs", Field: "from",
				Fix: "write 0 to " + strconv.Itoa(len(p.Lines)) + ", or leave it out"}
		}
	}
	end := min(at+mostLines, len(p.Lines))
	p.Before = restOf(v, p.Lines[:at], max(0, at-mostLines))
	p.After = restOf(v, p.Lines[end:], end)
	p.Lines = p.Lines[at:end]
	return p, nil
}

// restOf sums lines that the page leaves out, and that the page from a line on lists.
func restOf(v *visit, lines []client.CostLine, from int) costsRest {
	q := v.r.URL.Query()
	q.Set("from", strconv.Itoa(from))
	return costsRest{Count: len(lines), Sums: summed("the others", lines), Path: "/costs?" + q.Encode()}
}

// Whole returns the address of the charges that the total of the page sums, as a file.
func (p *costsPage) Whole() string { return postingsOf("booked", bookedSince(p.Since)) }

// Postings is Whole of a line; "": it has none.
func (p *costsPage) Postings(line string) string { return namedIn(p.Whole(), p.By, line) }

// read fetches the data for the page's address.
func (p *costsPage) read(v *visit) error {
	q := v.r.URL.Query()
	by, since := q.Get("by"), q.Get("since")
	p.Tag = strings.TrimSpace(q.Get("tag"))
	ask := url.Values{}
	for _, o := range []option{{Value: "", Text: "team"}, {Value: "project", Text: "project"},
		{Value: "user", Text: "user"}, {Value: "kind", Text: "kind of job"}, {Value: "job", Text: "job"},
		{Value: "tag", Text: "tag"},
		{Value: "provider", Text: "provider"}, {Value: "region", Text: "region"}, {Value: "sku", Text: "machine type or SKU"},
		{Value: "category", Text: "category"}} {
		o.Chosen = o.Value == by
		p.Bys = append(p.Bys, o)
	}
	for _, o := range []option{{Value: "", Text: "from the beginning"}, {Value: "24h", Text: "the last 24 hours"},
		{Value: "7d", Text: "the last 7 days"}, {Value: "30d", Text: "the last 30 days"},
		{Value: "90d", Text: "the last 90 days"}} {
		o.Chosen = o.Value == since
		p.Sinces = append(p.Sinces, o)
	}
	switch {
	case by == "tag" && p.Tag != "":
		ask.Set("by", "tag:"+p.Tag)
	case by != "" && by != "tag":
		ask.Set("by", by)
	}
	if since != "" {
		ask.Set("since", since)
	}
	p.flags = ask
	p.asked, p.CSV = "/v1/costs?"+ask.Encode(), "/costs.csv?"+q.Encode()
	return v.get(p.asked, &p.Costs)
}

// summed sums the lines by currency.
func summed(name string, lines []client.CostLine) (totals []client.CostLine) {
	for _, l := range lines {
		at := slices.IndexFunc(totals, func(t client.CostLine) bool { return t.Currency == l.Currency })
		if at < 0 {
			at = len(totals)
			totals = append(totals, client.CostLine{Name: name, Currency: l.Currency, Uses: map[client.Use]money.Amount{}})
		}
		t := &totals[at]
		t.Spent, t.Jobs, t.Live = t.Spent.Add(l.Spent), t.Jobs+l.Jobs, t.Live+l.Live
		for u, a := range l.Uses {
			t.Uses[u] = t.Uses[u].Add(a)
		}
		t.Saved, t.OnDemand = plus(t.Saved, l.Saved), plus(t.OnDemand, l.OnDemand)
		t.Estimated, t.Actual = plus(t.Estimated, l.Estimated), plus(t.Actual, l.Actual)
	}
	return totals
}

// plus adds two amounts; nil is unknown and adds nothing.
func plus(a, b *money.Amount) *money.Amount {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return new(a.Add(*b))
}

// csv begins the download of a table that read reads. If that fails, it answers with the error and returns nil.
func (s *Site) csv(w http.ResponseWriter, r *http.Request, name string, read func(*visit) error) *csv.Writer {
	guard(w)
	v, err := s.visit(r)
	if err == nil {
		err = read(v)
	}
	if err != nil {
		s.fail(w, r, v, err)
		return nil
	}
	h := w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	return csv.NewWriter(w)
}

// costsCSV sends every line with exact amounts.
func (s *Site) costsCSV(w http.ResponseWriter, r *http.Request) {
	p := &costsPage{}
	out := s.csv(w, r, "scrimp-costs.csv", p.read)
	if out == nil {
		return
	}
	head := []string{strings.ReplaceAll(p.By, ":", " "), "currency", "jobs", "spent"}
	for _, u := range useOrder {
		head = append(head, string(u))
	}
	_ = out.Write(append(head, "estimated", "actual", "on_demand", "saved", "until"))
	text := func(a *money.Amount) string {
		if a == nil {
			return "" // unknown
		}
		return a.String()
	}
	for _, l := range p.Lines {
		row := []string{plainCell(l.Name), string(l.Currency), strconv.Itoa(l.Jobs), l.Spent.String()}
		for _, u := range useOrder {
			row = append(row, l.Uses[u].String())
		}
		_ = out.Write(append(row, text(l.Estimated), text(l.Actual), text(l.OnDemand), text(l.Saved),
			p.Until.UTC().Format(time.RFC3339)))
	}
	out.Flush()
}

// plainCell returns the text so that no spreadsheet takes it for a formula.
func plainCell(s string) string {
	s = strings.Map(sanitize, s)
	if strings.ContainsAny(s[:min(1, len(s))], "=+-@\t\r|%") {
		return "'" + s
	}
	return s
}
