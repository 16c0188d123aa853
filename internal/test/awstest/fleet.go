package awstest

import (
	"errors"
	"slices"
	"time"

	"scrimp/internal/test/awstest/catalog"
)

type fleet struct {
	seq               int
	id, region, token string
	state             string
	created           time.Time
	target, spot      int
	tags              tags
	instances         []*instance
	errors            []fleetError
	granted           []fleetGrant
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
	typ, subnet, zone, max, image string // as in the request
}

// A marketWish is the number of instances that a fleet wants from one market.
type marketWish struct {
	spot             bool
	target, least    int
	strategy         string
	oneType, oneZone bool
}

func createFleet(c *call) (*node, error) {
	token, kind := c.str("ClientToken"), c.oneOf("Type", "instant") // request and maintain are not supported
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

// fleetID returns an ID like fleet-12a34b55-67cd-8ef9-ba9b-9208dEXAMPLE.
func fleetID(c *call) string {
	h := hash([]byte(c.s.id("fleet")))
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:32]
}

func (c *call) wishes() (list []marketWish) {
	t, so, oo := c.sub("TargetCapacitySpecification"), c.sub("SpotOptions"), c.sub("OnDemandOptions")
	total := t.number("TotalTargetCapacity", -1)
	if total < 0 {
		c.fail(bad("MissingParameter", "The request must contain the parameter "+
			"TargetCapacitySpecification.TotalTargetCapacity"))
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
	list = append(list, marketWish{spot: true, target: spot, least: so.number("MinTargetCapacity", 0),
		strategy: or(so.oneOf(
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
			o.typ, o.subnet, o.zone, o.max = w.str("InstanceType"), w.str("SubnetId"), w.str("AvailabilityZone"),
				w.str("MaxPrice")
			o.image, o.priority, o.weight = w.str("ImageId"), w.fraction("Priority", 1e9), w.fraction("WeightedCapacity", 0)
			if at := w.str("AvailabilityZoneId"); at != "" {
				o.zone = c.zoneByID(at)
			}
			o.spec = base.spec.over(spec{typ: o.typ, subnet: o.subnet, zone: o.zone, image: o.image,
				group: w.sub("Placement").str("GroupName")})
			o.spec.inSubnet()
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

// inSubnet puts the subnet of an override on the template's first interface if that names none: a fleet launches
// templates with interfaces, such as Karpenter's with associatePublicIPAddress, into the subnets of its overrides.
// Source: the use of CreateFleet by aws/karpenter-provider-aws, from memory; the reference does not state it.
func (d *spec) inSubnet() {
	if len(d.cards) > 0 && d.cards[0].subnet == "" {
		d.cards = slices.Clone(d.cards)
		d.cards[0].subnet, d.subnet = d.subnet, ""
	}
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
	t    catalog.Type
	img  catalog.Image
	z    catalog.Zone
	room int
	cost int64
}

// fill launches instances of one market for a fleet. An instant fleet tries once: each way that gave too few has an
// error, and its instances stay unless they are below MinTargetCapacity. Source: "EC2 Fleet request types" and
// SpotOptionsRequest, EC2 API reference.
func (c *call) fill(f *fleet, w marketWish, overrides []override, specs []tagSpec) {
	var ways []way
	for _, o := range overrides {
		if o.spec.block {
			f.refused(o, w.spot, bad("InvalidParameterCombination", "A template of MarketType capacity-block needs a fleet "+
				"of DefaultTargetCapacityType capacity-block, which is not built"))
			continue
		}
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

func (c *call) way(o override, spot bool, t catalog.Type, img catalog.Image, z catalog.Zone) way {
	v := way{override: o, t: t, img: img, z: z, room: 1 << 30, cost: c.s.onDemand(t, z.Region)}
	if spot {
		v.cost = catalog.PriceAt(c.s.spotHistory(t.Name, z.Name), c.now)
	}
	if n, limited := c.s.room(catalog.Pool{Type: t.Name, Zone: z.Name, Spot: spot}); limited {
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

// prefer sorts ways by a strategy. Price and capacity together: pools with room first, then by price.
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

// one keeps the ways of the type or zone that gives the most; of equals, the preferred one.
func (c *call) one(ways []way, w marketWish) (best []way) {
	most := -1
	c.trial = true
	defer func() { c.trial = false }()
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

// divide computes the number of instances of each way.
func (c *call) divide(ways []way, w marketWish) (plan []int, got int, errs []error) {
	plan, errs = make([]int, len(ways)), make([]error, len(ways))
	taken := map[catalog.Pool]int{}
	c.planned = map[string]int{}
	defer func() { c.planned = nil }()
	for k, v := range ways {
		if got >= w.target {
			break
		}
		want := (w.target - got + v.units() - 1) / v.units()
		pool := catalog.Pool{Type: v.t.Name, Zone: v.z.Name, Spot: w.spot}
		n, err := c.afford(v.spec, v.t, v.z, want, taken[pool])
		if v.spec.held != nil { // from the reservation, whatever the pool's room
			plan[k], errs[k] = n, err
			got += n * v.units()
			continue
		}
		plan[k], errs[k] = n, err
		taken[pool] += n
		c.planned[v.t.Quota(w.spot)] += n * v.t.VCPU
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
