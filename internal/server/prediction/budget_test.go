package prediction

import (
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/job/spec"
	"scrimp/internal/sim"
	"scrimp/internal/test/must"
)

// The advice never names a smaller budget than the job has: whoever has $1.50 cannot be helped by $1.07.
func TestApart_AdvisesOnlyLargerBudgets(t *testing.T) {
	for budget, want := range map[string]string{"$1.50": "within the budget of $1.50", "$1": "would do"} {
		j, _, err := spec.Parse(spec.Run, "job.yaml", []byte("command: a\ncheckpoint: {dir: c}\nwork: {steps: 1000, time: 10h}\n"+
			"deadline: in 20h\nbudget: "+budget), "", now)
		must.Do(t, err)
		m := api.Market{Clock: api.MarketClock{Name: "m", Speed: 1, Now: now}, Offers: []api.Listing{onDemand("lab", "a", 100_000_000_000)}}
		_, q := Of(j, m, api.Server{Market: m.Clock}, testRuns(), func() bool { return false })
		list := apart(q.Scenario, sim.Forecast{InTime: 0.89, Done: 0.95})
		if text := strings.Join(list, "\n"); !strings.Contains(text, want) || budget == "$1.50" && strings.Contains(text, "a budget of $1.0") {
			t.Errorf("%s: %s", budget, text)
		}
	}
}
