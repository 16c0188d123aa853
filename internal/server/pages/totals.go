package pages

import (
	"cmp"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"scrimp/client"
	"scrimp/internal/decide/charge"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// jobTotals shows jobs by groups.
type jobTotals struct {
	client.JobTotals
	filter url.Values // of the page of jobs
}

// mostTotals bounds the groups on a page.
const mostTotals = 200

// bys lists the properties by which jobs are grouped.
func (q jobsQuery) bys() (list []option) {
	for _, o := range []option{{Value: "", Text: "no group"}, {Value: "team", Text: "team"},
		{Value: "project", Text: "project"}, {Value: "state", Text: "state"}, {Value: "engine", Text: "engine"},
		{Value: "user", Text: "user"}, {Value: "tag", Text: "tag"}} {
		o.Chosen = o.Value == q.By
		list = append(list, o)
	}
	if key, isTag := strings.CutPrefix(q.By, "tag:"); isTag {
		list = append(list, option{Value: q.By, Text: "tag " + key, Chosen: true})
	}
	return list
}

// sum fills in the sums of the jobs. "By tag" groups by the key under Tag.
func (p *jobsPage) sum(v *visit) error {
	if p.Query.By == "tag" {
		key, value, _ := strings.Cut(p.Query.Tag, "=")
		if key == "" {
			return &client.Problem{Status: 400, Title: "jobs cannot be grouped by a tag without a key", Field: "tag",
				Fix: "write its KEY under Tag"}
		}
		if p.Query.By = "tag:" + key; value == "" {
			p.Query.Tag = ""
		}
		p.Bys = p.Query.bys()
	}
	ask := p.Query.api()
	t := &jobTotals{filter: p.Query.page()}
	ask.Set("by", p.Query.By)
	p.asked = "/v1/totals?" + ask.Encode()
	err := v.get(p.asked, &t.JobTotals)
	t.More += max(0, len(t.Lines)-mostTotals)
	t.Lines = t.Lines[:min(len(t.Lines), mostTotals)]
	p.Totals = t
	return err
}

// page returns the filter as a query of the page of jobs.
func (q jobsQuery) page() url.Values {
	of := q.api()
	of.Del("name")
	if q.Name != "" {
		of.Set("name", q.Name)
	}
	return of
}

// sortKeys holds what scrimp jobs calls the orders of the page; it has none by price an hour.
var sortKeys = map[string]string{"spent": "cost", "deadline": "deadline", "name": "name", "state": "status"}

// command returns the command that lists or groups these jobs.
func (q jobsQuery) command() string {
	of, text := q.api(), "scrimp jobs"
	of.Set("status", of.Get("state"))
	of.Set("by", q.By)
	if q.By == "" {
		of.Set("sort", sortKeys[q.Sort])
		if q.Live {
			text = "scrimp queue"
		}
	}
	if q.Attention {
		text += " --attention"
	}
	return commandOf(text, of, "by", "status", "team", "project", "user", "engine", "tag", "name", "group", "sort")
}

// command returns the command that shows the same.
func (p *jobsPage) command() string { return p.Query.command() }

// List returns the address of the jobs of a line, or of those in one state.
func (t *jobTotals) List(line client.JobTotal, state string) string {
	of := url.Values{}
	for name, values := range t.filter {
		of[name] = slices.Clone(values)
	}
	if line.Name != "" { // not the total
		name, value := t.By, line.Name
		if key, isTag := strings.CutPrefix(t.By, "tag:"); isTag {
			if value = key + "=" + value; !slices.Contains(of["tag"], value) {
				of.Add("tag", value)
			}
		} else {
			of.Set(name, value)
		}
	}
	if state != "" {
		of.Set("state", state)
	}
	if len(of) == 0 {
		return "/jobs"
	}
	return "/jobs?" + of.Encode()
}

// Postings returns the address of what the jobs of a line have spent; "": the ledger does not know the property or the
// filter.
func (t *jobTotals) Postings(line client.JobTotal) string {
	of := url.Values{}
	add := func(name, value string) (known bool) {
		if name, value = paramOf(name, value); name != "" && !slices.Contains(of[name], value) {
			of.Add(name, value)
		}
		return name != ""
	}
	for name, values := range t.filter {
		for _, value := range values {
			if key, of, isTag := strings.Cut(value, "="); name == "tag" && isTag {
				name, value = "tag:"+key, of
			} else if name == "tag" {
				return ""
			}
			if !add(name, value) {
				return ""
			}
		}
	}
	if line.Name != "" && !add(t.By, line.Name) {
		return ""
	}
	return without(exported+"?"+of.Encode(), "job", []string{charge.Idle, charge.None, charge.Unused})
}

// States counts the jobs of a line by state, with the addresses of their lists.
func (t *jobTotals) States(line client.JobTotal) template.HTML {
	var list []string
	for _, state := range states[1:] {
		if n := line.States[state]; n > 0 {
			text := strconv.Itoa(n) + " " + state
			if to := t.List(line, state); to != "" {
				text = string(element("a", text, "href", to))
			}
			list = append(list, text)
		}
	}
	return template.HTML(strings.Join(list, ", "))
}

// willCostAll formats what the jobs of a line still cost.
func willCostAll(line client.JobTotal) template.HTML {
	var parts []string
	if w := line.WillCost; w != nil {
		low, high := money.ShortFloat(w[0], line.Currency), money.ShortFloat(w[1], line.Currency)
		text := low
		if low != high {
			text += " to " + high
		}
		exact := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
		parts = append(parts, string(element("data", text, "class", "money", "value", exact(w[0])+" "+exact(w[1]), "title",
			"sum of 10 % to 90 % of the simulated runs of "+draw.Count(line.Foreseen, "job"))))
	}
	if line.AtMost != nil {
		text := "up to " + string(amount(line.Currency, *line.AtMost)) + " left of " + draw.Count(line.Bounded, "budget")
		if len(parts) > 0 {
			text = "and " + text
		}
		parts = append(parts, text)
	}
	switch n := line.Unknown - line.Bounded; {
	case n > 0 && len(parts) > 0:
		parts = append(parts, string(element("span", "and "+draw.Count(n, "job")+" unknown", "class", "unknown")))
	case n > 0:
		return unknown
	case len(parts) == 0:
		return `<span class="none dash">–</span>`
	}
	return template.HTML(strings.Join(parts, " "))
}

// Head names the column of the groups.
func (t *jobTotals) Head() string {
	key, isTag := strings.CutPrefix(t.By, "tag:")
	if isTag {
		return "Tag " + key
	}
	return cmp.Or(strings.ToUpper(t.By[:min(1, len(t.By))])+t.By[min(1, len(t.By)):], "Group")
}

// summedLine is a sum of jobs with the address of its postings; "": none.
type summedLine struct {
	client.JobTotal
	Postings string
}
