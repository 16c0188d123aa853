//go:build !local

package aws

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/engine/aws/stock"
	"scrimp/internal/lib/money"
)

// held is a capacity reservation as EC2 describes it.
type held struct {
	id, kind, zone string
	state          types.CapacityReservationState
	count, free    int
	from           time.Time
	until          time.Time // zero: until somebody cancels it
	block          bool
	ours           bool   // this account pays for unused machines
	place          string // its placement group; empty: none
	unfit          string // why it provides no machine here; empty: it does
	set            *setting.Reservation
}

// readHeld reads the capacity reservations, once a minute. If that fails, only their offers become unavailable.
func (d *Driver) readHeld(ctx context.Context, a *account.Client, x *index, now time.Time) {
	d.mu.Lock()
	known := len(d.terms.Of)
	d.mu.Unlock()
	if len(d.with.Reservations)+known == 0 || now.Sub(x.heldAt) <= stock.SpotFor {
		return
	}
	list, err := d.describeHeld(ctx, a, x)
	x.heldAt = now
	if err == nil {
		slices.SortFunc(list, func(a, b held) int { return cmp.Or(a.from.Compare(b.from), strings.Compare(a.id, b.id)) })
		x.held = list
		err = d.settle(x, now)
	}
	if err != nil && x.heldErr == nil && ctx.Err() == nil { // once, not every minute
		d.log.Warn("reservations of capacity are not read: their machines are not rented", "engine", d.name, "error",
			account.SaidBy(err))
	}
	x.heldErr = d.explain(err)
}

// describeHeld returns the wanted reservations. Without configured ones it requests none, and earlier ones end.
func (d *Driver) describeHeld(ctx context.Context, a *account.Client, x *index) (list []held, err error) {
	pages := ec2.NewDescribeCapacityReservationsPaginator(a.EC2, &ec2.DescribeCapacityReservationsInput{})
	for len(d.with.Reservations) > 0 && pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for n := range page.CapacityReservations {
			if h := d.heldOf(a, x, &page.CapacityReservations[n]); h != nil {
				list = append(list, *h)
			}
		}
	}
	return list, nil
}

// heldOf converts a reservation; nil if it is not wanted.
func (d *Driver) heldOf(a *account.Client, x *index, c *types.CapacityReservation) *held {
	h := &held{id: sdk.ToString(c.CapacityReservationId), kind: sdk.ToString(c.InstanceType),
		zone: sdk.ToString(c.AvailabilityZone), state: c.State, count: int(sdk.ToInt32(c.TotalInstanceCount)),
		free:  int(sdk.ToInt32(c.AvailableInstanceCount)),
		block: c.ReservationType == types.CapacityReservationTypeCapacityBlock}
	for _, at := range []*time.Time{c.CreateDate, c.StartDate} {
		if at != nil {
			h.from = at.UTC()
		}
	}
	if c.EndDate != nil && c.EndDateType != types.EndDateTypeUnlimited {
		h.until = c.EndDate.UTC()
	}
	owner := sdk.ToString(c.OwnerId)
	h.ours = cmp.Or(sdk.ToString(c.UnusedReservationBillingOwnerId), owner) == a.Account
	if arn := sdk.ToString(c.PlacementGroupArn); arn != "" {
		h.place = arn[strings.LastIndexByte(arn, '/')+1:]
	}
	if h.set = d.with.SettingOf(h.id); h.set == nil {
		return nil
	}
	h.unfit = d.unfit(x, h, c)
	if h.set.ID == setting.All && (h.unfit != "" || owner != a.Account || h.over(d.now()) && !d.knows(h.id)) ||
		h.count < 1 {
		return nil // "all" means the account's own that are available
	}
	return h
}

// knows reports whether a reservation has been sold.
func (d *Driver) knows(reservation string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, c := d.terms.by(reservation)
	return c != nil
}

// unfit returns why a reservation provides no machine, with the fix; empty if it does.
func (d *Driver) unfit(x *index, h *held, c *types.CapacityReservation) string {
	n := slices.IndexFunc(x.Types, func(k stock.Type) bool { return k.Name == h.kind })
	_, hasZone := x.Zones[h.zone]
	switch {
	case !d.with.Wants(h.kind):
		return fmt.Sprintf("it is of %s, which types does not have: write %s under types", h.kind, h.kind)
	case !hasZone:
		return fmt.Sprintf("it is in %s, where the engine has no subnet: write one of that zone under subnets", h.zone)
	case n < 0 || archOf[x.Types[n].Arch] != runtime.GOARCH || x.Images[x.Types[n].Arch].ID == "":
		return fmt.Sprintf("machines of %s cannot begin from the image, or do not run the server's own program (%s)", h.kind,
			runtime.GOARCH)
	case c.InstancePlatform != types.CapacityReservationInstancePlatformLinuxUnix:
		return fmt.Sprintf("it is for %s, and scrimp's machines are Linux/UNIX", c.InstancePlatform)
	case c.Tenancy == types.CapacityReservationTenancyDedicated:
		return "it is of dedicated tenancy, and scrimp's machines are of the default one"
	case sdk.ToString(c.OutpostArn) != "":
		return "it is on an Outpost"
	case sdk.ToBool(c.Interruptible):
		return "it is one that its owner may take back: use spot"
	}
	return ""
}

// blockEnds is how long before the end of a Capacity Block EC2 starts to terminate its machines. Source:
// docs.aws.amazon.com, Amazon EC2 user guide, "Capacity Blocks for ML", 2026-11.
const blockEnds = 30 * time.Minute

// usable returns until when machines of a reservation can be used; zero if unknown.
func (h *held) usable() time.Time {
	if h.block && !h.until.IsZero() {
		return h.until.Add(-blockEnds)
	}
	return h.until
}

// over reports whether a reservation has ended, or never existed.
func (h *held) over(now time.Time) bool {
	ended := []types.CapacityReservationState{types.CapacityReservationStateExpired,
		types.CapacityReservationStateCancelled, types.CapacityReservationStateCancelling}
	end := h.usable()
	return slices.Contains(ended, h.state) || h.never() || !end.IsZero() && !now.Before(end)
}

// never reports whether a reservation was never created: nothing is paid for it.
func (h *held) never() bool {
	return h.state == types.CapacityReservationStateFailed || h.state == types.CapacityReservationStateUnsupported ||
		h.state == types.CapacityReservationStatePaymentFailed
}

// rate returns the hourly price of one machine and, for a block, the amount paid for all of it; false if unknown.
func (h *held) rate(x *index) (rate money.Rate, paid money.Amount, ok bool) {
	span := h.usable().Sub(h.from)
	switch {
	case h.block && h.set.PaidAmount != nil:
		paid = *h.set.PaidAmount
	case h.block && h.set.HourRate != nil:
		paid = h.set.HourRate.Times(h.count).Until(h.until.Sub(h.from))
	case h.block:
		return 0, paid, false
	case h.set.PaidAmount != nil: // blocks only
		return 0, paid, false
	case h.set.HourRate != nil:
		return *h.set.HourRate, paid, true
	default:
		p, listed := x.Listed[h.kind]
		return p.Rate, paid, listed
	}
	if span <= 0 {
		return 0, paid, false
	}
	return perHour(paid, h.count, span), paid, true
}
