package pages

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
)

// functions format values in templates.
var functions = template.FuncMap{
	"asset":    func(name string) string { return "/assets/" + assets()[name].name },
	"money":    amount,
	"sum":      sumOf,
	"sums":     sumsOf,
	"postings": postingsOf,
	"ofGroup":  groupPostings,
	"also":     also,
	"rate":     rateOf,
	"ago":      ago,
	"until":    until,
	"market":   marketTime,
	"day":      func(t time.Time) string { return t.UTC().Format("2 January 2006") },
	"span":     seconds,
	"lasts":    draw.Span,
	"words":    func(v any) string { return strings.ReplaceAll(fmt.Sprint(v), "_", " ") },
	"percent":  percent,
	"count":    draw.Count,
	"short":    short,
	"number":   number,
	"bytes":    func(n int64) string { return size.Bytes(n).String() },
	"ended":    receipt.EndText,
	"bar":      bar,
	"shares":   shares,
	"tags":     tags,
	"escape":   url.PathEscape,
	"cut":      draw.Cut,
	"clock":    draw.SimulatedClock,
	"plus":     func(a, b int) int { return a + b },
	"join":     strings.Join,
	"chip":     chip,
	"used":     used,
	"use":      func(of map[client.Use]money.Amount, name string) money.Amount { return of[client.Use(name)] },
	"signed":   signedShare,
	"over":     func(share float64) string { return fmt.Sprintf("%.0f %%", share*100) },
	"reason":   reasonOf,
	"willCost": willCost,
	"due":      due,
	"willAll":  willCostAll,
	"summed":   func(t client.JobTotal, postings string) summedLine { return summedLine{t, postings} },
	"startsIn": startsIn,
	"uses":     func() []client.Use { return useOrder },
	"capital":  func(s string) string { return strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):] },
	"part":     partClass,
	"named":    nameOr,
	"usd":      usd,
	"commands": func(a action, job string) string { return strings.ReplaceAll(a.Command, "{id}", job) },
	"dollars":  func(v any) template.HTML { return ranged(dollars, v) },
	"spans":    func(v any) template.HTML { return ranged(lasting, v) },
	"notice":   notice,
	"hourly":   hourly,
	"measured": sinceMeasured,
	"worth":    worth,
	"linked":   func(l client.CostLine, postings string) linkedLine { return linkedLine{l, postings} },
	"because":  func(reason string) string { return cmp.Or(plan.Reason(reason).Text(), readable(reason)) },
}

// linkedLine is a line of costs with the address of its postings; "": none.
type linkedLine struct {
	client.CostLine
	Postings string
}

// worth formats an expected amount; nil is unknown.
func worth(c money.Currency, v *float64) template.HTML {
	if v == nil {
		return unknown
	}
	return template.HTML(template.HTMLEscapeString(money.ShortFloat(*v, c)))
}

// notice says what became of a report.
func notice(state string) string {
	switch state {
	case client.Delivered:
		return "delivered"
	case client.Retrying:
		return "not delivered yet"
	case client.Waiting:
		return "waits for a server that sends e-mail (scrimp serve --smtp)"
	}
	return "not delivered"
}

type option struct {
	Value, Text string
	Chosen      bool
}

// amount formats money for people. The exact sum is in the attributes, for programs and as a tooltip. A nil amount
// is unknown.
func amount(c money.Currency, v any) template.HTML {
	a, known := amountOf(v)
	if !known {
		return unknown
	}
	exact := a.String()
	if d, ok := v.(decimal.Decimal); ok {
		exact = d.String() // a bill may have more decimals than the ledger
	}
	class, text := "money", money.Short(a, c)
	switch f := math.Abs(a.Float()); {
	case a.IsZero():
		class, text = "money zero", money.Format(a, c, 2)
	case f < 0.0001:
		text = "<" + money.Format(money.Picos(100_000_000), c, 4)
		if a.Sign() < 0 {
			text = ">" + money.Format(money.Picos(-100_000_000), c, 4)
		}
	case f < 0.01:
		text = money.Format(a, c, 4)
	case f < 1e6: // so that cents align in a column
		text = money.Format(a, c, 2)
	}
	return element("data", grouped(text), "class", class, "value", exact, "title", fmt.Sprintf("%s %s exactly", exact, c))
}

