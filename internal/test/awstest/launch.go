package awstest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"scrimp/internal/test/awstest/catalog"
)

// A grant is the result of a launch, kept for its client token.
type grant struct {
	id, question string
	instances    []*instance
}

// check returns why a spec cannot be launched in a zone, whatever the capacity.
func (c *call) check(d *spec, needZone bool) (t catalog.Type, img catalog.Image, z catalog.Zone, err error) {
	t, ok := c.s.typeOf(d.typ)
	if !ok {
		return t, img, z, bad("InvalidParameterValue", "Invalid value '%s' for InstanceType.", d.typ)
	}
	if img, err = c.checkImage(d.image, t); err != nil {
		return t, img, z, err
	}
	if err := c.checkNet(d); err != nil {
		return t, img, z, err
	}
	if d.group != "" && !slices.ContainsFunc(c.s.places, func(p *placement) bool {
		return p.name == d.group && p.region == c.region
	}) {
		return t, img, z, bad("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", d.group)
	}
	if d.spot && t.NoSpot {
		return t, img, z, bad("Unsupported", "The instance type %s is not supported for Spot requests.", t.Name)
	}
	zones := c.s.zonesOf(c.region)
	if d.zone == "" && !needZone {
		d.zone = c.freeZone(d, t, zones)
	}
	z, ok = c.s.zone(d.zone)
	if !ok || z.Region != c.region {
		return t, img, z, bad("InvalidParameterValue", "Invalid availability zone: [%s]", d.zone)
	}
	if !t.In(z.Name) {
		return t, img, z, bad("Unsupported", "Your requested instance type (%s) is not supported in your requested "+
			"Availability Zone (%s). Please retry your request by not specifying an Availability Zone or choosing %s.",
			t.Name, z.Name, strings.Join(t.Zones, ", "))
	}
	return t, img, z, c.checkHeld(d, t, z)
}

