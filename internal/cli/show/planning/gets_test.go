package planning

import (
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/cli/show"
)

// Plan and explain say how many processors of its range a job has, and why.
func TestGets_SaysNumberAndReason(t *testing.T) {
	for want, g := range map[string]api.Gets{
		"16 of cpus 4..16: 3.1 times as fast as on 4":                          {Field: "cpus", Units: 16, Least: 4, Most: 16, Faster: 1 / (0.1 + 0.9/4), Shown: true},
		"4 of cpus 4..16: more would cost more, or another job needs them":     {Field: "cpus", Units: 4, Least: 4, Most: 16, Faster: 1, Shown: true},
		"2 of accelerator 1+: 2.0 times as fast as on 1":                       {Field: "accelerator", Units: 2, Least: 1, Faster: 2, Shown: true},
		"4 of cpus 4..16: nothing shows that more are faster; state work.para": {Field: "cpus", Units: 4, Least: 4, Most: 16, Faster: 1},
	} {
		line := func(text string) string { return strings.Join(strings.Fields(text), " ") }
		p := Plan{Plan: api.Plan{Name: "j", Feasible: true, Speed: 1, Take: "o", Why: "cheapest", Gets: &g}}
		if got := line(p.Text(show.Place{})); !strings.Contains(got, "has "+want) {
			t.Errorf("the plan lacks %q:\n%s", want, got)
		}
		d := api.Decision{Choice: api.Choice{Take: "o", Why: "cheapest", Gets: g}}
		if got := line(Explain([]api.Decision{d}, "USD", show.Place{})); !strings.Contains(got, "it has "+want) {
			t.Errorf("explain lacks %q:\n%s", want, got)
		}
	}
	if got := Explain([]api.Decision{{Choice: api.Choice{Take: "o", Why: "cheapest"}}}, "USD", show.Place{}); strings.Contains(got, "has") {
		t.Errorf("a job without a range: %s", got)
	}
}
