package server

import (
	"net/http"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/planning"
	"scrimp/internal/wire/api"
)

// The plan of the API is the one that scrimp plan prints: cost is price times time, in either form of the body. It
// submits nothing.
func TestPlan_PredictsCostAndFinish(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	file := "name: lm\ncommand: \"true\"\nwork: {steps: 100, time: 1h}\nresources: {capacity: [on-demand]}\nbudget: $20\n"
	var p client.Plan
	w.must("POST", "/v1/plan", `{"spec":{"name":"lm","command":"true","work":{"steps":100,"time":"1h"},`+
		`"resources":{"capacity":["on-demand"]},"budget":"$20"}}`, &p)
	if p.Name != "lm" || !p.Known || !p.Feasible || p.Runs < planning.FewestRuns || p.CostUSD == nil || p.FinishS == nil ||
		p.RateUSD == nil || p.WorstUSD == nil || *p.WorstUSD != 20 || p.Take == "" {
		t.Fatalf("%+v", p)
	}
	if hours := p.FinishS[1] / 3600; hours < 1 || p.CostUSD[1] > 1.01*hours**p.RateUSD || p.CostUSD[1] < *p.RateUSD {
		t.Errorf("%.4f for an hour of work done in %.2f h at %.4f an hour", p.CostUSD[1], hours, *p.RateUSD)
	}
	if rec, _ := w.post("/v1/plan", "application/yaml", "", file); rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), `"take":"`+p.Take+`"`) {
		t.Errorf("as YAML: %d %s", rec.Code, rec.Body)
	}
	var list []api.Job
	if w.must("GET", "/v1/jobs", nil, &list); len(list) != 0 {
		t.Errorf("it submits %+v", list)
	}
}

// A viewer may plan and may not submit. An error names the field and the line.
func TestPlan_IsForViewersAndNamesWrongFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Rate = 1e6 })
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	vic := w.user("vic", identity.Grant{Team: "vision", Role: identity.Viewer})
	body := `{"spec":{"name":"lm","command":"true","budget":"$20","team":"vision"}}`
	if rec, _ := w.ask("POST", "/v1/plan", vic, body); rec.Code != http.StatusOK {
		t.Errorf("a viewer plans: %d %s", rec.Code, rec.Body)
	}
	if rec, _ := w.ask("POST", "/v1/jobs", vic, body); rec.Code != http.StatusForbidden {
		t.Errorf("a viewer submits: %d", rec.Code)
	}
	for wrong, field := range map[string]string{
		`{"spec":"command: \"true\"\nbudget: many\n"}`:       "budget",
		`{"spec":{"command":"true","deadline":"yesterday"}}`: "deadline",
		`{"spec":{"command":"true","any_of":["moon"]}}`:      "any_of",
		`{}`: "spec",
		`{"spec":"` + strings.Repeat("x", 1<<20) + `"}`:        "spec",
		`{"spec":{"command":"true","work":{"time":"1e99 h"}}}`: "work.time",
	} {
		rec, p := w.ask("POST", "/v1/plan", vic, wrong)
		if rec.Code != 422 && rec.Code != 400 || !strings.HasPrefix(p.Field, field) {
			t.Errorf("%.80s: %d %+v", wrong, rec.Code, p)
		}
	}
}
