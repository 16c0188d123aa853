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

// whole is the share of a task that has its machine to itself.
const whole = 1_000_000

// Part returns the portion that j gets of a machine of the offer: of instance i, which others may share, or, if i
// is nil, of a machine to be rented. A nil portion is the whole machine: the engine gives a machine to one task at
// a time, or the job does not state its needs. ok is false if no such portion is free.
func (dc *Decider) Part(j *state.Job, o *market.Offer, variant string, i *state.Instance) (p *state.Portion, ok bool) {
	var seats []state.Seat
	if i != nil {
		seats = dc.seatsFor(j, i)
	}
	return dc.partBeside(j, o, variant, seats)
}

// seatsFor returns the seats of i, and the parts of it that are kept for jobs other than j.
func (dc *Decider) seatsFor(j *state.Job, i *state.Instance) []state.Seat {
	if dc.Faults.Unkept {
		return i.Seats()
	}
	return dc.State.SeatsFor(j, i)
}

// partBeside is Part on a machine with those seats.
func (dc *Decider) partBeside(j *state.Job, o *market.Offer, variant string,
	seats []state.Seat) (p *state.Portion, ok bool) {
	most := dc.Config().TimingOf(o.Provider).Seats
	asks := j.Terms().Need.RequirementsOf(variant)
	if most > 1 {
		p = PartOf(asks, o)
	}
	if p == nil || len(seats) >= most {
		return nil, len(seats) == 0
	}
	left, partly := dc.leftOf(o, seats)
	if !partly || !left.fits(p) {
		return nil, false
	}
	if p = dc.sized(j, o, variant, seats, left, p); p != nil {
		p.Devices = left.devices[:len(p.Devices)]
	}
	return p, true
}

// leftover is the part of a machine that no task has.
type leftover struct {
	cpus    int
	memory  int64
	devices []int // by index
}

// leftOf returns what the tasks with those seats leave of a machine. ok is false if one of them has all of it.
func (dc *Decider) leftOf(o *market.Offer, seats []state.Seat) (left leftover, ok bool) {
	left = leftover{cpus: o.CPUs, memory: int64(o.Memory)}
	taken := map[int]bool{}
	for n := range seats {
		if dc.Faults.Crowds {
			break
		}
		has := seats[n].Portion
		if has == nil {
			return left, false
		}
		left.cpus, left.memory = left.cpus-has.CPUs, left.memory-has.Memory
		for _, d := range has.Devices {
			taken[d] = true
		}
	}
	for d := range o.Accelerators {
		if !taken[d] {
			left.devices = append(left.devices, d)
		}
	}
	return left, true
}

func (l *leftover) fits(p *state.Portion) bool {
	return p.CPUs <= l.cpus && p.Memory <= l.memory && len(p.Devices) <= len(l.devices)
}

// PartOf returns the portion of an otherwise empty machine for a job with those requirements; nil means the whole
// machine, or that the job states none. Resources that it does not request it gets in proportion to the largest
// share of those it does.
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

// millionths is part / all, rounded down so that equal portions fit, but at least 1 if anything is requested.
func millionths(part, all int64) int64 {
	if part <= 0 || all <= 0 {
		return 0
	}
	if part >= all {
		return whole
	}
	return max(1, int64(state.Share(whole, part, all)))
}

// beside returns the machines of which j may take a portion beside the tasks of its user that run there, the
// cheapest portion first.
func (dc *Decider) beside(j *state.Job) (list []vacancy) {
	if len(dc.State.Partly()) == 0 || dc.State.Undecided() {
		return nil
	}
	for _, i := range dc.partly(j) {
		l := dc.State.Listing(i.Machine().Offer)
		if l == nil || !dc.market.listed(l) {
			continue
		}
		p, free := dc.Part(j, l.Offer(), "", i) // most machines are full, and that is found fastest
		if !free || p == nil || !dc.sharesWith(j, i) {
			continue
		}
		units := unitsOf(p, j.Terms().Need.RequirementsOf(""))
		if !dc.lasts(j, i, l.Offer(), units) {
			continue
		}
		if room, limited := dc.queue.GPURoom(j); limited && len(p.Devices) > room {
			continue
		}
		if room, limited := dc.queue.RateRoom(j, nil); limited && besideRate(i, p) > room {
			continue
		}
		list = append(list, vacancy{i, besideRate(i, p), units})
	}
	slices.SortStableFunc(list, func(a, b vacancy) int { return cmp.Compare(a.rate, b.rate) })
	return list[:min(len(list), triedWarm)]
}

// partly returns the machines of state.Partly whose first task is of j's user, or of its team if that shares machines,
// sorted by ID.
func (dc *Decider) partly(j *state.Job) []*state.Instance {
	if dc.Faults.Anyone {
		return dc.State.Partly()
	}
	list := dc.State.PartlyOf(state.Sharer{Tenant: j.Tenant(), User: j.User()})
	if team := j.Terms().Owner.Team; team != "" && dc.sharesMachines(team) {
		list = slices.Concat(list, dc.State.PartlyOf(state.Sharer{Tenant: j.Tenant(), Team: team}))
		slices.SortFunc(list, func(a, b *state.Instance) int { return cmp.Compare(a.ID(), b.ID()) })
		list = slices.Compact(list)
	}
	return list
}

// besideRate is the hourly cost of a portion beside the tasks already there.
func besideRate(i *state.Instance, p *state.Portion) money.Rate {
	return money.Rate(state.Share(time.Duration(i.PresentRate()), p.Share, p.Share+sharesOf(i.Seats())))
}

// sharesWith reports whether j may take a portion of a machine beside the tasks that share it: tasks of its user,
// or of its team if that shares machines, on a machine that stays, in the region of its checkpoint.
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
