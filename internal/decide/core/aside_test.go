package core_test

import (
	"testing"
	"time"

	"scrimp/internal/decide/core"
)

// A job that is set aside saves first. If steps fail during the save too, the core pauses it at once and releases
// its machine. The job can be resumed.
func TestSetAside_SavesFirst(t *testing.T) {
	t.Parallel()
	y := newYard(t, 1)
	y.submit("j", "a", "ann", func(t *core.Terms) { t.Saves = true })
	y.want("R")
	y.tick(time.Hour)
	aside := core.JobPaused{Job: "j", Cause: "a step failed"}
	stands := func(state, ending core.State, why string) {
		t.Helper()
		j, _ := y.m.Job("j")
		if j.State() != state || j.Ending() != ending || why != "" && (j.Why() != why || j.Detail() != aside.Cause) {
			t.Fatalf("it is %s, ending %s, %s: %s", j.State(), j.Ending(), j.Why(), j.Detail())
		}
	}
	y.step("", aside)
	stands(core.Running, core.Paused, "")
	if a, _ := y.m.Attempt(y.runs["j"]); !a.Draining() {
		t.Error("its program is not asked to save")
	}
	y.step("", aside)
	stands(core.Paused, "", core.SetAside)
	if j, _ := y.m.Job("j"); j.Attempts()[0].Live() {
		t.Error("its machine is not given back")
	}
	y.step("", aside)
	stands(core.Paused, "", core.SetAside)
	y.step("", core.JobResumed{Job: "j"})
	stands(core.Running, "", "")
}
