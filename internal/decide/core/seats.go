package core

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// whole is the share of a task that has all of its machine.
const whole = 1_000_000

// part is what j gets of a machine of the offer: of instance i, which others may have parts of,
// or, where that is nil, of one that is to be rented. nil is all of it: its engine gives a machine
// to one task at a time, or the job does not say what it needs. ok is false where no such part is
// free.
func (m *Machine) part(j *Job, o *market.Offer, variant string, i *Instance) (p *state.Portion, ok bool) {
	var seats []state.Seat
	if i != nil {
		seats = i.Seats()
	}
	most := m.cfg().TimingOf(o.Provider).Seats
	if most > 1 {
		p = partOf(j.Terms().Need.RequirementsOf(variant), o)
	}
	if p == nil || len(seats) >= most {
		return nil, len(seats) == 0
	}
	cpus, memory := p.CPUs, p.Memory
	taken := map[int]bool{}
	for n := range seats {
		if m.faults.Crowds {
			break
		}
		has := seats[n].Portion
		if has == nil {
			return nil, false
		}
		cpus, memory = cpus+has.CPUs, memory+has.Memory
		for _, d := range has.Devices {
			taken[d] = true
		}
	}
	devices := make([]int, 0, len(p.Devices))
	for d := 0; d < o.Accelerators && len(devices) < len(p.Devices); d++ {
		if !taken[d] {
			devices = append(devices, d)
		}
	}
	if cpus > o.CPUs || memory > int64(o.Memory) || len(devices) < len(p.Devices) {
		return nil, false
	}
	p.Devices = devices
	return p, true
}

// partOf is what a job that asks for so much has of a machine by itself; nil: all of it, or it
// does not say. What it does not ask for it gets by the largest share of what it asks for.
func partOf(asks *plan.Requirements, o *market.Offer) *state.Portion {
	cpus, memory, accelerators := asks.AsksOf(o)
	p := &state.Portion{CPUs: cpus, Memory: memory, Devices: make([]int, min(accelerators, o.Accelerators))}
	p.Share = max(millionths(int64(p.CPUs), int64(o.CPUs)), millionths(p.Memory, int64(o.Memory)),
		millionths(int64(len(p.Devices)), int64(o.Accelerators)))
	if p.Share == 0 || p.Share >= whole {
		return nil
	}
	if p.CPUs == 0 {
		p.CPUs = int(int64(o.CPUs) * p.Share / whole)
	}
	if p.Memory == 0 {
		p.Memory = int64(state.Share(time.Duration(o.Memory), p.Share, whole))
	}
	return p
}

// millionths is part / all, cut off so that equal parts fit, and no share of what is asked for is 0.
func millionths(part, all int64) int64 {
	if part <= 0 || all <= 0 {
		return 0
	}
	if part >= all {
		return whole
	}
	return max(1, int64(state.Share(whole, part, all)))
}

// beside are the machines of which j may take a part beside the tasks of its user that run there,
// the cheapest part first.
func (m *Machine) beside(j *Job) (list []vacancy) {
	if len(m.s.Partly()) == 0 || m.s.Undecided() {
		return nil
	}
	for _, i := range m.s.Partly() {
		l := m.s.Listing(i.Machine().Offer)
		if l == nil || !m.listed(l) || !m.sharesWith(j, i) || !m.lasts(j, i, l.Offer()) {
			continue
		}
		p, free := m.part(j, l.Offer(), "", i)
		if !free || p == nil {
			continue
		}
		if room, limited := m.gpuRoom(j); limited && len(p.Devices) > room {
			continue
		}
		list = append(list, vacancy{i, besideRate(i, p)})
	}
	slices.SortStableFunc(list, func(a, b vacancy) int { return cmp.Compare(a.rate, b.rate) })
	return list[:min(len(list), triedWarm)]
}

// besideRate is what an hour of a part costs beside those that are there.
func besideRate(i *Instance, p *state.Portion) money.Rate {
	all := p.Share
	for _, s := range i.Seats() {
		all += s.Portion.Share
	}
	return money.Rate(state.Share(time.Duration(i.PresentRate()), p.Share, all))
}

