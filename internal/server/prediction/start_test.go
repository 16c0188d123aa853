package prediction

import (
	"math"
	"testing"

	api "scrimp/client"
	"scrimp/internal/job/spec"
	"scrimp/internal/test/must"
)

// A plan counts the expected start of the engine it takes: ten hours of work on an engine that starts in two minutes
// ends 117 seconds later, and costs 117 seconds more, than on one that starts in three.
func TestPlan_CountsStartOfEngine(t *testing.T) {
	t.Parallel()
	planned := func(start float64) (finish, cost float64) {
		j, _, err := spec.Parse(spec.Run, "job.yaml", []byte("command: a\nwork: {steps: 1000, time: 10h}\n"), "", now)
		must.Do(t, err)
		m := api.Market{Clock: api.MarketClock{Name: "m", Speed: 1, Now: now},
			Offers: []api.Listing{onDemand("hpc", "gpu", 3_600_000_000_000)}}
		v := api.Server{Market: m.Clock, Engines: []api.Engine{
			{Name: "hpc", Timing: api.EngineTiming{Detect: 30, Boot: 600, Start: start}},
			{Name: "other", Timing: api.EngineTiming{Detect: 30, Boot: 600, Start: 20}}}}
		p, _ := Of(j, m, v, testRuns(), func() bool { return false })
		if p.FinishS == nil || p.CostUSD == nil {
			t.Fatalf("no finish: %+v", p)
		}
		return p.FinishS[1], p.CostUSD[1]
	}
	slowFinish, slowCost := planned(120)
	finish, cost := planned(3)
	if d := slowFinish - finish; math.Abs(d-117) > 2 {
		t.Errorf("it ends %v s later, want 117", d)
	}
	if d := slowCost - cost; math.Abs(d-117*3.6/3600) > 0.002 {
		t.Errorf("it costs $%v more, want $%v", d, 117*3.6/3600)
	}
}
