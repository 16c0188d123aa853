//go:build !local

// Package reservation reads the capacity reservations of an account, and keeps what each has cost.
package reservation

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/engine/aws/stock"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Book holds the capacity reservations of an engine and what they cost.
type Book struct {
	Engine string // its name
	With   *setting.With
	Now    func() time.Time // wall time
	Log    *slog.Logger

	mu    sync.Mutex
	terms *terms // the costs of reservations so far
}

// New returns the book of an engine without any reservation.
func New(engine string, w *setting.With, now func() time.Time) *Book {
	return &Book{Engine: engine, With: w, Now: now, Log: slog.New(slog.DiscardHandler),
		terms: &terms{Of: map[market.OfferID]*Contract{}}}
}

// Load reads the costs that an earlier server has stored.
func (b *Book) Load(h *engine.Host) (err error) {
	t, err := readTerms(h, b.Engine)
	if err == nil {
		b.terms = t
	}
	return err
}

// List holds the reservations as last read.
type List struct {
	All []Held // nil: none are configured, or they were never read
	At  time.Time
	Err error // error of the last read
}

// Held is a capacity reservation as EC2 describes it.
type Held struct {
	ID, Kind, Zone string
	State          types.CapacityReservationState
	Count, Free    int
	From           time.Time
	Until          time.Time // zero: until somebody cancels it
	Block          bool
	Ours           bool   // this account pays for unused machines
	Place          string // its placement group; empty: none
	Unfit          string // why it provides no machine here; empty: it does
	Set            *setting.Reservation
}

// Read reads the capacity reservations, once a minute. If that fails, only their offers become unavailable.
// outside returns the machines outside the reservation that they were ordered in.
func (b *Book) Read(ctx context.Context, a *account.Client, x *stock.Stock, l *List, outside func() []Stray) {
	now := b.Now()
	b.mu.Lock()
	known := len(b.terms.Of)
	b.mu.Unlock()
	if len(b.With.Reservations)+known == 0 || now.Sub(l.At) <= stock.SpotFor {
		return
	}
	all, err := b.describe(ctx, a, x)
	l.At = now
	if err == nil {
		slices.SortFunc(all, func(a, b Held) int { return cmp.Or(a.From.Compare(b.From), strings.Compare(a.ID, b.ID)) })
		l.All = all
		err = b.settle(x, all, now, outside())
	}
	if err != nil && l.Err == nil && ctx.Err() == nil { // once, not every minute
		b.Log.Warn("cannot read the capacity reservations: their machines are not for rent", "engine", b.Engine, "error",
			account.SaidBy(err))
	}
	l.Err = account.Explain(b.Engine, b.With, err)
}

// describe returns the wanted reservations. Without configured ones it requests none, and earlier ones end.
func (b *Book) describe(ctx context.Context, a *account.Client, x *stock.Stock) (list []Held, err error) {
	pages := ec2.NewDescribeCapacityReservationsPaginator(a.EC2, &ec2.DescribeCapacityReservationsInput{})
	for len(b.With.Reservations) > 0 && pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for n := range page.CapacityReservations {
			if h := b.heldOf(a, x, &page.CapacityReservations[n]); h != nil {
				list = append(list, *h)
			}
		}
	}
	return list, nil
}

// heldOf converts a reservation; nil if it is not wanted.
func (b *Book) heldOf(a *account.Client, x *stock.Stock, c *types.CapacityReservation) *Held {
	h := &Held{ID: sdk.ToString(c.CapacityReservationId), Kind: sdk.ToString(c.InstanceType),
		Zone: sdk.ToString(c.AvailabilityZone), State: c.State, Count: int(sdk.ToInt32(c.TotalInstanceCount)),
		Free:  int(sdk.ToInt32(c.AvailableInstanceCount)),
		Block: c.ReservationType == types.CapacityReservationTypeCapacityBlock}
	for _, at := range []*time.Time{c.CreateDate, c.StartDate} {
		if at != nil {
			h.From = at.UTC()
		}
	}
	if c.EndDate != nil && c.EndDateType != types.EndDateTypeUnlimited {
		h.Until = c.EndDate.UTC()
	}
	owner := sdk.ToString(c.OwnerId)
	h.Ours = cmp.Or(sdk.ToString(c.UnusedReservationBillingOwnerId), owner) == a.Account
	if arn := sdk.ToString(c.PlacementGroupArn); arn != "" {
		h.Place = arn[strings.LastIndexByte(arn, '/')+1:]
	}
	if h.Set = b.With.SettingOf(h.ID); h.Set == nil {
		return nil
	}
	h.Unfit = b.unfit(x, h, c)
	if h.Set.ID == setting.All && (h.Unfit != "" || owner != a.Account || h.Over(b.Now()) && !b.knows(h.ID)) ||
		h.Count < 1 {
		return nil // "all" means the account's own that are available
	}
	return h
}

