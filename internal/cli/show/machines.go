package show

import (
	"fmt"

	api "scrimp/client"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
)

// jobsOf formats the job of a machine, and the number of other jobs on it.
func jobsOf(m api.Machine) string {
	if n := len(m.Beside); n > 0 {
		return fmt.Sprintf("%s +%d", m.Job, n)
	}
	if m.Nodes > 1 && m.State != api.MachineWaiting && m.State != api.MachineStarting {
		return fmt.Sprintf("%s node %d of %d", m.Job, m.Node, m.Nodes)
	}
	return m.Job
}

// Machines formats the table of rented machines.
func Machines(list []api.Machine, p Place) string {
	if len(list) == 0 {
		return "No machine is rented.\n"
	}
	rows := make([][]string, len(list))
	for n, m := range list {
		until := "-"
		if !m.IdleUntil.IsZero() && m.State != api.MachineReleasing {
			until = p.Until(m.IdleUntil)
		}
		rows[n] = []string{Clean(m.Instance), Clean(m.Offer), Clean(string(m.State)), OrDash(jobsOf(m)), OrDash(m.Team),
			OrDash(m.User), fmt.Sprint(m.Served), p.When(m.Since), PerHour(m.Rate, m.Currency),
			money.Format(m.Cost, m.Currency, 4), until}
	}
	return draw.Grid([]draw.Column{
		{Name: "INSTANCE", Key: true}, {Name: "OFFER", Leaves: 3}, {Name: "STATE"}, {Name: "JOB", Least: 16},
		{Name: "TEAM", Leaves: 2},
		{Name: "USER", Leaves: 4}, {Name: "JOBS", Right: true, Leaves: 6}, {Name: "SINCE", Leaves: 5},
		{Name: "PRICE", Right: true}, {Name: "COST", Right: true}, {Name: "KEPT UNTIL", Leaves: 1},
	}, rows, p.Columns())
}