// amountOf returns an amount of the API or of a bill, and false if it is unknown.
func amountOf(v any) (money.Amount, bool) {
	switch v := v.(type) {
	case money.Amount:
		return v, true
	case *money.Amount:
		if v != nil {
			return *v, true
		}
	case decimal.Decimal:
		return v.Amount()
	}
	return money.Amount{}, false
}

// grouped puts commas between the thousands of an amount: "$12,345.60".
func grouped(text string) string {
	from := strings.IndexAny(text, "0123456789")
	if from < 0 {
		return text
	}
	end := from
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	for at := end - 3; at > from; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// unknown replaces a value that is not known; it is never shown as zero.
const unknown template.HTML = `<span class="unknown">unknown</span>`

// rateOf formats a price per hour.
func rateOf(c money.Currency, v any) template.HTML {
	r, known := v.(money.Rate)
	if p, ok := v.(*money.Rate); ok && p != nil {
		r, known = *p, true
	}
	if !known {
		return unknown
	}
	return element("data", rateText(r, c), "class", "money", "value", r.String(), "title",
		fmt.Sprintf("%s %s an hour exactly", r, c))
}

// rateText formats a price per hour in plain text, a low one with four decimals.
func rateText(r money.Rate, c money.Currency) string {
	decimals := 2
	if f := math.Abs(r.Float()); f > 0 && f < 0.1 {
		decimals = 4
	}
	return money.Format(money.Picos(int64(r)), c, decimals) + "/h"
}

// timeOf returns the time that v is or points to.
func timeOf(v any) (t time.Time, known bool) {
	switch v := v.(type) {
	case time.Time:
		t = v
	case *time.Time:
		if v != nil {
			t = *v
		}
	}
	return t, !t.IsZero()
}

func stamp(t time.Time, text string) template.HTML {
	t = t.UTC()
	return element("time", text, "datetime", t.Format(time.RFC3339), "title", t.Format("2006-01-02 15:04:05")+" UTC")
}

// element returns an HTML element with the given text and attributes: name, value, and so on.
func element(name, text string, attributes ...string) template.HTML {
	var b strings.Builder
	b.WriteString("<" + name)
	for i := 0; i < len(attributes); i += 2 {
		b.WriteString(" " + attributes[i] + `="` + template.HTMLEscapeString(attributes[i+1]) + `"`)
	}
	b.WriteString(">" + template.HTMLEscapeString(text) + "</" + name + ">")
	return template.HTML(b.String())
}

// ago formats the time since t.
func ago(now time.Time, v any) template.HTML {
	t, known := timeOf(v)
	if !known {
		return `<span class="unknown">never</span>`
	}
	return stamp(t, draw.Ago(t, now))
}

// until formats the time until t.
func until(now time.Time, v any) template.HTML {
	t, known := timeOf(v)
	switch {
	case !known:
		return `<span class="none dash">–</span>`
	case t.After(now):
		return stamp(t, "in "+draw.Span(t.Sub(now)))
	}
	return stamp(t, draw.Ago(t, now))
}

// marketTime formats a market time, which can differ from wall time.
func marketTime(v any) template.HTML {
	t, known := timeOf(v)
	if !known {
		return `<span class="none dash">–</span>`
	}
	return stamp(t, t.UTC().Format("2006-01-02 15:04"))
}

// seconds formats a duration given in seconds.
func seconds(v any) template.HTML {
	s, known := floatOf(v)
	if !known {
		return unknown
	}
	return template.HTML(template.HTMLEscapeString(draw.Span(time.Duration(s * float64(time.Second)))))
}

// short formats a large count in three digits.
func short(v any) string {
	switch n := v.(type) {
	case int64:
		return draw.Short(n)
	case *int64:
		return draw.Short(*n)
	case int:
		return draw.Short(int64(n))
	}
	return fmt.Sprint(v)
}

// number formats a measurement in four digits.
func number(v any) template.HTML {
	f, known := floatOf(v)
	if !known {
		return unknown
	}
	return template.HTML(fmt.Sprintf("%.4g", f))
}

func floatOf(v any) (f float64, known bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case *float64:
		if v != nil {
			return *v, true
		}
	}
	return 0, false
}

