//go:build !local

package aws

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/sale"
	"scrimp/internal/engine/aws/stock"
	"scrimp/internal/engine/aws/tag"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// keepFor is how long an ended instance stays in List; EC2 lists it for about an hour.
const keepFor = 2 * time.Hour

// seen is the last listed state of an instance.
type seen struct {
	i       engine.Instance
	last    time.Time // last listed
	spot    string    // id of its spot request; empty: none
	zone    string
	kind    string
	rate    sale.Rates // at its launch
	stopped bool       // stopped by hand: its disk costs until it is terminated
	ran     bool       // it has been listed as running
	named   string     // reservation that it was ordered in; empty: none
	held    string     // reservation that it is in, as far as known
	left    time.Time  // when it left its reservation; zero: it is in it
}

// List implements engine.Driver.
func (d *Driver) List(ctx context.Context) ([]engine.Instance, error) {
	a, err := d.connected(ctx)
	if err != nil {
		return nil, err
	}
	list, err := d.describe(ctx, a, &ec2.DescribeInstancesInput{Filters: tag.Filter(d.name, types.Filter{
		Name: sdk.String("tag-key"), Values: []string{tag.Key}})})
	if err != nil {
		return nil, d.explain(err)
	}
	list = append(list, d.gone(list, func(*engine.Instance) bool { return true })...)
	slices.SortFunc(list, func(a, b engine.Instance) int { return strings.Compare(a.ID, b.ID) })
	d.sweep(ctx, a, list)
	return list, nil
}

// describe returns this engine's instances that match a filter.
func (d *Driver) describe(ctx context.Context, a *account.Client, in *ec2.DescribeInstancesInput) ([]engine.Instance,
	error) {
	var found []types.Instance
	pages := ec2.NewDescribeInstancesPaginator(a.EC2, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Reservations {
			found = append(found, r.Instances...)
		}
	}
	var list []engine.Instance
	for n := range found {
		i, err := d.instance(ctx, a, &found[n])
		if err != nil {
			return nil, err
		}
		if i != nil {
			list = append(list, *i)
		}
	}
	return list, nil
}

