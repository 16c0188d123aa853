package agent

import (
	"slices"
	"strings"
	"testing"

	"scrimp/internal/wire/api"
)

// A step counter that starts again each epoch does not count the steps of the job: 20 of 20 steps
// of one epoch of three are not 100 %.
func TestProgress_CombinesEpochWithCounterThatStartsAgain(t *testing.T) {
	t.Parallel()
	for epochs, want := range map[float64]api.Step{0: {Step: 41, Anew: true}, 3: {Step: 41, Total: 60, Anew: true}} {
		gate := t.TempDir()
		a := assign(t, "", "GATE="+gate)
		a.Epochs, a.Progress.Pattern = epochs, `epoch (?P<epoch>\d+) step (?P<step>\d+)/(?P<total>\d+)`
		a.Args, a.Command = nil, `for e in 1 2; do echo epoch $e step 1/20; echo epoch $e step 20/20; done
echo epoch 3 step 1/20; until [ -e $GATE/go ]; do sleep 0.02; done`
		r := running(t, a, nil)
		unknown := "the remaining steps are unknown"
		r.server.wait("the steps, and what they are", func() bool {
			said := slices.ContainsFunc(r.server.applied, func(m api.Message) bool {
				return m.Step != nil && m.Step.Step == want.Step && m.Step.Total == want.Total && m.Step.Anew && m.Step.Epoch == 3
			})
			return said && strings.Contains(r.server.trouble, "restarts each epoch") &&
				strings.Contains(r.server.trouble, unknown) == (epochs == 0)
		})
		r.server.order(func() { r.server.orders.Drain = &api.Drain{Why: "enough"} })
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
	}
}
