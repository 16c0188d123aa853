package awstest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"scrimp/internal/test/awstest/catalog"
)

func describeVpcs(c *call) (*node, error) {
	list := []owned[string]{{0, vpcID(c.region), nil, c.region}}
	return describe(c, "VpcId", "vpc-", "InvalidVpcID", "vpc", "vpcSet", list,
		[]string{"tags", "is-default", "isDefault", "vpc-id", "state"}, func(string, string) []string {
			return []string{"true", "available", vpcID(c.region)}
		}, func(string) *node {
			return x("item", x("vpcId", vpcID(c.region)), x("state", "available"), x("cidrBlock", c.s.net), x("isDefault", true),
				x("ownerId", c.s.o.Account), x("instanceTenancy", "default"))
		})
}

func describeSubnets(c *call) (*node, error) {
	var list []owned[catalog.Zone]
	for k, z := range c.s.zonesOf(c.region) {
		list = append(list, owned[catalog.Zone]{k, subnetID(z), nil, z})
	}
	return describe(c, "SubnetId", "subnet-", "InvalidSubnetID", "subnet", "subnetSet", list, []string{"tags", "vpc-id",
		"availability-zone", "availability-zone-id", "default-for-az", "subnet-id", "state"}, func(z catalog.Zone,
		name string) []string {
		return []string{map[string]string{"vpc-id": vpcID(c.region), "availability-zone": z.Name,
			"availability-zone-id": z.ID,
			"default-for-az":       "true", "subnet-id": subnetID(z), "state": "available"}[name]}
	}, func(z catalog.Zone) *node {
		return x("item", x("subnetId", subnetID(z)), x("vpcId", vpcID(c.region)), x("state", "available"),
			x("cidrBlock", c.s.net), x("availabilityZone", z.Name), x("availabilityZoneId", z.ID), x("defaultForAz", true),
			x("mapPublicIpOnLaunch", c.s.o.Public), x("availableIpAddressCount", 4091), x("ownerId", c.s.o.Account))
	})
}

func createSecurityGroup(c *call) (*node, error) {
	g := &group{region: c.region, name: c.must("GroupName"), about: c.must("GroupDescription"), egress: true,
		tags: tagsFor(c.tagSpecs(c.params), "security-group")}
	vpc := c.str("VpcId")
	if err := c.ready(); err != nil {
		return nil, err
	}
	if vpc != "" && vpc != vpcID(c.region) {
		return nil, bad("InvalidVpcID.NotFound", "The vpc ID '%s' does not exist", vpc)
	}
	if slices.ContainsFunc(c.s.groups, func(o *group) bool { return o.region == c.region && o.name == g.name }) ||
		g.name == "default" {
		return nil, bad("InvalidGroup.Duplicate", "The security group '%s' already exists for VPC '%s'", g.name,
			vpcID(c.region))
	}
	c.s.seq++
	g.seq, g.id = c.s.seq, c.s.id("sg")
	c.s.groups = append(c.s.groups, g)
	return x("out", x("return", true), x("groupId", g.id), g.tags.show()), nil
}

func describeSecurityGroups(c *call) (*node, error) {
	names := c.list("GroupName")
	list := mine(c, c.s.groups, func(g *group) (int, string, string, tags) { return g.seq, g.id, g.region, g.tags })
	list = append([]owned[*group]{{0, defaultGroup(c.region), nil, c.group(defaultGroup(c.region))}}, list...)
	if names != nil {
		list = slices.DeleteFunc(list, func(o owned[*group]) bool { return !slices.Contains(names, o.v.name) })
		if len(list) < len(names) {
			return nil, bad("InvalidGroup.NotFound", "The security groups %v do not all exist", names)
		}
	}
	return describe(c, "GroupId", "sg-", "InvalidGroup", "security group", "securityGroupInfo", list,
		[]string{"tags", "group-name", "group-id", "vpc-id", "description"}, func(g *group, name string) []string {
			return []string{map[string]string{"group-name": g.name, "group-id": g.id, "vpc-id": vpcID(g.region),
				"description": g.about}[name]}
		}, func(g *group) *node {
			out := x("ipPermissionsEgress")
			if g.egress {
				out.kids = append(out.kids, x("item", x("ipProtocol", "-1"), x("ipRanges", x("item", x("cidrIp", "0.0.0.0/0")))))
			}
			in := x("ipPermissions")
			if g.within {
				in.kids = append(in.kids, x("item", x("ipProtocol", "-1"), x("groups", x("item", x("groupId", g.id)))))
			}
			for _, cidr := range g.open {
				in.kids = append(in.kids, x("item", x("ipProtocol", "tcp"), x("ipRanges", x("item", x("cidrIp", cidr)))))
			}
			return x("item", x("groupId", g.id), x("groupName", g.name), x("groupDescription", g.about), x("ownerId",
				c.s.o.Account),
				x("vpcId", vpcID(g.region)), in, out, g.tags.show())
		})
}

