package awstest

import (
	"slices"
	"time"

	"scrimp/internal/test/awstest/catalog"
)

type volume struct {
	seq              int
	id, region, zone string
	device, typ      string
	gb               int
	own              bool // deleted with its instance
	instance         *instance
	maker            string // the instance that it came with
	created, deleted time.Time
	tags             tags
}

type card struct {
	seq                       int
	id, region, zone          string
	subnet, kind, description string
	index, network            int
	own                       bool
	instance                  *instance
	tags                      tags
	groups                    []string
	address                   string
	created                   time.Time
}

type address struct {
	seq                int
	id, region, public string
	instance           *instance
	tags               tags
	created            time.Time
}

type group struct {
	seq                     int
	id, region, name, about string
	tags                    tags
	egress                  bool     // has the rule that allows all egress
	within                  bool     // its members can reach each other
	open                    []string // addresses that can reach them over TCP
}

type placement struct {
	seq                        int
	id, region, name, strategy string
	tags                       tags
}

func subnetID(z catalog.Zone) string { return "subnet-" + hash([]byte(z.Name))[:17] }

func vpcID(region string) string { return "vpc-" + hash([]byte(region))[:17] }

func defaultGroup(region string) string { return "sg-" + hash([]byte("default " + region))[:17] }

// group returns a group of the region.
func (c *call) group(id string) *group {
	if id == defaultGroup(c.region) {
		return &group{id: id, region: c.region, name: "default", about: "default VPC security group", egress: true}
	}
	for _, g := range c.s.groups {
		if g.id == id && g.region == c.region {
			return g
		}
	}
	return nil
}

func (c *call) groupsOf(d spec) (list []*group) {
	wanted := d.groups
	if len(d.cards) > 0 {
		wanted = d.cards[0].groups
	}
	if len(wanted) == 0 {
		wanted = []string{defaultGroup(c.region)}
	}
	for _, id := range wanted {
		if g := c.group(id); g != nil {
			list = append(list, g)
		}
	}
	return list
}

func showGroupName(g *group) *node { return x("item", x("groupId", g.id), x("groupName", g.name)) }

// attach creates the volumes and interfaces of an instance.
func (c *call) attach(i *instance) {
	s := c.s
	disks := []disk{{device: i.image.Device, typ: "gp3", gb: i.image.RootGB}}
	for _, d := range i.spec.disks {
		if d.device == i.image.Device {
			disks[0].gb, disks[0].keep = max(d.gb, disks[0].gb), d.keep
			disks[0].typ = or(d.typ, disks[0].typ)
		} else {
			disks = append(disks, d)
		}
	}
	for _, d := range disks {
		s.seq++
		s.volumes = append(s.volumes, &volume{seq: s.seq, id: s.id("vol"), region: i.region, zone: i.zone.Name,
			device: d.device,
			typ:    or(d.typ, "gp2"), gb: d.gb, own: !d.keep, instance: i, maker: i.id, created: c.now,
			tags: tagsFor(i.spec.tags, "volume")})
	}
	cards := i.spec.cards
	if cards == nil {
		cards = []cardSpec{{groups: i.spec.groups}}
	}
	for k, d := range cards {
		s.seq++
		n := &card{seq: s.seq, id: s.id("eni"), region: i.region, zone: i.zone.Name, subnet: i.subnet, kind: or(d.kind,
			"interface"),
			index: d.index, network: d.network, own: !d.keep, instance: i, groups: d.groups, created: c.now,
			tags: tagsFor(i.spec.tags, "network-interface")}
		if k == 0 {
			n.address = i.address.String()
		}
		s.cards = append(s.cards, n)
	}
}

func (s *Server) disksOf(i *instance) (list []*volume) {
	for _, v := range s.volumes {
		if v.instance == i {
			list = append(list, v)
		}
	}
	return list
}

func (s *Server) cardsOf(i *instance) (list []*card) {
	for _, k := range s.cards {
		if k.instance == i {
			list = append(list, k)
		}
	}
	return list
}

