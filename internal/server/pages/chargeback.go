package pages

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/chargeback"
)

// chargebackPage shows the costs of a month by team.
type chargebackPage struct {
	client.Chargeback
	Months []option
	Rules  []option
	CSV    string
	Empty  bool // the month has no costs
	asked  string
	flags  url.Values
}

func (p *chargebackPage) twin() string { return p.asked }

// command returns the scrimp chargeback command with the page's options.
func (p *chargebackPage) command() string {
	return commandOf("scrimp chargeback", p.flags, "month", "rule")
}

// Postings returns the address of a team's own charges in the month, as a file.
func (p *chargebackPage) Postings(team string) string {
	return also(monthPostings(p.Since), "team", team)
}

// OfTeams returns the address of the charges of all teams in the month.
func (p *chargebackPage) OfTeams() string {
	return without(monthPostings(p.Since), "team", []string{charge.None, charge.Unused})
}

// Pool returns the address of the charges of a pool; "": it is a fee, which is in no ledger.
func (p *chargebackPage) Pool(name string) string {
	ofNone := also(monthPostings(p.Since), "team", charge.None)
	switch name {
	case chargeback.IdlePool:
		return also(ofNone, "job", charge.Idle)
	case chargeback.ReservedPool:
		return also(monthPostings(p.Since), "team", charge.Unused)
	case chargeback.UnattributedPool:
		return without(ofNone, "job", []string{charge.Idle})
	}
	return ""
}

// monthPostings returns the address of the charges of a month, as a file.
func monthPostings(since time.Time) string {
	return postingsOf("since", since.UTC().Format("2006-01"), "until", since.UTC().AddDate(0, 1, 0).Format("2006-01"))
}

// months is the number of months that a page offers.
const months = 13

// monthOptions lists the newest months of the market's clock, which the ledger has, with the chosen one; the first is
// this month.
func (v *visit) monthOptions(chosen string) (list []option) {
	now := v.server.Market.Now.UTC()
	first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	for i := range months {
		text := first.AddDate(0, -i, 0).Format("2006-01")
		o := option{Value: text, Text: text, Chosen: text == chosen}
		if i == 0 {
			o.Value, o.Text, o.Chosen = "", text+", up to now", chosen == "" || text == chosen
		}
		list = append(list, o)
	}
	return list
}

func chargebackOf(v *visit) (any, error) {
	p := &chargebackPage{}
	err := p.read(v)
	return p, err
}

// read fetches the data for the page's address.
func (p *chargebackPage) read(v *visit) error {
	q, ask := v.r.URL.Query(), url.Values{}
	month, rule := q.Get("month"), q.Get("rule")
	p.Months = v.monthOptions(month)
	for _, o := range []option{{Value: "", Text: "proportional to GPU-hours"}, {Value: "even", Text: "even"}} {
		o.Chosen = o.Value == rule
		p.Rules = append(p.Rules, o)
	}
	for name, value := range map[string]string{"month": month, "rule": rule} {
		if value != "" {
			ask.Set(name, value)
		}
	}
	p.flags, p.asked, p.CSV = ask, "/v1/chargeback?"+ask.Encode(), "/chargeback.csv?"+ask.Encode()
	err := v.get(p.asked, &p.Chargeback)
	if problem, ok := errors.AsType[*client.Problem](err); ok && problem.Status == http.StatusNotFound {
		p.Empty = true
		return nil
	}
	return err
}

// chargebackCSV sends the statements with exact amounts.
func (s *Site) chargebackCSV(w http.ResponseWriter, r *http.Request) {
	p := &chargebackPage{}
	out := s.csv(w, r, "scrimp-chargeback.csv", p.read)
	if out == nil {
		return
	}
	for _, row := range p.Table() {
		for at := range row[:client.NameColumns] {
			row[at] = plainCell(row[at])
		}
		_ = out.Write(row)
	}
	out.Flush()
}
