package bills

import (
	"fmt"
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/reconcile"
)

// mostGaps bounds how many lines of each list a table shows; --json has all.
const mostGaps = 20

// Reconcile formats the differences between a bill and scrimp's accounts.
func Reconcile(v reconcile.Answer, p show.Place) string {
	var s strings.Builder
	for i, t := range v.Totals {
		if i > 0 {
			s.WriteString("\n")
		}
		c := t.Currency
		part := func(name string, n reconcile.Sum, of string) {
			if n.Count > 0 {
				p.Fact(&s, name, "%s, %s", billed(n.Amount, c), draw.Count(n.Count, of))
			}
		}
		p.Fact(&s, "bill", "%s in %s", billed(t.File, c), c)
		part("matched", t.Matched, "line")
		part("no machine", t.NeverOurs, "line")
		part("not scrimp's", t.NotOurs, "line")
		part("other months", t.OtherMonths, "line")
		part("repeated", t.Repeated, "line")
		part("not read", t.Unread, "row")
		p.Fact(&s, "scrimp's cost", "%s", billed(t.Ours, c))
		part("not billed yet", t.NotBilled, "machine")
		p.Fact(&s, "gap", "%s%s", billed(t.Gap, c), partsText(t.Parts, c))
	}
	if v.Unread > 0 {
		p.Fact(&s, "not read", "%s of an unknown amount", draw.Count(v.Unread, "row"))
	}
	if len(v.Totals) == 0 {
		s.WriteString(draw.Wrap("", "The bill has no rows, and scrimp no costs.", p.Columns()))
	}
	var rows [][]string
	for _, g := range v.Gaps {
		if g.Gap.Sign() != 0 && len(rows) < mostGaps {
			rows = append(rows, []string{show.Clean(g.Instance), billed(g.Ours, g.Currency), billed(g.Billed, g.Currency),
				billed(g.Gap, g.Currency), g.By, strings.TrimPrefix(partsText(g.Parts, g.Currency), ": ") + notes(g.Notes)})
		}
	}
	if len(rows) > 0 {
		s.WriteString("\n" + draw.Grid([]draw.Column{{Name: "MACHINE", Key: true}, {Name: "OURS", Right: true},
			{Name: "BILLED", Right: true}, {Name: "GAP", Right: true}, {Name: "BY", Leaves: 1}, {Name: "WHY", Least: 24}}, rows,
			p.Columns()))
	}
	lists := []struct {
		name string
		of   []reconcile.Alone
	}{{"BILLED, WITHOUT A MACHINE", v.NeverOurs}, {"OURS, NOT BILLED YET", v.NotBilled}, {"OF OTHER MONTHS", v.Others}}
	for _, l := range lists {
		var rows [][]string
		for _, a := range l.of[:min(len(l.of), mostGaps)] {
			line := "-"
			if a.Line > 0 {
				line = fmt.Sprint(a.Line)
			}
			rows = append(rows, []string{show.Clean(a.Resource), line, billed(a.Amount, a.Currency), show.Clean(a.Why)})
		}
		if len(rows) > 0 {
			s.WriteString("\n" + draw.Grid([]draw.Column{{Name: l.name, Key: true}, {Name: "LINE", Right: true, Leaves: 1},
				{Name: "AMOUNT", Right: true}, {Name: "WHY", Least: 30}}, rows, p.Columns()))
			if n := len(l.of) - len(rows); n > 0 {
				fmt.Fprintf(&s, "and %d more: --json lists them\n", n)
			}
		}
	}
	return s.String()
}

func partsText(parts map[reconcile.Part]decimal.Decimal, c money.Currency) string {
	var list []string
	for _, name := range reconcile.Parts {
		if a := parts[name]; a.Sign() != 0 {
			list = append(list, string(name)+" "+billed(a, c))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return ": " + strings.Join(list, ", ")
}

func notes(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return " (" + strings.Join(list, "; ") + ")"
}
