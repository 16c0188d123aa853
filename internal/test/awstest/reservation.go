package awstest

import (
	"fmt"
	"math/big"
	"slices"
	"time"
)

// A reservation is a reserved instance or a capacity reservation.
type reservation struct {
	seq              int
	id, region, zone string
	typ              string
	count            int
	capacity         bool
	from, to         time.Time // to is zero if it ends only by cancellation
	tags             tags
	open             bool // accepts instances that do not name it
	block            bool // a Capacity Block for ML
	fee              *big.Rat
	cancelled        time.Time
	owner            string // account; "": this one
	place            string // its placement group
	scope            string // of reserved instances
}

// A Reservation is a capacity reservation: an On-Demand Capacity Reservation, or a Capacity Block for ML.
type Reservation struct {
	Type, Zone string
	Count      int
	From, To   time.Time // To zero: until cancelled
	Open       bool      // accepts instances that do not name it
	Block      bool
	Fee        string // USD, for a whole block, paid up front
	Owner      string // account that shares it; "": this one
	Place      string // its placement group
}

// blockEnds is how long before a block's end EC2 starts to terminate its instances. Source: "Capacity Blocks for
// ML", Amazon EC2 User Guide, read 2026-11.
const blockEnds = 30 * time.Minute

// reservedOnly is the preference of instances that run in a reservation or not at all.
const reservedOnly = "capacity-reservations-only"

