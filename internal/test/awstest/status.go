package awstest

import (
	"slices"
	"time"

	"scrimp/internal/test/awstest/catalog"
	"scrimp/internal/test/awstest/iam"
)

func describeInstanceStatus(c *call) (*node, error) {
	wanted, all := c.list("InstanceId"), c.flag("IncludeAllInstances", false)
	filters := c.filters("instance-state-name", "availability-zone", "instance-status.status", "system-status.status")
	list, err := c.named(wanted)
	if err != nil {
		return nil, first(c.ready(), err)
	}
	health := func(i *instance) string {
		switch {
		case i.state != running:
			return "not-applicable"
		case i.impaired:
			return "impaired"
		}
		return "ok"
	}
	list = slices.DeleteFunc(slices.Clone(list), func(i *instance) bool {
		return !all && i.state != running || !pass(filters, i.tags, func(f string) []string {
			return []string{map[string]string{"instance-state-name": stateNames[i.state], "availability-zone": i.zone.Name,
				"instance-status.status": health(i), "system-status.status": health(i)}[f]}
		})
	})
	list, next, err := page(c, list, func(i *instance) int { return i.seq }, 5, 1000)
	if err := first(c.ready(), err); err != nil {
		return nil, err
	}
	return x("out", items("instanceStatusSet", list, func(i *instance) *node {
		check := func(name string) *node {
			return x(name, x("status", health(i)), x("details", x("item", x("name", "reachability"),
				x("status", map[string]string{"ok": "passed", "impaired": "failed"}[health(i)]))))
		}
		n := x("item", x("instanceId", i.id), x("availabilityZone", i.zone.Name), showState("instanceState", i.state),
			check("instanceStatus"), check("systemStatus"))
		if i.impaired && i.state == running {
			n.kids = append(n.kids, x("eventsSet", x("item", x("code", "instance-retirement"), x("instanceEventId",
				"instance-event-"+i.id[2:]), x("description", "The instance is running on degraded hardware"),
				x("notBefore", i.launched.Add(14*24*time.Hour)))))
		}
		return n
	}), next), nil
}

func describeSpotInstanceRequests(c *call) (*node, error) {
	list := mine(c, c.s.requests, func(r *spotRequest) (int, string, string, tags) {
		return r.seq, r.id, r.region,
			r.tags
	})
	list = slices.DeleteFunc(list, func(o owned[*spotRequest]) bool { return o.v.instance.visible.After(c.now) })
	return describe(c, "SpotInstanceRequestId", "", "InvalidSpotInstanceRequestID", "spot instance request",
		"spotInstanceRequestSet",
		list, []string{"tags", "state", "status-code", "instance-id", "spot-instance-request-id",
			"launched-availability-zone", "type"},
		func(r *spotRequest, name string) []string {
			return []string{map[string]string{"state": r.state, "status-code": r.code, "instance-id": r.instance.id,
				"spot-instance-request-id": r.id, "launched-availability-zone": r.instance.zone.Name, "type": "one-time"}[name]}
		}, func(r *spotRequest) *node {
			i := r.instance
			limit := r.max
			if limit == 0 {
				limit = c.s.onDemand(i.typ, i.region) // EC2 shows it if the request had none
			}
			return x("item", x("spotInstanceRequestId", r.id), x("spotPrice", catalog.FormatPrice(limit)),
				x("type", "one-time"), x("state",
					r.state),
				x("status", x("code", r.code), x("updateTime", r.updated), x("message", r.message)), x("instanceId", i.id),
				x("createTime", r.created), x("productDescription", "Linux/UNIX"), x("launchedAvailabilityZone", i.zone.Name),
				x("instanceInterruptionBehavior", "terminate"), x("launchSpecification", x("imageId", i.image.ID),
					x("instanceType", i.typ.Name), x("placement", x("availabilityZone", i.zone.Name))), r.tags.show())
		})
}

