//go:build !local

package aws

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/engine/aws/stock"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// offerOf returns a reservation's offer without its price.
func (d *Driver) offerOf(x *index, h *held, id market.OfferID) market.Offer {
	k := x.Types[slices.IndexFunc(x.Types, func(k stock.Type) bool { return k.Name == h.kind })]
	return market.Offer{ID: id, Provider: d.name, Region: d.with.Region, Zone: h.zone, Machine: h.kind,
		Capacity: market.Reserved, CPUs: k.CPUs, Memory: k.Memory, Accelerator: k.Accelerator, Accelerators: k.Accelerators,
		Currency: money.USD}
}

// reserved returns the machines of reservations, and the offers of ended ones while their last hours may still be
// unbooked.
func (d *Driver) reserved(x *index) (all []sale) {
	now := d.now()
	d.mu.Lock()
	contracts := maps.Clone(d.terms.Of)
	d.mu.Unlock()
	there := map[market.OfferID]bool{}
	for n := range x.held {
		if s, ok := d.saleOfHeld(x, &x.held[n], now); ok {
			all, there[s.offer.ID] = append(all, s), true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(contracts)) {
		c := contracts[id]
		if there[id] || now.Sub(c.Until) > closedFor {
			continue
		}
		s := sale{offer: c.Offer, quote: market.Quote{Offer: id, At: x.heldAt.UTC(), Source: "aws"}}
		s.offer.Reserved = d.heldTerms(c, now, 0, nil)
		all = append(all, s)
	}
	return all
}

// heldTerms returns a contract's terms as they are sold.
func (d *Driver) heldTerms(c *contract, now time.Time, besides money.Rate,
	set *setting.Reservation) market.Reservation {
	team := ""
	if set == nil {
		set = d.with.SettingOf(c.Reservation)
	}
	if set != nil {
		team = set.Team
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return c.reservation(now, besides, team)
}

// saleOfHeld returns a reservation as it is sold; false if it provides no machine. A reservation of unknown price is
// shown and not rented: the ledger would otherwise book it as free.
func (d *Driver) saleOfHeld(x *index, h *held, now time.Time) (sale, bool) {
	d.mu.Lock()
	id, c := d.terms.by(h.id)
	if c == nil {
		id = d.nameOf(h)
	}
	d.mu.Unlock()
	if h.unfit != "" || c == nil && h.over(now) {
		return sale{}, false
	}
	s := sale{zone: x.Zones[h.zone], held: h, offer: d.offerOf(x, h, id), rates: rates{currency: money.USD}}
	s.kind = x.Types[slices.IndexFunc(x.Types, func(k stock.Type) bool { return k.Name == h.kind })]
	s.image = x.Images[s.kind.Arch]
	s.rates.disk, s.rates.address = d.besides(x, h.zone)
	s.quote = market.Quote{Offer: id, At: x.heldAt.UTC(), Source: "aws"}
	if h.set.HourRate != nil || h.set.PaidAmount != nil {
		s.quote.Source = "set in engines.yaml"
	}
	if c == nil {
		s.offer.Machines = h.count
		return s, true
	}
	s.rates.machine = c.Machine
	s.offer.Reserved = d.heldTerms(c, now, s.rates.disk+s.rates.address, h.set)
	if s.quote.Priced = x.DiskKnown; s.quote.Priced {
		s.quote.Rate = s.rates.sum()
	}
	s.quote.Available = h.state == types.CapacityReservationStateActive && !h.over(now) && !now.Before(h.from) &&
		x.heldErr == nil && (h.free > 0 || d.inHeld(h.id) > 0) && !d.isFull(id) // one of ours may have to leave
	return s, true
}

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

// holds sets in a launch template where its machines may run. An on-demand machine takes no place in an open
// reservation of the account: it would cost twice, as reserved and as on-demand.
func (d *Driver) holds(data *types.RequestLaunchTemplateData, s *sale) {
	switch {
	case s.held != nil:
		data.CapacityReservationSpecification = &types.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationPreference: types.CapacityReservationPreferenceCapacityReservationsOnly,
			CapacityReservationTarget:     &types.CapacityReservationTarget{CapacityReservationId: sdk.String(s.held.id)}}
		if s.held.block {
			data.InstanceMarketOptions = &types.LaunchTemplateInstanceMarketOptionsRequest{
				MarketType: types.MarketTypeCapacityBlock}
		}
	case s.offer.Capacity == market.OnDemand && len(d.with.Reservations) > 0:
		data.CapacityReservationSpecification = &types.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationPreference: types.CapacityReservationPreferenceNone}
	}
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

// followed is follows for a known machine: one that turns out to have run outside all along costs what it costs
// there.
func (d *Driver) followed(ctx context.Context, a *account.Client, s *seen, e *types.Instance) (err error) {
	was := s.left
	s.follows(e, d.now(), d.heldUntil(s.named))
	if !was.IsZero() || !s.left.Equal(s.i.Launched) {
		return nil
	}
	if s.rate, err = d.rateOf(ctx, a, s); err == nil {
		s.i.Rate = s.rate.sum()
		d.compares(s, e)
	}
	return err
}

// heldUntil returns when a reservation ends or ended; zero if it has no known end.
func (d *Driver) heldUntil(reservation string) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, c := d.terms.by(reservation); reservation != "" && c != nil && !c.Until.After(d.now()) {
		return c.Until
	}
	return time.Time{}
}

// heldRate returns the hourly cost of a machine in the reservation that it was ordered in; false if it is not there.
func (d *Driver) heldRate(x *index, s *seen) (money.Rate, bool) {
	if s.named == "" || s.left.Equal(s.i.Launched) {
		return 0, false
	}
	d.mu.Lock()
	_, c := d.terms.by(s.named)
	d.mu.Unlock()
	if c != nil {
		return c.Machine, true
	}
	for n := range x.held {
		if h := &x.held[n]; h.id == s.named {
			rate, _, ok := h.rate(x)
			return rate, ok
		}
	}
	return 0, false
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

// compares notes how a machine differs from its order. It costs what it is, not what was ordered.
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
	d.log.Warn("a machine differs from its order: it is booked as it is", "engine", d.name, "instance", id,
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