func (c *call) showCard(k *card, inside bool) *node {
	n := x("item", x("networkInterfaceId", k.id), x("subnetId", k.subnet), x("vpcId", vpcID(k.region)),
		x("ownerId", c.s.o.Account), x("description", k.description), x("interfaceType", k.kind), opt("privateIpAddress",
			k.address),
		x("sourceDestCheck", true), items("groupSet", c.groupsOf(spec{groups: k.groups}), showGroupName))
	state := "available"
	if k.instance != nil {
		state = "in-use"
		a := x("attachment", x("attachmentId", "eni-attach-"+k.id[4:]), x("deviceIndex", k.index), x("networkCardIndex",
			k.network),
			x("status", "attached"), x("attachTime", k.created), x("deleteOnTermination", k.own))
		if !inside {
			a.kids = append(a.kids, x("instanceId", k.instance.id), x("instanceOwnerId", c.s.o.Account))
		}
		n.kids = append(n.kids, a)
	}
	n.kids = append(n.kids, x("status", state))
	if !inside {
		n.kids = append(n.kids, x("availabilityZone", k.zone), k.tags.show())
	}
	return n
}

func describeVolumes(c *call) (*node, error) {
	return describe(c, "VolumeId", "vol-", "InvalidVolume", "volume", "volumeSet", mine(c, c.s.volumes,
		func(v *volume) (int, string, string, tags) { return v.seq, v.id, v.region, v.tags }), []string{"tags", "status",
		"attachment.instance-id", "availability-zone", "volume-id", "volume-type", "attachment.delete-on-termination"},
		func(v *volume, name string) []string {
			switch name {
			case "status":
				return []string{map[bool]string{true: "available", false: "in-use"}[v.instance == nil]}
			case "attachment.instance-id":
				if v.instance != nil {
					return []string{v.instance.id}
				}
				return nil
			case "availability-zone":
				return []string{v.zone}
			case "volume-type":
				return []string{v.typ}
			case "attachment.delete-on-termination":
				return []string{map[bool]string{true: "true", false: "false"}[v.own]}
			}
			return []string{v.id}
		}, func(v *volume) *node {
			n := x("item", x("volumeId", v.id), x("size", v.gb), x("availabilityZone", v.zone), x("createTime", v.created),
				x("volumeType", v.typ), x("encrypted", false), v.tags.show(), x("multiAttachEnabled", false))
			if v.instance == nil {
				n.kids = append(n.kids, x("status", "available"))
				return n
			}
			n.kids = append(n.kids, x("status", "in-use"), x("attachmentSet", x("item", x("volumeId", v.id), x("instanceId",
				v.instance.id),
				x("device", v.device), x("status", "attached"), x("attachTime", v.created), x("deleteOnTermination", v.own))))
			return n
		})
}

// An owned thing has what every list of EC2 needs.
type owned[T any] struct {
	seq  int
	id   string
	tags tags
	v    T
}

// mine returns the things in the request's region.
func mine[T any](c *call, list []T, of func(T) (int, string, string, tags)) (out []owned[T]) {
	for _, v := range list {
		if seq, id, region, t := of(v); region == c.region {
			out = append(out, owned[T]{seq, id, t, v})
		}
	}
	return out
}

// describe handles an action that lists things by ID and filters, in pages.
func describe[T any](c *call, param, prefix, code, what, set string, list []owned[T], filters []string,
	value func(T, string) []string, show func(T) *node) (*node, error) {
	wanted, fs := c.list(param), c.filters(filters...)
	var missing []string
	for _, id := range wanted {
		if prefix != "" && !wellFormed(id, prefix) {
			return nil, first(c.end(), bad(code+"ID.Malformed", "Invalid id: \"%s\"", id))
		}
		if !slices.ContainsFunc(list, func(o owned[T]) bool { return o.id == id }) {
			missing = append(missing, id)
		}
	}
	var chosen []owned[T]
	for _, o := range list {
		if (len(wanted) == 0 || slices.Contains(wanted, o.id)) &&
			pass(fs, o.tags, func(name string) []string { return value(o.v, name) }) {
			chosen = append(chosen, o)
		}
	}
	chosen, next, err := page(c, chosen, func(o owned[T]) int { return o.seq }, 1, 1000)
	if err := first(c.ready(), err); err != nil {
		return nil, err
	}
	if missing != nil {
		return nil, notFound(code+".NotFound", what, missing)
	}
	return x("out", items(set, chosen, func(o owned[T]) *node { return show(o.v) }), next), nil
}
