package show

import (
	"fmt"
	"strings"

	api "scrimp/client"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// causeText says what each cause is, beside its bar.
var causeText = map[string]string{
	"volume": "work done", "price": "price of the same", "mix": "what was bought", "efficiency": "time for the work",
	"failures": "lost work", "waiting": "start-up, idle", "unmatched": "no machine time",
}

// Why is the text of a comparison; before and after are the periods as they were asked for.
func Why(v api.Why, before, after string, p Place) string {
	var s strings.Builder
	for _, t := range v.Totals {
		way := "more"
		if t.Change.Sign() < 0 {
			way = "less"
		}
		fmt.Fprintf(&s, "%s%s cost %s and %s %s: %s %s%s.\n\n", head(s.Len() > 0), clean(before), sum(t.Before, t.Currency),
			clean(after), sum(t.After, t.Currency), sum(absolute(t.Change), t.Currency), way, shareOf(t.Before, t.Change))
		s.WriteString(waterfall(v.Causes, t, clean(before), clean(after)))
	}
	columns := []draw.Column{{Name: strings.ToUpper(strings.ReplaceAll(v.By, ":", " ")), Key: true},
		{Name: "BEFORE", Right: true, Leaves: 8}, {Name: "AFTER", Right: true, Leaves: 9}, {Name: "CHANGE", Right: true}}
	for i, c := range v.Causes {
		columns = append(columns, draw.Column{Name: strings.ToUpper(c), Right: true, Leaves: len(v.Causes) - i})
	}
	var rows [][]string
	for _, l := range v.Lines {
		row := []string{named(l.Name), sum(l.Before, l.Currency), sum(l.After, l.Currency), signed(l.Change, l.Currency)}
		for _, c := range v.Causes {
			row = append(row, signed(l.Parts[c], l.Currency))
		}
		rows = append(rows, row)
	}
	s.WriteString("\n" + draw.Grid(columns, rows, p.width()))
	rows = nil
	for _, j := range v.Jobs {
		rows = append(rows, []string{clean(j.Job), sum(j.Before, j.Currency), sum(j.After, j.Currency),
			signed(j.Change, j.Currency)})
	}
	if len(rows) > 0 {
		s.WriteString("\n" + draw.Grid([]draw.Column{{Name: "JOB", Key: true}, {Name: "BEFORE", Right: true},
			{Name: "AFTER", Right: true}, {Name: "CHANGE", Right: true}}, rows, p.width()))
	}
	return s.String()
}

func head(more bool) string {
	if more {
		return "\n"
	}
	return ""
}

func named(name string) string {
	if name == "" {
		return "(none)"
	}
	return clean(name)
}

func absolute(a money.Amount) money.Amount {
	if a.Sign() < 0 {
		return a.Neg()
	}
	return a
}

// signed writes a change: "-" for none.
func signed(a money.Amount, c money.Currency) string {
	switch a.Sign() {
	case 0:
		return "-"
	case 1:
		return "+" + sum(a, c)
	}
	return sum(a, c)
}

// shareOf is the change as a share of what it was, where there was something.
func shareOf(before, change money.Amount) string {
	if before.Sign() <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%+.0f %%)", 100*change.Float()/before.Float())
}

const (
	fallWidth = 30
	fallName  = 12
)

// waterfall draws how the cost goes from one period to the other, a line for each cause. It is 80 columns wide at most.
func waterfall(causes []string, t api.WhyLine, before, after string) string {
	lowest, highest := 0.0, 0.0
	level := t.Before.Float()
	for _, v := range append([]string{""}, causes...) {
		level += t.Parts[v].Float()
		lowest, highest = min(lowest, level), max(highest, level)
	}
	place := func(v float64) int {
		if highest == lowest {
			return 0
		}
		return int((v-lowest)/(highest-lowest)*fallWidth + 0.5)
	}
	var s strings.Builder
	line := func(name, amount string, from, to float64, mark, text string) {
		a, b := place(min(from, to)), place(max(from, to))
		if from != to && a == b {
			b = min(a+1, fallWidth)
			a = b - 1
		}
		bar := strings.Repeat(" ", a) + strings.Repeat(mark, b-a)
		text = fmt.Sprintf("  %-*s %13s  %-*s  %s", fallName, cut(name), amount, fallWidth, bar, text)
		fmt.Fprintln(&s, strings.TrimRight(text, " "))
	}
	line(before, sum(t.Before, t.Currency), 0, t.Before.Float(), "#", "")
	level = t.Before.Float()
	for _, c := range causes {
		next := level + t.Parts[c].Float()
		mark := "+"
		if next < level {
			mark = "-"
		}
		line(c, signed(t.Parts[c], t.Currency), level, next, mark, causeText[c])
		level = next
	}
	line(after, sum(t.After, t.Currency), 0, t.After.Float(), "#", "")
	return s.String()
}

// cut shortens the name of a period to its column.
func cut(name string) string {
	if len(name) > fallName {
		return name[:fallName-1] + "~"
	}
	return name
}
