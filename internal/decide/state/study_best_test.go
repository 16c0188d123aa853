package state_test

import (
	"testing"

	"scrimp/internal/decide/state"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/study"
)

// The best trial of a search on a proxy has trained to its end. A trial that failed or still trains does not count,
// however good its values are.
func TestStudy_BestOnAProxyWasTrainedInFull(t *testing.T) {
	spec := &study.Spec{Metric: "loss", Fidelity: study.Fidelity{Name: study.Epoch, Min: 1, Max: 9},
		Proxy: &study.Proxy{Max: 3, Promote: 2}}
	y := &state.Study{Trials: []groups.Trial{
		{Config: 1, Unit: 3, Values: 3, Best: 0.3},
		{Config: 2, Unit: 3, Values: 3, Best: 0.2},
		{Config: 2, Promoted: true, Unit: 4, Values: 4, Best: 0.05, Phase: groups.Over}, // it failed
	}}
	if best, proxy := y.Best(spec), y.BestOnProxy(spec); best != -1 || proxy != 1 {
		t.Errorf("best %d, on the proxy %d: want none and 1", best, proxy)
	}
	y.Trials = append(y.Trials, groups.Trial{Config: 1, Promoted: true, Unit: 9, Values: 9, Best: 0.1, Phase: groups.Over})
	if best := y.Best(spec); best != 3 {
		t.Errorf("best %d, want 3, which was trained to its end", best)
	}
}
