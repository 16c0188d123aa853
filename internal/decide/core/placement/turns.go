package placement

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core/queue"
	"scrimp/internal/decide/fair"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// turns plays the queue of teams that share it: jobs end when they are expected to, and the team whose turn it is then
// starts its most urgent job. It ignores quotas, deadlines that become pressing meanwhile, and the decay of spending.
type turns struct {
	shares fair.Shares
	free   int  // jobs that may start now
	runs   ends // jobs that hold a machine, but for those of unknown duration
}

// newTurns begins a play with the places of the teams and the courses of the jobs and idle machines of now.
func newTurns(s fair.Shares, running []budget.Course, places int) *turns {
	v := &turns{shares: s, free: places - len(running)}
	for i := range running {
		v.run(&running[i], 0)
	}
	return v
}

// sort puts waiting jobs and their courses into the order of their turns. Both lists have the most urgent job first.
func (v *turns) sort(jobs []*state.Job, courses []budget.Course) {
	byTeam, left := map[string][]int{}, len(jobs) // the waiting jobs of each team
	for i, j := range jobs {
		key := fair.Key(j.Terms().Owner.Team)
		byTeam[key] = append(byTeam[key], i)
	}
	place := make([]int, len(jobs))
	for now := time.Duration(0); left > 0; {
		i, ok := v.next(jobs, byTeam)
		if (v.free <= 0 || !ok) && len(v.runs) > 0 {
			now = v.end()
			continue
		} // if nothing ends, the order is that of places that become free at an unknown time
		key := fair.Key(jobs[i].Terms().Owner.Team)
		if byTeam[key] = byTeam[key][1:]; len(byTeam[key]) == 0 {
			delete(byTeam, key)
		}
		v.start(&courses[i], now, len(byTeam[key]) > 0)
		place[i] = len(jobs) - left
		left--
	}
	byPlace := make([]budget.Course, len(jobs))
	for i, at := range place {
		byPlace[at] = courses[i]
	}
	copy(courses, byPlace)
}

// next returns the waiting job that has the next turn. ok is false if its team has borrowed as much as it may.
func (v *turns) next(jobs []*state.Job, byTeam map[string][]int) (best int, ok bool) {
	best = -1
	for _, list := range byTeam {
		i := list[0]
		can := queue.Pressed(jobs[i]) || !v.shares.Of(jobs[i].Terms().Owner.Team).Stopped
		if best < 0 || can && !ok || can == ok && queue.Precedes(&v.shares, jobs[i], jobs[best]) {
			best, ok = i, can
		}
	}
	return best, ok
}

func (v *turns) start(c *budget.Course, now time.Duration, waits bool) {
	lasts := c.Lasts
	if !c.Known {
		lasts = time.Hour // as shares count it
	}
	v.shares.Start(c.Owner.Team, c.Rate.Until(lasts), c.Rate, waits)
	v.free--
	v.run(c, now)
}

// run notes when a job ends that has a machine now.
func (v *turns) run(c *budget.Course, now time.Duration) {
	if c.Known {
		heap.Push(&v.runs, end{now + c.Lasts, c.ID, c.Owner.Team, c.Rate})
	}
}

// end ends the job that ends first, and returns when that is.
func (v *turns) end() time.Duration {
	e := heap.Pop(&v.runs).(end)
	v.shares.End(e.team, e.rate)
	v.free++
	return e.at
}

// end is when a job is expected to end, from now.
type (
	end struct {
		at       time.Duration
		id, team string
		rate     money.Rate
	}
	ends []end
)

func (e ends) Len() int { return len(e) }

func (e ends) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[j].at), cmp.Compare(e[i].id, e[j].id)) < 0
}

func (e ends) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

func (e *ends) Push(x any) { *e = append(*e, x.(end)) }

func (e *ends) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = slices.Delete(*e, last, last+1)
	return x
}
