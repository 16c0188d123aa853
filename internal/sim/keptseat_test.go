package sim

import (
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// keptSeats verifies in the plainest way that a job that leaves its machine for a seat finds it: until the keep ends for
// a recorded reason, the part fits beside those of the others there, the end of the last of them does not end the machine,
// and the job takes the part.
func (t *twin) keptSeats(out core.Outcome) {
	s, now := t.w.m.State(), t.w.m.Now()
	for _, f := range out.Facts {
		switch f := f.(type) {
		case state.DrainRequested:
			if f.Keeps != nil && !f.Rests.IsZero() { // zero: a repeated request, not a new move
				t.seats[s.AttemptOf(f.Attempt).Job()] = *f.Keeps
			}
		case state.AllocationRequested:
			if k, keeps := t.seats[f.Job]; keeps {
				t.takesKept(f, s.Instance(k.Instance))
				delete(t.seats, f.Job)
			}
		}
	}
	for _, job := range sortedKeys(t.seats) {
		k := t.seats[job]
		i := s.Instance(k.Instance)
		limits, _ := t.w.m.Rules()
		switch {
		case i != nil && sound(i) && (i.Release() == "program_completed" || i.Release() == "idle") &&
			len(limits.Limits) == 0 && !s.Undecided() && t.awaits(job, &k, now):
			t.w.breaks("kept seat: %s has a part of %s until %v, which is terminated", job, k.Instance, k.By)
			delete(t.seats, job)
		case i == nil || !i.Live() || i.Release() != "" || !t.awaits(job, &k, now):
			t.w.saw("a kept seat is not needed")
			delete(t.seats, job)
		case !fitsBeside(i, &k, &t.w.instances[k.Instance].offer, t.w.seats()):
			t.w.breaks("kept seat: until %v %s has a part of %s, which others have", k.By, job, k.Instance)
			delete(t.seats, job)
		}
	}
}

// takesKept verifies that the job takes the seat kept on i, unless that machine is about to end, or the job decided on
// another offer or machine that waits.
func (t *twin) takesKept(f state.AllocationRequested, i *state.Instance) {
	switch {
	case i != nil && f.Instance == i.ID():
		t.w.saw("a kept seat is taken")
	case f.Instance == "" && i != nil && f.Machine.Offer == i.Machine().Offer && i.Release() == "" && sound(i):
		t.w.breaks("kept seat: %s rents another machine like %s, where it has a part", f.Job, i.ID())
	}
}

// sound reports whether a machine is rented, and neither its provider nor another server is about to end it.
func sound(i *state.Instance) bool {
	return i.Live() && i.Noticed().IsZero() && i.Announced().IsZero() && i.Missing().IsZero() && !i.Disowned()
}

// awaits reports whether a job still leaves for its kept seat. A job without a machine is late only while the core
// starts no job, or a quota or a more urgent job stops it.
func (t *twin) awaits(job string, k *state.Keep, now time.Time) bool {
	j, known := t.w.known(job)
	if !known || j.State().Over() || j.State() == core.Paused || j.Ending() != "" {
		return false
	}
	if now.Before(k.By) {
		return true
	}
	_, _, full := t.w.m.Full()
	_, _, waits := t.w.m.Waits(j)
	if _, yields := t.w.m.YieldsTo(j); j.State() == core.Queued && !full && !waits && !yields && !t.w.m.State().Undecided() {
		t.w.breaks("kept seat: %s has no machine until %v, and its part of %s is there", job, k.By, k.Instance)
	}
	return false
}

// fitsBeside reports whether machine i, of offer o, has room for the part kept by k beside its current tasks: enough
// processors and memory, no accelerator used twice, and no more than maxTasks tasks.
func fitsBeside(i *state.Instance, k *state.Keep, o *market.Offer, maxTasks int) bool {
	list := append(slices.Clone(i.Seats()), state.Seat{Portion: k.Portion})
	cpus, memory, devices := 0, int64(0), map[int]bool{}
	for _, x := range list {
		if x.Portion == nil {
			return false
		}
		cpus, memory = cpus+x.Portion.CPUs, memory+x.Portion.Memory
		for _, d := range x.Portion.Devices {
			if devices[d] {
				return false
			}
			devices[d] = true
		}
	}
	return cpus <= o.CPUs && memory <= int64(o.Memory) && len(list) <= maxTasks
}
