package measure

import (
	"math"
	"testing"
	"time"

	"scrimp/internal/wire/telemetry"
)

// paced measures a program that reports steps at these seconds, after each span of five seconds.
func paced(steps []float64, until float64) (rate, stalled []float64) {
	begin := time.Unix(1000, 0)
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	var p Pacing
	n := 0
	for end := 5.0; end <= until; end += 5 {
		for n < len(steps) && steps[n] < end {
			n++
			p.Saw(at(steps[n-1]), int64(n))
		}
		var b telemetry.Bucket
		p.put(at(end), 5*time.Second, &b)
		rate = append(rate, b.Value(telemetry.TaskSteps, 0).Mean)
		stalled = append(stalled, b.Value(telemetry.TaskStalled, 0).Mean)
	}
	return rate, stalled
}

// Pacing counts steps from the first report on.
func TestPacing_CountsSteps(t *testing.T) {
	rate, stalled := paced([]float64{6, 7, 8.5}, 15)
	if !math.IsNaN(rate[0]) || rate[1] != 2.0/5 || rate[2] != 0 || !math.IsNaN(stalled[1]) {
		t.Errorf("%v steps a second, stalled %v", rate, stalled)
	}
	var p Pacing
	var b telemetry.Bucket
	begin := time.Unix(1000, 0)
	p.Saw(begin, 50)
	p.Saw(begin.Add(time.Second), 50) // a repeated step
	p.Saw(begin.Add(2*time.Second), 1)
	p.Saw(begin.Add(3*time.Second), 3)
	if p.put(begin.Add(5*time.Second), 5*time.Second, &b); b.Value(telemetry.TaskSteps, 0).Mean != 0.4 {
		t.Errorf("after the steps began anew: %v a second", b.Value(telemetry.TaskSteps, 0).Mean)
	}
}

// A stall counts once, even if it spans several measurements. Steady steps have no stalls, fast or slow.
func TestPacing_CountsStallsOnce(t *testing.T) {
	for name, x := range map[string]struct{ step, every, stall, share float64 }{
		"none": {0.3, 10, 0, 0}, "slow steps": {4, 1e9, 0, 0}, "short ones": {0.3, 2, 1.5, 1.5 / 3.5},
		"long ones": {0.3, 8, 7, 7.0 / 15}, "very long ones": {0.3, 40, 40, 0.5},
	} {
		var steps []float64
		next := x.every
		for at := 0.5; at < 300; at += x.step {
			if at >= next {
				at += x.stall
				next = at + x.every
			}
			steps = append(steps, at)
		}
		_, stalled := paced(steps, 300)
		sum := 0.0
		for _, v := range stalled[6:] {
			sum += v / float64(len(stalled)-6)
		}
		if math.Abs(sum-x.share) > 0.06 {
			t.Errorf("%s: stalled for %.2f of the time, want %.2f", name, sum, x.share)
		}
	}
}