// percent formats a share.
func percent(v any) template.HTML {
	f, known := floatOf(v)
	if !known {
		return unknown
	}
	return template.HTML(fmt.Sprintf("%.0f %%", f*100))
}

// bar draws a share of a whole. Above 1 it draws a full bar of the class "over".
func bar(share float64, label string) template.HTML {
	class := "bar"
	if share > 1 {
		class += " over"
	}
	return template.HTML(fmt.Sprintf(`<svg class="%s" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" `+
		`aria-label="%s"><rect class="rail" width="100" height="6"/><rect class="fill" width="%.2f" height="6"/></svg>`,
		class, template.HTMLEscapeString(label), max(0, min(1, share))*100))
}

// used draws how much of a budget is spent and held.
func used(l client.BudgetLine) template.HTML {
	if l.Limit.Dollars == nil || l.Limit.Dollars.Sign() <= 0 {
		return unknown
	}
	share := l.Use.Spent.Add(l.Use.Held).Float() / l.Limit.Dollars.Float()
	return bar(share, "spent and held of the budget") + template.HTML(fmt.Sprintf("%.0f %%", share*100))
}

// useOrder lists the uses of paid time in the order in which pages show them.
var useOrder = []client.Use{client.Useful, client.Open, client.StartUp, client.Idle, client.Lost}

// shares draws the uses of money as one bar.
func shares(c money.Currency, of map[client.Use]money.Amount) template.HTML {
	whole := 0.0
	for _, a := range of {
		whole += max(0, a.Float())
	}
	if whole == 0 {
		return ""
	}
	var b strings.Builder
	var says []string
	x := 0.0
	for _, u := range useOrder {
		a := of[u]
		if a.Sign() <= 0 {
			continue
		}
		wide := a.Float() / whole * 100
		text := fmt.Sprintf("%s %s, %.0f %%", u, money.Short(a, c), wide)
		says = append(says, text)
		fmt.Fprintf(&b, `<rect class="use %s" x="%.2f" width="%.2f" height="6"><title>%s</title></rect>`, u, x, wide,
			template.HTMLEscapeString(text))
		x += wide
	}
	return template.HTML(fmt.Sprintf(`<svg class="bar shares" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" `+
		`aria-label="%s">%s</svg>`, template.HTMLEscapeString(strings.Join(says, "; ")), b.String()))
}

// tags lists tags in order of their names.
func tags(of map[string]string) (list []string) {
	for _, k := range slices.Sorted(maps.Keys(of)) {
		list = append(list, k+"="+of[k])
	}
	return list
}

// chip formats a state with its colour. The text states it, too.
func chip(state string) template.HTML {
	class := ""
	switch state {
	case "running", "answers", "open", "keeping":
		class = "go"
	case "succeeded", "done", "reused", "deployed":
		class = "good"
	case "failed", "away", "missing", "refused", "not_configured":
		class = "bad"
	case "held", "awaits_approval", "paused", "saving", "releasing", "ending", "not_asked":
		class = "wait"
	}
	return template.HTML(fmt.Sprintf(`<span class="chip %s">%s</span>`, class,
		template.HTMLEscapeString(strings.ReplaceAll(state, "_", " "))))
}
