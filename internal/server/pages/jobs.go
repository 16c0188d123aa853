package pages

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"scrimp/client"
)

// jobsPage shows a list of jobs.
type jobsPage struct {
	Jobs    []client.Job
	Total   int    // jobs that the reader may see
	Next    string // address of the page of older jobs; "": none
	First   string // address of the first page; "": this one
	Query   jobsQuery
	States  []option
	Sorts   []option
	Teams   []string
	Several bool // the jobs belong to more than one user or team
	Beyond  bool // there are more jobs than were sorted
	Actions []action
	asked   string
}

func (p *jobsPage) twin() string { return p.asked }

// jobsQuery holds the filters and the order of a page of jobs.
type jobsQuery struct {
	Name, State, Team, User, Tag, Group, Sort string
	Live                                      bool
}

const (
	jobsAPage  = 50
	mostSorted = 1000
)

// orders lists the ways to sort jobs. The API returns them in the order of submission; the other orders cover the
// newest mostSorted jobs.
var orders = []struct {
	name, text string
	less       func(a, b client.Job) int
}{
	{"", "newest first", nil},
	{"spent", "dearest first", func(a, b client.Job) int { return b.Spent.Cmp(a.Spent) }},
	{"rate", "highest price an hour first", func(a, b client.Job) int { return cmp.Compare(rateNow(b), rateNow(a)) }},
	{"deadline", "earliest deadline first", func(a, b client.Job) int {
		return cmp.Compare(orLast(a.TimeLeft), orLast(b.TimeLeft))
	}},
	{"name", "by name", func(a, b client.Job) int { return strings.Compare(a.ID, b.ID) }},
	{"state", "by state", func(a, b client.Job) int { return strings.Compare(a.State, b.State) }},
}

func rateNow(j client.Job) float64 {
	if j.Rate == nil || j.Finished != nil {
		return 0
	}
	return j.Rate.Float()
}

// orLast sorts unknown values last.
func orLast(v *float64) float64 {
	if v == nil {
		return 1e300
	}
	return *v
}

// states lists the states in the filter.
var states = []string{"", "held", "queued", "running", "paused", "succeeded", "failed", "stopped", "cancelled"}

func jobs(v *visit) (any, error) {
	q := v.r.URL.Query()
	p := &jobsPage{Total: v.server.Jobs, Query: jobsQuery{Name: strings.TrimSpace(q.Get("name")), State: q.Get("state"),
		Team: q.Get("team"), User: q.Get("user"), Tag: strings.TrimSpace(q.Get("tag")), Group: q.Get("group"),
		Sort: q.Get("sort"), Live: q.Get("live") != ""}}
	for _, s := range states {
		p.States = append(p.States, option{s, cmp.Or(s, "any state"), s == p.Query.State})
	}
	order := orders[0]
	for _, o := range orders {
		p.Sorts = append(p.Sorts, option{o.name, o.text, o.name == p.Query.Sort})
		if o.name == p.Query.Sort {
			order = o
		}
	}
	ask := p.Query.api()
	ask.Set("before", q.Get("before"))
	ask.Set("limit", "50")
	if order.less != nil {
		ask.Set("limit", "1000")
	}
	p.asked = "/v1/jobs?" + ask.Encode()
	header, err := v.ask("GET", p.asked, nil, &p.Jobs)
	if err != nil {
		return nil, err
	}
	slices.Reverse(p.Jobs)
	more := header.Get("Scrimp-Next") != ""
	if order.less != nil {
		slices.SortStableFunc(p.Jobs, order.less)
		p.Beyond = more
		p.Jobs = p.Jobs[:min(len(p.Jobs), 4*jobsAPage)]
	} else if more {
		q.Set("before", header.Get("Scrimp-Next"))
		p.Next = "/jobs?" + q.Encode()
	}
	if q.Get("before") != "" {
		q.Del("before")
		p.First = "/jobs?" + q.Encode()
	}
	p.Several = slices.ContainsFunc(p.Jobs, func(j client.Job) bool {
		return j.User != p.Jobs[0].User || j.Team != p.Jobs[0].Team
	})
	for _, a := range actions {
		if a.bulk && slices.ContainsFunc(p.Jobs, func(j client.Job) bool { return v.may(a.Name, j) }) {
			p.Actions = append(p.Actions, a)
		}
	}
	var teams []client.Team
	if err := v.get("/v1/teams", &teams); err != nil {
		return nil, err
	}
	for _, t := range teams {
		p.Teams = append(p.Teams, t.Name)
	}
	return p, nil
}

// api converts the query for the API. A name without a pattern matches anywhere in a job's name.
func (q jobsQuery) api() url.Values {
	of := url.Values{}
	if q.Name != "" {
		name := q.Name
		if !strings.ContainsAny(name, `*?[\`) {
			name = "*" + name + "*"
		}
		of.Set("name", name)
	}
	for key, value := range map[string]string{"state": q.State, "team": q.Team, "user": q.User, "tag": q.Tag,
		"group": q.Group} {
		if value != "" {
			of.Set(key, value)
		}
	}
	if q.Live {
		of.Set("live", "1")
	}
	return of
}

// Filtered reports whether the query leaves jobs out.
func (q jobsQuery) Filtered() bool { q.Sort = ""; return q != jobsQuery{} }
