// Package bills shows the bills of providers and what the ledger has beside them.
package bills

import (
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/bill"
)

// mostServices bounds how many services of a bill a table shows.
const mostServices = 20

// Bill formats the contents of a bill: its kind, its unreadable rows, and its totals.
func Bill(s *bill.Summary, first []bill.Problem, p show.Place) string {
	var b strings.Builder
	b.WriteString(draw.Wrap("", show.Clean(fmt.Sprintf("%s: %s", s.File, s.Kind)), p.Columns()))
	if s.Start != nil {
		p.Fact(&b, "period", "%s to %s", s.Start.Format("2006-01-02 15:04"), s.End.Format("2006-01-02 15:04 UTC"))
	}
	p.Fact(&b, "rows", "%d: %d read, %d not", s.Rows, s.Rows-s.Problems, s.Problems)
	if s.Rows == 0 {
		b.WriteString(draw.Wrap("", "The file has no row below its header: export the bill again, once it has charges.",
			p.Columns()))
	}
	if list := lacks(s); len(list) > 0 {
		p.Fact(&b, "lacks", "%s: unknown, not zero", strings.Join(list, ", "))
	}
	if s.TagsUnread > 0 {
		p.Fact(&b, "tags", "of %s cannot be read", draw.Count(s.TagsUnread, "line"))
	}
	for i := range s.Totals {
		b.WriteString("\n")
		billTotal(&b, &s.Totals[i], p)
	}
	if len(first) == 0 {
		return b.String()
	}
	b.WriteString("\n" + draw.Wrap("", notRead(s, len(first)), p.Columns()))
	for _, problem := range first {
		text := problem.Reason
		if problem.Amount.Known {
			text += fmt.Sprintf(" (%s)", billed(problem.Amount.Value, problem.Currency))
		}
		p.Fact(&b, fmt.Sprintf("line %d", problem.Line), "%s", text)
	}
	return b.String()
}

// lacks returns the columns that the file lacks, without those whose values follow from others, as the effective
// cost of AWS does from the charge.
func lacks(s *bill.Summary) (list []string) {
	for _, name := range s.Lacks {
		derived := slices.ContainsFunc(s.Totals, func(t bill.Total) bool {
			return name == "effective cost" && t.Effective.Sum.Known || name == "list cost" && t.List.Sum.Known
		})
		if !derived {
			list = append(list, name)
		}
	}
	return list
}

func notRead(s *bill.Summary, first int) string {
	text := "Not read"
	if s.Problems > first {
		text = fmt.Sprintf("Not read, the first %d of %d (--json has all)", first, s.Problems)
	}
	if s.Unknown > 0 {
		text += fmt.Sprintf("; of %s the amount is unknown", draw.Count(s.Unknown, "row"))
	}
	return text + ":"
}

// billTotal writes a bill's total in one currency.
func billTotal(b *strings.Builder, t *bill.Total, p show.Place) {
	whole := fmt.Sprintf("%s %s", exact(t.File), currencyName(t.Currency))
	if t.Unread.Sign() != 0 {
		whole += fmt.Sprintf(": %s read, %s not", exact(t.Billed), exact(t.Unread))
	}
	p.Fact(b, "total", "%s", whole)
	if len(t.Categories) == 0 {
		return
	}
	for _, part := range []struct {
		name string
		sum  decimal.Decimal
	}{{"charges", t.Usage}, {"tax", t.Tax}, {"credits", t.Credits}, {"refunds", t.Refunds}} {
		if part.sum.Sign() != 0 && t.Usage.Cmp(t.Billed) != 0 {
			p.Fact(b, part.name, "%s", billed(part.sum, t.Currency))
		}
	}
	for _, k := range []struct {
		name string
		bill.Known
	}{{"list cost", t.List}, {"effective", t.Effective}} {
		text := "unknown"
		if k.Sum.Known {
			text = billed(k.Sum.Value, t.Currency)
		}
		if k.Sum.Known && k.Unknown > 0 {
			text += fmt.Sprintf(", unknown for %s", draw.Count(k.Unknown, "line"))
		}
		p.Fact(b, k.name, "%s", text)
	}
	p.Fact(b, "scrimp's tags", "job: %s of %s; attempt: %s of %s", billed(t.Job.Billed, t.Currency),
		draw.Count(t.Job.Lines, "line"), billed(t.Attempt.Billed, t.Currency), draw.Count(t.Attempt.Lines, "line"))
	b.WriteString("\n" + partsOf("CATEGORY", t.Categories, t.Currency, p))
	services := t.Services
	if len(services) > mostServices {
		rest := bill.Part{Name: fmt.Sprintf("(%d more)", len(services)-mostServices+1)}
		for _, s := range services[mostServices-1:] {
			rest.Lines, rest.Billed = rest.Lines+s.Lines, rest.Billed.Add(s.Billed)
		}
		services = append(services[:mostServices-1:mostServices-1], rest)
	}
	b.WriteString("\n" + partsOf("SERVICE", services, t.Currency, p))
}

func partsOf(head string, parts []bill.Part, c money.Currency, p show.Place) string {
	var rows [][]string
	for _, part := range parts {
		name := show.Clean(part.Name)
		if name == "" {
			name = "(none)"
		}
		if p.Width > 0 {
			name = draw.Cut(name, 40)
		}
		rows = append(rows, []string{name, fmt.Sprint(part.Lines), billed(part.Billed, c)})
	}
	return draw.Grid([]draw.Column{{Name: head, Key: true}, {Name: "LINES", Right: true}, {Name: "BILLED", Right: true}},
		rows, p.Columns())
}

// billed formats an amount of a bill for people. An amount too large for the ledger is written in full, up to 30
// digits.
func billed(d decimal.Decimal, c money.Currency) string {
	a, ok := d.Amount()
	if !ok {
		return draw.Cut(d.String(), 30) + " " + currencyName(c)
	}
	if c == "" {
		return a.String() + " of no currency"
	}
	return money.Short(a, c)
}

// exact formats every digit of an amount, up to 60.
func exact(d decimal.Decimal) string { return draw.Cut(d.String(), 60) }

func currencyName(c money.Currency) string {
	if c == "" {
		return "of no currency"
	}
	return string(c)
}
