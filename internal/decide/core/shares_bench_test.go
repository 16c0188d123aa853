package core_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/fair"
)

var (
	shareTeams   = flag.Int("share-teams", 50, "teams of BenchmarkSharesRound")
	shareRunning = flag.Int("share-running", 1_000, "running jobs of BenchmarkSharesRound")
)

// BenchmarkSharesRound compares a round with shares to the same round without, in one run: 20 running jobs end, one after
// the other, and the next ones start, while -crowd jobs of -share-teams teams wait. The two take turns, and the ratio is
// that of the medians of the processor time.
func BenchmarkSharesRound(b *testing.B) {
	halls := make([]*crowd, 2)
	for on := range halls {
		c := newCrowd(b, *shareRunning)
		if on == 1 {
			c.shares(fair.Team{Name: "t0", Weight: 2}, fair.Team{Name: "t1", Weight: 1, Guarantee: 5e12})
		}
		for i := range *waiting + *shareRunning {
			c.add(fmt.Sprint("t", i%*shareTeams), time.Hour+time.Duration(i%7)*time.Minute, nil)
		}
		halls[on] = c
	}
	took := make([][]time.Duration, 2)
	longest := make([]time.Duration, 2)
	for b.Loop() {
		for on, c := range halls {
			started, sum := len(c.started), time.Duration(0)
			for range 20 {
				begun := processor()
				if !c.next() {
					b.Fatal("no job runs")
				}
				one := processor() - begun
				longest[on], sum = max(longest[on], one), sum+one
			}
			if len(c.started) != started+20 {
				b.Fatalf("%d jobs started in a round, want 20", len(c.started)-started)
			}
			took[on] = append(took[on], sum)
		}
	}
	median := func(list []time.Duration) float64 { slices.Sort(list); return list[len(list)/2].Seconds() * 1e3 }
	off, on := median(took[0]), median(took[1])
	b.ReportMetric(off, "ms-off")
	b.ReportMetric(on, "ms-on")
	b.ReportMetric(on/off, "on/off")
	b.ReportMetric(longest[0].Seconds()*1e3, "ms-step-off")
	b.ReportMetric(longest[1].Seconds()*1e3, "ms-step-on")
}
