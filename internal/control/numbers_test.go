package control

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/engine"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/wire/limits"
)

// A number out of its bounds never becomes an event, whoever proposes it: nothing is stepped or written.
func TestPropose_RefusesNumbersOutOfBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _, _, stop := gated(t)
		defer stop()
		e := submission(c, "a")
		for field, terms := range map[string]core.Terms{"terms.work_ns": {Work: math.MaxInt64}, "terms.steps": {Steps: 20_000_000_000_000},
			"terms.gpu_hours": {GPUHours: 1.7e308}, "terms.deadline": {Deadline: c.Now().Add(2 * quantity.Decade)}} {
			e.Body = core.JobSubmitted{Job: "a", Terms: terms}
			var over *limits.ExcessError
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

// The server's own settings are within bounds on the fastest market; otherwise it would not start there.
func TestRules_AreWithinBoundsOnTheFastestMarket(t *testing.T) {
	t.Parallel()
	week := 7 * 24 * time.Hour
	e := engineOf("a", shut{}, week)
	e[0].Timing = engine.Timing{Poll: week, Sweep: week, Detect: week, Boot: week, Consistency: week, GrantWait: week, Idle: week}
	clock := Clock{Wall: time.Now(), Market: time.Now(), Speed: 1e6}
	rules := CoreConfig(clock, e)
	rules.ArchiveAfter, rules.ArchiveUnbilled = clock.Stretch(archiveAfter), clock.Stretch(archiveUnbilled)
	if err := limits.Numbers(core.Configured{Config: rules}, time.Now()); err != nil {
		t.Error(err)
	}
}
