package awstest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

type fleet struct {
	seq                 int
	id, region, token   string
	state               string
	created             time.Time
	target, spot        int
	tags                tags
	instances           []*instance
	errors              []fleetError
	granted             []fleetGrant
	strategy, spotState string
}

type fleetError struct {
	o    override
	spot bool
	err  *apiError
}

type fleetGrant struct {
	o         override
	spot      bool
	instances []*instance
}

// An override is one way in which a fleet may launch.
type override struct {
	template, version, name       string
	spec                          spec
	priority, weight              float64
	typ, subnet, zone, max, image string // as given
}

// A market is what a fleet is to buy of one kind.
type marketWish struct {
	spot             bool
	target, least    int
	strategy         string
	oneType, oneZone bool
}

func createFleet(c *call) (*node, error) {
	token, kind := c.str("ClientToken"), c.oneOf("Type", "instant") // request and maintain are not built
	if kind == "" {
		c.fail(bad("InvalidParameterValue", "Type maintain is not built: say instant"))
	}
	specs := c.tagSpecs(c.params)
	wishes := c.wishes()
	overrides, err := c.overrides()
	if err := first(err, c.ready()); err != nil {
		return nil, err
	}
	if done, err := c.before(token); done != nil || err != nil {
		return done, err
	}
	c.s.seq++
	f := &fleet{seq: c.s.seq, id: "fleet-" + fleetID(c), region: c.region, token: token, state: "active", created: c.now,
		tags: tagsFor(specs, "fleet")}
	for _, w := range wishes {
		f.target += w.target
		if w.spot {
			f.spot = w.target
		}
		c.fill(f, w, overrides, specs)
	}
	c.s.fleets = append(c.s.fleets, f)
	return c.after(token, x("out", x("fleetId", f.id), f.showErrors(), f.showInstances())), nil
}

// fleetID looks like fleet-12a34b55-67cd-8ef9-ba9b-9208dEXAMPLE.
func fleetID(c *call) string {
	h := hash([]byte(c.s.id("fleet")))
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:32]
}

func (c *call) wishes() (list []marketWish) {
	t, so, oo := c.sub("TargetCapacitySpecification"), c.sub("SpotOptions"), c.sub("OnDemandOptions")
	total := t.number("TotalTargetCapacity", -1)
	if total < 0 {
		c.fail(bad("MissingParameter", "The request must contain the parameter TargetCapacitySpecification.TotalTargetCapacity"))
	}
	spot, demand := t.number("SpotTargetCapacity", 0), t.number("OnDemandTargetCapacity", 0)
	t.oneOf("TargetCapacityUnitType", "units")
	switch t.oneOf("DefaultTargetCapacityType", "spot", "on-demand") {
	case "spot":
		spot = total - demand
	case "on-demand":
		demand = total - spot
	default:
		if spot+demand != total {
			c.fail(bad("InvalidParameterCombination", "SpotTargetCapacity and OnDemandTargetCapacity do not sum up to "+
				"TotalTargetCapacity, and there is no DefaultTargetCapacityType"))
		}
	}
	so.oneOf("InstanceInterruptionBehavior", "terminate")
	list = append(list, marketWish{spot: true, target: spot, least: so.number("MinTargetCapacity", 0), strategy: or(so.oneOf(
		"AllocationStrategy", "lowest-price", "price-capacity-optimized", "capacity-optimized",
		"capacity-optimized-prioritized", "diversified"), "lowest-price"), oneType: so.flag("SingleInstanceType", false),
		oneZone: so.flag("SingleAvailabilityZone", false)},
		marketWish{target: demand, least: oo.number("MinTargetCapacity", 0), strategy: or(oo.oneOf(
			"AllocationStrategy", "lowest-price", "prioritized"), "lowest-price"), oneType: oo.flag("SingleInstanceType", false),
			oneZone: oo.flag("SingleAvailabilityZone", false)})
	list = slices.DeleteFunc(list, func(w marketWish) bool { return w.target == 0 })
	for _, w := range list {
		if w.least > 0 && !w.oneType && !w.oneZone {
			c.fail(bad("InvalidParameterCombination", "MinTargetCapacity needs SingleInstanceType or SingleAvailabilityZone"))
		}
		if w.least > w.target {
			c.fail(bad("InvalidParameterValue", "MinTargetCapacity %d is above the target capacity %d", w.least, w.target))
		}
	}
	return list
}

