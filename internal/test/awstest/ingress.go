package awstest

// authorizeSecurityGroupIngress admits the members of a group, or addresses over TCP. Other groups are not
// supported.
func authorizeSecurityGroupIngress(c *call) (*node, error) {
	id := c.must("GroupId")
	var open []string
	for _, p := range c.each("IpPermissions") {
		p.oneOf("IpProtocol", "-1", "tcp")
		p.number("FromPort", 0)
		p.number("ToPort", 0)
		for _, r := range p.each("IpRanges") {
			open = append(open, r.must("CidrIp"))
		}
		for _, g := range p.each("Groups") {
			if g.must("GroupId") != id {
				g.fail(bad("InvalidParameterValue", "only the group itself is let in by this cloud"))
			}
		}
	}
	if err := c.ready(); err != nil {
		return nil, err
	}
	for _, g := range c.s.groups {
		if g.region != c.region || g.id != id {
			continue
		}
		if len(open) > 0 {
			g.open = append(g.open, open...)
			return x("out", x("return", true)), nil
		}
		if g.within {
			return nil, bad("InvalidPermission.Duplicate", "the specified rule already exists")
		}
		g.within = true
		return x("out", x("return", true)), nil
	}
	return nil, bad("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
}
