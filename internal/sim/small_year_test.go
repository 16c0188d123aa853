package sim

import (
	"testing"

	"scrimp/internal/decide/core"
)

// BenchmarkASmallYear is a tenth of BenchmarkAYearOfATeam: 100 jobs.
func BenchmarkASmallYear(b *testing.B) {
	for b.Loop() {
		w := year(100)
		done := 0
		for j := range w.m.Jobs() {
			if j.State() == core.Succeeded {
				done++
			}
		}
		if done != 100 {
			b.Fatalf("%d of 100 jobs are done", done)
		}
	}
}
