package placement

import (
	"slices"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// Yields reports whether j leaves its seat to the critical job that preempted it: that job still waits. A preempted
// job yields until it has requested its next machine, or its time to yield is over.
func (dc *Decider) Yields(j *state.Job) bool { return !dc.YieldsUntil(j).IsZero() }

// YieldsUntil returns when j stops yielding at the latest; zero: it does not yield.
func (dc *Decider) YieldsUntil(j *state.Job) time.Time {
	a := j.Attempt()
	if a == nil || a.Preemption() == nil || j.State() != state.Queued || a.Epoch() != j.Epoch() || dc.Faults.Rivals {
		return time.Time{}
	}
	p := a.Preemption()
	if by := dc.State.Job(p.By); by == nil || len(by.Claims(dc.Now())) == 0 || !dc.Now().Before(p.Until) {
		return time.Time{}
	}
	return p.Until
}

// StartsIf reports whether j would start if the reserved machines of that number per offer were free in addition. It
// decides as Decide does and records nothing.
func (dc *Decider) StartsIf(j *state.Job, freed map[market.OfferID]int) bool {
	v := dc.View(j)
	v.Pending, v.Probed = "", true
	nodes := dc.nodesOf(j)
	for _, l := range dc.market.Prepaid {
		o := l.Offer()
		if o.Currency != dc.Config().Currency {
			continue
		}
		free, kept := dc.market.SeatsOf(o, j)
		free += freed[o.ID]
		v.Reserved = append(v.Reserved, plan.Reservation{Offer: o.ID, InUse: free < nodes,
			Promised: free >= nodes && free-kept < nodes})
	}
	d := dc.market.Planner.Decide(v, dc.market.Class(j))
	dc.Out.Decided++
	return d.Take != "" || d.Probe != "" || d.Why == plan.Weighing
}

// PartFits reports whether j fits on a shared machine once the attempts have left their seats there, beside the tasks
// of others.
func (dc *Decider) PartFits(j *state.Job, i *state.Instance, gone map[string]bool) bool {
	l := dc.State.Listing(i.Machine().Offer)
	if l == nil || !dc.market.listed(l) || j.Terms().Most() > 1 || !dc.sharesWith(j, i) {
		return false
	}
	seats := slices.DeleteFunc(slices.Clone(dc.seatsFor(j, i)), func(s state.Seat) bool { return gone[s.Attempt] })
	p, free := dc.partBeside(j, l.Offer(), "", seats)
	return free && dc.lasts(j, i, l.Offer(), unitsOf(p, j.Terms().Need.RequirementsOf("")))
}
