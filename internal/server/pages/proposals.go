package pages

import (
	"net/url"

	"scrimp/client"
)

// proposalsPage lists proposed jobs.
type proposalsPage struct {
	client.Proposals
	Team, Asked string // of the form
	asked       string
	flags       url.Values
}

func (p *proposalsPage) twin() string { return p.asked }

// command returns the scrimp proposals command with the page's options.
func (p *proposalsPage) command() string {
	return commandOf("scrimp proposals", p.flags, "team", "budget")
}

// Fit says whether a proposal fits into the budget.
func (p *proposalsPage) Fit(x client.Proposal) string {
	switch {
	case x.Fits == nil:
		return "–"
	case *x.Fits:
		return "yes"
	}
	return "no"
}

func proposalsOf(v *visit) (any, error) {
	q := v.r.URL.Query()
	p := &proposalsPage{flags: url.Values{}, Team: q.Get("team"), Asked: q.Get("budget")}
	for _, name := range []string{"team", "budget"} {
		if value := q.Get(name); value != "" {
			p.flags.Set(name, value)
		}
	}
	p.asked = "/v1/proposals?" + p.flags.Encode()
	return p, v.get(p.asked, &p.Proposals)
}
