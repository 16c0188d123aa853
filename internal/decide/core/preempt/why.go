package preempt

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/core/placement"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
)

// mostWeighed bounds the running jobs that Nobody checks.
const mostWeighed = 64

// Nobody explains in a sentence why a critical job that waits preempts no running job; at writes a time. It is empty
// if the job is not critical, does not wait, or has preempted jobs that still leave.
func (p *Preempter) Nobody(j *state.Job, at func(time.Time) string) string {
	if j.State() != state.Queued || j.Asked() != nil || j.Terms().Priority < critical || len(j.Claims(p.Now())) > 0 {
		return ""
	}
	counts := map[string]int{}
	var order []string
	for _, k := range p.State.Running()[:min(len(p.State.Running()), mostWeighed)] {
		if k == j {
			continue
		}
		why := p.spared(k, j, at)
		if counts[why]++; counts[why] == 1 {
			order = append(order, why)
		}
	}
	if len(order) == 0 {
		return "no other job holds a machine"
	}
	slices.Sort(order)
	for n, why := range order {
		order[n] = fmt.Sprintf("%s %s", step.Count(counts[why], "job"), why)
	}
	return strings.Join(order, ", ")
}

// spared returns why j does not preempt the running job k.
func (p *Preempter) spared(k, j *state.Job, at func(time.Time) string) string {
	a, t := k.Live(), k.Terms()
	switch {
	case t.Priority >= critical:
		return "critical itself"
	case t.Unpreemptible:
		return "with preemptible: false"
	case t.Session != "":
		return "that is a session"
	case !placement.Movable(k, a):
		return "starting or ending"
	case !mayLeave(k):
		return "that saves nothing and was preempted before"
	}
	if until := startedAll(a).Add(p.Config().MinimumRun()); until.After(p.Now()) {
		return "in its minimum run until " + at(until)
	}
	v := p.priced(k, a)
	switch {
	case !p.saves(v):
		return "that leaves its machine soon by itself"
	case !p.inTime(v, j):
		return "that could miss its deadline or wall_clock"
	case !p.affords(v):
		return "whose budget has no room for it"
	}
	return "whose machine makes no room for this job"
}
