package groups

import (
	"testing"

	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

func TestAllFull_CountsASavingOnlyForTrialsThatWereLeft(t *testing.T) {
	type trial struct {
		state, why string
		unit       float64
		cost       string
	}
	for name, c := range map[string]struct {
		most   float64
		trials []trial
		want   float64 // below zero: unknown
	}{
		"nothing is left early": {1, []trial{{"succeeded", "", 1, "0.33"}, {"stopped", "diverged", 0, "0.05"}, {"failed", "", 0, "0.05"}}, 0.43},
		"one is left":           {9, []trial{{"succeeded", "", 9, "0.90"}, {"stopped", "pruned", 3, "0.30"}}, 1.80},
		"one is paused":         {9, []trial{{"stopped", "", 9, "0.90"}, {"paused", "", 1, "0.20"}}, 2.70},
		"one diverges late":     {9, []trial{{"succeeded", "", 9, "0.90"}, {"stopped", "diverged", 3, "0.30"}}, 1.20},
		"one ends by itself":    {9, []trial{{"succeeded", "", 4, "0.40"}, {"failed", "", 3, "0.30"}}, 0.70},
		"one waits":             {9, []trial{{"succeeded", "", 9, "0.90"}, {"queued", "", 0, "0"}}, 0.90},
		"one without an epoch":  {9, []trial{{"succeeded", "", 9, "0.90"}, {"stopped", "pruned", 0, "0.10"}}, -1},
		"none has trained":      {9, []trial{{"failed", "", 0, "0.10"}}, -1},
	} {
		var list []api.Trial
		cost := map[string]money.Amount{}
		for i, x := range c.trials {
			id := string(rune('a' + i))
			list = append(list, api.Trial{ID: id, State: x.state, Why: x.why, Unit: x.unit})
			a, err := money.Parse(x.cost)
			must.Do(t, err)
			cost[id] = a
		}
		switch got := allFull(list, cost, c.most); {
		case c.want < 0 && got != nil:
			t.Errorf("%s: %v, want it to be unknown", name, *got)
		case c.want >= 0 && (got == nil || *got-c.want > 1e-9 || c.want-*got > 1e-9):
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
