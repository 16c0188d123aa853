package placement

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

// Part is what j gets of a machine of the offer: of instance i, which others may have parts of,
// or, where that is nil, of one that is to be rented. nil is all of it: its engine gives a machine
// to one task at a time, or the job does not say what it needs. ok is false where no such part is
// free.
func (dc *Decider) Part(j *state.Job, o *market.Offer, variant string, i *state.Instance) (p *state.Portion, ok bool) {
	var seats []state.Seat
	if i != nil {
		seats = i.Seats()
	}
	most := dc.Config().TimingOf(o.Provider).Seats
	if most > 1 {
		p = PartOf(j.Terms().Need.RequirementsOf(variant), o)
	}
	if p == nil || len(seats) >= most {
		return nil, len(seats) == 0
	}
	cpus, memory := p.CPUs, p.Memory
	taken := map[int]bool{}
	for n := range seats {
		if dc.Faults.Crowds {
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

// PartOf is what a job that asks for so much has of a machine by itself; nil: all of it, or it
// does not say. What it does not ask for it gets by the largest share of what it asks for.
func PartOf(asks *plan.Requirements, o *market.Offer) *state.Portion {
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
func (dc *Decider) beside(j *state.Job) (list []vacancy) {
	if len(dc.State.Partly()) == 0 || dc.State.Undecided() {
		return nil
	}
	for _, i := range dc.State.Partly() {
		l := dc.State.Listing(i.Machine().Offer)
		if l == nil || !dc.market.listed(l) || !dc.sharesWith(j, i) || !dc.lasts(j, i, l.Offer()) {
			continue
		}
		p, free := dc.Part(j, l.Offer(), "", i)
		if !free || p == nil {
			continue
		}
		if room, limited := dc.queue.GPURoom(j); limited && len(p.Devices) > room {
			continue
		}
		list = append(list, vacancy{i, besideRate(i, p)})
	}
	slices.SortStableFunc(list, func(a, b vacancy) int { return cmp.Compare(a.rate, b.rate) })
	return list[:min(len(list), triedWarm)]
}

// besideRate is what an hour of a part costs beside those that are there.
func besideRate(i *state.Instance, p *state.Portion) money.Rate {
	all := p.Share
	for _, s := range i.Seats() {
		all += s.Portion.Share
	}
	return money.Rate(state.Share(time.Duration(i.PresentRate()), p.Share, all))
}

// sharesWith reports whether j may take a part of a machine beside those that have one: tasks of
// its user, or of its team where that shares machines, on a machine that stays and where its checkpoint is.
func (dc *Decider) sharesWith(j *state.Job, i *state.Instance) bool {
	home := j.CheckpointRegion()
	if !dc.market.Stays(i) || i.Agent() == nil || i.Disowned() || !i.Missing().IsZero() || !i.Noticed().IsZero() ||
		!dc.market.hasImage(i.Machine(), j, "") ||
		home != "" && home != i.Machine().Region {
		return false
	}
	for _, a := range dc.State.SeatedAll(i) {
		other := dc.State.Job(a.Job())
		owner := other.Terms().Owner
		owner.Tenant = other.Tenant()
		if !dc.mayFollow(j, other.User(), owner, i) {
			return false
		}
	}
	return true
}