// checkImage returns the image of an id, or says why an instance of the type cannot start from it.
func (c *call) checkImage(id string, t catalog.Type) (img catalog.Image, err error) {
	if id == "" {
		return img, bad("MissingParameter", "The request must contain the parameter ImageId")
	}
	k := slices.IndexFunc(c.s.o.Images, func(i catalog.Image) bool { return i.ID == id })
	if k < 0 {
		return img, bad("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
	}
	if img = c.s.o.Images[k]; img.Arch != t.Arch {
		return img, bad("InvalidParameterValue", "The architecture '%s' of the specified instance type does not match "+
			"the architecture '%s' of the specified AMI. Specify an instance type and an AMI that have matching "+
			"architectures, and try again.", t.Arch, img.Arch)
	}
	return img, nil
}

// checkNet resolves subnet and groups.
func (c *call) checkNet(d *spec) error {
	if len(d.cards) > 0 {
		if d.subnet != "" || d.groups != nil {
			return bad("InvalidParameterCombination", "Network interfaces and an instance-level subnet ID or security groups "+
				"may not be specified on the same request")
		}
		d.subnet, d.public = d.cards[0].subnet, d.cards[0].publicRequested
	}
	if d.subnet != "" {
		zone := ""
		for _, z := range c.s.zonesOf(c.region) {
			if subnetID(z) == d.subnet {
				zone = z.Name
			}
		}
		if zone == "" {
			return bad("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", d.subnet)
		}
		if d.zone != "" && d.zone != zone {
			return bad("InvalidParameterValue", "The availability zone '%s' is not that of subnet %s", d.zone, d.subnet)
		}
		d.zone = zone
	}
	wanted := d.groups
	for _, n := range d.cards {
		wanted = append(slices.Clone(wanted), n.groups...)
	}
	for _, g := range wanted {
		if c.group(g) == nil {
			return bad("InvalidGroup.NotFound", "The security group '%s' does not exist", g)
		}
	}
	return nil
}

// freeZone returns the zone that EC2 chooses for a launch without one: the first with room.
func (c *call) freeZone(d *spec, t catalog.Type, zones []catalog.Zone) string {
	first := ""
	for _, z := range zones {
		if !t.In(z.Name) {
			continue
		}
		if first == "" {
			first = z.Name
		}
		if room, limited := c.s.room(catalog.Pool{Type: t.Name, Zone: z.Name, Spot: d.spot}); !limited || room > 0 {
			return z.Name
		}
	}
	return first
}

// room returns how many more instances fit in a pool.
func (s *Server) room(p catalog.Pool) (n int, limited bool) {
	n, limited = s.capacity[p]
	if !limited {
		return 0, false
	}
	for _, i := range s.instances {
		if i.typ.Name == p.Type && i.zone.Name == p.Zone && (i.request != nil) == p.Spot && i.held == nil &&
			(live(i.state) || i.state == shuttingDown) {
			n--
		}
	}
	return max(0, n), true
}

// afford returns how many of count instances a market grants now, besides those taken by the same request, and why
// not all.
func (c *call) afford(d spec, t catalog.Type, z catalog.Zone, count, taken int) (int, error) {
	if d.held != nil {
		return c.affordHeld(d.held, count)
	}
	if err := c.s.faults.refused(catalog.Pool{Type: t.Name, Zone: z.Name, Spot: d.spot}, c.trial); err != nil {
		return 0, err
	}
	if d.spot && d.max > 0 {
		if price := catalog.PriceAt(c.s.spotHistory(t.Name, z.Name), c.now); d.max < price {
			return 0, bad("SpotMaxPriceTooLow", "Your Spot request price of %s is lower than the minimum required Spot request "+
				"fulfillment price of %s.", short(d.max), short(price))
		}
	}
	n, err := c.quota(d.spot, t, count)
	if room, limited := c.s.room(catalog.Pool{Type: t.Name, Zone: z.Name, Spot: d.spot}); limited && room-taken < n {
		text := fmt.Sprintf("We currently do not have sufficient %s capacity in the Availability Zone you requested "+
			"(%s). Our "+
			"system will be working on provisioning additional capacity. You can currently get %s capacity by not specifying "+
			"an Availability Zone in your request.", t.Name, z.Name, t.Name)
		if d.spot {
			text = "There is no Spot capacity available that matches your request."
		}
		n, err = max(0, room-taken), refuse(http.StatusInternalServerError, "InsufficientInstanceCapacity", "%s", text)
	}
	return n, err
}

func short(p int64) string {
	return strings.TrimRight(strings.TrimRight(catalog.FormatPrice(p), "0"), ".")
}

// make creates count instances of a checked spec.
func (c *call) make(d spec, t catalog.Type, img catalog.Image, z catalog.Zone, count int, reservation, token,
	fleet string) (list []*instance) {
	s := c.s
	for k := range count {
		s.seq++
		i := &instance{seq: s.seq, id: s.id("i"), reservation: reservation, region: c.region, zone: z, typ: t, image: img,
			spec:  d,
			token: token, fleet: fleet, index: k, launched: c.now, visible: c.now.Add(s.faults.late),
			due: c.now.Add(s.o.Spans.Pending), tags: tagsFor(d.tags, "instance"), subnet: subnetID(z)}
		i.address, _ = s.nextAddress() // a net is larger than any test
		if s.faults.late == 0 {
			i.visible = time.Time{}
		}
		if d.shutdown == "" {
			i.spec.shutdown = "stop"
		}
		if len(s.faults.broken) > 0 {
			i.broken, s.faults.broken = s.faults.broken[0], s.faults.broken[1:]
			i.due = c.now.Add(s.o.Spans.Failing)
		}
		if fleet != "" {
			i.tags["aws:ec2:fleet-id"] = fleet
		}
		if public := s.o.Public; d.public != nil && *d.public || d.public == nil && public {
			i.public = fmt.Sprintf("203.0.113.%d", 1+s.seq%254)
		}
		if d.spot {
			s.seq++
			i.request = &spotRequest{seq: s.seq, id: "sir-" + s.id("x")[2:10], region: c.region, state: "active", created: c.now,
				max: d.max, instance: i, tags: tagsFor(d.tags, "spot-instances-request")}
			i.request.status(c.now, "fulfilled", "Your spot request is fulfilled.")
			s.requests = append(s.requests, i.request)
		}
		c.attach(i)
		s.instances = append(s.instances, i)
		s.hold(i, d.held, c.now)
		s.advanceOne(i, c.now)
		list = append(list, i)
	}
	return list
}

func runInstances(c *call) (*node, error) {
	least, most := c.number("MinCount", 0), c.number("MaxCount", 0)
	token := c.str("ClientToken")
	d := c.spec(c.params)
	d.subnet = c.str("SubnetId")
	d, err := c.fromTemplate(c.sub("LaunchTemplate"), d)
	if err == nil {
		err = c.ready()
	}
	if err != nil {
		return nil, err
	}
	if least < 1 || most < least {
		return nil, bad("InvalidParameterValue", "Invalid value for MinCount %d and MaxCount %d", least, most)
	}
	key, question := c.region+" "+token, c.question()
	if g := c.s.launched[key]; g != nil && token != "" {
		return c.again(g, question)
	}
	t, img, z, err := c.check(&d, false)
	if err != nil {
		return nil, err
	}
	n, err := c.afford(d, t, z, most, 0)
	if n < least {
		return nil, err
	}
	g := &grant{id: c.s.id("r"), question: question}
	g.instances = c.make(d, t, img, z, n, g.id, token, "")
	if token != "" {
		c.s.launched[key] = g
	}
	return showReservation(c, g.id, g.instances), nil
}

// again answers a repeated launch. Source: "Ensuring idempotency in Amazon EC2 API requests", and the code
// IdempotentInstanceTerminated of "Error codes for the Amazon EC2 API".
func (c *call) again(g *grant, question string) (*node, error) {
	if g.question != question {
		return nil, bad("IdempotentParameterMismatch", "The client token you have provided is associated with a resource "+
			"that "+
			"is already deleted, or is used with other arguments. Please use a different client token.")
	}
	for _, i := range g.instances {
		if i.state == terminated || i.state == shuttingDown {
			return nil, bad("IdempotentInstanceTerminated", "The client token you have provided is associated with an instance "+
				"that is terminated: %s", i.id)
		}
	}
	return showReservation(c, g.id, g.instances), nil
}

// question returns the request's parameters without its signature.
func (c *call) question() string {
	v := make(map[string][]string, len(c.all))
	for k, list := range c.all {
		if k != "DryRun" {
			v[k] = list
		}
	}
	return hash([]byte(fmt.Sprint(v)))
}
