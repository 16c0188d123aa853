//go:build !local

package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/reservation"
	"scrimp/internal/engine/aws/sale"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// inHeld counts our running machines in a reservation.
func (d *Driver) inHeld(id string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.seen {
		if s.named == id && s.left.IsZero() && s.i.State == engine.Running {
			n++
		}
	}
	return n
}

// follows notes whether a machine is in the reservation that it was ordered in. end is the reservation's end; zero if
// unknown.
func (s *seen) follows(e *types.Instance, now, end time.Time) {
	is := sdk.ToString(e.CapacityReservationId)
	switch {
	case s.named == "":
		s.held = is
	case e.State.Name != types.InstanceStateNameRunning: // EC2 reports it only for running machines
	case is == s.named:
		s.held, s.left = is, time.Time{}
	case s.left.IsZero():
		was := s.held == s.named
		s.left = s.i.Launched
		if was {
			s.left = now.UTC().Truncate(time.Second)
		}
		if !end.IsZero() && end.After(s.i.Launched) && (!was || end.Before(s.left)) {
			s.left = end // the reservation has ended, and the machine runs on
		}
		s.held = is
	}
}

// followed is follows for a known machine. A machine that turns out to have run outside its reservation from the start
// costs the on-demand price.
func (d *Driver) followed(ctx context.Context, a *account.Client, s *seen, e *types.Instance) (err error) {
	was := s.left
	s.follows(e, d.now(), d.book.Until(s.named))
	if !was.IsZero() || !s.left.Equal(s.i.Launched) {
		return nil
	}
	if s.rate, err = d.rateOf(ctx, a, s); err == nil {
		s.i.Rate = s.rate.Sum()
		d.compares(s, e)
	}
	return err
}

// heldRate returns the hourly cost of a machine in its reservation; false if the machine is not in it.
func (d *Driver) heldRate(x *sale.Index, s *seen) (money.Rate, bool) {
	if s.named == "" || s.left.Equal(s.i.Launched) {
		return 0, false
	}
	return d.book.MachineRate(&x.Stock, &x.Held, s.named)
}

// outside returns the machines that are outside the reservation that they were ordered in.
func (d *Driver) outside() (list []reservation.Stray) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, s := range d.seen {
		if s.named != "" && !s.left.IsZero() {
			list = append(list, reservation.Stray{ID: id, Reservation: s.named, Kind: s.kind, From: s.left, Ended: s.i.Ended})
		}
	}
	return list
}

// heldSegments returns the prices of a machine in its reservation until it left it.
func (d *Driver) heldSegments(s *seen, in []market.Segment) []market.Segment {
	if s.left.IsZero() {
		return in
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return append(slices.Clone(in), market.Segment{From: s.left, Rate: d.index.Listed[s.kind].Rate})
}

// compares records how a machine differs from its order. scrimp books the price of the actual machine.
func (d *Driver) compares(s *seen, e *types.Instance) {
	var odd string
	spot := s.spot != ""
	ordered, known := d.orderedAs(s.i.Offer)
	switch {
	case s.named != "" && s.left.Equal(s.i.Launched):
		odd = fmt.Sprintf("it was ordered in the reservation %s and runs outside of it, on demand", s.named)
	case !known:
	case ordered.zone != setting.AnyZone && (ordered.kind != s.kind || ordered.zone != s.zone):
		odd = fmt.Sprintf("it was ordered as %s in %s and is %s in %s", ordered.kind, ordered.zone, s.kind, s.zone)
	case spot != (ordered.capacity == market.Spot):
		odd = fmt.Sprintf("it was ordered as %s and is %s", ordered.capacity,
			map[bool]market.Capacity{true: market.Spot, false: market.OnDemand}[spot])
	}
	if odd == "" {
		return
	}
	id := sdk.ToString(e.InstanceId)
	d.log.Warn("a machine differs from its order: scrimp books what it is", "engine", d.name, "instance", id,
		"is", odd, "rate", s.i.Rate.String())
	d.mu.Lock()
	defer d.mu.Unlock()
	d.odd[id] = odd
}

// order is an offer's parsed name.
type order struct {
	zone, kind string
	capacity   market.Capacity
}

// orderedAs parses an offer's name; false if it is not this engine's.
func (d *Driver) orderedAs(id market.OfferID) (o order, ok bool) {
	parts := strings.Split(string(id), "/")
	if len(parts) != 4 || parts[0] != d.name {
		return o, false
	}
	kind, _, _ := strings.Cut(parts[2], "@")
	return order{parts[1], kind, market.Capacity(parts[3])}, true
}