// knows reports whether a reservation has been sold.
func (b *Book) knows(reservation string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, c := b.terms.by(reservation)
	return c != nil
}

// unfit returns why a reservation provides no machine, with the fix; empty if it does.
func (b *Book) unfit(x *stock.Stock, h *Held, c *types.CapacityReservation) string {
	n := slices.IndexFunc(x.Types, func(k stock.Type) bool { return k.Name == h.Kind })
	_, hasZone := x.Zones[h.Zone]
	switch {
	case !b.With.Wants(h.Kind):
		return fmt.Sprintf("its type %s is not under types: add %s there", h.Kind, h.Kind)
	case !hasZone:
		return fmt.Sprintf("the engine has no subnet in its zone %s: add one under subnets", h.Zone)
	case n < 0 || stock.ArchOf[x.Types[n].Arch] != runtime.GOARCH || x.Images[x.Types[n].Arch].ID == "":
		return fmt.Sprintf("machines of %s cannot start from the image, or cannot run the server's own program (%s)", h.Kind,
			runtime.GOARCH)
	case c.InstancePlatform != types.CapacityReservationInstancePlatformLinuxUnix:
		return fmt.Sprintf("it is for %s, and scrimp's machines are Linux/UNIX", c.InstancePlatform)
	case c.Tenancy == types.CapacityReservationTenancyDedicated:
		return "its tenancy is dedicated, and scrimp's machines have the default tenancy"
	case sdk.ToString(c.OutpostArn) != "":
		return "it is on an Outpost"
	case sdk.ToBool(c.Interruptible):
		return "its owner may reclaim it: use spot"
	}
	return ""
}

// blockEnds is how long before the end of a Capacity Block EC2 starts to terminate its machines. Source:
// docs.aws.amazon.com, Amazon EC2 user guide, "Capacity Blocks for ML", 2026-11.
const blockEnds = 30 * time.Minute

// Usable returns until when machines of a reservation can be used; zero if unknown.
func (h *Held) Usable() time.Time {
	if h.Block && !h.Until.IsZero() {
		return h.Until.Add(-blockEnds)
	}
	return h.Until
}

// Over reports whether a reservation has ended, or never existed.
func (h *Held) Over(now time.Time) bool {
	ended := []types.CapacityReservationState{types.CapacityReservationStateExpired,
		types.CapacityReservationStateCancelled, types.CapacityReservationStateCancelling}
	end := h.Usable()
	return slices.Contains(ended, h.State) || h.never() || !end.IsZero() && !now.Before(end)
}

// never reports whether a reservation was never created: nothing is paid for it.
func (h *Held) never() bool {
	return h.State == types.CapacityReservationStateFailed || h.State == types.CapacityReservationStateUnsupported ||
		h.State == types.CapacityReservationStatePaymentFailed
}

// Rate returns the hourly price of one machine and, for a block, the amount paid for all of it; false if unknown.
func (h *Held) Rate(x *stock.Stock) (rate money.Rate, paid money.Amount, ok bool) {
	span := h.Usable().Sub(h.From)
	switch {
	case h.Block && h.Set.PaidAmount != nil:
		paid = *h.Set.PaidAmount
	case h.Block && h.Set.HourRate != nil:
		paid = h.Set.HourRate.Times(h.Count).Until(h.Until.Sub(h.From))
	case h.Block:
		return 0, paid, false
	case h.Set.PaidAmount != nil: // blocks only
		return 0, paid, false
	case h.Set.HourRate != nil:
		return *h.Set.HourRate, paid, true
	default:
		p, listed := x.Listed[h.Kind]
		return p.Rate, paid, listed
	}
	if span <= 0 {
		return 0, paid, false
	}
	return perHour(paid, h.Count, span), paid, true
}
