package attempt

import (
	"maps"
	"slices"

	"scrimp/internal/wire/api"
)

// The server, its database and its backups store names and texts that a program chooses. The agent
// masks the job's secrets in them, as in the output. It keeps the name of the objective metric,
// because the job file contains it.

// masked returns text with secrets masked.
func (g *Attempt) masked(text string) string { return string(g.mask.Mask([]byte(text))) }

// maskStep returns s with secrets masked in the metric names.
func (g *Attempt) maskStep(s api.Step) api.Step {
	name := func(of string) string {
		if of == g.objective.Name {
			return of
		}
		return g.masked(of)
	}
	metrics := make(map[string]float64, len(s.Metrics))
	for _, of := range slices.Sorted(maps.Keys(s.Metrics)) { // two names may become one: sort, so the result is stable
		metrics[name(of)] = s.Metrics[of]
	}
	if s.Metrics != nil {
		s.Metrics = metrics
	}
	s.Broken = slices.Clone(s.Broken)
	for n, of := range s.Broken {
		s.Broken[n] = name(of)
	}
	return s
}

// maskMessage returns m with secrets masked in its texts.
func (g *Attempt) maskMessage(m api.Message) api.Message {
	if m.Ended != nil {
		e := *m.Ended
		e.Error = g.masked(e.Error)
		m.Ended = &e
	}
	if m.Saved != nil {
		s := *m.Saved
		s.Lacks = g.masked(s.Lacks)
		m.Saved = &s
	}
	if m.Unsaved != nil {
		m.Unsaved = &api.Unsaved{Why: g.masked(m.Unsaved.Why)}
	}
	if m.Refused != nil {
		r := *m.Refused
		r.Why = g.masked(r.Why)
		m.Refused = &r
	}
	return m
}
