package spending

import (
	"fmt"
	"strconv"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/waste"
)

// amountOr returns the amount as text, and a dash where it is unknown.
func amountOr(a *money.Amount, c money.Currency) string {
	if a == nil {
		return "-"
	}
	return money.Short(*a, c)
}

// Waste is the text of the findings: a table with its totals, and below it the evidence and the command of each.
func Waste(v api.Waste, p show.Place) string {
	var s strings.Builder
	s.WriteString(draw.Wrap("", spanOfWaste(v), p.Columns()))
	if len(v.Findings) == 0 {
		if !v.Empty {
			s.WriteString(draw.Wrap("", "No waste found.", p.Columns()))
		}
		return s.String()
	}
	var rows [][]string
	var why strings.Builder
	for i, f := range v.Findings {
		rows = append(rows, []string{strconv.Itoa(i + 1), show.Clean(f.ID), show.Named(f.Team), show.Clean(f.Kind),
			show.Clean(f.About), money.Short(f.Cost, f.Currency), amountOr(f.Waste, f.Currency),
			amountOr(f.Monthly, f.Currency), amountOr(f.Saving, f.Currency), show.Clean(f.Action)})
		why.WriteString(draw.Wrap(fmt.Sprintf("%d  ", i+1), show.Clean(f.Evidence)+". "+sentence(f)+": "+
			show.Clean(f.Command), p.Columns()))
	}
	for _, t := range v.Totals {
		rows = append(rows, []string{"", "total", "-", "-", "-", money.Short(t.Cost, t.Currency),
			amountOr(t.Waste, t.Currency), amountOr(t.Monthly, t.Currency), amountOr(t.Saving, t.Currency), "-"})
	}
	s.WriteString("\n" + draw.Grid([]draw.Column{{Name: "#", Right: true}, {Name: "ID", Key: true},
		{Name: "TEAM", Leaves: 2}, {Name: "KIND", Least: 8}, {Name: "ABOUT", Least: 8}, {Name: "COST", Right: true},
		{Name: "WASTED", Right: true}, {Name: "A MONTH", Right: true, Leaves: 3},
		{Name: "SAVES A MONTH", Right: true}, {Name: "ACTION"}}, rows,
		p.Columns()) + "\n" + why.String())
	for _, t := range v.Totals {
		if t.Unknown > 0 {
			s.WriteString(draw.Wrap("", unknown(t), p.Columns()))
		}
	}
	return s.String()
}

// unknown says that the total of savings leaves some findings out.
func unknown(t api.WasteTotal) string {
	if t.Unknown == 1 {
		return fmt.Sprintf("1 finding in %s has no known saving; the total leaves it out.", t.Currency)
	}
	return fmt.Sprintf("%d findings in %s have no known saving; the total leaves them out.", t.Unknown, t.Currency)
}

// sentence returns what to do as the beginning of a sentence.
func sentence(f api.WasteFinding) string {
	switch {
	case f.Kind == string(waste.Untagged):
		return "Tag it"
	case f.Kind == string(waste.UnknownMachine) && f.Action == string(waste.Keep):
		return "Decide"
	case f.Action == "":
		return "Do"
	}
	return show.Clean(strings.ToUpper(f.Action[:1]) + f.Action[1:])
}

// spanOfWaste says what the list covers, and what it cannot know.
func spanOfWaste(v api.Waste) string {
	const form = "2006-01-02 15:04"
	if v.Empty {
		return "The ledger has no costs that you may see: run a job first."
	}
	text := "Costs from " + v.Since.UTC().Format(form) + " to " + v.Until.UTC().Format(form) + " UTC."
	if v.Short {
		text += " The ledger begins there."
	}
	if v.Until.Sub(v.Since) < waste.LeastSpan {
		text += " That is less than a day, so most figures of a month are unknown."
	}
	switch {
	case v.Recurring == 0:
		text += " No job recurs, so scrimp cannot judge the size of machines."
	case v.Measured == 0:
		text += " No recurring job has telemetry, so scrimp cannot judge the size of machines."
	}
	return text
}

// WasteHistory is the table of applied findings.
func WasteHistory(list []api.WasteDecision, p show.Place) string {
	if len(list) == 0 {
		return draw.Wrap("", "No finding was applied: scrimp waste lists them.", p.Columns())
	}
	var rows [][]string
	for _, d := range list {
		state := "so far"
		if d.Over {
			state = "month over"
		}
		rows = append(rows, []string{show.Clean(d.ID), d.At.UTC().Format("2006-01-02 15:04"), show.Named(d.Team),
			show.Clean(d.Kind), show.Clean(d.About), amountOr(d.Promised, d.Currency), fmt.Sprintf("%.1f", d.Days),
			amountOr(d.Due, d.Currency), amountOr(d.Saved, d.Currency), state})
	}
	return draw.Grid([]draw.Column{{Name: "ID", Key: true}, {Name: "APPLIED", Leaves: 4}, {Name: "TEAM", Leaves: 2},
		{Name: "KIND", Least: 8}, {Name: "ABOUT", Least: 8}, {Name: "A MONTH", Right: true, Leaves: 5},
		{Name: "DAYS", Right: true}, {Name: "PROMISED", Right: true}, {Name: "SAVED", Right: true},
		{Name: "STATE", Leaves: 1}}, rows, p.Columns())
}
