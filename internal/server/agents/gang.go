package agents

import (
	"context"

	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/job/spec"
	"scrimp/internal/wire/api"
)

// allRanks reports whether each rank saves a part of the job's checkpoints.
func (d *Service) allRanks(ctx context.Context, job string) bool {
	raw, _, err := d.Control.Spec(ctx, job)
	var j spec.Job
	if err == nil {
		j, err = spec.Decode(raw)
	}
	if err != nil {
		d.Errors.Error("cannot read the job file", "job", job, "error", err)
	}
	return j.Checkpoint.AllRanks()
}

// join puts the machine's rank and the rendezvous of its gang into the assignment.
func (d *Service) join(as *api.Assignment, a *core.Attempt, node int) {
	as.Node, as.Nodes = node, control.Nodes(a)
	if as.Nodes == 1 {
		return
	}
	gangs, installation := []string(nil), ""
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

// portsOf returns the rendezvous port of each running gang; gangs are in order of their start. A gang keeps the port
// that it has. After a restart of the server, when before is empty, gangs get the same ports again, because none
// gives way to a later one. Servers that share a host can have gangs of the same names, so each installation starts
// its search at a different port.
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
