package awstest

import (
	"fmt"
	"slices"
	"strings"
)

func lifecycle(spot bool) *node {
	return x("lifecycle", map[bool]string{true: "spot", false: "on-demand"}[spot])
}

func (o override) show() *node {
	n := x("launchTemplateAndOverrides", x("launchTemplateSpecification", opt("launchTemplateId", o.template),
		opt("launchTemplateName", o.name), x("version", o.version)))
	if o.typ != "" || o.subnet != "" || o.zone != "" {
		over := x("overrides", opt("instanceType", o.typ), opt("subnetId", o.subnet), opt("availabilityZone", o.zone),
			opt("maxPrice", o.max), opt("imageId", o.image))
		if o.weight > 0 {
			over.kids = append(over.kids, x("weightedCapacity", o.weight))
		}
		n.kids = append(n.kids, over)
	}
	return n
}

func (f *fleet) showErrors() *node {
	return items("errorSet", f.errors, func(e fleetError) *node {
		return x("item", e.o.show(), lifecycle(e.spot), x("errorCode", e.err.code), x("errorMessage", e.err.message))
	})
}

func (f *fleet) showInstances() *node {
	return items("fleetInstanceSet", f.granted, func(g fleetGrant) *node {
		return x("item", g.o.show(), lifecycle(g.spot), x("instanceType", g.instances[0].typ.Name),
			texts("instanceIds", ids(g.instances, func(i *instance) string { return i.id })))
	})
}

// describeFleets lists fleets. Instant fleets appear only if they are named. Source: DescribeFleets, EC2 API
// reference: "If a fleet is of type instant, you must specify the fleet ID in the request, otherwise the fleet does
// not appear in the response."
func describeFleets(c *call) (*node, error) {
	if len(c.list("FleetId")) == 0 {
		c.filters("activity-status", "excess-capacity-termination-policy", "fleet-state", "replace-unhealthy-instances",
			"type")
		_, _, err := page(c, []int{}, func(int) int { return 0 }, 1, 1000)
		return x("out", x("fleetSet")), first(c.ready(), err)
	}
	list := mine(c, c.s.fleets, func(f *fleet) (int, string, string, tags) { return f.seq, f.id, f.region, f.tags })
	return describe(c, "FleetId", "", "InvalidFleetId", "fleet", "fleetSet", list, []string{"fleet-state", "type"},
		func(f *fleet, name string) []string {
			if name == "type" {
				return []string{"instant"}
			}
			return []string{f.state}
		}, func(f *fleet) *node {
			return x("item", x("fleetId", f.id), x("fleetState", f.state), x("createTime", f.created), opt("clientToken",
				f.token),
				x("type", "instant"), x("fulfilledCapacity", fmt.Sprint(float64(len(f.instances)))),
				x("targetCapacitySpecification", x("totalTargetCapacity", f.target), x("spotTargetCapacity", f.spot),
					x("onDemandTargetCapacity", f.target-f.spot)), f.showErrors(), f.showInstances(), f.tags.show())
		})
}

func describeFleetInstances(c *call) (*node, error) {
	id := c.must("FleetId")
	filters := c.filters("instance-type")
	k := slices.IndexFunc(c.s.fleets, func(f *fleet) bool { return f.id == id && f.region == c.region })
	if k < 0 {
		return nil, first(c.end(), bad("InvalidFleetId.NotFound", "The fleet ID '%s' does not exist", id))
	}
	list := slices.DeleteFunc(slices.Clone(c.s.fleets[k].instances), func(i *instance) bool {
		return !live(i.state) || !pass(filters, nil, func(string) []string { return []string{i.typ.Name} })
	})
	list, next, err := page(c, list, func(i *instance) int { return i.seq }, 1, 1000)
	if err := first(c.ready(), err); err != nil {
		return nil, err
	}
	return x("out", x("fleetId", id), items("activeInstanceSet", list, func(i *instance) *node {
		n := x("item", x("instanceId", i.id), x("instanceType", i.typ.Name), x("instanceHealth", "healthy"))
		if i.request != nil {
			n.kids = append(n.kids, x("spotInstanceRequestId", i.request.id))
		}
		return n
	}), next), nil
}

// deleteFleets deletes fleets; an instant fleet only with its instances. Source: DeleteFleets, EC2 API reference.
func deleteFleets(c *call) (*node, error) {
	wanted, end := c.list("FleetId"), c.flag("TerminateInstances", true)
	if err := c.ready(); err != nil {
		return nil, err
	}
	if !end {
		return nil, bad("InvalidParameterValue", "NoTerminateInstances option is not supported for instant fleet")
	}
	done, failed := x("successfulFleetDeletionSet"), x("unsuccessfulFleetDeletionSet")
	for _, id := range wanted {
		k := slices.IndexFunc(c.s.fleets, func(f *fleet) bool { return f.id == id && f.region == c.region })
		if k < 0 {
			failed.kids = append(failed.kids, x("item", x("fleetId", id), x("error", x("code", "fleetIdDoesNotExist"),
				x("message", "The fleet "+strings.TrimSpace(id)+" does not exist"))))
			continue
		}
		f := c.s.fleets[k]
		before := f.state
		f.state = "deleted_terminating"
		for _, i := range f.instances {
			c.s.endByUser(i, c.now)
		}
		done.kids = append(done.kids, x("item", x("fleetId", id), x("currentFleetState", f.state), x("previousFleetState",
			before)))
	}
	return x("out", done, failed), nil
}
