package awstest

import (
	"encoding/base64"
	"strings"
	"time"
)

func showReservation(c *call, id string, list []*instance) *node {
	return x("reservation", x("reservationId", id), x("ownerId", c.s.o.Account), x("groupSet"),
		items("instancesSet", list, func(i *instance) *node { return c.show(i) }))
}

func showState(name string, state int) *node {
	return x(name, x("code", state), x("name", stateNames[state]))
}

func (c *call) show(i *instance) *node {
	private := "ip-" + strings.ReplaceAll(i.address.String(), ".", "-") + "." + i.region + ".compute.internal"
	n := x("item", x("instanceId", i.id), x("imageId", i.image.ID), showState("instanceState", i.state),
		opt("keyName", i.spec.key), x("amiLaunchIndex", i.index), x("instanceType", i.typ.Name), x("launchTime", i.launched),
		x("placement", x("availabilityZone", i.zone.Name), x("availabilityZoneId", i.zone.ID), x("groupName", i.spec.group),
			x("tenancy", "default")),
		x("monitoring", x("state", map[bool]string{true: "enabled", false: "disabled"}[isTrue(i.spec.monitoring)])),
		x("architecture", i.typ.Arch), x("rootDeviceType", "ebs"), x("rootDeviceName", i.image.Device),
		x("virtualizationType", "hvm"), x("clientToken", i.token), x("hypervisor", "xen"),
		x("ebsOptimized", isTrue(i.spec.ebsOptimized)), x("enaSupport", true), x("sourceDestCheck", true),
		x("platformDetails", "Linux/UNIX"), x("usageOperation", "RunInstances"),
		x("usageOperationUpdateTime", i.launched), x("reason", i.transition),
		x("metadataOptions", x("state", "applied"), x("httpTokens", or(i.spec.tokens, "required")),
			x("httpPutResponseHopLimit", max(1, i.spec.hops)), x("httpEndpoint", "enabled")), i.tags.show())
	if i.request != nil {
		n.kids = append(n.kids, x("instanceLifecycle", "spot"), x("spotInstanceRequestId", i.request.id))
	}
	n.kids = append(n.kids, i.showHeld()...)
	if i.reasonCode != "" {
		n.kids = append(n.kids, x("stateReason", x("code", i.reasonCode), x("message", i.reasonText)))
	}
	if i.spec.profile != "" || i.spec.arn != "" {
		n.kids = append(n.kids, x("iamInstanceProfile", x("arn", or(i.spec.arn,
			"arn:aws:iam::"+c.s.o.Account+":instance-profile/"+i.spec.profile)), x("id", "AIPATESTTESTTESTTEST")))
	}
	if i.state == terminated || i.state == shuttingDown {
		n.kids = append(n.kids, x("privateDnsName"), x("dnsName"), x("blockDeviceMapping"), x("networkInterfaceSet"),
			x("groupSet"))
		return n // net and disks are no longer shown
	}
	n.kids = append(n.kids, x("privateDnsName", private), x("dnsName", ""), x("privateIpAddress", i.address),
		opt("ipAddress", i.public), x("subnetId", i.subnet), x("vpcId", vpcID(i.region)),
		items("groupSet", c.groupsOf(i.spec), showGroupName),
		items("blockDeviceMapping", c.s.disksOf(i), func(v *volume) *node {
			return x("item", x("deviceName", v.device), x("ebs", x("volumeId", v.id), x("status", "attached"),
				x("attachTime", v.created), x("deleteOnTermination", v.own)))
		}), items("networkInterfaceSet", c.s.cardsOf(i), func(k *card) *node { return c.showCard(k, true) }))
	return n
}

func isTrue(b *bool) bool { return b != nil && *b }

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

var instanceFilters = []string{"tags", "instance-id", "instance-type", "instance-state-name", "instance-state-code",
	"client-token", "availability-zone", "instance-lifecycle", "spot-instance-request-id", "image-id", "subnet-id",
	"vpc-id",
	"private-ip-address", "reservation-id", "placement-group-name", "architecture", "owner-id",
	"network-interface.network-interface-id"}

// instanceFields are the filters of DescribeInstances that compare one value, which every instance has.
var instanceFields = map[string]func(*instance) string{
	"instance-id":          func(i *instance) string { return i.id },
	"instance-type":        func(i *instance) string { return i.typ.Name },
	"instance-state-name":  func(i *instance) string { return stateNames[i.state] },
	"instance-state-code":  func(i *instance) string { return itoa(i.state) },
	"client-token":         func(i *instance) string { return i.token },
	"availability-zone":    func(i *instance) string { return i.zone.Name },
	"image-id":             func(i *instance) string { return i.image.ID },
	"subnet-id":            func(i *instance) string { return i.subnet },
	"vpc-id":               func(i *instance) string { return vpcID(i.region) },
	"private-ip-address":   func(i *instance) string { return i.address.String() },
	"reservation-id":       func(i *instance) string { return i.reservation },
	"placement-group-name": func(i *instance) string { return i.spec.group },
	"architecture":         func(i *instance) string { return i.typ.Arch },
}

