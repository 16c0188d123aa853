package preempt

import (
	"slices"
	"time"

	"scrimp/internal/decide/core/placement"
	"scrimp/internal/decide/core/quota"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// Bounds of a search: critical jobs considered, and victims weighed for one of them.
const (
	mostCritical = 8
	mostVictims  = 16
)

// searchAgain is the time between two fruitless searches, so that a critical job for which there is no room does not
// slow every step down.
const searchAgain = time.Second

// Claims puts critical jobs whose seats others are leaving in front of the queue, so that nobody takes them.
func (p *Preempter) Claims() {
	if p.queue.Queue.Len() == 0 {
		return
	}
	for _, j := range p.waiting() {
		if len(j.Claims(p.Now())) > 0 {
			p.queue.Queue.Remove(j)
			p.queue.Queue.Add(j) // the first that the step tries
		}
	}
}

// Preempt makes room for the most urgent critical job that waits for it. One critical job is served at a time.
func (p *Preempter) Preempt() {
	if p.queue.Queue.Len() == 0 || len(p.State.Running()) == 0 || p.State.Undecided() {
		return
	}
	waiting := p.waiting()
	if len(waiting) == 0 || slices.ContainsFunc(waiting, func(j *state.Job) bool { return len(j.Claims(p.Now())) > 0 }) {
		return
	}
	if p.Now().Before(p.again) {
		p.WakeAt(slices.MinFunc(waiting, compare), p.again)
		return
	}
	p.weighed = 0
	slices.SortFunc(waiting, compare)
	for _, j := range waiting[:min(len(waiting), mostCritical)] {
		if p.enough() {
			break
		}
		if _, closed := p.decider.Closed(j); closed || p.decider.Awaits(j) {
			continue
		}
		chosen, next := p.choose(j)
		if len(chosen) > 0 {
			p.take(j, chosen)
			return
		}
		p.WakeAt(j, next)
	}
	p.again = p.Now().Add(searchAgain)
}

// enough reports whether the step has weighed as many offers as a few milliseconds allow.
func (p *Preempter) enough() bool { return p.weighed >= placement.WeighedAtOnce }

// take preempts the victims for j.
func (p *Preempter) take(j *state.Job, chosen []*victim) {
	for _, v := range chosen {
		t := v.job.Terms()
		timing := p.market.TimingOf(v.attempt.Machine())
		until := p.Now().Add(t.Grace + 2*p.Config().Patience + 2*timing.Detect)
		p.Works(v.job)
		p.Fact(state.JobPreempted{Job: v.job.ID(), Attempt: v.attempt.ID(), By: j.ID(), Team: j.Terms().Owner.Team,
			Cost: v.cost, Lost: v.lost, Restart: v.restart, Until: until})
		p.jobs.Drain(v.job, v.attempt, state.Preempted, "", "")
	}
	p.WakeAt(j, j.ClaimEnds())
}

// choose returns the victims whose seats let j start, and otherwise when the next job has had its minimum run. It
// prefers a single victim, the cheapest that makes room. Otherwise it adds the cheapest until there is room, and drops
// those that are then unnecessary.
func (p *Preempter) choose(j *state.Job) (chosen []*victim, next time.Time) {
	leaving := p.leaving()
	if p.starts(j, leaving, nil) { // by itself, or once those that already leave have left
		return nil, time.Time{}
	}
	list, next := p.victims(j)
	slices.SortFunc(list, (*victim).compare)
	list = p.helpful(j, leaving, list)
	for _, v := range list {
		if p.starts(j, leaving, []*victim{v}) {
			return []*victim{v}, next
		}
		if p.enough() {
			return nil, next
		}
	}
	for n := 2; n <= len(list) && !p.enough(); n++ {
		if p.starts(j, leaving, list[:n]) {
			return p.needed(j, leaving, list[:n]), next
		}
	}
	return nil, next
}

// needed drops victims that j does not need, the most expensive first.
func (p *Preempter) needed(j *state.Job, leaving []*state.Job, list []*victim) []*victim {
	list = slices.Clone(list)
	for n := len(list) - 1; n >= 0; n-- {
		if fewer := slices.Delete(slices.Clone(list), n, n+1); p.starts(j, leaving, fewer) {
			list = fewer
		}
	}
	return list
}

// leaving returns the running jobs that are already giving up their machines.
func (p *Preempter) leaving() (list []*state.Job) {
	for _, k := range p.State.Running() {
		a := k.Live()
		if a != nil && (a.Draining() || a.Releasing() || a.Task() == state.Ended) && k.Asked() == nil {
			list = append(list, k)
		}
	}
	return list
}

// helpful returns at most mostVictims of the victims that may make room for j: any if the server runs as many jobs as
// it may, those under the quota that is full, or those on a reserved machine.
func (p *Preempter) helpful(j *state.Job, leaving []*state.Job, list []*victim) (few []*victim) {
	full := !p.roomWithout(len(leaving))
	var by *quota.Quota
	p.queue.Without(leaving, func() { by = p.queue.Blocks()(j).By })
	for _, v := range list {
		helps := full || by != nil && p.queue.Holds(by, v.job) || by == nil && v.attempt.Machine().Prepaid
		if helps && len(few) < mostVictims {
			few = append(few, v)
		}
	}
	return few
}

// starts reports whether j would start once the leaving jobs and the victims had left their machines.
func (p *Preempter) starts(j *state.Job, leaving []*state.Job, list []*victim) (yes bool) {
	gone := slices.Clone(leaving)
	for _, v := range list {
		gone = append(gone, v.job)
	}
	gone = slices.DeleteFunc(gone, func(k *state.Job) bool { return k == j })
	if !p.roomWithout(len(gone)) {
		return false
	}
	p.queue.Without(gone, func() {
		if p.queue.Blocks()(j).By != nil {
			return
		}
		yes = p.decider.StartsIf(j, p.freed(j, gone))
		p.weighed += p.market.Class(j).Weighed()
	})
	return yes
}

// freed returns the reserved machines by offer that j could have once the jobs have left: those that nobody else has a
// seat on, and those with room for j beside the others.
func (p *Preempter) freed(j *state.Job, gone []*state.Job) map[market.OfferID]int {
	left := map[string]bool{}
	for _, k := range gone {
		left[k.Live().ID()] = true
	}
	freed, seen := map[market.OfferID]int{}, map[string]bool{}
	for _, k := range gone {
		for _, t := range k.Live().Tasks() {
			i := p.State.Instance(t.Instance())
			if i == nil || !t.Live() || seen[i.ID()] || !t.Machine().Prepaid {
				continue
			}
			seen[i.ID()] = true
			others := slices.ContainsFunc(i.Seats(), func(s state.Seat) bool { return !left[s.Attempt] })
			if !others || p.decider.PartFits(j, i, left) {
				freed[t.Machine().Offer]++
			}
		}
	}
	return freed
}

// roomWithout reports whether one more job may hold a machine once that many have left theirs.
func (p *Preempter) roomWithout(gone int) bool {
	running, most, _ := p.queue.Full()
	return running-gone < most && !p.State.Undecided()
}
