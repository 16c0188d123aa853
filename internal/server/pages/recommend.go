package pages

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"scrimp/client"
)

// recommendPage ranks what would lower spending, and compares what was taken with what it has saved.
type recommendPage struct {
	Plans  []recommendPlan
	Taken  []client.TakenRecommendation
	Units  []string // what the costs of those that were taken are compared by
	Teams  []option
	Team   string
	Target string
	asked  string
	flags  url.Values
	back   string // the address of the page
}

// recommendPlan is the plan of one currency.
type recommendPlan struct {
	client.SavingsPlan
	Rows []recommendRow
}

// recommendRow is a recommendation with what the reader may do about it.
type recommendRow struct {
	client.Recommendation
	Take  *action                     // nil: the reader may not take it, or it is taken
	Since *client.TakenRecommendation // it was taken less than 30 days ago; nil: it was not
	// Terminal is the command that takes it.
	Terminal string
}

// standardTarget is the share of the spending to save that the page asks for.
const standardTarget = "25%"

func (p *recommendPage) twin() string { return p.asked }

// Back returns the address to which a form of the page returns.
func (p *recommendPage) Back() string { return p.back }

// command returns the scrimp recommend command with the page's options.
func (p *recommendPage) command() string {
	return commandOf("scrimp recommend --target "+p.Target, p.flags, "team")
}

func recommendOf(v *visit) (any, error) {
	q := v.r.URL.Query()
	p := &recommendPage{flags: url.Values{}, Team: q.Get("team"), Target: strings.TrimSpace(q.Get("target"))}
	if p.Target == "" {
		p.Target = standardTarget
	}
	p.flags.Set("target", p.Target)
	if p.Team != "" {
		p.flags.Set("team", p.Team)
	}
	p.asked, p.back = "/v1/recommend?"+p.flags.Encode(), "/recommend?"+p.flags.Encode()
	var plans []client.SavingsPlan
	err := v.get(p.asked, &plans)
	if none, ok := errors.AsType[*client.Problem](err); ok && none.Status == http.StatusNotFound && none.Field == "" {
		err = nil // nothing was spent
	}
	if err != nil {
		return nil, err
	}
	team := url.Values{"team": {p.Team}}
	if err := v.get(client.Path("/v1/recommend/taken", team), &p.Taken); err != nil {
		return nil, err
	}
	for _, x := range p.Taken {
		if text := x.Name + " by " + x.Unit; x.Unit != "" && !slices.Contains(p.Units, text) {
			p.Units = append(p.Units, text)
		}
	}
	for _, plan := range plans {
		rows := recommendPlan{SavingsPlan: plan}
		for _, r := range plan.Recommendations {
			rows.Rows = append(rows.Rows, v.recommendRow(p, plan, r))
		}
		p.Plans = append(p.Plans, rows)
	}
	var teams []client.Team
	err = v.get("/v1/teams", &teams)
	p.Teams = []option{{"", "all that you may see", p.Team == ""}}
	for _, t := range teams {
		p.Teams = append(p.Teams, option{t.Name, t.Name, t.Name == p.Team})
	}
	return p, err
}

// recommendRow returns a row of the page.
func (v *visit) recommendRow(p *recommendPage, plan client.SavingsPlan, r client.Recommendation) recommendRow {
	row := recommendRow{Recommendation: r}
	for _, t := range p.Taken {
		if t.Name == r.Name && t.Team == p.Team && t.Currency == plan.Currency && !t.Over && row.Since == nil {
			row.Since = &t
		}
	}
	a, _ := actionOf("take")
	team := p.Team
	if team == "" {
		team, a.least = client.Everywhere, client.Admin
	}
	if row.Since == nil && atLeast(v.role(team), a.least) {
		row.Take = &a
		row.Terminal = commandOf("scrimp recommend", url.Values{"take": {r.Name}, "team": {p.Team}}, "take", "team")
	}
	return row
}

// MeasuredDays rounds the days that a comparison covers.
func (recommendPage) MeasuredDays(days float64) time.Duration {
	return (time.Duration(days * float64(24*time.Hour))).Round(time.Hour)
}
