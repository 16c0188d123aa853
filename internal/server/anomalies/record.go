package anomalies

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"scrimp/client"
	"scrimp/internal/control/replay"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/incident"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/view"
)

// The routes whose acts in the audit trail are what people have said.
const (
	snoozeRoute  = "POST /v1/anomalies/{id}/snooze"
	dismissRoute = "POST /v1/anomalies/{id}/dismiss"
	confirmRoute = "POST /v1/anomalies/{id}/confirm"
	planRoute    = "POST /v1/anomalies/planned"
	removeRoute  = "DELETE /v1/anomalies/planned/{id}"
)

// record is what the audit trail keeps of an act about an incident.
type record struct {
	Kind     incident.Kind  `json:"kind"`
	Team     string         `json:"team,omitempty"`
	About    string         `json:"about,omitempty"`
	Currency money.Currency `json:"currency"`
	Since    time.Time      `json:"since"` // of the incident
	// Until is until when the incident is snoozed; zero: the act is an answer.
	Until time.Time `json:"until,omitzero"`
	Why   string    `json:"why,omitempty"`
}

// plan is what the audit trail keeps of a planned span.
type plan struct {
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	Team    string    `json:"team,omitempty"`
	Project string    `json:"project,omitempty"`
	Job     string    `json:"job,omitempty"`
	Why     string    `json:"why"`
}

// snooze hides incidents that were found at since or later.
type snooze struct{ since, until time.Time }

// answer is the newest answer about an incident.
type answer struct {
	kind incident.Kind
	team string
	client.AnomalyAnswer
}

// said is what people have said, from the audit trail.
type said struct {
	settings incident.Settings
	snoozes  map[key]snooze    // the newest of each
	answers  map[string]answer // the newest of each incident
	plans    []client.PlannedAnomalies
}

// act is an act on one of the routes.
type act struct {
	identity.Act
	seq uint64
	at  time.Time // market time
}

// read returns what people have said.
func (d *Service) read(ctx context.Context) (*said, error) {
	var list []act
	for _, route := range []string{snoozeRoute, dismissRoute, confirmRoute, planRoute, removeRoute} {
		var err error
		if list, err = d.acts(ctx, list, route); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(list, func(a, b act) int { return cmp.Compare(a.seq, b.seq) })
	s := &said{snoozes: map[key]snooze{}, answers: map[string]answer{}}
	for i := range list {
		s.add(&list[i])
	}
	for _, p := range s.plans {
		s.settings.Plans = append(s.settings.Plans,
			incident.Plan{Since: p.Since, Until: p.Until, Team: p.Team, Project: p.Project, Job: p.Job})
	}
	return s, nil
}

// Answers returns what people have answered about incidents.
func (d *Service) Answers(ctx context.Context) ([]incident.Answer, error) {
	s, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	return s.settings.Answers, nil
}

// acts appends the acts on a route that were done, oldest first.
func (d *Service) acts(ctx context.Context, list []act, route string) ([]act, error) {
	for after := uint64(0); ; {
		records, err := d.View.Acts(ctx, d.Control.Durable(), view.OfRoute(route), after, 1000)
		if err != nil || len(records) == 0 {
			return list, err
		}
		for _, rec := range records {
			after = rec.Seq
			e, _, err := replay.Decode(rec)
			if err != nil {
				return nil, err
			}
			if b, ok := e.Body.(core.Audited); ok && b.Act.Outcome == "done" {
				list = append(list, act{b.Act, rec.Seq, e.At.UTC()})
			}
		}
	}
}

func (s *said) add(a *act) {
	switch a.Route {
	case removeRoute:
		s.plans = slices.DeleteFunc(s.plans, func(p client.PlannedAnomalies) bool { return p.Name == a.Object })
		return
	case planRoute:
		var p plan
		if json.Unmarshal([]byte(a.Detail), &p) == nil {
			s.plans = append(s.plans, p.show(a.Object, a.Who, a.at))
		}
		return
	}
	var rec record
	if json.Unmarshal([]byte(a.Detail), &rec) != nil {
		return
	}
	if a.Route == snoozeRoute {
		s.snoozes[key{rec.Kind, rec.Team, rec.About, rec.Currency}] = snooze{rec.Since, rec.Until}
		return
	}
	of := answer{rec.Kind, rec.Team,
		client.AnomalyAnswer{Confirmed: a.Route == confirmRoute, Why: rec.Why, By: a.Who, At: a.at}}
	s.answers[a.Object] = of
	s.settings.Answers = append(s.settings.Answers, incident.Answer{Name: a.Object, Kind: rec.Kind, Team: rec.Team,
		At: a.at, Confirmed: of.Confirmed})
}

func (p *plan) show(name, who string, at time.Time) client.PlannedAnomalies {
	return client.PlannedAnomalies{Name: name, Since: p.Since, Until: p.Until, Team: p.Team, Project: p.Project,
		Job: p.Job, Why: p.Why, By: who, At: at}
}

// thresholds returns those that answers have changed in the teams that sees accepts.
func (s *said) thresholds(now time.Time, sees func(team string) bool) []client.AnomalyThreshold {
	type of struct {
		team string
		kind incident.Kind
	}
	last := map[of]client.AnomalyAnswer{}
	for _, a := range s.answers {
		k := of{a.team, a.kind}
		if old, known := last[k]; sees(a.team) && (!known || a.At.After(old.At)) {
			last[k] = a.AnomalyAnswer
		}
	}
	list := []client.AnomalyThreshold{}
	for k, answer := range last {
		dismissed, confirmed := s.settings.Count(k.kind, k.team, now)
		factor := incident.Factor(dismissed, confirmed)
		list = append(list, client.AnomalyThreshold{Team: k.team, Kind: string(k.kind), Factor: factor,
			Threshold: incident.Threshold(k.kind, factor), Standard: incident.Threshold(k.kind, 1), Dismissed: dismissed,
			Confirmed: confirmed, Last: answer})
	}
	slices.SortFunc(list, func(a, b client.AnomalyThreshold) int {
		return cmp.Or(cmp.Compare(a.Team, b.Team), cmp.Compare(a.Kind, b.Kind))
	})
	return list
}
