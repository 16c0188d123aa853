package spending

import (
	"fmt"
	"math"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// causeText explains each cause beside its bar.
var causeText = map[string]string{
	"volume": "work done", "price": "price of the same", "mix": "what was bought", "efficiency": "time for the work",
	"failures": "lost work", "waiting": "start-up, idle", "unmatched": "no machine time",
}

// Why formats a comparison; before and after are the periods as requested.
func Why(v api.Why, before, after string, p show.Place) string {
	var s strings.Builder
	before, after = show.Clean(before), show.Clean(after)
	for _, t := range v.Totals {
		way := "more"
		if t.Change.Sign() < 0 {
			way = "less"
		}
		sum := moneyOf(t)
		s.WriteString(head(s.Len() > 0) + draw.Wrap("", fmt.Sprintf("%s cost %s and %s %s: %s %s%s.", before,
			sum(t.Before), after, sum(t.After), sum(absolute(t.Change)), way, shareOf(t.Before, t.Change)), p.Columns()))
		s.WriteString("\n" + waterfall(v.Causes, t, before, after))
	}
	s.WriteString("\n" + whyLines(v, p))
	if v.By == "job" {
		return s.String() // the lines are the jobs
	}
	var rows [][]string
	for _, j := range v.Jobs {
		rows = append(rows, []string{show.Clean(j.Job), money.Short(j.Before, j.Currency), money.Short(j.After, j.Currency),
			signed(money.Short(j.Change, j.Currency))})
	}
	if len(rows) > 0 {
		s.WriteString("\n" + draw.Grid([]draw.Column{{Name: "JOB", Key: true}, {Name: "BEFORE", Right: true},
			{Name: "AFTER", Right: true}, {Name: "CHANGE", Right: true}}, rows, p.Columns()))
	}
	return s.String()
}

// whyLines formats the table of the lines, and the remainder between them.
func whyLines(v api.Why, p show.Place) string {
	columns := []draw.Column{{Name: strings.ToUpper(strings.ReplaceAll(v.By, ":", " ")), Key: true},
		{Name: "BEFORE", Right: true, Leaves: 8}, {Name: "AFTER", Right: true, Leaves: 9}, {Name: "CHANGE", Right: true}}
	for i, c := range v.Causes {
		columns = append(columns, draw.Column{Name: strings.ToUpper(c), Right: true, Leaves: len(v.Causes) - i})
	}
	var rows [][]string
	parts := func(row []string, l api.WhyLine, sum func(money.Amount) string) (list []string, some bool) {
		for _, c := range v.Causes {
			text := signed(sum(l.Parts[c]))
			row, some = append(row, text), some || text != "-"
		}
		return row, some
	}
	for _, l := range v.Lines {
		sum := moneyOf(l)
		row, _ := parts([]string{show.Named(l.Name), sum(l.Before), sum(l.After), signed(sum(l.Change))}, l, sum)
		rows = append(rows, row)
	}
	note := ""
	for _, l := range v.Between {
		for _, t := range v.Totals {
			if row, some := parts([]string{"(between)", "-", "-", "-"}, l, moneyOf(t)); t.Currency == l.Currency && some {
				rows = append(rows, row)
				note = draw.Wrap("", "Each line is split by itself. (between) is what the parts above are more than the lines' "+
					"together: work that moves from one line to another is volume in both, and not above.", p.Columns())
			}
		}
	}
	return draw.Grid(columns, rows, p.Columns()) + note
}

// moneyOf returns a formatter for the amounts of a line, with enough decimals for a hundredth of its cost, at least
// two.
func moneyOf(l api.WhyLine) func(money.Amount) string {
	places := 2
	if most := max(l.Before.Float(), l.After.Float(), absolute(l.Change).Float()); most > 0 {
		places = min(12, max(2, 2-int(math.Floor(math.Log10(most)))))
	}
	return func(a money.Amount) string { return money.Format(a, l.Currency, places) }
}

func head(more bool) string {
	if more {
		return "\n"
	}
	return ""
}

func absolute(a money.Amount) money.Amount {
	if a.Sign() < 0 {
		return a.Neg()
	}
	return a
}

// signed formats a change with its sign, and zero as "-".
func signed(amount string) string {
	switch {
	case !strings.ContainsAny(amount, "123456789"):
		return "-"
	case strings.HasPrefix(amount, "-"):
		return amount
	}
	return "+" + amount
}

// shareOf formats the change relative to the amount before, if that is positive.
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

// waterfall draws the way from one period's cost to the other's, with a line for each cause. It is at most 80 columns
// wide.
func waterfall(causes []string, t api.WhyLine, before, after string) string {
	if draw.Width(before) > fallName || draw.Width(after) > fallName {
		before, after = "before", "after" // cutting two similar names could make them equal
	}
	sum := moneyOf(t)
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
		switch {
		case amount == "-":
			b = a // too small to show
		case from != to && a == b:
			b = min(a+1, fallWidth)
			a = b - 1
		}
		bar := strings.Repeat(" ", a) + strings.Repeat(mark, b-a)
		text = fmt.Sprintf("  %-*s %13s  %-*s  %s", fallName, name, amount, fallWidth, bar, text)
		fmt.Fprintln(&s, strings.TrimRight(text, " "))
	}
	line(before, sum(t.Before), 0, t.Before.Float(), "#", "")
	level = t.Before.Float()
	for _, c := range causes {
		next := level + t.Parts[c].Float()
		mark := "+"
		if next < level {
			mark = "-"
		}
		line(c, signed(sum(t.Parts[c])), level, next, mark, causeText[c])
		level = next
	}
	line(after, sum(t.After), 0, t.After.Float(), "#", "")
	return s.String()
}
