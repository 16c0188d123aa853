//go:build !local

package examine

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
	"scrimp/internal/engine/aws/reservation"
	"scrimp/internal/engine/aws/setting"
)

const hours = "2006-01-02 15:04"

// Reservations reports the state of the capacity reservations, and settings that match none.
func (e *Examiner) Reservations() []engine.Finding {
	if len(e.With.Reservations) == 0 {
		return nil
	}
	f := engine.Finding{Name: "reservations", OK: true}
	if e.Index.Held.Err != nil {
		return []engine.Finding{{Name: f.Name, Text: e.Index.Held.Err.Error()}}
	}
	now := e.Now()
	var lines []string
	for n := range e.Index.Held.All {
		text, ok := e.showHeld(&e.Index.Held.All[n], now)
		lines, f.OK = append(lines, text), f.OK && ok
	}
	for n := range e.With.Reservations {
		r := &e.With.Reservations[n]
		is := func(h reservation.Held) bool { return h.ID == r.ID }
		if r.ID == setting.All || slices.ContainsFunc(e.Index.Held.All, is) {
			continue
		}
		f.OK = false
		lines = append(lines, fmt.Sprintf("%s is not in account %s and region %s: write the id of one that is under "+
			"reservations (aws ec2 describe-capacity-reservations --region %s), or remove it", r.ID, e.Client.Account,
			e.With.Region, e.With.Region))
	}
	if len(lines) == 0 {
		lines = []string{"the account has no reservation of this engine's types in its zones"}
	}
	f.Text = strings.Join(lines, "; ")
	return []engine.Finding{f}
}

// showHeld describes a reservation in a line, and reports whether it has machines now or later.
func (e *Examiner) showHeld(h *reservation.Held, now time.Time) (text string, ok bool) {
	what := map[bool]string{true: "Capacity Block", false: "reservation"}[h.Block]
	until := "until it is cancelled"
	if !h.Until.IsZero() {
		until = "until " + h.Until.Format(hours) + " UTC"
		if h.Block {
			until += ", machines until " + h.Usable().Format(hours)
		}
	}
	text = fmt.Sprintf("%s: %s of %d × %s in %s, %s, %d in use, %d free, %s", h.ID, what, h.Count, h.Kind, h.Zone,
		h.State, max(0, h.Count-h.Free), h.Free, until)
	if h.From.After(now) {
		text += ", from " + h.From.Format(hours)
	}
	switch rate, _, priced := h.Rate(&e.Index.Stock); {
	case h.Unfit != "":
		return text + ": " + h.Unfit, false
	case h.Over(now):
		return text + ": it has ended: remove it from reservations", false
	case h.Set.PaidAmount != nil && !h.Block:
		return text + ": it is not a Capacity Block, so it has no paid: write rate", false
	case !priced && h.Block:
		return text + fmt.Sprintf(": its cost is unknown, so scrimp does not rent it: write {id: %s, paid: DOLLARS} under "+
			"reservations, with the cost of the whole block", h.ID), false
	case !priced:
		return text + fmt.Sprintf(": its price is unknown, so scrimp does not rent it: write {id: %s, rate: DOLLARS} under "+
			"reservations, with the price of one machine's hour", h.ID), false
	case !h.Ours:
		return text + fmt.Sprintf(", $%v an hour of use: another account pays for what is not used", rate), true
	default:
		return text + fmt.Sprintf(", $%v an hour of each machine, used or not", rate), true
	}
}

// Commitments lists the account's reserved instances and savings plans, and the engine's types that they cover.
// Receipts still use list prices, because AWS decides which use of the account a commitment covers.
func (e *Examiner) Commitments(ctx context.Context) []engine.Finding {
	f := engine.Finding{Name: "commitments", OK: true}
	lines, err := e.reservedInstances(ctx)
	plans, err2 := e.savingsPlans(ctx)
	lines = append(lines, plans...)
	for _, err := range []error{err, err2} {
		switch {
		case err == nil:
		case slices.Contains(account.DeniedCodes, account.CodeOf(err)):
			lines = append(lines, "not checked, because it is not allowed: "+account.SaidBy(err))
		default:
			f.OK = false
			lines = append(lines, e.explain(err).Error())
		}
	}
	if len(lines) == 0 {
		return nil
	}
	f.Text = strings.Join(lines, "; ")
	if len(lines) > 0 && f.OK {
		f.Text += "; receipts still use list prices"
	}
	return []engine.Finding{f}
}

// reservedInstances returns the active reserved instances of the engine's types.
func (e *Examiner) reservedInstances(ctx context.Context) (lines []string, err error) {
	out, err := e.Client.EC2.DescribeReservedInstances(ctx, &ec2.DescribeReservedInstancesInput{Filters: []types.Filter{
		{Name: sdk.String("state"), Values: []string{"active"}}}})
	if err != nil {
		return nil, err
	}
	for n := range out.ReservedInstances {
		r := &out.ReservedInstances[n]
		kind, zone := string(r.InstanceType), sdk.ToString(r.AvailabilityZone)
		if !e.With.Wants(kind) {
			continue
		}
		count := int(sdk.ToInt32(r.InstanceCount))
		used, err := e.running(ctx, kind, zone)
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
		lines = append(lines, fmt.Sprintf("reserved instances: %d × %s %s, %d in use%s: that many on-demand machines "+
			"cost nothing more", count, kind, where, min(used, count), until))
	}
	return lines, nil
}

// running counts the on-demand machines of a type in the account, whoever started them; zone "" means all zones.
func (e *Examiner) running(ctx context.Context, kind, zone string) (n int, err error) {
	in := &ec2.DescribeInstancesInput{Filters: []types.Filter{{Name: sdk.String("instance-type"), Values: []string{kind}},
		{Name: sdk.String("instance-state-name"), Values: []string{"running"}}}}
	if zone != "" {
		in.Filters = append(in.Filters, types.Filter{Name: sdk.String("availability-zone"), Values: []string{zone}})
	}
	pages := ec2.NewDescribeInstancesPaginator(e.Client.EC2, in)
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
func (e *Examiner) savingsPlans(ctx context.Context) (lines []string, err error) {
	in := &savingsplans.DescribeSavingsPlansInput{States: []plantypes.SavingsPlanState{plantypes.SavingsPlanStateActive}}
	for {
		out, err := e.Client.Plans.DescribeSavingsPlans(ctx, in)
		if err != nil {
			return lines, err
		}
		for n := range out.SavingsPlans {
			p := &out.SavingsPlans[n]
			family, covers := sdk.ToString(p.Ec2InstanceFamily), "all types"
			switch p.SavingsPlanType {
			case plantypes.SavingsPlanTypeCompute:
			case plantypes.SavingsPlanTypeEc2Instance:
				if sdk.ToString(p.Region) != e.With.Region || !e.With.HasFamily(family) {
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
