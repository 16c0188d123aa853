package slurm

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// usualKillWait is Slurm's own, where nobody says what it is set to.
const usualKillWait = 30 * time.Second

// cluster is what there is.
type cluster struct {
	at         time.Time
	partitions map[string]partition
	nodes      []node
	killWait   time.Duration // between the end's SIGTERM and SIGKILL
}

type partition struct {
	state     string // UP, DOWN, DRAIN, INACTIVE
	limit     time.Duration
	nodes     int           // that a job may have at most; 0: there is no limit
	grace     time.Duration // from a preemption's notice to its end
	preempted bool          // its jobs may be
	defaults  bool          // a job that asks for no time gets less than the limit
}

// node is a node as one partition has it.
type node struct {
	name, partition, address, host string
	cpus                           int
	memory                         size.Bytes
	accelerator                    string
	accelerators                   int
	features                       []string
	usable                         bool
}

// config takes what scontrol show config says.
func (c *cluster) config(text string) {
	c.killWait = usualKillWait
	for l := range strings.Lines(text) {
		name, value, _ := strings.Cut(l, "=")
		if strings.TrimSpace(name) != "KillWait" {
			continue
		}
		if s, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " sec")); err == nil {
			c.killWait = time.Duration(s) * time.Second
		}
	}
}

// fields are the NAME=VALUE of a line.
func fields(line string) map[string]string {
	f := map[string]string{}
	for w := range strings.FieldsSeq(line) {
		if name, value, ok := strings.Cut(w, "="); ok {
			f[name] = value
		}
	}
	return f
}

// limit reads [DAYS-]HOURS:MINUTES:SECONDS; 0: there is none.
func limit(s string) time.Duration {
	days, rest, ok := strings.Cut(s, "-")
	if !ok {
		days, rest = "0", s
	}
	d, err := strconv.Atoi(days)
	parts := strings.Split(rest, ":")
	if err != nil || len(parts) > 3 {
		return 0
	}
	for len(parts) < 3 {
		parts = append([]string{"0"}, parts...)
	}
	sum := time.Duration(d) * 24 * time.Hour
	for n, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
		v, err := strconv.Atoi(parts[n])
		if err != nil {
			return 0 // UNLIMITED
		}
		sum += time.Duration(v) * unit
	}
	return sum
}

func readNode(line string) (n node, ok bool) {
	f := strings.Split(line, "|")
	if len(f) != 9 {
		return n, false
	}
	cpus, err := strconv.Atoi(strings.TrimSuffix(f[2], "+"))
	memory, err2 := strconv.ParseInt(strings.TrimSuffix(f[3], "+"), 10, 64)
	if err != nil || err2 != nil || cpus <= 0 {
		return n, false
	}
	n = node{name: f[0], partition: strings.TrimSuffix(f[1], "*"), cpus: cpus, memory: size.Bytes(memory << 20),
		address: f[7], host: f[8], usable: usable(f[5]), features: strings.Split(f[6], ",")}
	n.accelerator, n.accelerators = gpus(f[4])
	return n, true
}

// usable reports whether jobs may come to run on a node in such a state. One that does not answer may (a star
// stands behind its state): its job waits.
func usable(state string) bool {
	for _, bad := range []string{"down", "drain", "fail", "error", "maint", "reboot", "inval", "future"} {
		if strings.HasPrefix(state, bad) {
			return false
		}
	}
	return true
}

var ofGPU = regexp.MustCompile(`^gpu(?::([^:(]+))?:(\d+)`)

// gpus are the accelerators among generic resources, such as gpu:a100:4(S:0-1),shard:8.
func gpus(gres string) (kind string, n int) {
	for g := range strings.SplitSeq(gres, ",") {
		if m := ofGPU.FindStringSubmatch(g); m != nil {
			n, _ = strconv.Atoi(m[2])
			return cmp.Or(m[1], "gpu"), n
		}
	}
	return "", 0
}

// sale is an offer with what a job is submitted with for it.
type sale struct {
	offer market.Offer
	quote market.Quote
	of    *Partition
	part  partition
	whole bool   // the machine is all of a node
	sole  bool   // and the partition has no other nodes
	why   string // why none can be had; "": it can
	here  bool   // its nodes are this machine

	killWait time.Duration
}

