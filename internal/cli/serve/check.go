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
	return atLeast(o.Running, o.Rate)
}

// atLeast returns an error if a flag is too small.
func atLeast(running, rate int) error {
	if running < 1 || rate < 1 {
		return fmt.Errorf("--running %d, --rate %d: give 1 or more to each", running, rate)
	}
	return nil
}

// Spans holds the flags of scrimp serve that are spans, as the user wrote them.
type Spans struct{ preempt, retain, outputs string }

// Flags adds the flags.
func (s *Spans) Flags(f *pflag.FlagSet) {
	f.StringVar(&s.preempt, "preempt-after", "10m", "`time` that a program runs before a critical job may preempt it")
	f.StringVar(&s.retain, "retain", "90d", "`time` for which the work folder, the output and the older checkpoints of a "+
		"job are kept once it is over, or ever")
	f.StringVar(&s.outputs, "retain-outputs", "ever", "`time` for which its kept outputs and its newest checkpoint "+
		"are kept, or ever")
}

// Into parses the spans into the options.
func (s *Spans) Into(o *server.Options) (err error) {
	if o.PreemptAfter, err = MinimumRun(s.preempt); err != nil {
		return err
	}
	if o.Retain, err = retainedFor("--retain", s.retain); err != nil {
		return err
	}
	o.RetainOutputs, err = retainedFor("--retain-outputs", s.outputs)
	return err
}

// retainedFor parses a retention time; a negative result means forever.
func retainedFor(flag, text string) (time.Duration, error) {
	if text == "ever" {
		return -1, nil
	}
	span, err := spec.ParseDuration(text)
	if err == nil && span < time.Hour {
		err = errors.New("write ever, or a span of at least an hour")
	}
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w", flag, text, err)
	}
	return span, nil
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
