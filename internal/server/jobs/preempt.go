package jobs

import (
	"strings"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/wire/api"
)

// explainPreemption says which critical job got the seat of a job and what that is expected to cost, and which jobs
// leave their seats to a critical one. It names no job of another team.
func (d *Desk) explainPreemption(m *core.Machine, j *core.Job, v *api.Job) {
	var others []string
	for _, id := range j.LastClaim() {
		if k, known := m.Job(id); known {
			others = append(others, nameFor(j, id, k.Terms().Owner.Team))
		}
	}
	for _, name := range others {
		if name != otherTeam {
			v.Preempts = append(v.Preempts, name)
		}
	}
	if j.State() == core.Queued && len(j.Claims(d.Control.Now())) > 0 {
		v.Detail = "waits until " + strings.Join(others, ", ") + " has saved: its seat is for this job"
	}
	for n := len(j.Attempts()) - 1; n >= 0; n-- {
		if a := j.Attempts()[n]; a.Preemption() != nil {
			d.preempted(m, j, a, v)
			return
		}
	}
}

// preempted shows the newest preemption of a job.
func (d *Desk) preempted(m *core.Machine, j *core.Job, a *core.Attempt, v *api.Job) {
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
		v.Why, v.Detail = state.Preempted, "it saves and then leaves its seat to "+by+", which is critical; "+cost
	case v.Preempted.Waits:
		v.Why, v.Detail = state.Preempted, "it left its seat to "+by+", which is critical, and goes on after it; "+cost
	}
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