// instanceValue returns the values that an instance has under the name of a filter.
func (c *call) instanceValue(i *instance) func(string) []string {
	return func(name string) []string {
		if field, ok := instanceFields[name]; ok {
			return []string{field(i)}
		}
		switch name {
		case "instance-lifecycle":
			if i.request != nil {
				return []string{"spot"}
			}
		case "spot-instance-request-id":
			if i.request != nil {
				return []string{i.request.id}
			}
		case "owner-id":
			return []string{c.s.o.Account}
		case "network-interface.network-interface-id":
			return ids(c.s.cardsOf(i), func(k *card) string { return k.id })
		}
		return nil
	}
}

func ids[T any](list []T, of func(T) string) (out []string) {
	for _, v := range list {
		out = append(out, of(v))
	}
	return out
}

// named returns the instances that a request names, or all.
func (c *call) named(wanted []string) (list []*instance, err error) {
	if len(wanted) == 0 {
		for _, i := range c.s.instances {
			if i.region == c.region && !i.visible.After(c.now) {
				list = append(list, i)
			}
		}
		return list, nil
	}
	var missing []string
	for _, id := range wanted {
		if !wellFormed(id, "i-") {
			return nil, bad("InvalidInstanceID.Malformed", "Invalid id: \"%s\"", id)
		}
		if i := c.find(id); i != nil {
			list = append(list, i)
		} else {
			missing = append(missing, id)
		}
	}
	if missing != nil {
		return nil, notFound("InvalidInstanceID.NotFound", "instance", missing)
	}
	return list, nil
}

func wellFormed(id, prefix string) bool {
	hex, ok := strings.CutPrefix(id, prefix)
	return ok && (len(hex) == 8 || len(hex) == 17) && strings.Trim(hex, "0123456789abcdef") == ""
}

func describeInstances(c *call) (*node, error) {
	wanted, filters := c.list("InstanceId"), c.filters(instanceFilters...)
	if len(wanted) > 0 && c.has("MaxResults") {
		return nil, bad("InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter "+
			"maxResults")
	}
	list, err := c.named(wanted)
	if err != nil {
		return nil, first(c.ready(), err)
	}
	var chosen []*instance
	for _, i := range list {
		if pass(filters, i.tags, c.instanceValue(i)) {
			chosen = append(chosen, i)
		}
	}
	chosen, next, err := page(c, chosen, func(i *instance) int { return i.seq }, 5, 1000)
	if err := first(c.ready(), err); err != nil {
		return nil, err
	}
	out := x("out", x("reservationSet"), next)
	for k := 0; k < len(chosen); {
		to := k + 1
		for to < len(chosen) && chosen[to].reservation == chosen[k].reservation {
			to++
		}
		r := showReservation(c, chosen[k].reservation, chosen[k:to])
		r.name = "item"
		out.kids[0].kids = append(out.kids[0].kids, r)
		k = to
	}
	return out, nil
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func terminateInstances(c *call) (*node, error) {
	wanted := c.list("InstanceId")
	c.flag("Force", false)
	c.flag("SkipOsShutdown", false)
	if err := c.ready(); err != nil {
		return nil, err
	}
	if len(wanted) == 0 {
		return nil, bad("MissingParameter", "The request must contain the parameter InstanceId")
	}
	list, err := c.named(wanted)
	if err != nil {
		return nil, err
	}
	for _, i := range list {
		if isTrue(i.spec.protected) {
			return nil, bad("OperationNotPermitted", "The instance '%s' may not be terminated. Modify its "+
				"'disableApiTermination' instance attribute and try again.", i.id)
		}
	}
	return x("out", items("instancesSet", list, func(i *instance) *node {
		before := i.state
		c.s.endByUser(i, c.now)
		return x("item", x("instanceId", i.id), showState("currentState", i.state), showState("previousState", before))
	})), nil
}

func (s *Server) endByUser(i *instance, now time.Time) {
	s.finish(i, now, "Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown",
		userInitiated(now), false)
}

func userInitiated(at time.Time) string {
	return "User initiated (" + at.Format(time.DateTime) + " GMT)"
}

func describeInstanceAttribute(c *call) (*node, error) {
	id, what := c.must("InstanceId"), c.must("Attribute")
	list, err := c.named([]string{id})
	if err := first(c.ready(), err); err != nil {
		return nil, err
	}
	i, out := list[0], x("out", x("instanceId", id))
	value := func(name string, v any) (*node, error) {
		out.kids = append(out.kids, x(name, x("value", v)))
		return out, nil
	}
	switch what {
	case "userData":
		return value("userData", i.spec.userData)
	case "instanceType":
		return value("instanceType", i.typ.Name)
	case "disableApiTermination":
		return value("disableApiTermination", isTrue(i.spec.protected))
	case "instanceInitiatedShutdownBehavior":
		return value("instanceInitiatedShutdownBehavior", i.spec.shutdown)
	case "rootDeviceName":
		return value("rootDeviceName", i.image.Device)
	}
	return nil, bad("InvalidParameterValue", "Value (%s) for parameter attribute is not one that this cloud shows", what)
}

func getConsoleOutput(c *call) (*node, error) {
	id := c.must("InstanceId")
	c.flag("Latest", false)
	list, err := c.named([]string{id})
	if err := first(c.ready(), err); err != nil {
		return nil, err
	}
	text := list[0].console
	if m := list[0].machine; m != nil {
		text = m.Output()
	}
	return x("out", x("instanceId", id), x("timestamp", c.now), x("output", base64.StdEncoding.EncodeToString(text))), nil
}
