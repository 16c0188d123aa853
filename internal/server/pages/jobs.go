package pages

import (
	"cmp"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/draw"
)

// jobsPage shows a list of jobs.
type jobsPage struct {
	Jobs    []client.Job
	Total   int    // jobs that the reader may see
	Next    string // address of the next page; "": none
	First   string // address of the first page; "": this one
	Query   jobsQuery
	States  []option
	Sorts   []option
	Teams   []string
	Several bool // the jobs belong to more than one user or team
	Actions []action
	Match   string // the filter as a query of the API, behind a question mark
	Totals  *jobTotals
	Bys     []option
	Hidden  []option // filters without a field: name and value
	asked   string
}

func (p *jobsPage) twin() string { return p.asked }

// jobsQuery holds the filters and the order of a page of jobs.
type jobsQuery struct {
	Name, State, Team, User, Tag, Group, Project, Engine, Sort, By string
	Live, Attention                                                bool
	Tags                                                           []string // besides Tag
}

// orders lists the ways to sort jobs, as the API names them.
var orders = []struct{ name, text string }{
	{"", "newest first"},
	{"spent", "dearest first"},
	{"rate", "highest price an hour first"},
	{"deadline", "nearest deadline first"},
	{"name", "by name"},
	{"state", "by state"},
}

// states lists the states in the filter.
var states = []string{"", "held", "queued", "running", "paused", "succeeded", "failed", "stopped", "cancelled"}

// bulk returns the actions that the user may do to several jobs at once, and to one of these at least.
func (v *visit) bulk(list []client.Job) (may []action) {
	for _, a := range actions {
		if a.bulk && slices.ContainsFunc(list, func(j client.Job) bool { return v.may(a.Name, j) }) {
			may = append(may, a)
		}
	}
	return may
}

func jobs(v *visit) (any, error) {
	q := v.r.URL.Query()
	p := &jobsPage{Total: v.server.Jobs, Query: jobsQuery{Name: strings.TrimSpace(q.Get("name")), State: q.Get("state"),
		Team: q.Get("team"), User: q.Get("user"), Tag: strings.TrimSpace(q.Get("tag")), Group: q.Get("group"),
		Project: q.Get("project"), Engine: q.Get("engine"), Sort: q.Get("sort"), By: q.Get("by"), Live: q.Get("live") != "",
		Attention: q.Get("attention") != ""}}
	for _, s := range states {
		p.States = append(p.States, option{s, cmp.Or(s, "any state"), s == p.Query.State})
	}
	for _, o := range orders {
		p.Sorts = append(p.Sorts, option{o.name, o.text, o.name == p.Query.Sort})
	}
	if tags := q["tag"]; len(tags) > 1 {
		p.Query.Tags = slices.DeleteFunc(slices.Clone(tags[1:]), func(t string) bool { return strings.TrimSpace(t) == "" })
	}
	p.Bys = p.Query.bys()
	for _, o := range []option{{Value: p.Query.Group, Text: "group"}, {Value: p.Query.Project, Text: "project"},
		{Value: p.Query.Engine, Text: "engine"}} {
		if o.Value != "" {
			p.Hidden = append(p.Hidden, o)
		}
	}
	for _, tag := range p.Query.Tags {
		p.Hidden = append(p.Hidden, option{Value: tag, Text: "tag"})
	}
	var teams []client.Team
	if err := v.get("/v1/teams", &teams); err != nil {
		return nil, err
	}
	for _, t := range teams {
		p.Teams = append(p.Teams, t.Name)
	}
	if at := p.Query.Team; at != "" && len(teams) > 0 && !slices.Contains(p.Teams, at) {
		p.Teams = append(p.Teams, at) // such as (none)
	}
	fill := p.list
	if p.Query.By != "" {
		fill = p.sum
	}
	if err := fill(v); err != nil {
		return nil, err
	}
	return p, nil
}

// list fills in a page of the jobs.
func (p *jobsPage) list(v *visit) error {
	q := v.r.URL.Query()
	ask, border := p.Query.api(), "before"
	p.Match = "?" + ask.Encode()
	if p.Query.Sort != "" {
		border = "after"
		ask.Set("sort", p.Query.Sort)
	}
	if at := q.Get(border); at != "" || border == "before" {
		ask.Set(border, at)
	}
	ask.Set("limit", "50")
	p.asked = "/v1/jobs?" + ask.Encode()
	header, err := v.ask("GET", p.asked, nil, &p.Jobs)
	if err != nil {
		return err
	}
	if border == "before" {
		slices.Reverse(p.Jobs)
	}
	at := q.Get(border)
	q.Del("before")
	q.Del("after")
	if at != "" {
		p.First = "/jobs?" + q.Encode()
	}
	if next := header.Get("Scrimp-Next"); next != "" {
		q.Set(border, next)
		p.Next = "/jobs?" + q.Encode()
	}
	p.Several = slices.ContainsFunc(p.Jobs, func(j client.Job) bool {
		return j.User != p.Jobs[0].User || j.Team != p.Jobs[0].Team
	})
	p.Actions = v.bulk(p.Jobs)
	return nil
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
		"group": q.Group, "project": q.Project, "engine": q.Engine} {
		if value != "" {
			of.Set(key, value)
		}
	}
	for _, tag := range q.Tags {
		of.Add("tag", tag)
	}
	if q.Live {
		of.Set("live", "1")
	}
	if q.Attention {
		of.Set("attention", "1")
	}
	return of
}

// Filtered reports whether the query leaves jobs out.
func (q jobsQuery) Filtered() bool { return len(q.api()) > 0 }

// due formats the time until a job's deadline, or whether a job that is over met it, and by how much.
func due(now time.Time, j client.Job) template.HTML {
	if j.Deadline == nil || j.Finished == nil {
		return until(now, j.Deadline)
	}
	left := j.Deadline.Sub(*j.Finished)
	switch {
	case left < 0:
		return stamp(*j.Deadline, "missed by "+draw.Span(-left))
	case j.State != "succeeded":
		return stamp(*j.Deadline, j.State+" "+draw.Span(left)+" before it")
	}
	if left == 0 {
		return stamp(*j.Deadline, "met")
	}
	return stamp(*j.Deadline, "met "+draw.Span(left)+" early")
}
