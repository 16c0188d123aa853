package plan

import (
	"fmt"
	"testing"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/onezone"
)

// benchCase is a job of that many days in that many zones, with slack of a tenth of that twice over, on a market
// that has changed for a day.
func benchCase(days, zones int) (Job, []Listing) {
	c := drawCourse(3, zones)
	seen, records := make([]onezone.Watch, zones), make([]Record, zones)
	for t := range 288 {
		at := now.Add(-24*time.Hour + time.Duration(t)*5*time.Minute)
		for z := range zones {
			up := c.up[t%len(c.up)][z]
			seen[z], records[z] = seen[z].See(at, up), records[z].See(at, up)
		}
	}
	work := time.Duration(days) * 24 * time.Hour
	job := Job{Rule: policy.Default, Need: Need{Requirements: Requirements{CPUs: 1}}, Progress: policy.Progress{
		Now: now, Began: now, Deadline: now.Add(work + work/5), Left: work, Known: true,
		Restart: 6 * time.Minute, Detect: 30 * time.Second,
	}}
	return job, c.options(20, seen, records)
}

func BenchmarkBuild(b *testing.B) {
	for _, zones := range []int{1, 9} {
		for _, days := range []int{1, 3} {
			b.Run(fmt.Sprintf("zones=%d/days=%d", zones, days), func(b *testing.B) {
				job, options := benchCase(days, zones)
				d := NewPlanner().OnRequest().Decide(job, classOf(job, options))
				if d.Table == nil {
					b.Fatalf("no table is asked for: %+v", d)
				}
				bytes := 0
				for b.Loop() {
					bytes = Build(*d.Table).Bytes()
				}
				b.ReportMetric(float64(bytes)/1e6, "MB")
				b.ReportMetric(float64(len(jsonOf(b, *d.Table))), "request_bytes")
			})
		}
	}
}

// BenchmarkDecideWithTable measures a decision that has its table, and one that requests it.
func BenchmarkDecideWithTable(b *testing.B) {
	for _, zones := range []int{1, 9} {
		for _, there := range []bool{true, false} {
			b.Run(fmt.Sprintf("zones=%d/there=%v", zones, there), func(b *testing.B) {
				job, options := benchCase(3, zones)
				m := NewPlanner().OnRequest()
				d := m.Decide(job, classOf(job, options))
				if there {
					m.Adopt(Build(*d.Table))
				}
				for b.Loop() {
					d = m.Decide(job, classOf(job, options))
				}
				if (d.Table == nil) != there || (d.Expect != nil) != there {
					b.Fatalf("%+v", d)
				}
			})
		}
	}
}

// BenchmarkSlowestDecision measures the slowest decision of some courses with tables that others build. Each is run
// three times and the fastest counts, which excludes garbage collection and other programs.
func BenchmarkSlowestDecision(b *testing.B) {
	most, n := time.Duration(0), 0
	for b.Loop() {
		for _, zones := range []int{1, 3, 9} {
			c, m := drawCourse(uint64(zones), zones), NewPlanner().OnRequest()
			c.timed = func(decide func()) {
				least := time.Hour
				for range 3 {
					began := b.Elapsed()
					decide()
					least = min(least, b.Elapsed()-began)
				}
				most, n = max(most, least), n+1
			}
			built := 0
			if got := c.play(m, atOnce(m, &built)); !got.done || built == 0 {
				b.Fatalf("done %v, %d tables built", got.done, built)
			}
		}
	}
	b.ReportMetric(float64(most)/1e6, "most_ms")
	b.ReportMetric(float64(n)/float64(b.N), "decisions")
}
