package progress

import (
	"math"

	"scrimp/internal/lib/quantity"
	"scrimp/internal/wire/api"
)

// Counter converts the steps that one source counts to steps of the job. A program's counter may
// start again each epoch, as progress bars of tqdm and Keras do: when it falls at the end of an
// epoch, Counter adds the steps of the previous epochs.
type Counter struct {
	Anew bool  // the counter starts again each epoch, as this attempt or the previous one has shown
	From int64 // steps of the job before this attempt

	known bool    // it has counted a step
	raw   int64   // newest step as counted
	at    float64 // the epoch that raw was counted in
	epoch float64 // newest epoch
	base  float64 // number of the first epoch of the job
	of    int64   // steps per epoch; 0: unknown
	total int64   // newest total as counted
	runs  float64 // epochs of the job; 0: unknown
	done  int64   // steps of the epochs that ended in this attempt
}

// Count returns the report s with steps of the job. If the counter starts again each epoch, the
// total is that of the job, or unknown.
func (c *Counter) Count(s api.Step, epochs float64) api.Step {
	if s.Epoch > 0 {
		c.epoch = s.Epoch
	}
	if s.Total > 0 {
		c.total = s.Total
	}
	if epochs > 0 {
		c.runs = epochs
	}
	if s.Step > 0 {
		c.take(s.Step)
	}
	if !c.Anew {
		return s
	}
	if s.Step > 0 {
		s.Step = c.steps(s.Step, c.epoch)
	}
	s.Total, s.Anew = 0, true
	if c.of > 0 && c.runs >= 1 {
		s.Total = max(0, quantity.Int(c.runs*float64(c.of)))
	}
	return s
}

// take detects that the counter has started again: the epoch has changed or, without epochs, the
// counter has fallen to less than half. A program that returns to a checkpoint falls less than
// that.
func (c *Counter) take(step int64) {
	switch fell := step < c.raw; {
	case !c.known && c.Anew: // in an attempt that resumes
		c.of = c.total
		c.base = c.nearest(step)
	case !c.known:
		c.base = c.epoch
	case fell && (c.epoch > c.at || c.epoch == 0 && step <= c.raw/2):
		c.of = max(c.total, c.raw)
		c.done += c.of
		if !c.Anew && c.From > 0 {
			c.base = c.nearest(step)
		}
		c.Anew = true
	}
	c.known, c.raw, c.at = true, step, c.epoch
}

// steps returns the step of the job for a step of an epoch. It uses the epoch if that is a whole number.
func (c *Counter) steps(step int64, epoch float64) int64 {
	if c.of > 0 && epoch > 0 && epoch == math.Trunc(epoch) {
		return max(0, quantity.Int((epoch-c.base)*float64(c.of))) + step
	}
	return c.From + c.done + step
}

// nearest returns the number of the first epoch, 0 or 1, that places step nearest to where the job was.
func (c *Counter) nearest(step int64) float64 {
	off := func(base float64) float64 {
		return math.Abs((c.epoch-base)*float64(c.of) + float64(step) - float64(c.From))
	}
	if off(0) < off(1) {
		return 0
	}
	return 1
}
