package spending

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// Alert is an unusual row of a series.
type Alert struct {
	At           string
	Value, Score float64
}

// Alerts formats the alerts of a series with the given number of rows.
func Alerts(name string, rows int, alerts []Alert, p show.Place) string {
	if len(alerts) == 0 {
		return fmt.Sprintf("%s: %d rows, none of them unusual.\n", show.Clean(name), rows)
	}
	var table [][]string
	for _, a := range alerts {
		table = append(table, []string{show.Clean(a.At), strconv.FormatFloat(a.Value, 'g', 8, 64),
			strconv.FormatFloat(a.Score, 'f', 3, 64)})
	}
	return draw.Grid([]draw.Column{{Name: "TIMESTAMP", Key: true}, {Name: "VALUE", Right: true},
		{Name: "SCORE", Right: true}}, table, p.Columns())
}

// Anomalies formats the incidents: a table, followed by the details of each.
func Anomalies(v api.Anomalies, p show.Place) string {
	if len(v.Anomalies) == 0 {
		return draw.Wrap("", "No incidents since "+v.Since.UTC().Format("2006-01-02 15:04")+" UTC.", p.Columns()) +
			about(v, p)
	}
	var rows [][]string
	var why strings.Builder
	for i, a := range v.Anomalies {
		state := "goes on"
		if a.Until != nil {
			state = a.Until.UTC().Format("01-02 15:04")
		}
		rows = append(rows, []string{strconv.Itoa(i + 1), show.Named(a.Team), show.Clean(a.Kind), show.Clean(a.About),
			a.Since.UTC().Format("01-02 15:04"), state, money.Short(a.AtStake, a.Currency)})
		why.WriteString(draw.Wrap(fmt.Sprintf("%d  ", i+1), show.Clean(a.Why)+".", p.Columns()))
		why.WriteString(draw.Wrap("   ", show.Clean(said(a)), p.Columns()))
	}
	return draw.Grid([]draw.Column{{Name: "#", Right: true}, {Name: "TEAM", Leaves: 2}, {Name: "KIND", Key: true},
		{Name: "ABOUT"}, {Name: "SINCE", Leaves: 3}, {Name: "UNTIL", Leaves: 1}, {Name: "AT STAKE", Right: true}}, rows,
		p.Columns()) + "\n" + why.String() + about(v, p)
}

const minute = "2006-01-02 15:04"

// said returns the name of an incident, its threshold, and what people have said about it.
func said(a api.Anomaly) string {
	text := a.Name + ", threshold: " + a.Threshold
	if a.Factor != 1 {
		text += fmt.Sprintf(" (%.3g times the standard)", a.Factor)
	}
	switch a.State {
	case api.AnomalyPlanned:
		text += "; planned"
	case api.AnomalySnoozed:
		text += "; snoozed until " + a.SnoozedUntil.UTC().Format(minute) + " UTC"
	}
	if a.Answer != nil {
		text += "; " + answered(*a.Answer)
	}
	return text + "."
}

// answered returns an answer, who gave it and why.
func answered(a api.AnomalyAnswer) string {
	text := api.AnomalyDismissed
	if a.Confirmed {
		text = api.AnomalyConfirmed
	}
	text += " by " + a.By + ", " + a.At.UTC().Format(time.DateOnly)
	if a.Why != "" {
		text += ": " + a.Why
	}
	return text
}

// about says what a list of incidents leaves out, and which thresholds answers have changed.
func about(v api.Anomalies, p show.Place) string {
	var b strings.Builder
	var hidden []string
	for _, state := range []string{api.AnomalyPlanned, api.AnomalyDismissed, api.AnomalySnoozed} {
		if n := v.Hidden[state]; n > 0 {
			hidden = append(hidden, fmt.Sprintf("%d %s", n, state))
		}
	}
	if len(hidden) > 0 {
		b.WriteString("\n" + draw.Wrap("", "Left out: "+strings.Join(hidden, ", ")+". See --all.", p.Columns()))
	}
	for i, t := range v.Thresholds {
		if i == 0 {
			b.WriteString("\n")
		}
		text := fmt.Sprintf("Threshold of %s in %s: %s. It is %.3g times the standard (%s), after %d dismissed and %d "+
			"confirmed. The last was %s.", t.Kind, show.Named(t.Team), t.Threshold, t.Factor, t.Standard, t.Dismissed,
			t.Confirmed, answered(t.Last))
		b.WriteString(draw.Wrap("", show.Clean(text), p.Columns()))
	}
	return b.String()
}

// Decided says what has become of an incident that somebody decided about.
func Decided(a api.Anomaly, p show.Place) string {
	state := a.State
	if state == "" {
		state = "no longer snoozed"
	}
	text := a.Name + " is " + state
	switch {
	case a.State == api.AnomalySnoozed:
		text += " until " + a.SnoozedUntil.UTC().Format(minute) + " UTC"
	case a.Answer != nil && a.State != api.AnomalyPlanned:
		text += fmt.Sprintf(". The answer counts in the threshold of %s in %s, which scrimp anomalies shows", a.Kind,
			show.Named(a.Team))
	}
	return draw.Wrap("", show.Clean(text)+".", p.Columns())
}

// Planned formats the planned spans.
func Planned(list []api.PlannedAnomalies, p show.Place) string {
	if len(list) == 0 {
		return "Nothing is planned. scrimp anomalies planned --until WHEN --why TEXT plans something.\n"
	}
	var rows [][]string
	for _, x := range list {
		of := []string{}
		for _, scope := range [][2]string{{"team ", x.Team}, {"project ", x.Project}, {"job ", x.Job}} {
			if scope[1] != "" {
				of = append(of, scope[0]+scope[1])
			}
		}
		if len(of) == 0 {
			of = append(of, "all teams")
		}
		rows = append(rows, []string{x.Name, x.Since.UTC().Format(minute), x.Until.UTC().Format(minute),
			show.Clean(strings.Join(of, ", ")), show.Clean(x.By), show.Clean(x.Why)})
	}
	return draw.Grid([]draw.Column{{Name: "NAME", Key: true}, {Name: "SINCE"}, {Name: "UNTIL"}, {Name: "OF"},
		{Name: "BY", Leaves: 1}, {Name: "WHY"}}, rows, p.Columns())
}
