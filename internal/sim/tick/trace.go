package tick

import (
	"errors"
	"time"

	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/policy/place"
)

// Fits says how much work an hour on a machine of the offer does, in hours on a
// machine of speed 1, at that price; false where the job cannot or may not run there.
type Fits func(o market.Offer, rate money.Rate) (speed float64, ok bool)

// Why a trace has no optimum.
var (
	ErrNoFirm = errors.New("nothing that cannot be taken away fits the job")
	ErrSpeeds = errors.New("machines of different speeds fit the job")
)

// FromTrace cuts a trace into ticks from a time since its market opened until the
// deadline, so that ZoneOptimum says what the job would have cost on it with all
// known in advance. Only offers that fit count. restart is rounded to half a tick,
// and what cannot be taken away costs the least that it ever does until the
// deadline: the optimum is that of the grid. ErrNoFirm and ErrSpeeds say why there
// is none.
func FromTrace(t market.Trace, fits Fits, from, work, deadline, restart, grid time.Duration) (ZoneRun, error) {
	r := ZoneRun{Job: place.Job{Tick: grid, Work: work, Deadline: deadline, Restart: max(restart.Round(grid/2), grid/2)}}
	speed, firm, mixed, region := 0.0, money.Rate(0), false, ""
	see := func(o market.Offer, rate money.Rate) bool {
		s, ok := fits(o, rate)
		if ok && speed > 0 && s != speed {
			mixed = true
		}
		if ok {
			speed = s
		}
		return ok
	}
	for _, l := range t.Lines {
		if l.Offer.Capacity == market.Spot {
			continue
		}
		for at, more := from, true; more && at < from+deadline; at, more = t.Next(l, at) {
			if q := t.Quote(l, at, time.Time{}); q.Available && see(l.Offer, q.Rate) && (region == "" || q.Rate < firm) {
				firm, region = q.Rate, l.Offer.Region
			}
		}
	}
	if region == "" {
		return r, ErrNoFirm
	}
	ticks := r.Job.Ticks()
	for _, l := range t.Lines {
		if l.Offer.Capacity != market.Spot {
			continue
		}
		z := &ZoneTrace{Up: make([]bool, ticks), Price: make([]money.Rate, ticks)}
		at, q := from, t.Quote(l, from, time.Time{})
		ok, ever := q.Available && see(l.Offer, q.Rate), false
		next, changes := t.Next(l, at)
		for i := range ticks {
			begin := from + time.Duration(i)*grid
			for changes && next <= begin {
				at = next
				q = t.Quote(l, at, time.Time{})
				ok = q.Available && see(l.Offer, q.Rate)
				next, changes = t.Next(l, at)
			}
			z.Price[i] = q.Rate
			up := ok // for all of the tick
			for n, c := next, changes; c && n < begin+grid; n, c = t.Next(l, n) {
				up = up && t.Quote(l, n, time.Time{}).Available
			}
			z.Up[i] = up
			ever = ever || up
		}
		if ever {
			r.Traces = append(r.Traces, z)
			r.Job.Zones = append(r.Job.Zones, place.Zone{Name: string(l.Offer.ID), Region: l.Offer.Region, OnDemand: firm})
		}
	}
	if mixed {
		return r, ErrSpeeds
	}
	if len(r.Traces) == 0 { // a zone in which there is never any spot
		r.Traces = append(r.Traces, &ZoneTrace{Up: make([]bool, ticks), Price: make([]money.Rate, ticks)})
		r.Job.Zones = append(r.Job.Zones, place.Zone{Name: "firm", Region: region, OnDemand: firm})
	}
	r.Job.Work = time.Duration(float64(work) / speed)
	return r, nil
}
