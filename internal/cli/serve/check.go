package serve

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"scrimp/internal/job/spec"
	"scrimp/internal/server"
)

// Check returns an error that names each flag of scrimp serve whose number is out of bounds.
func Check(o *server.Options) error {
	return errors.Join(atLeast(o.Running, o.Rate), minimumRun(o.PreemptAfter))
}

// Span is a flag that takes spans as job files do, such as 90s, 1h30m or 30d.
func Span(at *time.Duration, usual time.Duration) pflag.Value {
	*at = usual
	return (*span)(at)
}

type span time.Duration

func (s *span) String() string { return time.Duration(*s).String() }
func (s *span) Type() string   { return "duration" }

func (s *span) Set(text string) error {
	d, err := spec.ParseDuration(text)
	if err == nil {
		*s = span(d)
	}
	return err
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
		return fmt.Errorf("--preempt-after %v: give 1s to 30d; preemptible: false in a job file exempts a job", d)
	}
	return nil
}
