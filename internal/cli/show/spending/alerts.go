package spending

import (
	"fmt"
	"strings"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/draw"
)

// AlertReceiver names the receiver of an alert.
func AlertReceiver(by, to string) string {
	switch by {
	case "email":
		return "e-mail to " + to
	case "slack":
		return "Slack at " + to
	case "pagerduty":
		return "PagerDuty at " + to
	}
	return "webhook at " + to
}

// AlertScope says which anomalies an alert reports.
func AlertScope(v api.AnomalyAlert) string {
	text := "all teams"
	if v.Team != "" {
		text = "team " + v.Team
	}
	if len(v.Kinds) > 0 {
		text += ", " + strings.Join(v.Kinds, ", ")
	}
	if v.Above != nil {
		text += ", above " + v.Above.String()
	}
	return text
}

// AlertList formats the alerts, each with its newest reports.
func AlertList(list []api.AnomalyAlert, p show.Place) string {
	if len(list) == 0 {
		return "No alerts. scrimp anomalies alert add --to RECEIVER adds one.\n"
	}
	var rows [][]string
	for _, v := range list {
		last := "nothing reported yet"
		if n := len(v.Notices); n > 0 {
			last = AlertOutcome(&v.Notices[n-1], p)
		}
		if v.Error != "" {
			last = "off: " + v.Error
		}
		rows = append(rows, []string{v.Name, show.Clean(AlertReceiver(v.By, v.To)), show.Clean(AlertScope(v)),
			show.Clean(v.User), show.Clean(last)})
	}
	var b strings.Builder
	b.WriteString(draw.Grid([]draw.Column{{Name: "NAME", Key: true}, {Name: "TO"}, {Name: "OF"}, {Name: "BY", Leaves: 1},
		{Name: "LAST REPORT"}}, rows, p.Columns()))
	for _, v := range list {
		if len(v.Notices) < 2 {
			continue
		}
		fmt.Fprintf(&b, "\n%s, newest reports last:\n", v.Name)
		for i := range v.Notices {
			fmt.Fprintf(&b, "  %s\n", show.Clean(AlertOutcome(&v.Notices[i], p)))
		}
	}
	return b.String()
}

// AlertOutcome says what became of a report of an alert.
func AlertOutcome(n *api.Notice, p show.Place) string {
	what := "test"
	switch n.Event {
	case "anomaly":
		what = n.Anomaly
	case "anomaly_end":
		what = "end of " + n.Anomaly
	}
	switch n.State {
	case api.Delivered:
		return what + ": delivered " + p.When(n.At)
	case api.Waiting:
		return what + ": not sent, because this server does not send e-mail (scrimp serve --smtp)"
	}
	text := fmt.Sprintf("%s: %s, tried %s", what, n.Error, draw.Count(n.Tries, "time"))
	if n.State == api.Retrying && n.Next != nil {
		text += ", next try at " + p.Moment(*n.Next)
	}
	return text
}
