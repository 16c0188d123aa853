package recommend

import (
	"fmt"
	"math/big"
	"strings"

	"scrimp/internal/lib/money"
)

// day is the spot time of a machine type by hour of the day, in UTC.
type day struct {
	cost [24]*big.Int
	long [24]int64
	days map[int64]bool
}

// spotDays sums up what spot machines cost at each hour of the day, by type and region.
func spotDays(in *Input) map[string]*day {
	days := map[string]*day{}
	for i := range in.Costs {
		if c := &in.Costs[i]; c.Capacity == Spot && c.Time > 0 && c.Amount.Sign() > 0 {
			k := c.SKU + "\x00" + c.Region
			if days[k] == nil {
				days[k] = &day{days: map[int64]bool{}}
			}
			days[k].add(c)
		}
	}
	return days
}

// window runs spot jobs without a deadline in the eight hours of the day in which the same machine was cheapest.
func window(in *Input) *Recommendation {
	may := func(c *Cost) bool {
		return c.Capacity == Spot && c.Job != "" && c.Time > 0 && !in.Jobs[c.Job].Deadline
	}
	days := spotDays(in)
	shares, spent, begins := map[string]*big.Rat{}, map[string]money.Amount{}, map[string]int{}
	cost, most := money.Amount{}, ""
	for i := range in.Costs {
		c := &in.Costs[i]
		k := c.SKU + "\x00" + c.Region
		if !may(c) || days[k] == nil {
			continue
		}
		if _, known := shares[k]; !known {
			shares[k], begins[k] = days[k].share()
		}
		if shares[k] != nil {
			cost, spent[k] = cost.Add(c.Amount), spent[k].Add(c.Amount)
			if most == "" || spent[k].Cmp(spent[most]) > 0 {
				most = k
			}
		}
	}
	if cost.Sign() <= 0 {
		return nil
	}
	return &Recommendation{Name: "window", Method: Compared, Confidence: Low, Effort: Some, Risk: Some,
		Evidence: fmt.Sprintf("%s ran on spot without a deadline; 8 hours of the day cost less than the mean hour: from "+
			"%02d:00 UTC for %s", money.Short(cost, in.Currency), begins[most], strings.ReplaceAll(most, "\x00", " in ")),
		Command: fmt.Sprintf("set window: %02d:00-%02d:00 in the job file, or "+
			"begin it at these hours with scrimp pipeline schedule",
			begins[most], (begins[most]+windowHours)%24),
		share: func(c *Cost) *big.Rat {
			if !may(c) {
				return nil
			}
			return shares[c.SKU+"\x00"+c.Region]
		}}
}

func (d *day) add(c *Cost) {
	h := c.Begin.UTC().Hour()
	if d.cost[h] == nil {
		d.cost[h] = new(big.Int)
	}
	d.cost[h].Add(d.cost[h], c.Amount.Big())
	d.long[h] += int64(c.Time)
	d.days[c.Begin.Unix()/86400] = true
}

// share returns by how much an hour in the cheapest window costs less than the mean hour, and the window's first hour;
// nil: unknown, or by nothing. Hours without a price count at none, so a window has all of its hours.
func (d *day) share() (share *big.Rat, first int) {
	all, long := new(big.Int), int64(0)
	for h := range 24 {
		if d.cost[h] != nil {
			all, long = all.Add(all, d.cost[h]), long+d.long[h]
		}
	}
	if len(d.days) < leastDays || long == 0 {
		return nil, 0
	}
	mean := new(big.Rat).SetFrac(all, big.NewInt(long))
	for h := range 24 {
		cost, time, whole := new(big.Int), int64(0), true
		for n := range windowHours {
			at := (h + n) % 24
			if d.cost[at] == nil {
				whole = false
				break
			}
			cost, time = cost.Add(cost, d.cost[at]), time+d.long[at]
		}
		if !whole {
			continue
		}
		less := new(big.Rat).Sub(big.NewRat(1, 1), new(big.Rat).Quo(new(big.Rat).SetFrac(cost, big.NewInt(time)), mean))
		if less.Sign() > 0 && (share == nil || less.Cmp(share) > 0) {
			share, first = less, h
		}
	}
	return share, first
}
