// Package filter selects the jobs of a list.
package filter

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/view/search"
)

// Filter selects jobs; zero fields select all.
type Filter struct {
	states     []core.State
	user, team string
	group      string
	session    bool // sessions only
	name       search.Pattern
	tags       map[string]string // "": any value
	since      time.Time         // submitted at or after this market time
}

// Of parses a filter, or returns the field that is wrong and why; market converts wall time to market time.
func Of(q url.Values, market func(wall time.Time) time.Time) (f Filter, field, wrong string) {
	f = Filter{user: q.Get("user"), team: q.Get("team"), group: q.Get("group"),
		session: q.Get("session") != "", tags: map[string]string{}}
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
	return seenTeams(c) == nil && len(f.states) < 2 && f.user == "" && f.team == "" && f.group == "" && !f.session &&
		f.name.Any() && len(f.tags) == 0 && f.since.IsZero()
}

// Query returns the search of archived jobs that the filter selects among those that the caller sees.
func (f *Filter) Query(c identity.Caller) search.Query {
	s := search.Query{States: f.states, Teams: seenTeams(c), User: f.user, Group: f.group, Tags: f.tags, Name: f.name,
		Session: f.session, Since: f.since}
	if f.team != "" {
		s.Teams = []string{f.team}
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
	t := j.Terms()
	switch {
	case len(f.states) > 0 && !slices.Contains(f.states, j.State()),
		f.user != "" && f.user != j.User(),
		f.team != "" && f.team != t.Owner.Team,
		f.group != "" && f.group != t.Group,
		f.session && t.Session == "",
		f.Older(j):
		return false
	}
	if !f.name.Takes(j.ID()) && !f.name.Takes(t.Name) {
		return false
	}
	for key, want := range f.tags {
		if have, ok := t.Owner.Tags[key]; !ok || want != "" && have != want {
			return false
		}
	}
	return true
}
