//go:build !local

package aws

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/leftover"
	"scrimp/internal/engine/aws/sale"
	"scrimp/internal/market"
)

// instanceID matches the id of an instance.
var instanceID = regexp.MustCompile(`^i-[0-9a-z]+$`)

// Terminate implements engine.Driver. It terminates only instances of this engine.
func (d *Driver) Terminate(ctx context.Context, id string) error {
	a, err := d.connected(ctx)
	if err != nil {
		return err
	}
	if !instanceID.MatchString(id) {
		return fmt.Errorf("%w: %q is not an instance id", engine.ErrNotFound, id)
	}
	if err := d.known(ctx, a, id); err != nil {
		return d.explain(err)
	}
	_, err = a.EC2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
	if strings.HasPrefix(account.CodeOf(err), "InvalidInstanceID") {
		return d.notFoundYet(id)
	}
	return d.explain(err)
}

// known returns nil if an instance belongs to this engine, and ErrNotFound if not.
func (d *Driver) known(ctx context.Context, a *account.Client, id string) error {
	d.mu.Lock()
	_, seen := d.seen[id]
	_, granted := d.recent[id]
	d.mu.Unlock()
	if seen || granted {
		return nil
	}
	list, err := d.describe(ctx, a, &ec2.DescribeInstancesInput{Filters: ids(id)})
	if err == nil && len(list) == 0 {
		return fmt.Errorf("%w: there is no instance %s of this engine", engine.ErrNotFound, id)
	}
	return err
}

// granted reports whether EC2 has just granted an instance, which it may not list yet.
func (d *Driver) granted(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, granted := d.recent[id]
	return granted && d.now().Sub(at) < usual.Consistency
}

// notFoundYet returns the error for an instance that EC2 does not know. One that it has just granted will appear.
func (d *Driver) notFoundYet(id string) error {
	granted := d.granted(id)
	d.mu.Lock()
	s := d.seen[id]
	d.mu.Unlock()
	if granted && (s == nil || s.i.State == engine.Running) {
		return fmt.Errorf("EC2 has granted %s and does not list it yet: scrimp tries again", id)
	}
	return fmt.Errorf("%w: EC2 knows no instance %s", engine.ErrNotFound, id)
}

// bill returns the cost of an instance until its end: the machine at EC2's prices, its disk and its address.
// reclaimed means that EC2 interrupted a spot machine, which costs nothing in its first hour. Sources:
// docs.aws.amazon.com, Amazon EC2 user guide, "Billing for interrupted Spot Instances"; aws.amazon.com/ebs/pricing
// and /vpc/pricing: disks and addresses are billed by the second, too, for a minute at least.
func (d *Driver) bill(ctx context.Context, a *account.Client, s *seen, end time.Time, reclaimed bool) ([]engine.Line,
	error) {
	capacity := market.OnDemand
	segments := []market.Segment{{From: s.i.Launched, Rate: s.rate.Machine}}
	if s.spot != "" {
		capacity = market.Spot
		list, err := d.prices(ctx, a, s.zone, s.kind, s.i.Launched, end.Add(time.Second))
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			segments = list
		}
	}
	var lines []engine.Line
	rules := sale.Billing(capacity)
	if s.named != "" && !s.left.Equal(s.i.Launched) {
		rules = market.Billing{} // unused hours are paid as well, so there is no minimum charge for used ones
		segments = d.heldSegments(s, segments)
	}
	for _, l := range market.Bill(rules, segments, end, reclaimed) {
		lines = append(
			lines,
			engine.Line{Rule: l.Rule, From: l.From, To: l.To, Amount: l.Amount, Currency: s.rate.Currency},
		)
	}
	// The price per GiB and month is cut to seconds only at the end.
	whole := max(sale.MinimumTime, end.Sub(s.i.Launched))
	for _, part := range []engine.Line{
		{Rule: "disk", Category: ledger.Storage, SKU: fmt.Sprintf("gp3 %v", d.with.DiskSize), Rate: s.rate.Disk},
		{Rule: "address", Category: ledger.Address, SKU: "public IPv4 address", Rate: s.rate.Address},
	} {
		if part.Rate > 0 {
			part.From, part.To, part.Currency = s.i.Launched, s.i.Launched.Add(whole), s.rate.Currency
			part.Amount = part.Rate.Until(whole)
			lines = append(lines, part)
		}
	}
	return lines, nil
}

// sweepEvery is how often leftovers are removed.
const sweepEvery = 5 * time.Minute

// sweep removes leftovers of machines: orphaned disks and interfaces, and unused templates and placement groups. It
// retries later what it could not remove.
func (d *Driver) sweep(ctx context.Context, a *account.Client, list []engine.Instance) {
	if err := d.sweepStopped(ctx, a); err != nil {
		d.log.Warn("cannot terminate a machine that was stopped by hand", "engine", d.name, "error", account.SaidBy(err))
	}
	d.mu.Lock()
	due := d.now().Sub(d.swept) > sweepEvery
	if due {
		d.swept = d.now()
	}
	d.mu.Unlock()
	if !due {
		return
	}
	live := map[string]bool{}
	for _, i := range list {
		live[i.Key] = live[i.Key] || i.State == engine.Running
	}
	d.mu.Lock()
	for key, r := range d.requests {
		if !live[key] && d.now().Sub(r.at) > keepFor {
			delete(d.requests, key)
		}
	}
	d.mu.Unlock()
	uses := func(key string) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		_, asked := d.requests[key] // its machines may still appear
		return live[key] || asked
	}
	s := &leftover.Sweeper{Engine: d.name, Now: d.now, Log: d.log, Uses: uses, Starts: d.prepare.HasTemplate}
	s.Sweep(ctx, a)
}

// sweepStopped terminates, on every call, machines that somebody has stopped by hand: they have ended, but their
// disks still cost.
func (d *Driver) sweepStopped(ctx context.Context, a *account.Client) error {
	d.mu.Lock()
	var list []string
	for id, s := range d.seen {
		if s.stopped {
			list = append(list, id)
		}
	}
	d.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	_, err := a.EC2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: list})
	return err
}
