package queue

import (
	"container/heap"
	"iter"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/core/quota"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/fair"
	"scrimp/internal/decide/state"
	"scrimp/money"
)

// Queue holds the waiting jobs, most urgent first: by priority, then by deadline (none is last), then in the order
// of submission. A step tries only a few of them. Jobs that were tried without success wait apart until something
// changes, so that a million queued jobs do not slow every step down. If teams share the queue, fairHead has the order
// between teams.
//
// Jobs under the same quotas form a class. If a quota has no room for the most urgent job of a class, the whole
// class waits at no cost, and jobs of other classes pass it. Within a class, the jobs of one group form a subqueue.
// If the market has nothing for some of them, it has nothing for the others (see Equivalence), and jobs of other
// subqueues pass them.
type Queue struct {
	Classes      []*class // classes that have had jobs since the quotas changed, by key
	fresh        int      // the side of each subqueue with the jobs to be tried
	again        bool     // something changed while that side was not empty
	Equivalences map[string]*Equivalence
	Groups       map[string]*Group
	RetryAt      time.Time // when the first class in backoff may be tried again; zero: none
	waiting      int       // number of jobs
	key          []byte    // buffer for group keys

	// shares returns the order of teams now; nil: the queue does not regard teams.
	shares     func() *fair.Shares
	contenders []contender // memory for fairHead
	presses    presses     // queued jobs whose deadline does not need them to start yet; empty without shares
	now        time.Time   // of the step
}

// OverQuota is the side of jobs that exceed a quota even if nothing else runs. They are tried again when its next
// window opens, or the quotas change.
const OverQuota = 2

// class is the jobs under the same quotas.
type class struct {
	Key       string
	Quotas    []*quota.Quota // by name
	Subqueues []*subqueue    // by key of their groups
	era       int            // era of the quotas
}

// subqueue is the jobs of a class that are in one group.
type subqueue struct {
	Class *class
	Group *Group
	Sides [3]Urgency // two that take turns in being tried, and those over quota
}

// first returns the most urgent job on that side of the class's subqueues that is not skipped.
func (c *class) first(side int) (best *state.Job) {
	for _, p := range c.Subqueues {
		if u := p.Sides[side]; len(u) > 0 && !p.Group.Equivalence.Unschedulable && (best == nil || Before(u[0], best)) {
			best = u[0]
		}
	}
	return best
}

// subqueue returns the class's subqueue of that group, and creates it if needed.
func (c *class) subqueue(g *Group) *subqueue {
	i, found := slices.BinarySearchFunc(c.Subqueues, g.Key, func(p *subqueue, key string) int {
		return strings.Compare(p.Group.Key, key)
	})
	if !found {
		c.Subqueues = slices.Insert(c.Subqueues, i, &subqueue{Class: c, Group: g})
	}
	return c.Subqueues[i]
}

// move puts the subqueue into another class.
func (p *subqueue) move(c *class) {
	p.Class = c
	i, _ := slices.BinarySearchFunc(c.Subqueues, p.Group.Key, func(p *subqueue, key string) int {
		return strings.Compare(p.Group.Key, key)
	})
	c.Subqueues = slices.Insert(c.Subqueues, i, p)
}

// place is the position of a job in the queue.
type place struct {
	class    *class    // nil: not computed yet; for a queued job its subqueue has the class
	Subqueue *subqueue // the subqueue that it is in, or was taken from for a try
	Group    *Group    // group that counts it; nil: it is not in the queue
	Loose    bool      // there were too many groups when it entered
	Waits    bool      // it is on one of the subqueue's sides
	Side     int
	Index    int

	late    time.Duration // how much later than its submission it counts as submitted, under a limit of dollars an hour
	pressed bool          // its deadline needs it to start now
	sharing *sharing      // nil: nobody has set shares, or it needs none
}

// sharing is the queue's record of a job while teams share it.
type sharing struct {
	press     time.Time // when its deadline needs it to start; zero: it has no deadline
	inPresses bool

	counted bool         // the sum of its team has rate and held
	rate    money.Rate   // of its machines
	held    money.Amount // what they are still expected to cost
}

