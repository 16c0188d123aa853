package progress

import (
	"math"

	"scrimp/internal/lib/quantity"
	"scrimp/internal/wire/api"
)

// Counter makes the steps of the job of the steps that one source counts. The counter of a program may begin anew each
// epoch, as progress bars of tqdm and Keras do: where it falls as an epoch ends, the steps before it are added.
type Counter struct {
	Anew bool  // it begins anew, as the attempt before has shown or this one
	From int64 // steps of the job before this attempt

	known bool    // it has counted
	raw   int64   // the newest step, as it was counted
	at    float64 // the epoch that raw was counted in
	epoch float64 // the newest
	base  float64 // number of the first epoch of the job
	of    int64   // steps of an epoch; 0: unknown
	total int64   // the newest, as it was counted
	runs  float64 // epochs of the job; 0: unknown
	done  int64   // steps of the epochs that have ended in this attempt
}

// Count takes a report, and returns it with the steps of the job. Where the counter begins anew each epoch the total
// is that of the job or unknown.
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

// take sees whether the counter has begun anew: its epoch is another one, or nobody counts epochs and it has fallen to
// less than half, where a program that goes back to a checkpoint falls less.
func (c *Counter) take(step int64) {
	switch fell := step < c.raw; {
	case !c.known && c.Anew: // in an attempt that goes on
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

// steps are those of the job by a step of an epoch. They follow from the epoch where that is a whole number.
func (c *Counter) steps(step int64, epoch float64) int64 {
	if c.of > 0 && epoch > 0 && epoch == math.Trunc(epoch) {
		return max(0, quantity.Int((epoch-c.base)*float64(c.of))) + step
	}
	return c.From + c.done + step
}

// nearest is the number of the first epoch, 0 or 1, by which a step is nearest to what the job had done.
func (c *Counter) nearest(step int64) float64 {
	off := func(base float64) float64 {
		return math.Abs((c.epoch-base)*float64(c.of) + float64(step) - float64(c.From))
	}
	if off(0) < off(1) {
		return 0
	}
	return 1
}
