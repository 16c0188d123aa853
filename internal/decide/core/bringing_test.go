package core

import (
	"testing"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/lib/money"
)

// A machine that brings inputs or sets up has longer until its program must run, and no longer than that. One whose
// agent is not heard of has not.
func TestBootLimit_LeavesTimeForInputs(t *testing.T) {
	for _, c := range []struct {
		bringing time.Duration
		claimed  bool
	}{{0, true}, {3 * time.Hour, true}, {3 * time.Hour, false}} {
		bringing := c.bringing
		h := twoProviders(t, quick, quick)
		from := h.at
		h.tell(JobSubmitted{Job: "a", Terms: Terms{Name: "a", Owner: ledger.Owner{Team: "t"}, Currency: money.USD, Priority: 1,
			Need: plan.Need{Requirements: plan.Requirements{CPUs: 2}}, Nodes: 1, Bringing: bringing}})
		l := h.step.State.Job("a").Asked()
		if l == nil {
			t.Fatal("the job asks for no machine")
		}
		h.tell(LaunchDone{Launch: l.ID(), Instance: "i-a", Offer: l.Offer(), Rate: 1e12, From: from})
		limit := h.market.TimingOf(h.step.State.Instance("i-a").Machine()).BootLimit
		if c.claimed {
			h.tell(AgentClaimed{Attempt: "a.1"})
			limit += bringing
		}
		for _, c := range []struct {
			after time.Duration
			want  string
		}{{limit - time.Second, ""}, {limit + time.Second, "boot_limit"}} {
			h.at = from.Add(c.after)
			h.tell(Tick{})
			if why := h.step.State.Instance("i-a").Release(); why != c.want {
				t.Errorf("%v after its launch, with %v for inputs: released for %q, want %q", c.after, bringing, why, c.want)
			}
		}
	}
}
