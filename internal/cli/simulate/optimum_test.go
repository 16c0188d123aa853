package simulate

import (
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/money"
	"scrimp/internal/sim"
)

// The optimum never exceeds a run that was played in time. Late or unfinished runs do not count.
func TestLeasts_OptimumIsNotAboveRunInTime(t *testing.T) {
	cost := func(picos int64, state core.State, inTime bool) sim.Played {
		return sim.Played{Cost: money.Picos(picos), State: state, InTime: inTime, Finish: time.Hour}
	}
	l := leasts{}
	l.found(0, 2.45)
	l.found(1, 1.5)
	l.played(0, cost(2_440_000_000_000, core.Succeeded, true))
	l.played(0, cost(2_447_700_000_000, core.Succeeded, true))
	l.played(1, cost(1_000_000_000_000, core.Succeeded, false))
	l.played(1, cost(900_000_000_000, core.Stopped, true))
	if got := l.sum(); got < 3.9399 || got > 3.9401 {
		t.Errorf("the optimum of both is $%.4f, want $3.94", got)
	}
}
