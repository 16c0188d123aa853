package receipts

import (
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/decide/state"
)

// preemptorsOf returns the critical jobs that got the seats of the job's attempts, by attempt, named as the submitter
// of the job may see them.
func preemptorsOf(m *core.Machine, j *core.Job) map[string]string {
	names := map[string]string{}
	for _, a := range j.Attempts() {
		p := a.Preemption()
		if p == nil {
			continue
		}
		names[a.ID()] = "a job of another team"
		if by, known := m.Job(p.By); known && by.Terms().Owner.Team == j.Terms().Owner.Team {
			names[a.ID()] = p.By
		}
	}
	return names
}

// addPreemptions marks the attempts that a critical job preempted, with the actual cost: what the attempt lost, and the
// start-up of the next one. An attempt that completed before it left was not preempted.
func addPreemptions(v *receipt.Receipt, j *core.Job, by map[string]string) {
	for n, a := range j.Attempts() {
		if a.Preemption() == nil || a.End() == "completed" || a.Live() || a.Taken() {
			continue
		}
		p := &receipt.Preemption{By: by[a.ID()], At: a.Preemption().At, Expected: a.Preemption().Cost,
			Lost: a.Uses()[ledger.Lost]}
		if next := j.Attempts()[n+1:]; len(next) > 0 && !next[0].Started().IsZero() {
			p.StartUp = new(next[0].Uses()[ledger.StartUp])
		}
		v.Tries[n].Preemption, v.Tries[n].End = p, state.Preempted
		v.Preempted++
	}
}
