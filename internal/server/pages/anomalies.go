package pages

import (
	"fmt"
	"net/url"
	"strings"

	"scrimp/client"
)

// anomaliesPage lists incidents in spending.
type anomaliesPage struct {
	client.Anomalies
	Rows    []anomalyRow
	Stake   sums // what the incidents cost beyond the usual
	Open    int  // incidents that go on
	Sinces  []option
	Planned []client.PlannedAnomalies
	Alerts  []client.AnomalyAlert // where anomalies are reported
	Team    string
	All     bool // also those that the list leaves out otherwise
	asked   string
	flags   url.Values
	back    string // the address of the page
}

// anomalyRow is an incident with what the reader may do about it.
type anomalyRow struct {
	client.Anomaly
	Actions []action
}

func (p *anomaliesPage) twin() string { return p.asked }

// Back returns the address to which a form of the page returns.
func (p *anomaliesPage) Back() string { return p.back }

// LeftOut says how many incidents the list leaves out, and why.
func (p *anomaliesPage) LeftOut() string {
	var parts []string
	for _, state := range []string{client.AnomalyPlanned, client.AnomalyDismissed, client.AnomalySnoozed} {
		if n := p.Hidden[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(parts, ", ")
}

// command returns the scrimp anomalies command with the page's options.
func (p *anomaliesPage) command() string {
	text := commandOf("scrimp anomalies", p.flags, "team", "since")
	if p.All {
		text += " --all"
	}
	return text
}

func anomaliesOf(v *visit) (any, error) {
	q := v.r.URL.Query()
	p := &anomaliesPage{flags: url.Values{}, Team: q.Get("team"), All: q.Get("all") != "", Stake: sums{}}
	for _, o := range []option{{Value: "24h", Text: "24 hours"}, {Value: "", Text: "7 days"},
		{Value: "30d", Text: "30 days"}, {Value: "90d", Text: "90 days"}} {
		o.Chosen = o.Value == q.Get("since")
		p.Sinces = append(p.Sinces, o)
	}
	for _, name := range []string{"team", "since"} {
		if value := q.Get(name); value != "" {
			p.flags.Set(name, value)
		}
	}
	if p.All {
		p.flags.Set("all", "1")
	}
	p.asked, p.back = "/v1/anomalies?"+p.flags.Encode(), "/anomalies?"+p.flags.Encode()
	if err := v.get(p.asked, &p.Anomalies); err != nil {
		return nil, err
	}
	if err := v.get("/v1/anomalies/planned", &p.Planned); err != nil {
		return nil, err
	}
	if err := v.get("/v1/anomalies/alerts", &p.Alerts); err != nil {
		return nil, err
	}
	for _, a := range p.Anomalies.Anomalies {
		p.Stake.add(a.Currency, a.AtStake)
		if a.Until == nil {
			p.Open++
		}
		p.Rows = append(p.Rows, anomalyRow{a, v.aboutAnomaly(a.Team)})
	}
	return p, nil
}

// aboutAnomaly returns what the reader may do about an incident of a team.
func (v *visit) aboutAnomaly(team string) (list []action) {
	for _, name := range []string{"snooze-anomaly", "dismiss-anomaly", "confirm-anomaly"} {
		a, _ := actionOf(name)
		if team == "" {
			a.least = client.Admin
		}
		if atLeast(v.role(team), a.least) {
			list = append(list, a)
		}
	}
	return list
}