// sales are what is sold of the cluster, for the engine of that name.
func (c *cluster) sales(name string, w *With, local func(node) bool) []sale {
	var all []sale
	for i := range w.Partitions {
		p := &w.Partitions[i]
		part, known := c.partitions[p.Name]
		var own []node
		for _, n := range c.nodes {
			if n.partition == p.Name && n.has(p) {
				own = append(own, n)
			}
		}
		groups := shapes(own, p)
		for _, group := range groups {
			s := sale{of: p, part: part, whole: p.CPUs == 0, sole: len(groups) == 1, here: true, killWait: c.killWait}
			s.offer = c.offer(name, w, p, part, group)
			some := false
			for _, n := range group {
				some = some || n.usable
				s.here = s.here && local(n)
			}
			switch {
			case !known:
				s.why = "there is no partition " + p.Name + ": sinfo -s lists them"
			case part.state != "UP":
				s.why = fmt.Sprintf("partition %s is %s: scontrol show partition %s says "+
					"more", p.Name, part.state, p.Name)
			case !some:
				s.why = fmt.Sprintf("no node of %s is up: sinfo -R says why", p.Name)
			}
			s.quote = market.Quote{Offer: s.offer.ID, Rate: p.rate, Priced: p.priced, Available: s.why == "", At: c.at.UTC(),
				Source: "slurm"}
			all = append(all, s)
		}
	}
	return all
}

// has reports whether a node has the features that a partition's constraint names. One that is more than a list
// of them is left to Slurm.
func (n *node) has(p *Partition) bool {
	if p.Constraint == "" || strings.ContainsAny(p.Constraint, "|*[]()") {
		return true
	}
	for f := range strings.FieldsFuncSeq(p.Constraint, func(r rune) bool { return r == '&' || r == ',' }) {
		if !slices.Contains(n.features, f) {
			return false
		}
	}
	return true
}

// shapes groups nodes by what a machine on them has: one group where the user says what that is.
func shapes(nodes []node, p *Partition) [][]node {
	var groups [][]node
	for _, n := range nodes {
		at := slices.IndexFunc(groups, func(g []node) bool { return p.CPUs > 0 || g[0].shape() == n.shape() })
		if at < 0 {
			groups = append(groups, []node{n})
		} else {
			groups[at] = append(groups[at], n)
		}
	}
	return groups
}

// shape is the name of a whole node's kind, such as a100x4-64c-512g.
func (n *node) shape() string {
	name := fmt.Sprintf("%dc-%dg", n.cpus, n.memory/size.GiB)
	if n.accelerators > 0 {
		name = fmt.Sprintf("%sx%d-%s", n.accelerator, n.accelerators, name)
	}
	return strings.ToLower(name)
}

// offer is what is sold of a group of nodes.
func (c *cluster) offer(name string, w *With, p *Partition, part partition, group []node) market.Offer {
	n := group[0]
	for _, other := range group {
		n.memory = min(n.memory, other.memory)
	}
	if p.CPUs > 0 {
		n.cpus, n.memory, n.accelerator, n.accelerators = p.CPUs, p.memory, p.Accelerator, p.Accelerators
		if n.accelerators > 0 && n.accelerator == "" {
			n.accelerator = cmp.Or(group[0].accelerator, "gpu")
		}
	}
	capacity := p.Capacity
	if capacity == "" {
		capacity = market.OnDemand
		if part.preempted {
			capacity = market.Spot
		}
	}
	o := market.Offer{Provider: name, Region: name, Zone: p.Name, Machine: cmp.Or(p.Machine, n.shape()),
		Capacity: capacity,
		CPUs:     n.cpus, Memory: n.memory, Accelerator: n.accelerator, Accelerators: n.accelerators, Currency: w.Currency,
		MaxLifetime: lifetime(p, part), Machines: len(group)}
	if part.nodes > 0 {
		o.Machines = min(o.Machines, part.nodes)
	}
	if capacity == market.Spot {
		o.Notice = cmp.Or(part.grace, c.killWait)
	}
	o.ID = market.OfferID(fmt.Sprintf("%s/%s/%s/%s", name, o.Zone, o.Machine, capacity))
	return o
}

// lifetime is the longest that an allocation may run; 0: there is no limit.
func lifetime(p *Partition, part partition) time.Duration {
	own := time.Duration(p.Time)
	if own > 0 {
		own = max(own.Truncate(time.Minute), time.Minute)
	}
	if own == 0 || part.limit > 0 && part.limit < own {
		return part.limit
	}
	return own
}
