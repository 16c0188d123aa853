package ab

import (
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show/comparison"
)

// A pace is the time between two readings over the epochs between them. Readings less than ten seconds apart give none,
// because the agent's own rhythm would be a visible part of it.
func TestPace_NeedsReadingsTenSecondsApart(t *testing.T) {
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	value := func(attempt string, after time.Duration, epoch float64, step int64) (v api.MetricValue) {
		v.Attempt, v.At, v.Epoch, v.Step = attempt, start.Add(after), epoch, step
		return v
	}
	for _, c := range []struct {
		what        string
		values      []api.MetricValue
		epoch, step float64
	}{
		{"none", nil, 0, 0},
		{"one value", []api.MetricValue{value("1", 0, 1, 100)}, 0, 0},
		{"9.9 s apart", []api.MetricValue{value("1", 0, 1, 100), value("1", 9900*time.Millisecond, 4, 400)}, 0, 0},
		{"12 s apart", []api.MetricValue{value("1", 0, 1, 100), value("1", 5*time.Second, 2, 200), value("1", 12*time.Second, 4, 400)}, 4, 0.04},
		{"the newest attempt alone", []api.MetricValue{value("1", 0, 1, 100), value("2", time.Minute, 3, 300), value("2", 80*time.Second, 4, 400)}, 20, 0.2},
	} {
		times := map[string]float64{}
		pace(times, c.values)
		if times[comparison.PerEpoch] != c.epoch || times[comparison.PerStep] != c.step {
			t.Errorf("%s: %v, want %v s/epoch and %v s/step", c.what, times, c.epoch, c.step)
		}
	}
}
