//go:build !local

package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/savingsplans"
	plantypes "github.com/aws/aws-sdk-go-v2/service/savingsplans/types"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/setting"
)

const hours = "2006-01-02 15:04"

// reservations reports the state of the capacity reservations, and settings that match none.
func (d *Driver) reservations(a *account.Client, x *index) []engine.Finding {
	if len(d.with.Reservations) == 0 {
		return nil
	}
	f := engine.Finding{Name: "reservations", OK: true}
	if x.heldErr != nil {
		return []engine.Finding{{Name: f.Name, Text: x.heldErr.Error()}}
	}
	now := d.now()
	var lines []string
	for n := range x.held {
		text, ok := d.showHeld(x, &x.held[n], now)
		lines, f.OK = append(lines, text), f.OK && ok
	}
	for n := range d.with.Reservations {
		r := &d.with.Reservations[n]
		if r.ID == setting.All || slices.ContainsFunc(x.held, func(h held) bool { return h.id == r.ID }) {
			continue
		}
		f.OK = false
		lines = append(lines, fmt.Sprintf("%s is not in account %s and region %s: write the id of one that is under "+
			"reservations (aws ec2 describe-capacity-reservations --region %s), or take it out", r.ID, a.Account,
			d.with.Region, d.with.Region))
	}
	if len(lines) == 0 {
		lines = []string{"the account has none of the types and zones of this engine"}
	}
	f.Text = strings.Join(lines, "; ")
	return []engine.Finding{f}
}

// showHeld describes a reservation in a line, and reports whether it has machines now or later.
func (d *Driver) showHeld(x *index, h *held, now time.Time) (text string, ok bool) {
	what := map[bool]string{true: "Capacity Block", false: "reservation"}[h.block]
	until := "until it is cancelled"
	if !h.until.IsZero() {
		until = "until " + h.until.Format(hours) + " UTC"
		if h.block {
			until += ", machines until " + h.usable().Format(hours)
		}
	}
	text = fmt.Sprintf("%s: %s of %d × %s in %s, %s, %d in use, %d free, %s", h.id, what, h.count, h.kind, h.zone,
		h.state, max(0, h.count-h.free), h.free, until)
	if h.from.After(now) {
		text += ", from " + h.from.Format(hours)
	}
	switch rate, _, priced := h.rate(x); {
	case h.unfit != "":
		return text + ": " + h.unfit, false
	case h.over(now):
		return text + ": it has ended: take it out of reservations", false
	case h.set.PaidAmount != nil && !h.block:
		return text + ": paid is what a whole Capacity Block cost, and this is none: write rate", false
	case !priced && h.block:
		return text + fmt.Sprintf(": nobody says what it cost, so it is not rented: write {id: %s, paid: DOLLARS} under "+
			"reservations, what the whole block cost", h.id), false
	case !priced:
		return text + fmt.Sprintf(": no price is known, so it is not rented: write {id: %s, rate: DOLLARS} under "+
			"reservations, of an hour of one machine", h.id), false
	case !h.ours:
		return text + fmt.Sprintf(", $%v an hour of use: another account pays for what is not used", rate), true
	default:
		return text + fmt.Sprintf(", $%v an hour of each machine, used or not", rate), true
	}
}

