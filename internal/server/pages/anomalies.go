package pages

import (
	"net/url"

	"scrimp/client"
)

// anomaliesPage lists incidents in spending.
type anomaliesPage struct {
	client.Anomalies
	Stake  sums // what the incidents cost beyond the usual
	Open   int  // incidents that go on
	Sinces []option
	Team   string
	asked  string
	flags  url.Values
}

func (p *anomaliesPage) twin() string { return p.asked }

// command returns the scrimp anomalies command with the page's options.
func (p *anomaliesPage) command() string {
	return commandOf("scrimp anomalies", p.flags, "team", "since")
}

func anomaliesOf(v *visit) (any, error) {
	q := v.r.URL.Query()
	p := &anomaliesPage{flags: url.Values{}, Team: q.Get("team"), Stake: sums{}}
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
	p.asked = "/v1/anomalies?" + p.flags.Encode()
	if err := v.get(p.asked, &p.Anomalies); err != nil {
		return nil, err
	}
	for _, a := range p.Anomalies.Anomalies {
		p.Stake.add(a.Currency, a.AtStake)
		if a.Until == nil {
			p.Open++
		}
	}
	return p, nil
}
