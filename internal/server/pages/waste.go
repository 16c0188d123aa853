package pages

import (
	"net/url"

	"scrimp/client"
)

// wastePage shows spending that buys nothing.
type wastePage struct {
	client.Waste
	Sinces []option
	Team   string
	Survey *surveyed // nil: the reader has not asked the engines
	asked  string
	flags  url.Values
}

func (p *wastePage) twin() string { return p.asked }

// command returns the scrimp waste command with the page's options.
func (p *wastePage) command() string {
	command := "scrimp waste"
	if p.Survey != nil {
		command += " --engines"
	}
	return commandOf(command, p.flags, "team", "since")
}

// Days returns whether the span is long enough for figures of a month.
func (p *wastePage) Days() bool { return p.Until.Sub(p.Since).Hours() >= 24 }

func wasteOf(v *visit) (any, error) {
	q := v.r.URL.Query()
	p := &wastePage{flags: url.Values{}, Team: q.Get("team")}
	for _, o := range []option{{Value: "7d", Text: "7 days"}, {Value: "", Text: "30 days"},
		{Value: "90d", Text: "90 days"}} {
		o.Chosen = o.Value == q.Get("since")
		p.Sinces = append(p.Sinces, o)
	}
	for _, name := range []string{"team", "since"} {
		if value := q.Get(name); value != "" {
			p.flags.Set(name, value)
		}
	}
	p.asked = "/v1/waste?" + p.flags.Encode()
	err := v.get(p.asked, &p.Waste)
	if err == nil && q.Get("engines") != "" {
		p.Survey, err = surveyOf(v)
	}
	return p, err
}