// instance converts a machine from EC2's form; nil if it is not this engine's.
func (d *Driver) instance(ctx context.Context, a *account.Client, e *types.Instance) (*engine.Instance, error) {
	tags := tag.Plain(e.Tags)
	if tags[tag.Engine] != d.name || tags[tag.Key] == "" || e.State == nil || e.LaunchTime == nil {
		return nil, nil
	}
	id := sdk.ToString(e.InstanceId)
	s := d.copyOf(id)
	if s == nil {
		s = &seen{zone: sdk.ToString(e.Placement.AvailabilityZone), kind: string(e.InstanceType),
			spot: sdk.ToString(e.SpotInstanceRequestId), named: tags[tag.Reservation]}
		s.i = engine.Instance{ID: id, Key: tags[tag.Key], Offer: market.OfferID(tags[tag.Offer]), State: engine.Running,
			Launched: e.LaunchTime.UTC(), Tags: tag.Given(tags)}
		s.follows(e, d.now(), d.book.Until(s.named))
		var err error
		if s.rate, err = d.rateOf(ctx, a, s); err != nil {
			return nil, err
		}
		s.i.Rate = s.rate.Sum()
		d.compares(s, e)
	} else if err := d.followed(ctx, a, s, e); err != nil {
		return nil, err
	}
	s.last = d.now()
	s.stopped = e.State.Name == types.InstanceStateNameStopped
	s.ran = s.ran || e.State.Name == types.InstanceStateNameRunning
	if s.i.State == engine.Running && over(e.State.Name) {
		if err := d.end(ctx, a, s, e); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if old := d.seen[id]; old != nil && old.i.State == engine.Ended && s.i.State == engine.Running {
		s.i = old.i // another call has already heard that it ended
	}
	d.seen[id] = s
	i := s.i
	return &i, nil
}

// copyOf returns a copy of a machine's last listed state for one call, because other calls may list it at the same
// time; nil if there is none.
func (d *Driver) copyOf(id string) *seen {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.seen[id]
	if s == nil {
		return nil
	}
	c := *s
	return &c
}

// over reports whether an instance is no longer billed. One that was stopped by hand counts as ended and is
// terminated.
func over(s types.InstanceStateName) bool {
	return s == types.InstanceStateNameShuttingDown || s == types.InstanceStateNameTerminated ||
		s == types.InstanceStateNameStopping || s == types.InstanceStateNameStopped
}

// rateOf returns the hourly cost of an instance at its launch.
func (d *Driver) rateOf(ctx context.Context, a *account.Client, s *seen) (sale.Rates, error) {
	x, err := d.indexed(ctx)
	if err != nil {
		return sale.Rates{}, err
	}
	r := sale.Rates{Currency: money.USD}
	r.Disk, r.Address = d.seller.Besides(x, s.zone)
	if s.spot == "" {
		r.Machine = x.Listed[s.kind].Rate
		if rate, ok := d.heldRate(x, s); ok {
			r.Machine = rate
		}
		return r, nil
	}
	list, err := d.prices(ctx, a, s.zone, s.kind, s.i.Launched, s.i.Launched.Add(time.Second))
	if err == nil && len(list) > 0 {
		r.Machine = list[0].Rate
	}
	return r, err
}

// prices returns the spot prices of a type in a zone over a span, the first one from the span's start.
func (d *Driver) prices(ctx context.Context, a *account.Client, zone, kind string, from,
	to time.Time) ([]market.Segment, error) {
	var list []market.Segment
	pages := ec2.NewDescribeSpotPriceHistoryPaginator(a.EC2, &ec2.DescribeSpotPriceHistoryInput{StartTime: &from,
		EndTime: &to, AvailabilityZone: &zone, InstanceTypes: []types.InstanceType{types.InstanceType(kind)},
		ProductDescriptions: []string{stock.LinuxProduct}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range page.SpotPriceHistory {
			rate, err := money.ParseRate(sdk.ToString(p.SpotPrice))
			if err == nil && p.Timestamp != nil && p.Timestamp.Before(to) {
				list = append(list, market.Segment{From: p.Timestamp.UTC(), Rate: rate})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b market.Segment) int { return a.From.Compare(b.From) })
	for len(list) > 1 && !list[1].From.After(from) { // replaced by a later price before from
		list = list[1:]
	}
	if len(list) > 0 {
		list[0].From = from.UTC()
	}
	return list, nil
}

// transitionTime finds the time in EC2's description of a state change: "User initiated (2026-11-23 18:35:41 GMT)".
var transitionTime = regexp.MustCompile(`\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)`)

// ending returns why and when an instance ended, by the code and the text of its state or else by its spot request,
// and whether EC2 reclaimed it. The cause is empty and the time zero if EC2 does not say.
func ending(ctx context.Context, a *account.Client, s *seen, code, text string) (cause engine.Cause, at time.Time,
	reclaimed bool, err error) {
	cause, reclaimed = causeOf(code), reclaims[code]
	if m := transitionTime.FindStringSubmatch(text); m != nil {
		at, _ = time.Parse(time.DateTime, m[1])
	}
	if s.spot == "" || !at.IsZero() && cause != "" {
		return cause, at, reclaimed, nil
	}
	status, err := spotStatus(ctx, a, s.spot)
	if err != nil || status == nil {
		return cause, at, reclaimed, err
	}
	if at.IsZero() && status.UpdateTime != nil {
		at = status.UpdateTime.UTC()
	}
	if cause == "" {
		cause = causeOfSpot(sdk.ToString(status.Code))
		reclaimed = cause == engine.Interrupted && sdk.ToString(status.Code) != "instance-terminated-by-service"
	}
	return cause, at, reclaimed, nil
}

// end records when and why an instance ended, and what it has cost.
func (d *Driver) end(ctx context.Context, a *account.Client, s *seen, e *types.Instance) error {
	code := ""
	if e.StateReason != nil {
		code = sdk.ToString(e.StateReason.Code)
	}
	cause, at, reclaimed, err := ending(ctx, a, s, code, sdk.ToString(e.StateTransitionReason))
	if err != nil {
		return err
	}
	if cause == "" { // the provider's doing, as far as anybody knows
		cause = engine.Interrupted
	}
	if at.IsZero() { // EC2 reports no time
		at = d.now().UTC().Truncate(time.Second)
	}
	if at.Before(s.i.Launched) {
		at = s.i.Launched
	}
	var bill []engine.Line
	if !s.ran && failedToLaunch(e.StateReason) {
		bill = []engine.Line{{From: s.i.Launched, To: at.UTC(), Currency: s.rate.Currency}} // EC2 bills what runs
		if code == noRoomLeft {
			d.seller.Lacks(s.i.Offer)
		}
	} else if bill, err = d.bill(ctx, a, s, at, reclaimed && s.spot != ""); err != nil {
		return err
	}
	s.i.State, s.i.Ended, s.i.Cause, s.i.Bill = engine.Ended, at.UTC(), cause, bill
	return nil
}

// spotStatus returns EC2's status of a spot request; nil if there is none or the id is no longer known.
func spotStatus(ctx context.Context, a *account.Client, id string) (*types.SpotInstanceStatus, error) {
	out, err := a.EC2.DescribeSpotInstanceRequests(ctx, &ec2.DescribeSpotInstanceRequestsInput{
		SpotInstanceRequestIds: []string{id}})
	switch {
	case err != nil && account.CodeOf(err) != "InvalidSpotInstanceRequestID.NotFound":
		return nil, err
	case err != nil || len(out.SpotInstanceRequests) == 0:
		return nil, nil
	}
	return out.SpotInstanceRequests[0].Status, nil
}

// reclaims are the codes of EC2's interruptions of spot machines; a hardware failure is billed like any end.
var reclaims = map[string]bool{"Server.SpotInstanceTermination": true, "Server.SpotInstanceShutdown": true}

// launchFailures are the codes of instances that ended before they ran, if they mean only that. Source:
// docs.aws.amazon.com, Amazon EC2 API reference, StateReason.
var launchFailures = []string{noRoomLeft, "Client.InternalError", "Client.VolumeLimitExceeded",
	"Client.InvalidSnapshot.NotFound"}

// noRoomLeft is the code of a granted instance for which there was no capacity at its start.
const noRoomLeft = "Server.InsufficientInstanceCapacity"

// failedToLaunch reports whether EC2 says that an instance ended before it ran. The code of EC2's own failure also
// occurs for machines that ran; then the message does not mention a launch.
func failedToLaunch(r *types.StateReason) bool {
	if r == nil {
		return false
	}
	code := sdk.ToString(r.Code)
	return slices.Contains(launchFailures, code) ||
		code == "Server.InternalError" && strings.Contains(sdk.ToString(r.Message), "on launch")
}

// causeOf returns why an instance ended, from the code of its state reason; empty if that does not say. Source:
// docs.aws.amazon.com, Amazon EC2 API reference, StateReason.
func causeOf(code string) engine.Cause {
	switch code {
	case "Client.UserInitiatedShutdown":
		return engine.Terminated
	case "Client.InstanceInitiatedShutdown":
		return engine.Stopped
	case "Server.SpotInstanceTermination",
		"Server.SpotInstanceShutdown",
		"Server.InternalError",
		"Server.ScheduledStop",
		"Server.InsufficientInstanceCapacity",
		"Client.InternalError",
		"Client.VolumeLimitExceeded",
		"Client.InvalidSnapshot.NotFound":
		return engine.Interrupted
	}
	return ""
}

// causeOfSpot does the same from the status of its spot request. Source: docs.aws.amazon.com, Amazon EC2 user guide,
// "Spot Instance request status codes".
func causeOfSpot(code string) engine.Cause {
	switch {
	case code == "instance-terminated-by-user" || code == "request-canceled-and-instance-running":
		return engine.Terminated
	case strings.HasPrefix(code, "instance-terminated-"), strings.HasPrefix(code, "instance-stopped-"):
		return engine.Interrupted
	}
	return ""
}

// gone returns instances that EC2 no longer lists, as last seen: those that have ended, for a while, and those
// missing for less than EC2's consistency delay, which may be listed again.
func (d *Driver) gone(list []engine.Instance, of func(*engine.Instance) bool) (more []engine.Instance) {
	there := map[string]bool{}
	for _, i := range list {
		there[i.ID] = true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, s := range d.seen {
		switch {
		case there[id] || !of(&s.i):
		case s.i.State == engine.Ended && d.now().Sub(s.last) > keepFor:
			delete(d.seen, id)
			delete(d.recent, id)
		case s.i.State == engine.Ended || d.now().Sub(s.last) < usual.Consistency:
			more = append(more, s.i) // it has ended, or will be listed again
		}
	}
	return more
}
