package jobs

import (
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/wire/api"
)

// explainPreemption says which critical job got the seat of a job and what that is expected to cost, and which jobs
// leave their seats to a critical one. It names no job of another team.
func (d *Service) explainPreemption(m *core.Machine, j *core.Job, v *api.Job) {
	var others []string
	cost := money.Amount{}
	for _, id := range j.LastClaim() {
		if k, known := m.Job(id); known {
			name := nameFor(j, id, k.Terms().Owner.Team)
			if others = append(others, name); name != otherTeam {
				v.Preempts, cost = append(v.Preempts, name), cost.Add(expected(k, j.ID()))
			}
		}
	}
	if len(v.Preempts) > 0 {
		v.PreemptCost = &cost
	}
	if j.State() == core.Queued && len(j.Claims(d.Control.Now())) > 0 {
		v.Detail = "waits until " + strings.Join(others, ", ") + " has saved: its place on a machine is for this job"
	}
	for n := len(j.Attempts()) - 1; n >= 0; n-- {
		if a := j.Attempts()[n]; a.Preemption() != nil {
			d.preempted(m, j, a, v)
			return
		}
	}
}

// preempted shows the newest preemption of a job.
func (d *Service) preempted(m *core.Machine, j *core.Job, a *core.Attempt, v *api.Job) {
	p := a.Preemption()
	v.Preempted = &client.Preempted{Attempt: a.ID(), At: d.Control.Clock().ToWall(p.At), Cost: p.Cost,
		Lost: p.Lost.Seconds(), Restart: p.Restart.Seconds(), Times: j.Preempted()}
	by := nameFor(j, p.By, p.Team)
	if by != otherTeam {
		v.Preempted.By = by
	}
	_, v.Preempted.Waits = m.YieldsTo(j)
	cost := "expected cost " + money.Short(p.Cost, j.Terms().Currency)
	switch {
	case a.Draining() && a.Task() == core.TaskRunning && j.State() == core.Running:
		v.Why = beingPreempted
		v.Detail = "it saves and then leaves its place on a machine to " + by + ", which is critical; " + cost
	case v.Preempted.Waits:
		v.Why = state.Preempted
		v.Detail = "it left its place on a machine to " + by + ", which is critical, and goes on after it; " + cost
	}
}

// beingPreempted is why a job that still runs is about to leave its seat to a critical one.
const beingPreempted = "being_preempted"

// expected returns the expected cost of the newest preemption of j by another job.
func expected(j *core.Job, by string) money.Amount {
	for n := len(j.Attempts()) - 1; n >= 0; n-- {
		if p := j.Attempts()[n].Preemption(); p != nil && p.By == by {
			return p.Cost
		}
	}
	return money.Amount{} // no preempted job is without one
}

// explainSparing says why a critical job that waits preempts nobody. It looks at every running job, so that only the
// page of one job has it.
func (d *Service) explainSparing(v *api.Job) {
	if v.State != string(core.Queued) {
		return
	}
	d.Control.Read(func(m *core.Machine) {
		if j, known := m.Job(v.ID); known {
			v.PreemptsNobody = m.PreemptsNobody(j, func(t time.Time) string {
				return d.Control.Clock().ToWall(t).UTC().Format("15:04 UTC")
			})
		}
	})
}

// otherTeam stands for a job whose name the submitter of another team need not know.
const otherTeam = "a job of another team"

// nameFor returns the ID of a job of the team as the submitter of j may see it.
func nameFor(j *core.Job, id, team string) string {
	if j.Terms().Owner.Team != team {
		return otherTeam
	}
	return id
}
