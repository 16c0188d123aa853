package savings

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/engine"
	"scrimp/internal/lib/money"
	"scrimp/internal/market/resource"
	"scrimp/internal/server/reply"
	"scrimp/internal/work/waste"
)

// surveyWait bounds the time for which a survey waits for the engines.
const surveyWait = time.Minute

// lister is implemented by drivers of engines that can list a whole account.
type lister interface {
	Resources(ctx context.Context) ([]resource.Resource, error)
}

// Survey lists what the engines see in their accounts.
func (d *Service) Survey(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), surveyWait)
	defer cancel()
	v := client.Survey{Required: []string{}, Resources: []client.SurveyResource{}, Engines: []client.SurveyEngine{}}
	d.Control.Read(func(m *core.Machine) {
		if rules := m.State().Rules(); rules != nil {
			v.Required = append(v.Required, slices.Sorted(maps.Keys(rules.Tags))...)
		}
	})
	var seen []waste.Seen
	for _, e := range d.Engines {
		asked, list := survey(ctx, &e)
		v.Engines = append(v.Engines, asked)
		seen = append(seen, waste.Survey(e.Name, e.Kind, list, v.Required)...)
	}
	waste.SortSeen(seen)
	for i := range seen {
		v.Resources = append(v.Resources, seenOf(&seen[i]))
	}
	reply.JSON(w, v)
}

// survey asks one engine.
func survey(ctx context.Context, e *engine.Engine) (client.SurveyEngine, []resource.Resource) {
	asked := client.SurveyEngine{Name: e.Name}
	l, ok := e.Driver.(lister)
	if !ok {
		return asked, nil
	}
	list, err := l.Resources(ctx)
	asked.Lists, asked.Seen = true, len(list)
	if err != nil {
		asked.Error = err.Error()
	}
	return asked, list
}

func seenOf(s *waste.Seen) client.SurveyResource {
	r := &s.Resource
	v := client.SurveyResource{Engine: s.Engine, ID: r.ID, Kind: string(r.Kind), Type: r.Type, Region: r.Region,
		Currency: r.Currency, Monthly: s.Monthly, Lacks: reply.List(s.Lacks), Evidence: s.Evidence,
		Action: string(s.Action), Try: s.Try, Command: s.Command}
	if v.Currency == "" {
		v.Currency = money.USD
	}
	if !r.Made.IsZero() {
		v.Made = &r.Made
	}
	return v
}
