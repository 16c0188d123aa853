package terms_test

import (
	"testing"
	"time"

	"scrimp/internal/job/spec"
	"scrimp/internal/server/terms"
)

// A job's first restart is the longest start of the engines that it may use, stretched to market time.
func TestOf_AssumesLongestStartOfItsEngines(t *testing.T) {
	t.Parallel()
	starts := map[string]time.Duration{"local": 3 * time.Second, "hpc": 15 * time.Second, "cloud": 2 * time.Minute}
	on := func(places ...string) (j spec.Job) {
		for _, p := range places {
			j.AnyOf = append(j.AnyOf, spec.Variant{Engine: p})
		}
		return j
	}
	for _, c := range []struct {
		job    spec.Job
		starts map[string]time.Duration
		want   time.Duration
	}{
		{on(), starts, 20 * time.Minute},
		{on("local"), starts, 30 * time.Second},
		{on("local", "hpc/gpu"), starts, 150 * time.Second},
		{on("gone"), starts, 20 * time.Minute},
		{on(), nil, 30 * time.Second},
		{on(), map[string]time.Duration{"mine": 0}, 30 * time.Second},
	} {
		got := terms.Of(c.job, now, func(d time.Duration) time.Duration { return 10 * d }, c.starts).Restart
		if got != c.want {
			t.Errorf("on %v with %v: %v, want %v", c.job.Places(), c.starts, got, c.want)
		}
	}
}