// ReserveCapacity adds a capacity reservation to the account. An open one takes in running instances that fit.
// Source: "Reserve compute capacity with EC2 On-Demand Capacity Reservations", Amazon EC2 User Guide.
func (s *Server) ReserveCapacity(o Reservation) (string, error) {
	z, known := s.zone(o.Zone)
	if _, sold := s.typeOf(o.Type); !known || !sold || o.Count < 1 {
		return "", fmt.Errorf("%d of %s in %s cannot be reserved", o.Count, o.Type, o.Zone)
	}
	fee, ok := new(big.Rat).SetString(or(o.Fee, "0"))
	if !ok || o.Block && o.To.IsZero() {
		return "", fmt.Errorf("a block has a fee and an end: %q, %v", o.Fee, o.To)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.advance(now)
	s.seq++
	r := &reservation{seq: s.seq, id: s.id("cr"), region: z.Region, zone: o.Zone, typ: o.Type, count: o.Count,
		capacity: true, from: o.From.UTC(), to: o.To.UTC(), tags: tags{}, open: o.Open && !o.Block, block: o.Block, fee: fee,
		owner: o.Owner, place: o.Place}
	if o.To.IsZero() {
		r.to = time.Time{}
	}
	s.reserved = append(s.reserved, r)
	for _, i := range s.instances {
		s.hold(i, nil, now)
	}
	return r.id, nil
}

// CancelReservation ends a capacity reservation: its instances continue on demand.
func (s *Server) CancelReservation(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.advance(now)
	for _, r := range s.reserved {
		if r.id == id && r.capacity && !r.block {
			r.cancelled = now
			s.advance(now)
			return nil
		}
	}
	return fmt.Errorf("%s is no reservation that can be cancelled", id)
}

// Reserve adds a reservation of capacity, or of a price only, to the account.
func (s *Server) Reserve(typ, zone string, count int, capacity bool, from, to time.Time) string {
	if capacity {
		id, err := s.ReserveCapacity(Reservation{Type: typ, Zone: zone, Count: count, From: from, To: to, Open: true})
		if err != nil {
			panic(err) // a bug in a test
		}
		return id
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	z, known := s.zone(zone)
	scope := "Availability Zone"
	if !known { // of the whole region
		z.Region, zone, scope = zone, "", "Region"
	}
	s.seq++
	r := &reservation{seq: s.seq, id: requestID(), region: z.Region, zone: zone, typ: typ, count: count, from: from,
		to: to, tags: tags{}, scope: scope}
	s.reserved = append(s.reserved, r)
	return r.id
}

// Evict makes an instance run outside its reservation, on demand, as after a change of its attributes. Source:
// ModifyInstanceCapacityReservationAttributes, EC2 API reference.
func (s *Server) Evict(id string) error {
	return s.change(id, func(i *instance, now time.Time) error {
		if i.held == nil || i.held.block {
			return fmt.Errorf("instance %s is in no reservation that it can leave", id)
		}
		i.heldTo = now
		return nil
	})
}

// state returns the state of a reservation.
func (r *reservation) state(now time.Time) string {
	switch {
	case !r.cancelled.IsZero() && !r.cancelled.After(now):
		return "cancelled"
	case r.from.After(now):
		return "scheduled"
	case !r.to.IsZero() && !r.to.After(now):
		return "expired"
	}
	return "active"
}

// ends returns the end of the reservation; zero: not set.
func (r *reservation) ends() time.Time {
	if !r.cancelled.IsZero() && (r.to.IsZero() || r.cancelled.Before(r.to)) {
		return r.cancelled
	}
	return r.to
}

// used returns the number of instances that run in it.
func (s *Server) used(r *reservation) (n int) {
	for _, i := range s.instances {
		if i.held == r && i.heldTo.IsZero() && (live(i.state) || i.state == shuttingDown) {
			n++
		}
	}
	return n
}

// billReserved returns the cost of capacity reservations besides their instances: for an on-demand one its unused time
// at the on-demand price, for a block its fee once it is bought. Sources: "Capacity Reservation pricing and billing"
// and "Capacity Blocks pricing and billing", Amazon EC2 User Guide.
func (s *Server) billReserved(instances []*instance, now time.Time) (list []Line) {
	for _, r := range s.reserved {
		if !r.capacity || r.owner != "" {
			continue
		}
		l := Line{Kind: "reservation", ID: r.id, Type: r.typ, Zone: r.zone, Region: r.region, From: r.from, To: r.ends(),
			Tags: r.tags}
		if l.Open = l.To.IsZero() || l.To.After(now); l.Open {
			l.To = now
		}
		if r.block {
			l.Kind, l.To, l.USD = "block", r.to, new(big.Rat).Set(r.fee)
			l.Seconds = int64(r.count) * int64(r.to.Sub(r.from)/time.Second)
			list = append(list, l)
			continue
		}
		if !l.To.After(l.From) {
			continue
		}
		l.Seconds = int64(r.count) * int64(l.To.Sub(l.From)/time.Second)
		for _, i := range instances {
			l.Seconds -= i.within(r, l.From, l.To)
		}
		t, _ := s.typeOf(r.typ)
		l.USD = big.NewRat(s.onDemand(t, r.region), 3600)
		l.USD.Quo(l.USD.Mul(l.USD, big.NewRat(l.Seconds, 1)), big.NewRat(1e12, 1))
		list = append(list, l)
	}
	return list
}

// within returns how many seconds an instance ran in a reservation.
func (i *instance) within(r *reservation, from, to time.Time) int64 {
	if i.held != r || i.running.IsZero() {
		return 0
	}
	if i.running.After(from) {
		from = i.running
	}
	if !i.billed.IsZero() && i.billed.Before(to) {
		to = i.billed
	}
	if !i.heldTo.IsZero() && i.heldTo.Before(to) {
		to = i.heldTo
	}
	return max(0, int64(to.Sub(from)/time.Second))
}

func (c *call) reservations(capacity bool) []owned[*reservation] {
	list := mine(c, c.s.reserved, func(r *reservation) (int, string, string, tags) {
		return r.seq, r.id, r.region,
			r.tags
	})
	return slices.DeleteFunc(list, func(o owned[*reservation]) bool { return o.v.capacity != capacity })
}

// reservedFilters are the filters for both kinds of reservation.
var reservedFilters = []string{"tags", "state", "instance-type", "availability-zone"}

func (c *call) reservationValue(r *reservation, name string) []string {
	return []string{map[string]string{"state": r.state(c.now), "instance-type": r.typ, "availability-zone": r.zone}[name]}
}

func describeCapacityReservations(c *call) (*node, error) {
	return describe(c, "CapacityReservationId", "cr-", "InvalidCapacityReservationId", "capacity reservation",
		"capacityReservationSet", c.reservations(true), reservedFilters, c.reservationValue, c.showCapacity)
}

func (c *call) showCapacity(r *reservation) *node {
	n := x("item", x("capacityReservationId", r.id), x("ownerId", or(r.owner, c.s.o.Account)), x("instanceType", r.typ),
		x("availabilityZone", r.zone), x("instancePlatform", "Linux/UNIX"), x("tenancy", "default"),
		x("totalInstanceCount", r.count), x("availableInstanceCount", max(0, r.count-c.s.used(r))),
		x("state", r.state(c.now)), x("startDate", r.from), x("createDate", r.from),
		x("endDateType", map[bool]string{true: "unlimited", false: "limited"}[r.to.IsZero()]),
		x("instanceMatchCriteria", map[bool]string{true: "open", false: "targeted"}[r.open]),
		x("reservationType", map[bool]string{true: "capacity-block", false: "default"}[r.block]), r.tags.show())
	if !r.to.IsZero() {
		n.kids = append(n.kids, x("endDate", r.to))
	}
	if r.place != "" {
		n.kids = append(n.kids, x("placementGroupArn",
			fmt.Sprintf("arn:aws:ec2:%s:%s:placement-group/%s", r.region, c.s.o.Account, r.place)))
	}
	return n
}

func cancelCapacityReservation(c *call) (*node, error) {
	id := c.must("CapacityReservationId")
	if err := c.ready(); err != nil {
		return nil, err
	}
	for _, o := range c.reservations(true) {
		if o.v.id == id && !o.v.block && o.v.state(c.now) == "active" {
			o.v.cancelled = c.now
			c.s.advance(c.now)
			return x("out", x("return", true)), nil
		}
	}
	return nil, bad("InvalidCapacityReservationId.NotFound", "The capacity reservation '%s' does not exist", id)
}

func describeReservedInstances(c *call) (*node, error) {
	c.oneOf("OfferingClass", "standard", "convertible")
	ids := c.reservations(false)
	filters := c.list("ReservedInstancesId")
	if filters != nil {
		ids = slices.DeleteFunc(ids, func(o owned[*reservation]) bool { return !slices.Contains(filters, o.id) })
	}
	fs := c.filters(reservedFilters...)
	if err := c.ready(); err != nil {
		return nil, err
	}
	ids = slices.DeleteFunc(ids, func(o owned[*reservation]) bool {
		return !pass(fs, o.tags, func(name string) []string { return c.reservationValue(o.v, name) })
	})
	return x("out", items("reservedInstancesSet", ids, func(o owned[*reservation]) *node {
		r := o.v
		return x("item", x("reservedInstancesId", r.id), x("instanceType", r.typ), opt("availabilityZone", r.zone),
			x("instanceCount", r.count), x("state", map[bool]string{true: "active", false: "retired"}[r.to.After(c.now)]),
			x("start", r.from), x("end", r.to),
			x("duration", int(r.to.Sub(r.from).Seconds())), x("productDescription", "Linux/UNIX"), x("instanceTenancy",
				"default"),
			x("currencyCode", "USD"), x("fixedPrice", "0.0"), x("usagePrice", "0.0"), x("offeringClass", "standard"),
			x("offeringType", "No Upfront"), x("scope", r.scope))
	})), nil
}
