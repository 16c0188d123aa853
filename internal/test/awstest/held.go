package awstest

import (
	"net/http"
	"slices"
	"time"

	"scrimp/internal/test/awstest/catalog"
)

// checkHeld returns why a launch cannot be into the reservation that it names. Sources: "Launch instances into an
// existing Capacity Reservation" and "Launch instances using Capacity Blocks", Amazon EC2 User Guide; the code for a
// reservation that is not active is from memory, not from the reference.
func (c *call) checkHeld(d *spec, t catalog.Type, z catalog.Zone) error {
	d.held = nil
	if d.capacityReservation == "" {
		if d.block {
			return bad("MissingParameter", "MarketType capacity-block needs a CapacityReservationTarget")
		}
		return nil
	}
	if d.reservationPreference != "" && d.reservationPreference != reservedOnly {
		return bad("InvalidParameterCombination", "CapacityReservationTarget cannot be used with the preference %s",
			d.reservationPreference)
	}
	k := slices.IndexFunc(c.s.reserved, func(r *reservation) bool {
		return r.id == d.capacityReservation && r.capacity && r.region == c.region
	})
	if k < 0 {
		return bad("InvalidCapacityReservationId.NotFound", "The capacity reservation '%s' does not exist",
			d.capacityReservation)
	}
	if err := c.admits(c.s.reserved[k], d, t, z); err != nil {
		return err
	}
	d.held = c.s.reserved[k]
	return nil
}

// admits returns why a launch cannot be into a reservation.
func (c *call) admits(r *reservation, d *spec, t catalog.Type, z catalog.Zone) error {
	switch {
	case d.spot:
		return bad("InvalidParameterCombination", "Spot instances cannot run in a Capacity Reservation")
	case r.block != d.block:
		return bad("InvalidParameterValue", "The reservation %s is%s a Capacity Block, and the market type does not fit",
			r.id, map[bool]string{true: "", false: " not"}[r.block])
	case r.typ != t.Name || r.zone != z.Name || r.place != d.group:
		return bad("InvalidParameterValue", "The attributes of the instance do not match those of %s: %s in %s", r.id, r.typ,
			r.zone)
	case r.block && (r.state(c.now) != "active" || !c.now.Before(r.to.Add(-blockEnds))):
		return refuse(http.StatusInternalServerError, "InsufficientInstanceCapacity",
			"The Capacity Block %s is not active.", r.id)
	case r.state(c.now) != "active":
		return bad("InvalidCapacityReservationState", "The capacity reservation %s is %s", r.id, r.state(c.now))
	}
	return nil
}

// affordHeld returns how many of count instances a reservation has room for.
func (c *call) affordHeld(r *reservation, count int) (int, error) {
	free := max(0, r.count-c.s.used(r))
	if free >= count {
		return count, nil
	}
	return free, bad("ReservationCapacityExceeded", "The requested reservation does not have sufficient compatible and "+
		"available capacity for this request.")
}

// hold puts an instance into a reservation: the one that it names, or an open one that it fits.
func (s *Server) hold(i *instance, named *reservation, now time.Time) {
	if named != nil {
		if slices.Contains(s.reserved, named) {
			i.held = named
		}
		return
	}
	if !i.joinsOpen() {
		return
	}
	for _, r := range s.reserved {
		if s.hasRoom(r, i, now) {
			i.held = r
			return
		}
	}
}

// joinsOpen reports whether EC2 puts an instance into an open reservation that it fits.
func (i *instance) joinsOpen() bool {
	return i.request == nil && i.spec.capacityReservation == "" && i.held == nil && live(i.state) &&
		(i.spec.reservationPreference == "" || i.spec.reservationPreference == "open")
}

// hasRoom reports whether an open reservation is for instances like this one, and has a place free.
func (s *Server) hasRoom(r *reservation, i *instance, now time.Time) bool {
	like := r.typ == i.typ.Name && r.zone == i.zone.Name && r.place == i.spec.group
	return like && r.capacity && r.open && r.owner == "" && r.state(now) == "active" && s.used(r) < r.count
}

// leaveHeld ends the instances of a reservation that ends: they continue on demand, or for a block are terminated, at
// the latest half an hour before the block's end.
func (s *Server) leaveHeld(i *instance, now time.Time) {
	r := i.held
	if r == nil || !live(i.state) {
		return
	}
	if at := r.to.Add(-blockEnds); r.block && !at.After(now) {
		s.finish(i, at, "", "", "Service initiated ("+at.Format(time.DateTime)+" GMT)", false)
		return
	}
	if at := r.ends(); !r.block && !at.IsZero() && !at.After(now) && i.heldTo.IsZero() {
		i.heldTo = at
	}
}

// showHeld returns the description of an instance's reservation.
func (i *instance) showHeld() (list []*node) {
	if i.spec.block {
		list = append(list, x("instanceLifecycle", "capacity-block"))
	}
	preference := x("capacityReservationPreference", or(i.spec.reservationPreference, "open"))
	if id := i.spec.capacityReservation; id != "" {
		preference = x("capacityReservationTarget", x("capacityReservationId", id))
	}
	list = append(list, x("capacityReservationSpecification", preference))
	if i.held != nil && i.heldTo.IsZero() {
		list = append(list, x("capacityReservationId", i.held.id))
	}
	return list
}