// cancelSpotInstanceRequests cancels requests but not their instances. Source: CancelSpotInstanceRequests, EC2 API
// reference.
func cancelSpotInstanceRequests(c *call) (*node, error) {
	wanted := c.list("SpotInstanceRequestId")
	if err := c.ready(); err != nil {
		return nil, err
	}
	var chosen []*spotRequest
	for _, id := range wanted {
		k := slices.IndexFunc(c.s.requests, func(r *spotRequest) bool { return r.id == id && r.region == c.region })
		if k < 0 {
			return nil, bad("InvalidSpotInstanceRequestID.NotFound", "The spot instance request ID '%s' does not exist", id)
		}
		chosen = append(chosen, c.s.requests[k])
	}
	return x("out", items("spotInstanceRequestSet", chosen, func(r *spotRequest) *node {
		if r.state == "active" {
			r.state = "cancelled"
			r.status(c.now, "request-canceled-and-instance-running",
				"Your Spot request is canceled, but your instance is still running.")
		}
		return x("item", x("spotInstanceRequestId", r.id), x("state", r.state))
	})), nil
}

func describeAccountAttributes(c *call) (*node, error) {
	wanted := c.list("AttributeName")
	if err := c.ready(); err != nil {
		return nil, err
	}
	all := []struct{ name, value string }{{"supported-platforms", "VPC"}, {"default-vpc", vpcID(c.region)},
		{"max-instances", "20"}, {"vpc-max-security-groups-per-interface", "5"}}
	return x("out", items("accountAttributeSet", all, func(a struct{ name, value string }) *node {
		if wanted != nil && !slices.Contains(wanted, a.name) {
			return nil
		}
		return x("item", x("attributeName", a.name), x("attributeValueSet", x("item", x("attributeValue", a.value))))
	})), nil
}

func getCallerIdentity(c *call) (*node, error) {
	if err := c.ready(); err != nil {
		return nil, err
	}
	return x("out", x("Arn", c.caller.arn), x("UserId", c.caller.id), x("Account", c.s.o.Account)), nil
}

func assumeRole(c *call) (*node, error) {
	role, name, text := c.must("RoleArn"), c.must("RoleSessionName"), c.str("Policy")
	c.str("ExternalId")
	span := c.number("DurationSeconds", 3600)
	if err := c.ready(); err != nil {
		return nil, err
	}
	if span < 900 || span > 43200 {
		return nil, bad("ValidationError", "1 validation error detected: Value '%d' at 'durationSeconds' failed to satisfy "+
			"constraint: Member must have value between 900 and 43200", span)
	}
	who := identity{until: c.s.o.Wall().Add(c.s.faults.skew + time.Duration(span)*time.Second).UTC().Truncate(time.Second),
		policies: slices.Clone(c.caller.policies)}
	if text != "" {
		p, err := iam.Parse(text)
		if err != nil {
			return nil, bad("MalformedPolicyDocument", "This policy is not one that this cloud evaluates: %v", err)
		}
		who.policies = append(who.policies, p)
	}
	who.session = iam.Session{Role: role, Name: name, Policy: text, Until: who.until}
	key := "ASIA" + hash([]byte(requestID()))[:16]
	who.secret, who.token = hash([]byte(requestID())), hash([]byte(requestID()))
	role = role[max(0, lastSlash(role)+1):]
	who.arn, who.id = "arn:aws:sts::"+c.s.o.Account+":assumed-role/"+role+"/"+name, "AROATESTTESTTESTTEST:"+name
	c.s.keys[key] = who
	return x("out", x("AssumedRoleUser", x("Arn", who.arn), x("AssumedRoleId", who.id)), x("Credentials", x("AccessKeyId",
		key),
		x("SecretAccessKey", who.secret), x("SessionToken", who.token), x("Expiration", who.until))), nil
}

func lastSlash(s string) int {
	for k := len(s) - 1; k >= 0; k-- {
		if s[k] == '/' {
			return k
		}
	}
	return -1
}
