// Package sale derives the offers of an engine from the nodes of its partitions, and the orders of their jobs.
package sale

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"scrimp/internal/engine/slurm/scheduler"
	"scrimp/internal/engine/slurm/setting"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// Sale is an offer with what its jobs are submitted with.
type Sale struct {
	with  *setting.With
	Offer market.Offer
	Quote market.Quote
	Of    *setting.Partition
	part  scheduler.Partition
	whole bool   // the machine is a whole node
	sole  bool   // the partition has no other kinds of nodes
	Why   string // why no machine is available; empty: one is
	Here  bool   // its nodes are this machine

	killWait time.Duration
}

// Of returns the offers of the cluster for the named engine.
func Of(c *scheduler.Cluster, name string, w *setting.With, local func(scheduler.Node) bool) []Sale {
	var all []Sale
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
			s := Sale{with: w, Of: p, part: part, whole: p.CPUs == 0, sole: len(groups) == 1, Here: true, killWait: c.KillWait}
			s.Offer = offerOf(c, name, w, p, part, group)
			some := false
			for _, n := range group {
				some = some || n.Usable
				s.Here = s.Here && local(n)
			}
			switch {
			case !known:
				s.Why = "there is no partition " + p.Name + ": sinfo -s lists them"
			case part.State != "UP":
				s.Why = fmt.Sprintf("partition %s is %s: scontrol show partition %s says "+
					"more", p.Name, part.State, p.Name)
			case !some:
				s.Why = fmt.Sprintf("no node of %s is up: sinfo -R says why", p.Name)
			}
			s.Quote = market.Quote{Offer: s.Offer.ID, Rate: p.HourRate, Priced: p.Priced, Available: s.Why == "", At: c.At.UTC(),
				Source: "slurm"}
			all = append(all, s)
		}
	}
	return all
}

// fits reports whether a node has the features in a partition's constraint. It leaves constraints other than plain
// lists to Slurm.
func fits(n *scheduler.Node, p *setting.Partition) bool {
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
func shapes(nodes []scheduler.Node, p *setting.Partition) [][]scheduler.Node {
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
func offerOf(c *scheduler.Cluster, name string, w *setting.With, p *setting.Partition, part scheduler.Partition,
	group []scheduler.Node) market.Offer {
	n := group[0]
	for _, other := range group {
		n.Memory = min(n.Memory, other.Memory)
	}
	if p.CPUs > 0 {
		n.CPUs, n.Memory, n.Accelerator, n.Accelerators = p.CPUs, p.MachineMemory, p.Accelerator, p.Accelerators
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
func lifetime(p *setting.Partition, part scheduler.Partition) time.Duration {
	own := time.Duration(p.Time)
	if own > 0 {
		own = max(own.Truncate(time.Minute), time.Minute)
	}
	if own == 0 || part.Limit > 0 && part.Limit < own {
		return part.Limit
	}
	return own
}

// lead returns how long before its time limit an allocation gets a signal.
func (s *Sale) lead() time.Duration {
	l := cmp.Or(time.Duration(s.with.Signal), time.Minute)
	if most := s.Offer.MaxLifetime; most > 0 && l > most/4 {
		l = most / 4
	}
	return l
}

// Notice returns how long a machine remains after its agent hears of its end.
func (s *Sale) Notice() time.Duration {
	switch {
	case s.Offer.Capacity == market.Spot:
		return min(s.Offer.Notice, s.lead())
	case s.Offer.MaxLifetime > 0:
		return s.lead()
	}
	return cmp.Or(s.killWait, 30*time.Second)
}

// Order returns the job to submit for a request of so many nodes, without its folder.
func (s *Sale) Order(name, comment string, nodes int) *scheduler.Order {
	p, offer := s.Of, &s.Offer
	o := &scheduler.Order{Name: name, Comment: comment, Partition: p.Name, Nodes: nodes, CPUs: offer.CPUs,
		Exclusive: s.whole, Memory: offer.Memory, Accelerator: offer.Accelerator, Accelerators: offer.Accelerators,
		Lead: s.lead(), Limit: offer.MaxLifetime, Unlimited: offer.MaxLifetime == 0 && s.part.Defaults,
		Account: cmp.Or(p.Account, s.with.Account), QOS: cmp.Or(p.QOS, s.with.QOS), WCKey: s.with.WCKey,
		Constraint: p.Constraint, Options: slices.Concat(s.with.Options, p.Options)}
	if s.whole && s.sole { // other nodes of the partition would have less
		o.Memory = 0
	}
	return o
}