// sharesWith reports whether j may take a part of a machine beside those that have one: tasks of
// its user, or of its team where that shares machines, on a machine that stays and where its checkpoint is.
func (m *Machine) sharesWith(j *Job, i *Instance) bool {
	home := j.CheckpointRegion()
	if !m.Stays(i) || i.Agent() == nil || i.Disowned() || !i.Missing().IsZero() || !i.Noticed().IsZero() ||
		!m.hasImage(i.Machine(), j, "") ||
		home != "" && home != i.Machine().Region {
		return false
	}
	for _, a := range m.s.SeatedAll(i) {
		other := m.s.Job(a.Job())
		owner := other.Terms().Owner
		owner.Tenant = other.Tenant()
		if !m.mayFollow(j, other.User(), owner, i) {
			return false
		}
	}
	return true
}

// seat gives a machine that waits, or a part of one, to the job, whose request for it has just
// been recorded.
func (m *Machine) seat(j *Job, i *Instance) {
	a := j.Asked()
	if idle, waits := i.Idle(); waits {
		m.accrueIdle(i, &idle, m.now())
	}
	m.fact(state.AllocationGranted{Allocation: a.ID(), Instance: i.ID()})
	m.began(a)
	m.reviewSeats(i, a.ID())
}

// reviewSeats has the jobs reviewed that have parts of a machine: what an hour costs them has changed.
func (m *Machine) reviewSeats(i *Instance, but string) {
	for _, a := range m.s.SeatedAll(i) {
		if a.ID() != but {
			m.wakeAt(m.s.Job(a.Job()), m.now())
		}
	}
}

// releaseSeat takes a task's seat from it: its agent ends what runs, and says so.
func (m *Machine) releaseSeat(k *Task, why, end string) {
	a := k.Attempt()
	if k.Releasing() || a.Disowned() || !k.Live() {
		return
	}
	j := m.s.Job(a.Job())
	by := m.now().Add(m.timingOf(k.Machine()).Detect + m.cfg().Patience)
	if a.Nodes() > 1 {
		by = by.Add(j.Terms().Grace)
	}
	m.fact(state.SeatReleased{Attempt: a.ID(), Node: k.Rank(), Why: why, End: end, By: by})
	m.wakeAt(j, by)
	if m.faults.Early && a.Nodes() == 1 {
		m.taskGone(a.ID(), k.Rank())
	}
}

// tendSeats gives the machines back of which a part is not left in time, once the others there
// have saved: its agent does not do what it is asked.
func (m *Machine) tendSeats() {
	for _, k := range m.s.Leaving() {
		m.works(m.s.Job(k.Attempt().Job()))
		i := m.s.Instance(k.Instance())
		if m.now().Before(k.LeaveBy()) || i.Release() != "" {
			continue
		}
		saves := false
		for _, other := range m.s.SeatedAll(i) {
			if other.Task() == TaskRunning && other.Leaving() == "" {
				saves = true
				m.drain(m.s.Job(other.Job()), other, "seat_not_left", "", "")
			}
		}
		if !saves {
			m.releaseMachine(k, "seat_not_left", "")
		}
	}
}

// wakeForSeats is when that is due; zero: no seat is being left.
func (m *Machine) wakeForSeats() (soonest time.Time) {
	for _, k := range m.s.Leaving() {
		if t := k.LeaveBy(); t.After(m.e.At) && (soonest.IsZero() || t.Before(soonest)) {
			soonest = t
		}
	}
	return soonest
}

// taskGone takes that nothing is left of a task whose seat was taken from it. The machine stays
// for those that have seats there; where none is left, it is given back or waits.
func (m *Machine) taskGone(attempt string, node int) {
	k := m.taskOf(attempt, node)
	if k == nil || k.Leaving() == "" || !k.Live() {
		return
	}
	a := k.Attempt()
	j := m.s.Job(a.Job())
	i := m.s.Instance(k.Instance())
	switch {
	case i.Release() != "":
		return
	case a.Nodes() > 1:
		m.rankGone(j, k)
		return
	case !k.Beside() && k.Phase() == Ended && m.mayKeep(k, k.End()):
		m.vacate(j, k, k.End())
		return
	case !k.Beside():
		m.releaseMachine(k, k.Leaving(), "")
		return
	}
	end := m.settleEnd(j, k, m.now())
	m.fact(state.SeatLeft{Instance: i.ID(), Attempt: a.ID(), Lost: end.Lost})
	m.freed()
	m.reviewSeats(i, "")
	m.afterEnd(j, k, "released", end)
}
