//go:build !local

package aws

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"go.yaml.in/yaml/v3"

	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
)

// Reservation is a reservation of capacity as it is set: an On-Demand Capacity Reservation or a Capacity Block for ML.
type Reservation struct {
	ID   string `yaml:"id"`             // all: each active one of the account
	Rate string `yaml:"rate,omitempty"` // of an hour of one machine; "": the price list's, of a block unknown
	Paid string `yaml:"paid,omitempty"` // for all of a block
	Team string `yaml:"team,omitempty"` // whose cost the hours are that nobody uses; "": nobody's

	rate *money.Rate
	paid *money.Amount
}

// Reservations are those that are set: ids, or ids with what they cost, or all.
type Reservations []Reservation

const everyOne = "all"

// UnmarshalYAML takes all alone too.
func (l *Reservations) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*l = Reservations{{ID: n.Value}}
		return nil
	}
	return n.Decode((*[]Reservation)(l))
}

var reservationFields = []string{"id", "rate", "paid", "team"}

// UnmarshalYAML takes an id alone too.
func (r *Reservation) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		r.ID = n.Value
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 { // a decoder of one's own forgets to be strict
		if name := n.Content[i].Value; !slices.Contains(reservationFields, name) {
			return fmt.Errorf("line %d: reservations: %s is not known: a reservation is its id, or has id, rate, paid and team",
				n.Content[i].Line, name)
		}
	}
	type plain Reservation
	return n.Decode((*plain)(r))
}

var reservationID = regexp.MustCompile(`^cr-[0-9a-f]{8,17}$`)

// holds checks what is set of reservations.
func (w *With) holds() error {
	seen := map[string]bool{}
	for n := range w.Reservations {
		r := &w.Reservations[n]
		at := "with: reservations: " + cmp.Or(r.ID, fmt.Sprint("the ", n+1, "."))
		switch fix := identity.WrongName(r.Team); {
		case strings.HasPrefix(r.ID, "cb-"):
			return fmt.Errorf("%s is a Capacity Block's: write the id of its reservation, such as cr-0a1b2c3d4e5f67890 "+
				"(aws ec2 describe-capacity-blocks)", at)
		case r.ID != everyOne && !reservationID.MatchString(r.ID):
			return fmt.Errorf("%s: id is %q: write one such as cr-0a1b2c3d4e5f67890, or all", at, r.ID)
		case seen[r.ID]:
			return fmt.Errorf("%s stands twice: write it once", at)
		case r.ID == everyOne && (r.Rate != "" || r.Paid != ""):
			return fmt.Errorf("%s: rate and paid are of one reservation: write its id beside all", at)
		case r.Rate != "" && r.Paid != "":
			return fmt.Errorf("%s has rate and paid: write what an hour of one machine costs, or what was paid for all of a "+
				"block", at)
		case r.Team != "" && fix != "":
			return fmt.Errorf("%s: team is %q: %s", at, r.Team, fix)
		}
		seen[r.ID] = true
		if err := r.costs(); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return nil
}

// costs reads what is set of the price.
func (r *Reservation) costs() error {
	if r.Rate != "" {
		rate, err := money.ParseRate(r.Rate)
		if err != nil || rate < 0 {
			return fmt.Errorf("rate is %q: write the dollars of an hour of one machine, such as 31.464", r.Rate)
		}
		r.rate = &rate
	}
	if r.Paid != "" {
		paid, err := money.Parse(r.Paid)
		if err != nil || paid.Sign() < 0 {
			return fmt.Errorf("paid is %q: write the dollars that the whole block cost, such as 5285.95", r.Paid)
		}
		r.paid = &paid
	}
	return nil
}

// settingOf is what is set of a reservation; nil: it is not wanted.
func (w *With) settingOf(id string) (set *Reservation) {
	for n := range w.Reservations {
		if r := &w.Reservations[n]; r.ID == id || r.ID == everyOne && set == nil {
			set = r
		}
	}
	return set
}

// held is a reservation of capacity as EC2 describes it.
type held struct {
	id, kind, zone string
	state          types.CapacityReservationState
	count, free    int
	from           time.Time
	until          time.Time // zero: until somebody cancels it
	block          bool
	ours           bool   // this account pays for what nobody uses
	place          string // placement group that it is in; "": none
	unfit          string // why no machine of it can be had here; "": one can
	set            *Reservation
}

// readHeld reads the reservations of capacity, once a minute. That they cannot be read stops nothing else: their offers
// are then not available.
func (d *Driver) readHeld(ctx context.Context, a *api, x *index, now time.Time) {
	d.mu.Lock()
	known := len(d.terms.Of)
	d.mu.Unlock()
	if len(d.with.Reservations)+known == 0 || now.Sub(x.heldAt) <= spotFor {
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
			saidBy(err))
	}
	x.heldErr = d.explain(err)
}