// asOrdered reports machines that differ from their order; nothing if there are none.
func (d *Driver) asOrdered(ctx context.Context, a *account.Client) []engine.Finding {
	f := engine.Finding{Name: "machines"}
	if _, err := d.describe(ctx, a, &ec2.DescribeInstancesInput{Filters: d.ours(types.Filter{
		Name: sdk.String("instance-state-name"), Values: []string{"pending", "running"}})}); err != nil {
		f.Text = d.explain(err).Error()
		return []engine.Finding{f}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var lines []string
	for _, id := range sortedKeys(d.odd) {
		if s := d.seen[id]; s != nil && s.i.State == engine.Running {
			lines = append(lines, id+": "+d.odd[id])
		}
	}
	if len(lines) == 0 {
		return nil
	}
	f.Text = strings.Join(lines, "; ") + ": they are booked as what they are"
	return []engine.Finding{f}
}

// commitments lists the account's reserved instances and savings plans, and the engine's types that they cover.
// Receipts still use list prices, because AWS decides which use of the account a commitment covers.
func (d *Driver) commitments(ctx context.Context, a *account.Client) []engine.Finding {
	f := engine.Finding{Name: "commitments", OK: true}
	lines, err := d.reservedInstances(ctx, a)
	plans, err2 := d.savingsPlans(ctx, a)
	lines = append(lines, plans...)
	for _, err := range []error{err, err2} {
		switch {
		case err == nil:
		case slices.Contains(account.DeniedCodes, account.CodeOf(err)):
			lines = append(lines, "not looked at, since it is not allowed: "+account.SaidBy(err))
		default:
			f.OK = false
			lines = append(lines, d.explain(err).Error())
		}
	}
	if len(lines) == 0 {
		return nil
	}
	f.Text = strings.Join(lines, "; ")
	if len(lines) > 0 && f.OK {
		f.Text += "; receipts have list prices all the same"
	}
	return []engine.Finding{f}
}

// reservedInstances returns the active reserved instances of the engine's types.
func (d *Driver) reservedInstances(ctx context.Context, a *account.Client) (lines []string, err error) {
	out, err := a.EC2.DescribeReservedInstances(ctx, &ec2.DescribeReservedInstancesInput{Filters: []types.Filter{
		{Name: sdk.String("state"), Values: []string{"active"}}}})
	if err != nil {
		return nil, err
	}
	for n := range out.ReservedInstances {
		r := &out.ReservedInstances[n]
		kind, zone := string(r.InstanceType), sdk.ToString(r.AvailabilityZone)
		if !d.with.Wants(kind) {
			continue
		}
		count := int(sdk.ToInt32(r.InstanceCount))
		used, err := d.running(ctx, a, kind, zone)
		if err != nil {
			return lines, err
		}
		where, until := "in any zone", ""
		if zone != "" {
			where = "in " + zone
		}
		if r.End != nil {
			until = ", until " + r.End.UTC().Format(hours) + " UTC"
		}
		lines = append(lines, fmt.Sprintf("reserved instances: %d × %s %s, %d in use%s: so many of its machines on demand "+
			"cost nothing more", count, kind, where, min(used, count), until))
	}
	return lines, nil
}

// running counts the on-demand machines of a type in the account, whoever started them; zone "" means all zones.
func (d *Driver) running(ctx context.Context, a *account.Client, kind, zone string) (n int, err error) {
	in := &ec2.DescribeInstancesInput{Filters: []types.Filter{{Name: sdk.String("instance-type"), Values: []string{kind}},
		{Name: sdk.String("instance-state-name"), Values: []string{"running"}}}}
	if zone != "" {
		in.Filters = append(in.Filters, types.Filter{Name: sdk.String("availability-zone"), Values: []string{zone}})
	}
	pages := ec2.NewDescribeInstancesPaginator(a.EC2, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return n, err
		}
		for _, r := range page.Reservations {
			for k := range r.Instances {
				if r.Instances[k].InstanceLifecycle == "" {
					n++
				}
			}
		}
	}
	return n, nil
}

// savingsPlans returns the active savings plans that cover types of the engine in its region. The API does not report
// their use, which appears in Cost Explorer a day later.
func (d *Driver) savingsPlans(ctx context.Context, a *account.Client) (lines []string, err error) {
	in := &savingsplans.DescribeSavingsPlansInput{States: []plantypes.SavingsPlanState{plantypes.SavingsPlanStateActive}}
	for {
		out, err := a.Plans.DescribeSavingsPlans(ctx, in)
		if err != nil {
			return lines, err
		}
		for n := range out.SavingsPlans {
			p := &out.SavingsPlans[n]
			family, covers := sdk.ToString(p.Ec2InstanceFamily), "all types"
			switch p.SavingsPlanType {
			case plantypes.SavingsPlanTypeCompute:
			case plantypes.SavingsPlanTypeEc2Instance:
				if sdk.ToString(p.Region) != d.with.Region || !d.with.HasFamily(family) {
					continue
				}
				covers = family + ".*"
			case plantypes.SavingsPlanTypeSagemaker:
				continue
			default:
				continue
			}
			lines = append(lines, fmt.Sprintf("savings plan %s: $%s an hour is committed for %s until %s; how much of it is in "+
				"use Cost Explorer says", sdk.ToString(p.SavingsPlanId), sdk.ToString(p.Commitment), covers,
				strings.TrimSuffix(sdk.ToString(p.End), "Z")))
		}
		if in.NextToken = out.NextToken; sdk.ToString(in.NextToken) == "" {
			return lines, nil
		}
	}
}
