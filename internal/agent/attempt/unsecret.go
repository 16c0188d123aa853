package attempt

import (
	"maps"
	"slices"

	"scrimp/internal/wire/api"
)

// Names and texts that a program chooses go to the server, its database and its backups. They have no secret of the
// job, as its output has none. The name of the metric that the job is judged by stands in the job file, and stays.

// masked is a text of the program without secrets.
func (g *Attempt) masked(text string) string { return string(g.mask.Mask([]byte(text))) }

// unsecretStep is s with no secret in the names of its metrics.
func (g *Attempt) unsecretStep(s api.Step) api.Step {
	name := func(of string) string {
		if of == g.objective.name {
			return of
		}
		return g.masked(of)
	}
	metrics := make(map[string]float64, len(s.Metrics))
	for _, of := range slices.Sorted(maps.Keys(s.Metrics)) { // two may become one: always the same
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

// unsecret is m with no secret in what it quotes.
func (g *Attempt) unsecret(m api.Message) api.Message {
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
