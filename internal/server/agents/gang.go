package agents

import (
	"context"

	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/job/spec"
	"scrimp/internal/wire/api"
)

// allRanks reports whether the folder of each rank is a part of the job's checkpoints.
func (d *Desk) allRanks(ctx context.Context, job string) bool {
	raw, _, err := d.Control.Spec(ctx, job)
	var j spec.Job
	if err == nil {
		j, err = spec.Decode(raw)
	}
	if err != nil {
		d.Errors.Error("job file not read", "job", job, "error", err)
	}
	return j.Checkpoint.AllRanks()
}

// join tells a machine where it stands in the gang of the attempt.
func (d *Desk) join(as *api.Assignment, a *core.Attempt, node int) {
	as.Node, as.Nodes = node, control.Nodes(a)
	if as.Nodes == 1 {
		return
	}
	var gangs []string
	installation := ""
	d.Control.ReadUncommitted(func(m *core.Machine) {
		installation = m.State().Installation()
		as.Addresses = control.Addresses(m, a)
		gangs = control.Gangs(m)
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ports = portsOf(installation, gangs, d.ports)
	as.MasterPort = d.ports[a.ID()]
}

// portsOf are the ports of gangs that run, in the order in which they began: each keeps the one
// that it has. Gangs of which nothing is known any more, as after a restart, get the same ones
// again, since none gives way to one that began later. Servers that share a host have gangs of the same
// names, and begin to look at other ports.
func portsOf(installation string, gangs []string, before map[string]int) map[string]int {
	ports, taken := make(map[string]int, len(gangs)), make(map[int]bool, len(gangs))
	for _, g := range gangs {
		if port := before[g]; port > 0 {
			ports[g], taken[port] = port, true
		}
	}
	for _, g := range gangs {
		if ports[g] == 0 {
			port := api.MasterPort(installation+"/"+g, func(port int) bool { return taken[port] })
			ports[g], taken[port] = port, true
		}
	}
	return ports
}
