package serve

import (
	"errors"
	"fmt"
	"time"

	"scrimp/internal/server"
)

// Check returns an error that names each flag of scrimp serve whose number is out of bounds.
func Check(o *server.Options) error {
	return errors.Join(atLeast(o.Running, o.Rate), minimumRun(o.PreemptAfter))
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

// minimumRun returns an error if the guaranteed minimum run of a job is out of bounds.
func minimumRun(d time.Duration) error {
	if d < time.Second || d > longestRun {
		return fmt.Errorf("--preempt-after %v: give 1s to %v; preemptible: false in a job file exempts a job", d, longestRun)
	}
	return nil
}