// share returns the sharing record of the job, and creates it if needed.
func (p *place) share() *sharing {
	if p.sharing == nil {
		p.sharing = &sharing{}
	}
	return p.sharing
}

// At returns the position of j in the queue.
func At(j *state.Job) *place { return step.Slot[place](j, step.OfQueue) }

// Urgency is a heap of jobs, the most urgent first.
type Urgency []*state.Job

func (u Urgency) Len() int { return len(u) }

func (u Urgency) Less(i, j int) bool { return Before(u[i], u[j]) }

// Before reports whether a is more urgent than b.
func Before(a, b *state.Job) bool {
	if a.Terms().Priority != b.Terms().Priority {
		return a.Terms().Priority > b.Terms().Priority
	}
	if timed := !a.Terms().Deadline.IsZero() || !b.Terms().Deadline.IsZero(); timed && At(a).pressed != At(b).pressed {
		return At(a).pressed
	}
	if !a.Terms().Deadline.Equal(b.Terms().Deadline) {
		if a.Terms().Deadline.IsZero() || b.Terms().Deadline.IsZero() {
			return b.Terms().Deadline.IsZero()
		}
		return a.Terms().Deadline.Before(b.Terms().Deadline)
	}
	if x, y := At(a).late, At(b).late; x|y != 0 {
		if order := a.Submitted().Add(x).Compare(b.Submitted().Add(y)); order != 0 {
			return order < 0
		}
	}
	return a.Order() < b.Order()
}

// upTo yields jobs that are more urgent than j, from the top of the heap down. It checks up to most positions.
func (u Urgency) upTo(j *state.Job, most int) iter.Seq[*state.Job] {
	return func(yield func(*state.Job) bool) {
		next := []int{0}
		for ; len(next) > 0 && most > 0; most-- {
			i := next[0]
			if next = next[1:]; i >= len(u) || !Before(u[i], j) {
				continue
			}
			if !yield(u[i]) {
				return
			}
			next = append(next, 2*i+1, 2*i+2)
		}
	}
}

// upTo yields jobs of the class that are more urgent than j, by subqueue. It checks up to most positions on each
// side of a subqueue, and yields at most ten times as many jobs in total.
func (c *class) upTo(j *state.Job, most int) iter.Seq[*state.Job] {
	return func(yield func(*state.Job) bool) {
		n := 0
		for _, p := range c.Subqueues {
			for _, u := range p.Sides[:OverQuota] {
				for other := range u.upTo(j, most) {
					if n++; n > 10*most || !yield(other) {
						return
					}
				}
			}
		}
	}
}

func (u Urgency) Swap(i, j int) {
	u[i], u[j] = u[j], u[i]
	At(u[i]).Index, At(u[j]).Index = i, j
}

// Push implements heap.Interface.
func (u *Urgency) Push(x any) {
	j := x.(*state.Job)
	At(j).Index = len(*u)
	*u = append(*u, j)
}

// Pop implements heap.Interface.
func (u *Urgency) Pop() any {
	last := len(*u) - 1
	j := (*u)[last]
	(*u)[last] = nil
	*u = (*u)[:last]
	return j
}

// class returns the class with that key, and creates it if needed.
func (q *Queue) class(key string, quotas []*quota.Quota, era int) *class {
	i, found := slices.BinarySearchFunc(q.Classes, key, func(c *class, key string) int {
		return strings.Compare(c.Key, key)
	})
	if !found {
		q.Classes = slices.Insert(q.Classes, i, &class{Key: key, Quotas: quotas, era: era})
	}
	return q.Classes[i]
}

// Add puts j among the jobs to be tried.
func (q *Queue) Add(j *state.Job) { q.Push(j, q.fresh) }

// Tried puts j among the jobs that were tried without success.
func (q *Queue) Tried(j *state.Job) { q.Push(j, 1-q.fresh) }

