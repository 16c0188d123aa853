package control

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"

	"scrimp/internal/api/bound"
	"scrimp/internal/core"
	"scrimp/internal/quantity"
)

// No number that is out of its bounds becomes an event, whoever proposes it: nothing of it is stepped or written.
func TestNumbersOutOfBoundsAreNoEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _, _, stop := gated(t)
		defer stop()
		e := submission(c, "a")
		for field, terms := range map[string]core.Terms{"terms.work_ns": {Work: math.MaxInt64}, "terms.steps": {Steps: 20_000_000_000_000},
			"terms.gpu_hours": {GPUHours: 1.7e308}, "terms.deadline": {Deadline: c.Now().Add(2 * quantity.Decade)}} {
			e.Body = core.JobSubmitted{Job: "a", Terms: terms}
			var over *bound.ExcessError
			if err := c.Propose(t.Context(), e); !errors.As(err, &over) || over.Field != field {
				t.Errorf("%s: %v", field, err)
			}
		}
		c.ReadUncommitted(func(m *core.Machine) {
			if m.Len() > 0 {
				t.Errorf("%d jobs are there", m.Len())
			}
		})
	})
}
