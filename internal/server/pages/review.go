package pages

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"scrimp/client"
	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// reviewPage shows a month for a monthly meeting.
type reviewPage struct {
	client.MonthReview
	Months []option
	Empty  bool // the month has no costs
	asked  string
	flags  url.Values
}

func (p *reviewPage) twin() string { return p.asked }

// command returns the scrimp review command with the page's options.
func (p *reviewPage) command() string { return commandOf("scrimp review", p.flags, "month") }

// Uses lists the uses of spending in the order of the page.
func (p *reviewPage) Uses() []string {
	return []string{"useful", "start-up", "lost", "idle", "open"}
}

// Label returns a use or a part of a bill as a heading.
func (p *reviewPage) Label(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// Total lists the summary of all kinds of runs.
func (p *reviewPage) Total() (list []client.EstimateError) {
	for _, x := range p.Accuracy {
		if x.Kind == "all" {
			list = append(list, x)
		}
	}
	return list
}

// Of returns the share of a part of the spending; null if nothing was spent.
func (p *reviewPage) Of(part, whole money.Amount) *float64 {
	if whole.Sign() <= 0 {
		return nil
	}
	return new(part.Float() / whole.Float())
}

// Postings returns the address of the charges of the month, as a file.
func (p *reviewPage) Postings() string { return monthPostings(p.Since) }

// Tagged returns the address of the charges of the month with any value of a tag; "": it is a property of all
// charges.
func (p *reviewPage) Tagged(tag string) string {
	if slices.Contains(charge.OnlyBy, tag) {
		return ""
	}
	return also(p.Postings(), "tag", tag)
}

// Others returns the address of the charges of the month without those of the listed jobs.
func (p *reviewPage) Others(top []client.ReviewJob) string {
	var names []string
	for _, j := range top {
		names = append(names, j.Job)
	}
	return without(p.Postings(), "job", names)
}

// Extra returns the address of the charges of the month that are a part of a bill beside usage.
func (p *reviewPage) Extra(name string) string {
	if name == "adjustment" {
		name = "commitment" // as the ledger calls it
	}
	return also(p.Postings(), "rule", ledger.ReconciledRule(name))
}

// Median returns the median of a proposal's estimate; null: unknown.
func (p *reviewPage) Median(x client.Proposal) *money.Amount {
	if x.Cost == nil {
		return nil
	}
	return &x.Cost[1]
}

func reviewOf(v *visit) (any, error) {
	p := &reviewPage{flags: url.Values{}}
	month := v.r.URL.Query().Get("month")
	p.Months = v.monthOptions(month)
	if month != "" {
		p.flags.Set("month", month)
	}
	p.asked = "/v1/review?" + p.flags.Encode()
	err := v.get(p.asked, &p.MonthReview)
	if problem, ok := errors.AsType[*client.Problem](err); ok && problem.Status == http.StatusNotFound {
		p.Empty = true
		return p, nil
	}
	return p, err
}

// Incidents reports whether the incidents of the month are known.
func (p *reviewPage) Incidents() bool { return p.Anomalies != nil }