func (c *call) overrides() (list []override, err error) {
	configs := c.each("LaunchTemplateConfigs")
	if len(configs) == 0 {
		return nil, bad("MissingParameter", "The request must contain the parameter LaunchTemplateConfigs")
	}
	for _, p := range configs {
		t := p.sub("LaunchTemplateSpecification")
		base := override{template: t.str("LaunchTemplateId"), name: t.str("LaunchTemplateName"), version: t.must("Version")}
		if base.spec, err = c.fromTemplate(t, spec{}); err != nil {
			return nil, err
		}
		ways := p.each("Overrides")
		if len(ways) == 0 {
			list = append(list, base)
		}
		for _, w := range ways {
			o := base
			o.typ, o.subnet, o.zone, o.max = w.str("InstanceType"), w.str("SubnetId"), w.str("AvailabilityZone"), w.str("MaxPrice")
			o.image, o.priority, o.weight = w.str("ImageId"), w.fraction("Priority", 1e9), w.fraction("WeightedCapacity", 0)
			if at := w.str("AvailabilityZoneId"); at != "" {
				o.zone = c.zoneByID(at)
			}
			o.spec = base.spec.over(spec{typ: o.typ, subnet: o.subnet, zone: o.zone, image: o.image, group: w.sub("Placement").str("GroupName")})
			o.spec.max = max(c.maxPrice(w), 0)
			if o.max == "" {
				o.spec.max = base.spec.max
			}
			list = append(list, o)
		}
	}
	if len(list) > 300 {
		return nil, bad("InvalidParameterValue", "A fleet of type instant has at most 300 overrides")
	}
	return list, nil
}

func (c *call) zoneByID(id string) string {
	for _, z := range c.s.zonesOf(c.region) {
		if z.ID == id {
			return z.Name
		}
	}
	c.fail(bad("InvalidParameterValue", "Invalid availability zone ID: [%s]", id))
	return ""
}

// A way is an override that can be launched.
type way struct {
	override
	t    Type
	img  Image
	z    Zone
	room int
	cost int64
}

// fill buys for a fleet what one market of it wants. An instant fleet asks once: for each way that gave less than was
// wanted of it there is an error, and what it gave stays, unless that is below MinTargetCapacity. Source: "EC2 Fleet
// request types" and SpotOptionsRequest, EC2 API reference.
func (c *call) fill(f *fleet, w marketWish, overrides []override, specs []tagSpec) {
	var ways []way
	for _, o := range overrides {
		o.spec.spot, o.spec.market = w.spot, true
		o.spec.tags = append(slices.Clone(o.spec.tags), specs...)
		t, img, z, err := c.check(&o.spec, false)
		if err != nil {
			f.refused(o, w.spot, err)
			continue
		}
		ways = append(ways, c.way(o, w.spot, t, img, z))
	}
	prefer(ways, w.strategy)
	if w.oneType || w.oneZone {
		ways = c.one(ways, w)
	}
	plan, got, errs := c.divide(ways, w)
	for k, err := range errs {
		if err != nil {
			f.refused(ways[k].override, w.spot, err)
		}
	}
	if got < w.least || got == 0 {
		if len(f.errors) == 0 {
			f.errors = append(f.errors, fleetError{spot: w.spot, err: bad("UnfulfillableCapacity",
				"Unable to fulfill the minimum target capacity: there is capacity for %d of %d", got, w.least)})
		}
		return
	}
	for k, n := range plan {
		if n == 0 {
			continue
		}
		list := c.make(ways[k].spec, ways[k].t, ways[k].img, ways[k].z, n, c.s.id("r"), f.id, f.id)
		f.instances = append(f.instances, list...)
		f.granted = append(f.granted, fleetGrant{ways[k].override, w.spot, list})
	}
}

