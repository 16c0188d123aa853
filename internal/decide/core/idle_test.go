package core

import (
	"testing"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
)

// The idle rule of a job file looks at the GPUs if their use is known, otherwise at the processors. A busy GPU is
// not idle, nor is a busy program if the GPU use is unknown.
func TestIdleRule_UsesGPUsIfKnown(t *testing.T) {
	busy, spins, waits := new(0.4), new(0.0), 1.0
	for name, c := range map[string]struct {
		cpu  float64
		gpu  *float64
		idle bool
	}{
		"processors spin and no GPU does anything": {waits, spins, true},
		"a GPU works and the processors do not":    {0, busy, false},
		"one hundredth of a GPU":                   {0, new(0.01), false},
		"both work":                                {waits, busy, false},
		"processors work, GPUs unknown":            {waits, nil, false},
		"nothing works, GPUs unknown":              {0.01, nil, true},
	} {
		w := newWarm(t, nil)
		w.step(10*time.Second, MachineCleaned{Instance: "i1"})
		w.by("", 0, JobSubmitted{Job: "a", Terms: Terms{Name: "a", Currency: money.USD, Steps: 100, Restart: time.Minute,
			Owner: ledger.Owner{Team: "vision"}, Budget: w.most, HasBudget: true, IdleLimit: 10 * time.Minute}})
		w.step(0, AgentClaimed{Attempt: "a.1"})
		w.step(0, AttemptStarted{Attempt: "a.1"})
		used := func(n int64, cpu float64, gpu *float64) {
			w.step(time.Minute, UsageSeen{Attempt: "a.1", Message: n, CPU: cpu, GPU: gpu})
		}
		used(1, 1, new(1.0)) // busy first
		for n := int64(2); n < 11; n++ {
			used(n, c.cpu, c.gpu)
		}
		if a := w.State().Attempt("a.1"); a.Draining() {
			t.Errorf("%s: it is stopped before ten minutes", name)
		}
		for n := int64(11); n < 14; n++ {
			used(n, c.cpu, c.gpu)
		}
		a := w.State().Attempt("a.1")
		if stopped := a.Draining(); stopped != c.idle || stopped && a.DrainWhy() != string(policy.MachineIdle) {
			t.Errorf("%s: stopped %v (%s), want %v", name, stopped, a.DrainWhy(), c.idle)
		}
	}
}