// Push puts j on a side of its subqueue.
func (q *Queue) Push(j *state.Job, side int) {
	q.enter(j)
	q.seat(j, side)
}

// seat is Push for a job that is already counted in its group.
func (q *Queue) seat(j *state.Job, side int) {
	p := At(j).Subqueue
	if p == nil {
		p = At(j).class.subqueue(At(j).Group)
	}
	At(j).Subqueue, At(j).Waits, At(j).Side = p, true, side
	q.waiting++
	At(j).late = p.Class.lateness(j)
	if q.shares != nil {
		q.presses.add(j, q.now)
	}
	heap.Push(&p.Sides[side], j)
}

// Remove takes j out of the queue if it is in it.
func (q *Queue) Remove(j *state.Job) {
	if At(j).Waits {
		q.unseat(j)
	}
}

func (q *Queue) unseat(j *state.Job) {
	heap.Remove(&At(j).Subqueue.Sides[At(j).Side], At(j).Index)
	At(j).Waits = false
	q.waiting--
}

// head returns the most urgent job to be tried that every quota has room for. If a quota has no room for a more
// urgent job, and nothing else blocks that job, the quota reserves its room for it. A job that exceeds a quota's
// whole window blocks nobody: head returns it so that it can be put over quota.
func (q *Queue) head(blocks func(*state.Job) blocked) *state.Job {
	if q.shares != nil {
		return q.fairHead(blocks)
	}
	if len(q.Classes) == 1 && len(q.Classes[0].Quotas) == 0 { // nobody has set any
		return q.Classes[0].first(q.fresh)
	}
	var full []*quota.Quota
	firsts := make([]*state.Job, len(q.Classes))
	for i, c := range q.Classes {
		firsts[i] = c.first(q.fresh)
	}
	for {
		var best *state.Job
		at := 0
		for i, j := range firsts {
			if j != nil && (best == nil || Before(j, best)) {
				best, at = j, i
			}
		}
		if best == nil {
			return nil
		}
		firsts[at] = nil
		c := q.Classes[at]
		if slices.ContainsFunc(c.Quotas, func(q *quota.Quota) bool { return slices.Contains(full, q) }) {
			continue
		}
		b := blocks(best)
		if b.By == nil || b.Never {
			return best
		}
		if b.keeps {
			full = append(full, b.By)
		}
	}
}

// Next removes and returns the most urgent job that was not tried since the last change and that the quotas have
// room for.
func (q *Queue) Next(blocks func(*state.Job) blocked) (*state.Job, bool) {
	j := q.head(blocks)
	if j == nil && q.again {
		q.again, q.fresh = false, 1-q.fresh
		j = q.head(blocks)
	}
	if j == nil {
		return nil, false
	}
	q.unseat(j)
	return j, true
}

// Changed lets every job be tried again, after those that wait for their first try.
func (q *Queue) Changed() {
	q.again = slices.ContainsFunc(q.Classes, func(c *class) bool {
		return slices.ContainsFunc(c.Subqueues, func(p *subqueue) bool { return len(p.Sides[1-q.fresh]) > 0 })
	})
	q.clearBackoff()
}

// loosen lets the jobs over a quota be tried again.
func (q *Queue) loosen(by *quota.Quota) {
	for _, c := range q.Classes {
		if !slices.Contains(c.Quotas, by) {
			continue
		}
		for _, p := range c.Subqueues {
			loose := p.Sides[OverQuota]
			p.Sides[OverQuota] = nil
			q.waiting -= len(loose)
			for _, j := range loose {
				q.Add(j)
			}
		}
	}
}

// Untried reports whether Next would return a job.
func (q *Queue) Untried(blocks func(*state.Job) blocked) bool {
	if q.head(blocks) != nil {
		return true
	}
	if !q.again {
		return false
	}
	q.fresh = 1 - q.fresh
	j := q.head(blocks)
	q.fresh = 1 - q.fresh
	return j != nil
}

// Len returns the number of waiting jobs.
func (q *Queue) Len() int { return q.waiting }
