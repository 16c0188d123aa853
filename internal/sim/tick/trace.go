package tick

import (
	"cmp"
	"time"

	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/policy/place"
)

// FromTrace cuts a trace into ticks from a time since its market opened until the
// deadline, so that ZoneOptimum says what the job would have cost on it with all
// known in advance. Offers of other speeds are left out, and restart is rounded to
// half a tick: the optimum is that of the grid. false: there is no spot, or
// nothing that cannot be taken away.
func FromTrace(t market.Trace, from, work, deadline, restart, grid time.Duration) (ZoneRun, bool) {
	r := ZoneRun{Job: place.Job{Tick: grid, Work: work, Deadline: deadline, Restart: max(restart.Round(grid/2), grid/2)}}
	firm := money.Rate(0)
	for _, l := range t.Lines {
		if l.Offer.Capacity != market.Spot && cmp.Or(l.Offer.Speed, 1) == 1 {
			if q := t.Quote(l, from, time.Time{}); firm == 0 || q.Rate < firm {
				firm = q.Rate
			}
		}
	}
	ticks := r.Job.Ticks()
	for _, l := range t.Lines {
		if l.Offer.Capacity != market.Spot || cmp.Or(l.Offer.Speed, 1) != 1 {
			continue
		}
		z := &ZoneTrace{Up: make([]bool, ticks), Price: make([]money.Rate, ticks)}
		at, q := from, t.Quote(l, from, time.Time{})
		next, changes := t.Next(l, at)
		for i := range ticks {
			begin := from + time.Duration(i)*grid
			for changes && next <= begin {
				at = next
				q = t.Quote(l, at, time.Time{})
				next, changes = t.Next(l, at)
			}
			z.Price[i] = q.Rate
			up := q.Available // for all of the tick
			for n, c := next, changes; c && n < begin+grid; n, c = t.Next(l, n) {
				up = up && t.Quote(l, n, time.Time{}).Available
			}
			z.Up[i] = up
		}
		r.Traces = append(r.Traces, z)
		r.Job.Zones = append(r.Job.Zones, place.Zone{Name: string(l.Offer.ID), Region: l.Offer.Region, OnDemand: firm})
	}
	return r, firm > 0 && len(r.Traces) > 0
}