// describeHeld are the reservations that are wanted. None is asked for where none is set: those that were end.
func (d *Driver) describeHeld(ctx context.Context, a *api, x *index) (list []held, err error) {
	pages := ec2.NewDescribeCapacityReservationsPaginator(a.ec2, &ec2.DescribeCapacityReservationsInput{})
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

// heldOf is a reservation as it is described; nil: it is not wanted.
func (d *Driver) heldOf(a *api, x *index, c *types.CapacityReservation) *held {
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
	h.ours = cmp.Or(sdk.ToString(c.UnusedReservationBillingOwnerId), owner) == a.account
	if arn := sdk.ToString(c.PlacementGroupArn); arn != "" {
		h.place = arn[strings.LastIndexByte(arn, '/')+1:]
	}
	if h.set = d.with.settingOf(h.id); h.set == nil {
		return nil
	}
	h.unfit = d.unfit(x, h, c)
	if h.set.ID == everyOne && (h.unfit != "" || owner != a.account || h.over(d.now()) && !d.knows(h.id)) || h.count < 1 {
		return nil // of all those that can be had and are the account's own
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

// unfit says why no machine of a reservation can be had, with the fix; "": one can.
func (d *Driver) unfit(x *index, h *held, c *types.CapacityReservation) string {
	n := slices.IndexFunc(x.types, func(k kind) bool { return k.name == h.kind })
	_, hasZone := x.zones[h.zone]
	switch {
	case !d.with.wants(h.kind):
		return fmt.Sprintf("it is of %s, which types does not have: write %s under types", h.kind, h.kind)
	case !hasZone:
		return fmt.Sprintf("it is in %s, where the engine has no subnet: write one of that zone under subnets", h.zone)
	case n < 0 || archOf[x.types[n].arch] != runtime.GOARCH || x.images[x.types[n].arch].id == "":
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

// blockEnds is how long before the end of a Capacity Block EC2 begins to terminate its machines. Source:
// docs.aws.amazon.com, Amazon EC2 user guide, "Capacity Blocks for ML", 2026-11.
const blockEnds = 30 * time.Minute

// usable is until when machines of a reservation can be used; zero: nobody has said.
func (h *held) usable() time.Time {
	if h.block && !h.until.IsZero() {
		return h.until.Add(-blockEnds)
	}
	return h.until
}

// over reports whether a reservation has ended, or never was.
func (h *held) over(now time.Time) bool {
	ended := []types.CapacityReservationState{types.CapacityReservationStateExpired,
		types.CapacityReservationStateCancelled, types.CapacityReservationStateCancelling}
	end := h.usable()
	return slices.Contains(ended, h.state) || h.never() || !end.IsZero() && !now.Before(end)
}

// never reports whether a reservation never came to be: nothing is paid for it.
func (h *held) never() bool {
	return h.state == types.CapacityReservationStateFailed || h.state == types.CapacityReservationStateUnsupported ||
		h.state == types.CapacityReservationStatePaymentFailed
}

// rate is what an hour of one machine costs, and of a block what was paid for all of it; false: nobody says.
func (h *held) rate(x *index) (rate money.Rate, paid money.Amount, ok bool) {
	span := h.usable().Sub(h.from)
	switch {
	case h.block && h.set.paid != nil:
		paid = *h.set.paid
	case h.block && h.set.rate != nil:
		paid = h.set.rate.Times(h.count).Until(h.until.Sub(h.from))
	case h.block:
		return 0, paid, false
	case h.set.paid != nil: // of a block alone
		return 0, paid, false
	case h.set.rate != nil:
		return *h.set.rate, paid, true
	default:
		p, listed := x.listed[h.kind]
		return p.rate, paid, listed
	}
	if span <= 0 {
		return 0, paid, false
	}
	return perHour(paid, h.count, span), paid, true
}
