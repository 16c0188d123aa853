package sim

import (
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/lib/money"
)

// checkLimit holds that no window of a limit has spent more than it, but for what
// a limit cannot hold: what its jobs passed their budgets by (that is held by
// itself), spans that were booked in the next window, bills that come late, and
// credits, which make room once more. A limit that was set when nobody knew what
// its jobs could cost stops them: for it holds burn rate × the time a stop takes.
func (t *tenants) checkLimit(l *limited) {
	w := t.w
	booked := map[time.Time]money.Amount{}
	for _, p := range w.postings {
		if l.limit.Scope.Holds(p.Owner, t.payer(p)) && (l.until.IsZero() || !p.At.After(l.until)) {
			begin := l.limit.Window.Begin(p.At)
			booked[begin] = booked[begin].Add(cost(p))
		}
	}
	if l.limit.Dollars != nil {
		for begin, spent := range booked {
			if end, ends := l.limit.Window.End(begin); ends && !end.After(l.from) {
				continue
			}
			room := *l.limit.Dollars
			base := l.room
			if l.open {
				base = l.spent.Add(t.stopping())
				room = room.Add(t.stopping())
				w.saw("a limit over jobs without a budget")
			}
			if base.Cmp(room) > 0 {
				room = base
			}
			room = room.Add(l.carry[begin]).Add(l.late)
			if l.limit.Window != budget.Total {
				room = room.Add(l.credit)
			}
			for _, j := range w.jobs {
				if l.limit.Scope.Holds(j.terms.Owner, t.by[j.id]) {
					room = room.Add(t.over[j.id])
				}
			}
			if spent.Cmp(room) > 0 {
				w.breaks("limit: %s of %v spent %v in the window from %v, room was %v", l.limit.Name(), *l.limit.Dollars, spent, begin.Format(time.DateOnly), room)
			}
			if spent.Cmp(*l.limit.Dollars) <= 0 && spent.Add(spent).Cmp(*l.limit.Dollars) > 0 {
				w.saw("a limit more than half spent")
			}
		}
	}
	t.checkHours(l)
}

// stopping is what all machines cost at most while a stop takes effect.
func (t *tenants) stopping() money.Amount {
	most := firmRate
	for _, i := range t.w.order {
		for _, s := range i.segments {
			most = max(most, s.Rate)
		}
	}
	one := most.Until(2*look + 3*time.Minute + 2*time.Minute + 16*time.Minute + t.w.away)
	all := money.Amount{}
	for range 4 {
		all = all.Add(one)
	}
	return all
}

// checkHours holds limits of GPU-hours that are for all time.
func (t *tenants) checkHours(l *limited) {
	w := t.w
	if l.limit.GPUHours == nil || l.limit.Window != budget.Total || !l.until.IsZero() || !l.late.IsZero() {
		return
	}
	used, over := 0.0, 0.0
	for j := range w.m.Jobs() {
		if !l.limit.Scope.Holds(j.Terms().Owner, t.by[j.ID()]) {
			continue
		}
		mine := 0.0
		for _, a := range j.Attempts() {
			if !a.Until().IsZero() {
				mine += float64(a.GPUs()) * a.Until().Sub(a.From()).Hours()
			}
		}
		used += mine
		if j.Terms().GPUHours == 0 && j.Terms().Need.Accelerators > 0 {
			return
		}
		over += max(0, mine-j.Terms().GPUHours)
	}
	if room := max(*l.limit.GPUHours, l.gpus) + over; used > room+1e-6 {
		w.breaks("quota: %s of %g GPU-hours used %g, room was %g", l.limit.Name(), *l.limit.GPUHours, used, room)
	}
}
