package sim

import (
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/lib/money"
)

// checkLimit verifies that no window of a limit spent more than the limit, except for what a limit cannot bound:
// amounts by which its jobs exceeded their budgets (checked separately), periods that were booked in the next window,
// late bills, and credits, which make room again. A limit that was set while the maximum cost of its jobs was unknown
// stops them, so it may be exceeded by burn rate × the time of a stop.
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

// stopping returns the maximum cost of all machines while a stop takes effect.
func (t *tenants) stopping() money.Amount {
	most := onDemandRate
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

// checkHours verifies limits of GPU-hours without a window.
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
