package serve

import (
	"errors"
	"fmt"
	"time"

	"scrimp/internal/job/spec"
	"scrimp/internal/server"
)

// Check returns an error that names each flag of scrimp serve whose number is out of bounds.
func Check(o *server.Options) error {
	return atLeast(o.Running, o.Rate)
}

// atLeast returns an error if a flag is too small.
func atLeast(running, rate int) error {
	if running < 1 || rate < 1 {
		return fmt.Errorf("--running %d, --rate %d: give 1 or more to each", running, rate)
	}
	return nil
}

// longestRun bounds the guaranteed minimum run of a job.
const longestRun = 30 * 24 * time.Hour

// MinimumRun parses --preempt-after, the guaranteed minimum run of a job.
func MinimumRun(text string) (time.Duration, error) {
	d, err := spec.ParseDuration(text)
	if err == nil && (d < time.Second || d > longestRun) {
		err = errors.New("it is out of bounds")
	}
	if err != nil {
		return 0, fmt.Errorf("--preempt-after %s: %w: write 1s to 30d; preemptible: false in a job file exempts a job", text,
			err)
	}
	return d, nil
}
