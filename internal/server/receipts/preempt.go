package receipts

import (
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/decide/state"
)

// preemptor returns the critical job that got the seat of an attempt of j, as the submitter of j may see it.
func preemptor(j *core.Job, p *state.Preemption) string {
	if p.Team != j.Terms().Owner.Team {
		return "a job of another team"
	}
	return p.By
}

// addPreemptions marks the attempts that a critical job preempted, with the actual cost: what the attempt lost, and the
// start-up of the next one. An attempt that completed before it left was not preempted.
func addPreemptions(v *receipt.Receipt, j *core.Job) {
	for n, a := range j.Attempts() {
		if a.Preemption() == nil || a.End() == "completed" || a.Live() || a.Taken() {
			continue
		}
		p := &receipt.Preemption{By: preemptor(j, a.Preemption()), At: a.Preemption().At, Expected: a.Preemption().Cost,
			Lost: a.Uses()[ledger.Lost]}
		if next := j.Attempts()[n+1:]; len(next) > 0 && !next[0].Started().IsZero() {
			p.StartUp = new(next[0].Uses()[ledger.StartUp])
		}
		v.Tries[n].Preemption, v.Tries[n].End = p, state.Preempted
		v.Preempted++
	}
}
