package queue

import (
	"container/heap"
	"slices"
	"time"

	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/quota"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/quantity"
	"scrimp/money"
)

// Begin must be called at the start of a step.
func (qs *Quotas) Begin() {
	qs.Sums = nil
	qs.steps++
}

// cheapest returns the lowest price an hour of a machine for j. A step remembers it for each equivalence class; readers
// change nothing.
func (qs *Quotas) cheapest(j *state.Job) (rate money.Rate, ok bool) {
	if qs.Faults.Burns {
		return 0, false
	}
	if qs.Event == nil || At(j).Group == nil || At(j).Group.Equivalence.Key == Loose {
		return qs.Cheapest(j)
	}
	k := At(j).Group.Equivalence
	if k.step != qs.steps {
		k.step = qs.steps
		k.lowest, k.offered = qs.Cheapest(j)
	}
	return k.lowest, k.offered
}

// tallyIdle adds the idle machines to the quotas of dollars an hour: they cost as much as those that run a job.
func (qs *Quotas) tallyIdle(sums []quota.Tally) {
	if !slices.ContainsFunc(qs.Quotas, func(q *quota.Quota) bool { return q.Rate != nil }) {
		return
	}
	for _, i := range qs.State.Waiting() {
		for _, q := range qs.Quotas {
			if q.Rate != nil && q.HoldsIdle(i) {
				sums[q.N].Rate = quantity.Add(sums[q.N].Rate, i.PresentRate())
			}
		}
	}
}

// RateRoom is the highest price an hour of all machines that j may have; limited is false if there is no limit. If j
// may take the idle machine i (nil: none), that costs no more than before.
func (qs *Quotas) RateRoom(j *state.Job, i *state.Instance) (room money.Rate, limited bool) {
	if qs.Faults.Burns {
		return 0, false
	}
	for _, q := range qs.ClassOf(j).Quotas {
		if q.Rate == nil {
			continue
		}
		free := *q.Rate - qs.sumUp()[q.N].Rate + quota.OwnRate(j)
		if i != nil && q.HoldsIdle(i) {
			free += i.PresentRate()
		}
		if !limited || free < room {
			room, limited = max(0, free), true
		}
	}
	return room, limited
}

// passedFor is the PassedFor of a quota.
const passedFor = 100

// lateness is how much later than its submission a job counts as submitted: under a limit of dollars an hour, a hundred
// times its work on all its machines or GPUs. So jobs of less work start first, which makes the mean completion time
// small, and no job waits for jobs that are submitted later than that. Work that is unknown counts as an hour.
func (c *class) lateness(j *state.Job) time.Duration {
	rated := slices.IndexFunc(c.Quotas, func(q *quota.Quota) bool { return q.Rate != nil })
	if rated < 0 {
		return 0
	}
	work, _, ok := step.Remains(j, 1, time.Time{}, time.Time{})
	if !ok {
		work = time.Hour
	}
	return quantity.Times(work, c.Quotas[rated].PassedFor*max(j.Terms().Fewest(), admission.LeastGPUs(j.Terms())))
}

// orderByWork puts the queued jobs in order again after limits of dollars an hour have come or gone.
func (qs *Quotas) orderByWork() {
	rated := slices.ContainsFunc(qs.Quotas, func(q *quota.Quota) bool { return q.Rate != nil })
	if !rated && !qs.rated {
		return
	}
	qs.rated = rated
	for _, c := range qs.Queue.Classes {
		for _, p := range c.Subqueues {
			for side := range p.Sides {
				for _, j := range p.Sides[side] {
					At(j).late = c.lateness(j)
				}
				heap.Init(&p.Sides[side])
			}
		}
	}
}
