package agent

import (
	"testing"
	"time"

	"scrimp/internal/agent/attempt"
)

// BenchmarkMeasuring runs an agent whose program sleeps for 50 seconds, with and without
// measurements, and reports the share of a core that the agent (and the test's server in the same
// process) used in each case. BenchmarkMeasure measures the parts.
//
//	go test -run '^$' -bench 'Measuring$' -benchtime 1x ./internal/agent
func BenchmarkMeasuring(b *testing.B) {
	smi(b)
	for b.Loop() {
		var share [2]float64
		for n, pause := range []time.Duration{attempt.UsualPace.Usage, time.Hour} {
			a := assign(b, "")
			a.Args, a.Command, a.Report = nil, "sleep 50", time.Second
			r := newRig(b, a)
			r.config.pace = attempt.UsualPace
			r.config.pace.Usage = pause
			before, begun := processorTime(b), time.Now()
			r.start()
			if err := r.end(); err != nil {
				b.Fatal(err)
			}
			share[n] = float64(processorTime(b)-before) / float64(time.Since(begun))
			if many := len(r.server.measured) > 3; many != (n == 0) {
				b.Fatalf("%d reports hold measurements", len(r.server.measured))
			}
		}
		b.ReportMetric(100*share[0], "%-of-a-core")
		b.ReportMetric(100*share[1], "%-unmeasured")
		if share[0]-share[1] > 0.01 {
			b.Errorf("measuring takes %.2f %% of a core, want less than 1 %%", 100*(share[0]-share[1]))
		}
	}
}
