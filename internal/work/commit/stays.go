package commit

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A Stay is a period in which a job used one machine.
type Stay struct {
	Region, Machine string
	From, Until     time.Time
}

// Hourly returns the machines in use in each hour, from the hour of from to the last whole hour before until. A machine
// that jobs share counts once. An hour's units are its machine-seconds over 3,600, rounded up.
func Hourly(stays []Stay, from, until time.Time) (Demand, error) {
	from = from.UTC().Truncate(time.Hour)
	hours := int64(until.Sub(from) / time.Hour)
	d := Demand{Calendar: Calendar{from}, Hours: int(max(hours, 0))}
	switch {
	case hours < 1:
		return d, fmt.Errorf("from %s to %s is less than an hour: wait, or start earlier", from.Format(time.RFC3339),
			until.UTC().Format(time.RFC3339))
	case hours > MaxHours:
		return d, fmt.Errorf("from %s are %d hours, and a plan takes %d: begin later", from.Format(time.RFC3339), hours,
			MaxHours)
	}
	stays = slices.Clone(stays)
	slices.SortFunc(stays, func(a, b Stay) int {
		return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Machine, b.Machine), a.From.Compare(b.From))
	})
	var used []time.Duration // of each hour of the latest region
	end := time.Time{}       // end of the time covered by the machine's stays so far
	for i, s := range stays {
		next := i == 0 || s.Region != stays[i-1].Region
		if next {
			if len(d.Regions) == MaxRegions {
				return d, fmt.Errorf("more than %d kinds of machines were in use: choose fewer", MaxRegions)
			}
			d.Regions = append(d.Regions, Region{Name: s.Region})
			used = make([]time.Duration, d.Hours)
		}
		if next || s.Machine != stays[i-1].Machine {
			end = time.Time{}
		}
		begin := later(later(s.From, end), from)
		end = later(end, s.Until)
		for h := int64(begin.Sub(from) / time.Hour); h < hours && begin.Before(s.Until); h++ {
			stop := from.Add(time.Duration(h+1) * time.Hour)
			if s.Until.Before(stop) {
				stop = s.Until
			}
			used[h] += stop.Sub(begin)
			begin = stop
		}
		if i+1 == len(stays) || stays[i+1].Region != s.Region {
			units := make([]int64, d.Hours)
			for h, u := range used {
				units[h] = int64((u + time.Hour - 1) / time.Hour)
			}
			d.Regions[len(d.Regions)-1].Units = units
		}
	}
	return d, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
