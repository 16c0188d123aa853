package slurm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"scrimp/internal/engine/slurm/scheduler"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// sale is an offer with what its jobs are submitted with.
type sale struct {
	offer market.Offer
	quote market.Quote
	of    *Partition
	part  scheduler.Partition
	whole bool   // the machine is a whole node
	sole  bool   // the partition has no other kinds of nodes
	why   string // why no machine is available; empty: one is
	here  bool   // its nodes are this machine

	killWait time.Duration
}

// salesOf returns the offers of the cluster for the named engine.
func salesOf(c *scheduler.Cluster, name string, w *With, local func(scheduler.Node) bool) []sale {
	var all []sale
	for i := range w.Partitions {
		p := &w.Partitions[i]
		part, known := c.Partitions[p.Name]
		var own []scheduler.Node
		for _, n := range c.Nodes {
			if n.Partition == p.Name && fits(&n, p) {
				own = append(own, n)
			}
		}
		groups := shapes(own, p)
		for _, group := range groups {
			s := sale{of: p, part: part, whole: p.CPUs == 0, sole: len(groups) == 1, here: true, killWait: c.KillWait}
			s.offer = offerOf(c, name, w, p, part, group)
			some := false
			for _, n := range group {
				some = some || n.Usable
				s.here = s.here && local(n)
			}
			switch {
			case !known:
				s.why = "there is no partition " + p.Name + ": sinfo -s lists them"
			case part.State != "UP":
				s.why = fmt.Sprintf("partition %s is %s: scontrol show partition %s says "+
					"more", p.Name, part.State, p.Name)
			case !some:
				s.why = fmt.Sprintf("no node of %s is up: sinfo -R says why", p.Name)
			}
			s.quote = market.Quote{Offer: s.offer.ID, Rate: p.rate, Priced: p.priced, Available: s.why == "", At: c.At.UTC(),
				Source: "slurm"}
			all = append(all, s)
		}
	}
	return all
}

// fits reports whether a node has the features in a partition's constraint. It leaves constraints other than plain
// lists to Slurm.
func fits(n *scheduler.Node, p *Partition) bool {
	if p.Constraint == "" || strings.ContainsAny(p.Constraint, "|*[]()") {
		return true
	}
	for f := range strings.FieldsFuncSeq(p.Constraint, func(r rune) bool { return r == '&' || r == ',' }) {
		if !slices.Contains(n.Features, f) {
			return false
		}
	}
	return true
}

// shapes groups nodes by the size of their machines; it is a single group if the user sets the size.
func shapes(nodes []scheduler.Node, p *Partition) [][]scheduler.Node {
	var groups [][]scheduler.Node
	for _, n := range nodes {
		at := slices.IndexFunc(groups, func(g []scheduler.Node) bool { return p.CPUs > 0 || shape(&g[0]) == shape(&n) })
		if at < 0 {
			groups = append(groups, []scheduler.Node{n})
		} else {
			groups[at] = append(groups[at], n)
		}
	}
	return groups
}

// shape returns the name of a node's size, such as a100x4-64c-512g.
func shape(n *scheduler.Node) string {
	name := fmt.Sprintf("%dc-%dg", n.CPUs, n.Memory/size.GiB)
	if n.Accelerators > 0 {
		name = fmt.Sprintf("%sx%d-%s", n.Accelerator, n.Accelerators, name)
	}
	return strings.ToLower(name)
}

// offerOf returns the offer for a group of nodes.
func offerOf(c *scheduler.Cluster, name string, w *With, p *Partition, part scheduler.Partition,
	group []scheduler.Node) market.Offer {
	n := group[0]
	for _, other := range group {
		n.Memory = min(n.Memory, other.Memory)
	}
	if p.CPUs > 0 {
		n.CPUs, n.Memory, n.Accelerator, n.Accelerators = p.CPUs, p.memory, p.Accelerator, p.Accelerators
		if n.Accelerators > 0 && n.Accelerator == "" {
			n.Accelerator = cmp.Or(group[0].Accelerator, "gpu")
		}
	}
	capacity := p.Capacity
	if capacity == "" {
		capacity = market.OnDemand
		if part.Preempted {
			capacity = market.Spot
		}
	}
	o := market.Offer{Provider: name, Region: name, Zone: p.Name, Machine: cmp.Or(p.Machine, shape(&n)),
		Capacity: capacity,
		CPUs:     n.CPUs, Memory: n.Memory, Accelerator: n.Accelerator, Accelerators: n.Accelerators, Currency: w.Currency,
		MaxLifetime: lifetime(p, part), Machines: len(group)}
	if part.Nodes > 0 {
		o.Machines = min(o.Machines, part.Nodes)
	}
	if capacity == market.Spot {
		o.Notice = cmp.Or(part.Grace, c.KillWait)
	}
	o.ID = market.OfferID(fmt.Sprintf("%s/%s/%s/%s", name, o.Zone, o.Machine, capacity))
	return o
}

// lifetime returns the longest run of an allocation; 0 means no limit.
func lifetime(p *Partition, part scheduler.Partition) time.Duration {
	own := time.Duration(p.Time)
	if own > 0 {
		own = max(own.Truncate(time.Minute), time.Minute)
	}
	if own == 0 || part.Limit > 0 && part.Limit < own {
		return part.Limit
	}
	return own
}
