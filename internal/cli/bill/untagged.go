package bill

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/bill"
	"scrimp/internal/work/waste"
)

// mostUntagged is the number of resources without tags that have a finding of their own.
const mostUntagged = 100

// resourceIn is a resource of a bill in one currency.
type resourceIn struct {
	resource string
	currency money.Currency
}

// untaggedCost is the cost of a resource without tags.
type untaggedCost struct {
	cost        decimal.Decimal
	service     string
	line        int
	first, last time.Time
}

// untagged adds up the lines of resources without tags, whoever made them.
type untagged struct {
	since, until time.Time
	by           map[resourceIn]*untaggedCost
}

func (u *untagged) add(l *bill.Line) {
	switch l.Category {
	case bill.Compute, bill.Storage, bill.Address, bill.Transfer, bill.Other:
	case bill.Support, bill.Commitment, bill.Tax, bill.Credit, bill.Refund:
		return
	}
	if !l.Untagged || l.Resource == "" || l.Start.Before(u.since) || !l.Start.Before(u.until) {
		return
	}
	k := resourceIn{l.Resource, l.Currency}
	c := u.by[k]
	if c == nil {
		c = &untaggedCost{service: l.Service, line: l.At, first: l.Start, last: l.End}
		u.by[k] = c
	}
	c.cost = c.cost.Add(l.Billed)
	if l.Start.Before(c.first) {
		c.first = l.Start
	}
	if l.End.After(c.last) {
		c.last = l.End
	}
}

// findings returns a finding for each of the dearest resources, and one for the others of a currency. A resource that
// is a finding already has none.
func (u *untagged) findings(found *resources) ([]waste.Finding, error) {
	known := map[string]bool{}
	for _, f := range found.list {
		known[f.About] = true
	}
	maps.DeleteFunc(u.by, func(k resourceIn, c *untaggedCost) bool { return c.cost.Sign() <= 0 || known[k.resource] })
	keys := slices.SortedFunc(maps.Keys(u.by), func(a, b resourceIn) int {
		return cmp.Or(-u.by[a].cost.Cmp(u.by[b].cost), cmp.Compare(a.resource, b.resource),
			cmp.Compare(a.currency, b.currency))
	})
	var list []waste.Finding
	for _, k := range keys[:min(mostUntagged, len(keys))] {
		c := u.by[k]
		f, err := looseFinding(k, c.cost)
		if err != nil {
			return nil, err
		}
		f.Evidence = fmt.Sprintf("line %d of the bill: %s, without a tag", c.line, cmp.Or(c.service, "a resource"))
		if span := c.last.Sub(c.first); span >= waste.LeastSpan {
			if month, ok := waste.Scaled(f.Cost, waste.Month, span); ok {
				f.Monthly = &month
			}
		}
		list = append(list, f)
	}
	rest, number := map[money.Currency]decimal.Decimal{}, map[money.Currency]int{}
	for _, k := range keys[min(mostUntagged, len(keys)):] {
		rest[k.currency], number[k.currency] = rest[k.currency].Add(u.by[k].cost), number[k.currency]+1
	}
	for _, c := range slices.Sorted(maps.Keys(rest)) {
		f, err := looseFinding(resourceIn{fmt.Sprintf("%d other resources", number[c]), c}, rest[c])
		if err != nil {
			return nil, err
		}
		f.Evidence = fmt.Sprintf("each costs less than the %d above, and has no tag", mostUntagged)
		list = append(list, f)
	}
	return list, nil
}

// looseFinding returns the finding for a resource without tags.
func looseFinding(k resourceIn, cost decimal.Decimal) (f waste.Finding, err error) {
	amount, ok := cost.Amount()
	if !ok {
		return f, fmt.Errorf("the bill's sum for %.60s, %.40s, is too precise or too large", k.resource, cost)
	}
	return waste.Finding{ID: waste.ID(waste.Untagged, "", k.resource, k.currency), Kind: waste.Untagged, About: k.resource,
		Currency: k.currency, Cost: amount, Waste: &money.Amount{}, Action: waste.Keep, Jobs: []string{},
		Command: "at the provider, with team and project; or end it if nobody needs it"}, nil
}