func (c *call) way(o override, spot bool, t Type, img Image, z Zone) way {
	v := way{override: o, t: t, img: img, z: z, room: 1 << 30, cost: c.s.onDemand(t, z.Region)}
	if spot {
		v.cost = priceAt(c.s.spotHistory(t.Name, z.Name), c.now)
	}
	if n, limited := c.s.room(Pool{t.Name, z.Name, spot}); limited {
		v.room = n
	}
	return v
}

func (w way) units() int {
	if w.weight > 0 {
		return int(w.weight)
	}
	return 1
}

// prefer sorts ways as a strategy prefers them. Price and capacity together: pools that have room first, then by price.
func prefer(ways []way, strategy string) {
	slices.SortStableFunc(ways, func(a, b way) int {
		empty := func(w way) int {
			if w.room == 0 {
				return 1
			}
			return 0
		}
		price := int(a.cost/int64(a.units())/1e6 - b.cost/int64(b.units())/1e6)
		switch strategy {
		case "prioritized", "capacity-optimized-prioritized":
			if a.priority != b.priority {
				return map[bool]int{true: -1, false: 1}[a.priority < b.priority]
			}
		case "capacity-optimized", "diversified":
			if a.room != b.room {
				return b.room - a.room
			}
		case "price-capacity-optimized":
			if d := empty(a) - empty(b); d != 0 {
				return d
			}
		}
		return price
	})
}

// one keeps the ways of the one type or zone that gives most, the preferred one of equals.
func (c *call) one(ways []way, w marketWish) (best []way) {
	most := -1
	for _, lead := range ways {
		set := slices.DeleteFunc(slices.Clone(ways), func(o way) bool {
			return w.oneType && o.t.Name != lead.t.Name || w.oneZone && o.z.Name != lead.z.Name
		})
		if _, got, _ := c.divide(set, w); got > most {
			best, most = set, got
		}
	}
	return best
}

// divide says how many instances each way gives.
func (c *call) divide(ways []way, w marketWish) (plan []int, got int, errs []error) {
	plan, errs = make([]int, len(ways)), make([]error, len(ways))
	taken := map[Pool]int{}
	c.planned = map[string]int{}
	defer func() { c.planned = nil }()
	for k, v := range ways {
		if got >= w.target {
			break
		}
		want := (w.target - got + v.units() - 1) / v.units()
		pool := Pool{v.t.Name, v.z.Name, w.spot}
		n, err := c.afford(v.spec, v.t, v.z, want, taken[pool])
		plan[k], errs[k] = n, err
		taken[pool] += n
		c.planned[v.t.quota(w.spot)] += n * v.t.VCPU
		got += plan[k] * v.units()
	}
	return plan, got, errs
}

func (f *fleet) refused(o override, spot bool, err error) {
	var e *apiError
	if !errors.As(err, &e) {
		e = bad("InternalError", "%v", err)
	}
	f.errors = append(f.errors, fleetError{o, spot, e})
}

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

// describe lists fleets. Those of type instant are shown only where they are named. Source: DescribeFleets, EC2 API
// reference: "If a fleet is of type instant, you must specify the fleet ID in the request, otherwise the fleet does not
// appear in the response."
func describeFleets(c *call) (*node, error) {
	if len(c.list("FleetId")) == 0 {
		c.filters("activity-status", "excess-capacity-termination-policy", "fleet-state", "replace-unhealthy-instances", "type")
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
			return x("item", x("fleetId", f.id), x("fleetState", f.state), x("createTime", f.created), opt("clientToken", f.token),
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

// deleteFleets: a fleet of type instant goes only with its instances. Source: DeleteFleets, EC2 API reference.
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
		done.kids = append(done.kids, x("item", x("fleetId", id), x("currentFleetState", f.state), x("previousFleetState", before)))
	}
	return x("out", done, failed), nil
}