func deleteSecurityGroup(c *call) (*node, error) {
	id, name := c.str("GroupId"), c.str("GroupName")
	if err := c.ready(); err != nil {
		return nil, err
	}
	k := slices.IndexFunc(c.s.groups, func(g *group) bool {
		return g.region == c.region && (g.id == id || id == "" && g.name == name)
	})
	if k < 0 {
		return nil, bad("InvalidGroup.NotFound", "The security group '%s' does not exist", or(id, name))
	}
	g := c.s.groups[k]
	if slices.ContainsFunc(c.s.cards, func(n *card) bool { return slices.Contains(n.groups, g.id) }) {
		return nil, bad("DependencyViolation", "resource %s has a dependent object", g.id)
	}
	c.s.groups = slices.Delete(c.s.groups, k, k+1)
	return x("out", x("return", true), x("groupId", g.id)), nil
}

func revokeSecurityGroupEgress(c *call) (*node, error) {
	id := c.must("GroupId")
	all := false
	for _, p := range c.each("IpPermissions") {
		protocol := p.must("IpProtocol")
		p.number("FromPort", -1)
		p.number("ToPort", -1)
		for _, list := range []string{"IpRanges", "Ipv6Ranges"} {
			for _, r := range p.each(list) {
				all = all || protocol == "-1" && r.str("CidrIp") == "0.0.0.0/0"
				r.str("CidrIpv6")
				r.str("Description")
			}
		}
	}
	if err := c.ready(); err != nil {
		return nil, err
	}
	g := c.group(id)
	if g == nil {
		return nil, bad("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
	}
	if !all || !g.egress {
		return nil, bad("InvalidPermission.NotFound", "The specified rule does not exist in this security group.")
	}
	g.egress = false
	return x("out", x("return", true)), nil
}

func deleteVolume(c *call) (*node, error) {
	id := c.must("VolumeId")
	if err := c.ready(); err != nil {
		return nil, err
	}
	k := slices.IndexFunc(c.s.volumes, func(v *volume) bool { return v.id == id && v.region == c.region })
	if k < 0 {
		return nil, bad("InvalidVolume.NotFound", "The volume '%s' does not exist.", id)
	}
	v := c.s.volumes[k]
	if v.instance != nil {
		return nil, bad("VolumeInUse", "Volume %s is currently attached to %s", id, v.instance.id)
	}
	v.deleted = c.now
	c.s.deleted = append(c.s.deleted, v)
	c.s.volumes = slices.Delete(c.s.volumes, k, k+1)
	return x("out", x("return", true)), nil
}

func describeNetworkInterfaces(c *call) (*node, error) {
	list := mine(c, c.s.cards, func(k *card) (int, string, string, tags) { return k.seq, k.id, k.region, k.tags })
	return describe(c, "NetworkInterfaceId", "eni-", "InvalidNetworkInterfaceID", "networkInterface",
		"networkInterfaceSet", list,
		[]string{"tags", "status", "attachment.instance-id", "availability-zone", "network-interface-id", "group-id",
			"subnet-id",
			"vpc-id"}, func(k *card, name string) []string {
			switch name {
			case "attachment.instance-id":
				if k.instance == nil {
					return nil
				}
				return []string{k.instance.id}
			case "group-id":
				return k.groups
			}
			return []string{map[string]string{"status": map[bool]string{true: "available", false: "in-use"}[k.instance == nil],
				"availability-zone": k.zone, "network-interface-id": k.id, "subnet-id": k.subnet, "vpc-id": vpcID(k.region)}[name]}
		}, func(k *card) *node { return c.showCard(k, false) })
}

func deleteNetworkInterface(c *call) (*node, error) {
	id := c.must("NetworkInterfaceId")
	if err := c.ready(); err != nil {
		return nil, err
	}
	k := slices.IndexFunc(c.s.cards, func(v *card) bool { return v.id == id && v.region == c.region })
	if k < 0 {
		return nil, bad("InvalidNetworkInterfaceID.NotFound", "The networkInterface ID '%s' does not exist", id)
	}
	if c.s.cards[k].instance != nil {
		return nil, bad("InvalidParameterValue", "Network interface '%s' is currently in use.", id)
	}
	c.s.cards = slices.Delete(c.s.cards, k, k+1)
	return x("out", x("return", true)), nil
}

func describeAddresses(c *call) (*node, error) {
	public := c.list("PublicIp")
	list := mine(c, c.s.addresses, func(a *address) (int, string, string, tags) { return a.seq, a.id, a.region, a.tags })
	if public != nil {
		list = slices.DeleteFunc(list, func(o owned[*address]) bool { return !slices.Contains(public, o.v.public) })
	}
	return describe(c, "AllocationId", "eipalloc-", "InvalidAllocationID", "allocation", "addressesSet", list,
		[]string{"tags", "instance-id", "public-ip", "allocation-id", "domain"}, func(a *address, name string) []string {
			if name == "instance-id" {
				if a.instance == nil {
					return nil
				}
				return []string{a.instance.id}
			}
			return []string{map[string]string{"public-ip": a.public, "allocation-id": a.id, "domain": "vpc"}[name]}
		}, func(a *address) *node {
			n := x("item", x("publicIp", a.public), x("allocationId", a.id), x("domain", "vpc"), a.tags.show())
			if a.instance != nil {
				n.kids = append(n.kids, x("instanceId", a.instance.id), x("associationId", "eipassoc-"+a.id[9:]))
			}
			return n
		})
}

func releaseAddress(c *call) (*node, error) {
	id := c.must("AllocationId")
	if err := c.ready(); err != nil {
		return nil, err
	}
	k := slices.IndexFunc(c.s.addresses, func(a *address) bool { return a.id == id && a.region == c.region })
	if k < 0 {
		return nil, bad("InvalidAllocationID.NotFound", "The allocation ID '%s' does not exist", id)
	}
	if c.s.addresses[k].instance != nil {
		return nil, bad("InvalidIPAddress.InUse", "The address with allocation ID '%s' is in use", id)
	}
	c.s.addresses = slices.Delete(c.s.addresses, k, k+1)
	return x("out", x("return", true)), nil
}

func createPlacementGroup(c *call) (*node, error) {
	p := &placement{region: c.region, name: c.must("GroupName"), strategy: or(c.oneOf("Strategy", "cluster", "spread"),
		"cluster"),
		tags: tagsFor(c.tagSpecs(c.params), "placement-group")}
	if err := c.ready(); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(c.s.places, func(o *placement) bool { return o.region == c.region && o.name == p.name }) {
		return nil, bad("InvalidPlacementGroup.Duplicate", "The placement group '%s' already exists.", p.name)
	}
	c.s.seq++
	p.seq, p.id = c.s.seq, c.s.id("pg")
	c.s.places = append(c.s.places, p)
	return x("out", c.showPlacement("placementGroup", p)), nil
}

func (c *call) showPlacement(name string, p *placement) *node {
	return x(name, x("groupId", p.id), x("groupName", p.name), x("strategy", p.strategy), x("state", "available"),
		x("groupArn", fmt.Sprintf("arn:aws:ec2:%s:%s:placement-group/%s", p.region, c.s.o.Account, p.name)), p.tags.show())
}

func describePlacementGroups(c *call) (*node, error) {
	names := c.list("GroupName")
	list := mine(c, c.s.places, func(p *placement) (int, string, string, tags) { return p.seq, p.id, p.region, p.tags })
	if names != nil {
		list = slices.DeleteFunc(list, func(o owned[*placement]) bool { return !slices.Contains(names, o.v.name) })
		if len(list) < len(names) {
			return nil, bad("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", strings.Join(names, ", "))
		}
	}
	return describe(c, "GroupId", "pg-", "InvalidPlacementGroup", "placement group", "placementGroupSet", list,
		[]string{"tags", "group-name", "strategy", "state"}, func(p *placement, name string) []string {
			return []string{map[string]string{"group-name": p.name, "strategy": p.strategy, "state": "available"}[name]}
		}, func(p *placement) *node { return c.showPlacement("item", p) })
}

func deletePlacementGroup(c *call) (*node, error) {
	name := c.must("GroupName")
	if err := c.ready(); err != nil {
		return nil, err
	}
	k := slices.IndexFunc(c.s.places, func(p *placement) bool { return p.name == name && p.region == c.region })
	if k < 0 {
		return nil, bad("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", name)
	}
	if slices.ContainsFunc(c.s.instances, func(i *instance) bool {
		return i.region == c.region && i.spec.group == name && i.state != terminated
	}) {
		return nil, bad("InvalidPlacementGroup.InUse", "The placement group %s is in use and may not be deleted.", name)
	}
	c.s.places = slices.Delete(c.s.places, k, k+1)
	return x("out", x("return", true)), nil
}

// A labelled thing is a resource that can have tags.
type labelled struct {
	seq          int
	id, resource string
	tags         tags
}

func (c *call) labelled() (list []labelled) {
	add := func(seq int, region, id, resource string, t *tags) {
		if *t == nil {
			*t = tags{}
		}
		if region == c.region {
			list = append(list, labelled{seq, id, resource, *t})
		}
	}
	for _, i := range c.s.instances {
		if !i.visible.After(c.now) {
			add(i.seq, i.region, i.id, "instance", &i.tags)
		}
	}
	for _, v := range c.s.volumes {
		add(v.seq, v.region, v.id, "volume", &v.tags)
	}
	for _, k := range c.s.cards {
		add(k.seq, k.region, k.id, "network-interface", &k.tags)
	}
	for _, r := range c.s.requests {
		add(r.seq, r.region, r.id, "spot-instances-request", &r.tags)
	}
	for _, g := range c.s.groups {
		add(g.seq, g.region, g.id, "security-group", &g.tags)
	}
	for _, t := range c.s.templates {
		add(t.seq, t.region, t.id, "launch-template", &t.tags)
	}
	for _, f := range c.s.fleets {
		add(f.seq, f.region, f.id, "fleet", &f.tags)
	}
	for _, p := range c.s.places {
		add(p.seq, p.region, p.id, "placement-group", &p.tags)
	}
	for _, a := range c.s.addresses {
		add(a.seq, a.region, a.id, "elastic-ip", &a.tags)
	}
	slices.SortFunc(list, func(a, b labelled) int { return a.seq - b.seq })
	return list
}

func changeTags(c *call) (*node, error) {
	wanted, t := c.list("ResourceId"), readTags(c.params)
	if err := c.ready(); err != nil {
		return nil, err
	}
	all := c.labelled()
	for _, id := range wanted {
		if !slices.ContainsFunc(all, func(l labelled) bool { return l.id == id }) {
			kind, _, _ := strings.Cut(id, "-")
			code := map[string]string{"i": "InvalidInstanceID.NotFound", "vol": "InvalidVolume.NotFound",
				"eni": "InvalidNetworkInterfaceID.NotFound", "sir": "InvalidSpotInstanceRequestID.NotFound"}[kind]
			return nil, bad(or(code, "InvalidID"), "The ID '%s' does not exist", id)
		}
	}
	for _, l := range all {
		if !slices.Contains(wanted, l.id) {
			continue
		}
		if c.action == "CreateTags" {
			maps.Copy(l.tags, t)
			continue
		}
		maps.DeleteFunc(l.tags, func(k, v string) bool {
			if len(t) == 0 {
				return !strings.HasPrefix(k, "aws:")
			}
			old, named := t[k]
			return named && (old == "" || old == v)
		})
	}
	return x("out", x("return", true)), nil
}

func describeTags(c *call) (*node, error) {
	type entry struct {
		labelled
		key string
	}
	filters := c.filters("key", "value", "resource-id", "resource-type")
	var list []entry
	for _, l := range c.labelled() {
		for _, k := range slices.Sorted(maps.Keys(l.tags)) {
			if pass(filters, nil, func(f string) []string {
				return []string{map[string]string{"key": k, "value": l.tags[k], "resource-id": l.id,
					"resource-type": l.resource}[f]}
			}) {
				list = append(list, entry{l, k})
			}
		}
	}
	chosen, next, err := page(c, number(list), numbered[entry].seq, 5, 1000)
	if err := first(c.ready(), err); err != nil {
		return nil, err
	}
	return x("out", items("tagSet", chosen, func(n numbered[entry]) *node {
		return x("item", x("key", n.v.key), x("value", n.v.tags[n.v.key]), x("resourceId", n.v.id), x("resourceType",
			n.v.resource))
	}), next), nil
}
