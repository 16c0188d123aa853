// Package filter selects the jobs of a list.
package filter

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/view/search"
)

// Filter selects jobs; zero fields select all.
type Filter struct {
	states     []core.State
	user, team string // charge.None: jobs without one, as of group, project, engine and the value of a tag
	group      string
	project    string
	engine     string // of the newest attempt
	session    bool   // sessions only
	name       search.Pattern
	tags       map[string]string // "": any value
	since      time.Time         // submitted at or after this market time
}

// Of parses a filter, or returns the field that is wrong and why; market converts wall time to market time.
func Of(q url.Values, market func(wall time.Time) time.Time) (f Filter, field, wrong string) {
	f = Filter{user: q.Get("user"), team: q.Get("team"), group: q.Get("group"),
		project: q.Get("project"), engine: q.Get("engine"), session: q.Get("session") != "", tags: map[string]string{}}
	for _, list := range q["state"] {
		for name := range strings.SplitSeq(list, ",") {
			if name == "" {
				continue
			}
			if !slices.Contains(core.States, core.State(name)) {
				return f, "state", fmt.Sprintf("unknown state %.40q", name)
			}
			f.states = append(f.states, core.State(name))
		}
	}
	var err error
	if f.name, err = search.PatternOf(q.Get("name")); err != nil {
		return f, "name", "name is not a pattern such as lm-*"
	}
	for _, tag := range q["tag"] {
		key, value, _ := strings.Cut(tag, "=")
		if key == "" {
			return f, "tag", "tag is not KEY or KEY=VALUE"
		}
		switch before := f.tags[key]; {
		case value == "":
			value = before
		case before != "" && before != value:
			return f, "tag", fmt.Sprintf("a job has one value of the tag %.40s, not both %.40s and %.40s", key, before, value)
		}
		f.tags[key] = value
	}
	if text := q.Get("since"); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return f, "since", "since is not a time such as 2026-12-01T18:00:00Z"
		}
		f.since = market(at)
	}
	return f, "", ""
}

// One returns the only state that the filter selects; "": several or all.
func (f *Filter) One() core.State {
	if len(f.states) == 1 {
		return f.states[0]
	}
	return ""
}

// Plain reports whether the filter selects all jobs that a caller sees, or all of one state.
func (f *Filter) Plain(c identity.Caller) bool {
	return seenTeams(c) == nil && len(f.states) < 2 && f.user+f.team+f.group+f.project+f.engine == "" && !f.session &&
		f.name.Any() && len(f.tags) == 0 && f.since.IsZero()
}

// Query returns the search of archived jobs that the filter selects among those that the caller sees.
func (f *Filter) Query(c identity.Caller) search.Query {
	s := search.Query{States: f.states, Teams: seenTeams(c), User: f.user, Group: f.group, Project: f.project,
		Engine: f.engine, Tags: maps.Clone(f.tags), Name: f.name, Session: f.session, Since: f.since}
	maps.DeleteFunc(s.Tags, func(_, value string) bool { return value == charge.None }) // Takes compares them
	if f.team != "" {
		s.Teams = []string{strings.TrimPrefix(f.team, charge.None)}
	}
	return s
}

// seenTeams returns the teams whose jobs the caller sees; nil: all jobs.
func seenTeams(c identity.Caller) []string {
	teams := []string{}
	for _, g := range c.Grants {
		if c.Role(g.Team) < identity.Viewer {
			continue
		}
		if g.Team == identity.Everywhere {
			return nil
		}
		teams = append(teams, g.Team)
	}
	return teams
}

// Older reports whether the job was submitted before since, and so were all earlier ones.
func (f *Filter) Older(j *core.Job) bool { return !f.since.IsZero() && j.Submitted().Before(f.since) }

// Takes reports whether the filter selects the job.
func (f *Filter) Takes(j *core.Job) bool {
	c := search.CardOf(j)
	return f.TakesCard(&c)
}

// LeastOdds is the chance to meet a deadline below which a job needs attention.
const LeastOdds = 0.9

// NeedsAttention reports whether a job waits, for approval or for its turn, or may miss its deadline. inTime returns
// the chance that a running job meets its deadline; nil if unknown.
func NeedsAttention(j *core.Job, inTime func(job string) *float64, now time.Time) bool {
	by := j.Terms().Deadline
	switch {
	case j.State() == core.Held || j.State() == core.Queued:
		return true
	case j.State().Over() || by.IsZero():
		return false
	case now.After(by):
		return true
	case j.State() != core.Running:
		return false
	}
	chance := inTime(j.ID())
	return chance != nil && *chance < LeastOdds
}

// TakesCard is Takes for the card of a job.
func (f *Filter) TakesCard(c *search.Card) bool {
	if len(f.states) > 0 && !slices.Contains(f.states, c.State) || f.session && c.Session == "" ||
		!f.since.IsZero() && c.Submitted.Before(f.since) || !f.name.Takes(c.ID) && !f.name.Takes(c.Name) {
		return false
	}
	if !selects(f.user, c.User) || !selects(f.team, c.Team) || !selects(f.group, c.Group) ||
		!selects(f.project, c.Project) || !selects(f.engine, c.Engine) {
		return false
	}
	for key, want := range f.tags {
		switch have, ok := c.Tag(key); {
		case ok == (want == charge.None), ok && want != "" && have != want:
			return false
		}
	}
	return true
}

// selects reports whether a filter by a property selects a job that has a value of it.
func selects(want, have string) bool {
	return want == "" || want == have || want == charge.None && have == ""
}
