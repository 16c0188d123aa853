package core_test

import (
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/work/groups"
)

// The core checks a move of a study's planner within a millisecond, also when ten thousand trials have begun.
func BenchmarkStudy_ChecksMovesOfTenThousandTrials(b *testing.B) {
	const trials, batch = 10_000, 50
	for b.Loop() {
		y := newYard(b, 1)
		open := studyOf("s", "random", 1_000_000, 1000, func(t *core.GroupTerms) { t.Study.Trials = trials })
		step := func(body core.Body) time.Duration {
			y.now = y.now.Add(time.Second)
			e := core.Event{At: y.now, Schema: core.Schema, Tenant: "t", Actor: "", Body: body}
			began := time.Now()
			y.m.Step(e)
			return time.Since(began)
		}
		step(open)
		took, slowest, moves := time.Duration(0), time.Duration(0), 0
		for begun := 0; begun < trials; begun += batch {
			var starts, stops []groups.Move
			for n := begun; n < begun+batch; n++ {
				starts = append(starts, groups.Move{Do: groups.Start, Member: n, Config: n})
				stops = append(stops, groups.Move{Do: groups.Stop, Member: n})
			}
			for _, list := range [][]groups.Move{starts, stops} {
				d := step(core.Proposed{Group: "s", Base: y.m.Seq(), Moves: list}) / batch
				if begun >= trials-20*batch { // ten thousand, nearly
					took, slowest, moves = took+d, max(slowest, d), moves+1
				}
			}
		}
		if g := y.m.State().Group("s"); g.Began != trials || len(g.Study.Trials) != trials {
			b.Fatalf("%d trials have begun", g.Began)
		}
		b.ReportMetric(float64(took.Microseconds())/1000/float64(moves), "ms/move")
		b.ReportMetric(float64(slowest.Microseconds())/1000, "ms/slowest")
	}
}
