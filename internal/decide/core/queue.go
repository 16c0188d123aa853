package core

import (
	"container/heap"
	"iter"
	"slices"
	"strings"
	"time"
)

// queue holds the jobs that wait, most urgent first: by priority, then by
// deadline (none is last), then in the order of submission. A step tries a
// few of them at most: those that were tried without result wait in tried until
// something changes, so that a million queued jobs do not make each step slow.
//
// Jobs that are under the same quotas are a class. Where a quota has no room for
// the most urgent of a class, the whole class waits and costs no time, so that
// the jobs of others pass it. In a class those that ask for the same are a subqueue:
// where the market has nothing for some of them it has nothing for the others (see
// equivalence), and the jobs of other subqueues pass them.
type queue struct {
	classes      []*class // that have had jobs since the quotas changed, by key
	fresh        int      // which side of each subqueue holds the jobs to be tried
	again        bool     // something changed while that one was not empty
	equivalences map[string]*equivalence
	groups       map[string]*group
	retryAt      time.Time // the first class in backoff may be tried again, whatever happens; zero: none
	waiting      int       // jobs
	key          []byte    // room for that of a group
}

// overQuota is the side of jobs for which a quota has no room though nothing ran: they
// are tried again when its next window opens, or the quotas change.
const overQuota = 2

// class is the jobs that are under the same quotas.
type class struct {
	key       string
	quotas    []*quota    // by name
	subqueues []*subqueue // by key of their groups
	era       int         // of the quotas
}

// subqueue is the jobs of a class that are of one group.
type subqueue struct {
	class *class
	group *group
	sides [3]urgency // two that take turns in being tried, and those over quota
}

// first is the most urgent job of that side of the class's subqueues, but for those that are passed over.
func (c *class) first(side int) (best *Job) {
	for _, p := range c.subqueues {
		if u := p.sides[side]; len(u) > 0 && !p.group.equivalence.unschedulable && (best == nil || before(u[0], best)) {
			best = u[0]
		}
	}
	return best
}

// subqueue returns the class's subqueue of that group, which is made where there is none.
func (c *class) subqueue(g *group) *subqueue {
	i, found := slices.BinarySearchFunc(c.subqueues, g.key, func(p *subqueue, key string) int {
		return strings.Compare(p.group.key, key)
	})
	if !found {
		c.subqueues = slices.Insert(c.subqueues, i, &subqueue{class: c, group: g})
	}
	return c.subqueues[i]
}

// move puts the subqueue into another class.
func (p *subqueue) move(c *class) {
	p.class = c
	i, _ := slices.BinarySearchFunc(c.subqueues, p.group.key, func(p *subqueue, key string) int {
		return strings.Compare(p.group.key, key)
	})
	c.subqueues = slices.Insert(c.subqueues, i, p)
}

// place is where a job stands in the queue.
type place struct {
	class    *class    // nil: not asked for yet; of a job in the queue its subqueue says it
	subqueue *subqueue // that it stands in, or is taken from to be looked at
	group    *group    // that it was counted for when it came into the queue; nil: it is not in it
	loose    bool      // there were too many groups then
	waits    bool      // it stands in one of the subqueue's sides
	side     int
	index    int
}

// at is where j stands in the queue.
func at(j *Job) *place { return slot[place](j, ofQueue) }

type urgency []*Job

func (u urgency) Len() int           { return len(u) }
func (u urgency) Less(i, j int) bool { return before(u[i], u[j]) }

// before says whether a is more urgent than b.
func before(a, b *Job) bool {
	if a.Terms().Priority != b.Terms().Priority {
		return a.Terms().Priority > b.Terms().Priority
	}
	if !a.Terms().Deadline.Equal(b.Terms().Deadline) {
		if a.Terms().Deadline.IsZero() || b.Terms().Deadline.IsZero() {
			return b.Terms().Deadline.IsZero()
		}
		return a.Terms().Deadline.Before(b.Terms().Deadline)
	}
	return a.Order() < b.Order()
}

// upTo gives jobs that are more urgent than j, from the top of the heap down; it
// looks at so many places at most.
func (u urgency) upTo(j *Job, most int) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		next := []int{0}
		for ; len(next) > 0 && most > 0; most-- {
			i := next[0]
			if next = next[1:]; i >= len(u) || !before(u[i], j) {
				continue
			}
			if !yield(u[i]) {
				return
			}
			next = append(next, 2*i+1, 2*i+2)
		}
	}
}

// upTo gives jobs of the class that are more urgent than j, subqueue by subqueue; of each side
// of a subqueue it looks at so many places at most, and of those of all subqueues at ten times as many.
func (c *class) upTo(j *Job, most int) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		n := 0
		for _, p := range c.subqueues {
			for _, u := range p.sides[:overQuota] {
				for other := range u.upTo(j, most) {
					if n++; n > 10*most || !yield(other) {
						return
					}
				}
			}
		}
	}
}

func (u urgency) Swap(i, j int) {
	u[i], u[j] = u[j], u[i]
	at(u[i]).index, at(u[j]).index = i, j
}
func (u *urgency) Push(x any) {
	j := x.(*Job)
	at(j).index = len(*u)
	*u = append(*u, j)
}
func (u *urgency) Pop() any {
	last := len(*u) - 1
	j := (*u)[last]
	(*u)[last] = nil
	*u = (*u)[:last]
	return j
}

// class returns the class of that key, which is made where there is none.
func (q *queue) class(key string, quotas []*quota, era int) *class {
	i, found := slices.BinarySearchFunc(q.classes, key, func(c *class, key string) int {
		return strings.Compare(c.key, key)
	})
	if !found {
		q.classes = slices.Insert(q.classes, i, &class{key: key, quotas: quotas, era: era})
	}
	return q.classes[i]
}

// add puts j among the jobs to be tried.
func (q *queue) add(j *Job) { q.push(j, q.fresh) }

// tried puts j among those that were tried without result.
func (q *queue) tried(j *Job) { q.push(j, 1-q.fresh) }

func (q *queue) push(j *Job, side int) {
	q.enter(j)
	q.seat(j, side)
}

// seat is push for a job that stood on that side before.
func (q *queue) seat(j *Job, side int) {
	p := at(j).subqueue
	if p == nil {
		p = at(j).class.subqueue(at(j).group)
	}
	at(j).subqueue, at(j).waits, at(j).side = p, true, side
	q.waiting++
	heap.Push(&p.sides[side], j)
}

func (q *queue) remove(j *Job) {
	if at(j).waits {
		q.unseat(j)
	}
}

func (q *queue) unseat(j *Job) {
	heap.Remove(&at(j).subqueue.sides[at(j).side], at(j).index)
	at(j).waits = false
	q.waiting--
}

// head is the most urgent job to be tried for which every quota has room. One
// that has none for a more urgent job, where nothing else is in that job's way,
// keeps what room it has for that one. A job for which there is none in this window is in
// nobody's way: it is given, to be put among those over quota.
func (q *queue) head(blocks func(*Job) blocked) *Job {
	if len(q.classes) == 1 && len(q.classes[0].quotas) == 0 { // nobody has set any
		return q.classes[0].first(q.fresh)
	}
	var full []*quota
	firsts := make([]*Job, len(q.classes))
	for i, c := range q.classes {
		firsts[i] = c.first(q.fresh)
	}
	for {
		var best *Job
		at := 0
		for i, j := range firsts {
			if j != nil && (best == nil || before(j, best)) {
				best, at = j, i
			}
		}
		if best == nil {
			return nil
		}
		firsts[at] = nil
		c := q.classes[at]
		if slices.ContainsFunc(c.quotas, func(q *quota) bool { return slices.Contains(full, q) }) {
			continue
		}
		b := blocks(best)
		if b.by == nil || b.never {
			return best
		}
		if b.keeps {
			full = append(full, b.by)
		}
	}
}

// next takes the most urgent job that was not tried since the last change, and
// for which the quotas have room.
func (q *queue) next(blocks func(*Job) blocked) (*Job, bool) {
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

// changed lets every job be tried again, those that wait for their first try before the others.
func (q *queue) changed() {
	q.again = slices.ContainsFunc(q.classes, func(c *class) bool {
		return slices.ContainsFunc(c.subqueues, func(p *subqueue) bool { return len(p.sides[1-q.fresh]) > 0 })
	})
	q.clearBackoff()
}

// loosen lets the jobs that were over a quota be tried.
func (q *queue) loosen(by *quota) {
	for _, c := range q.classes {
		if !slices.Contains(c.quotas, by) {
			continue
		}
		for _, p := range c.subqueues {
			loose := p.sides[overQuota]
			p.sides[overQuota] = nil
			q.waiting -= len(loose)
			for _, j := range loose {
				q.add(j)
			}
		}
	}
}

// untried reports whether next would give a job.
func (q *queue) untried(blocks func(*Job) blocked) bool {
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

// Len is how many jobs wait.
func (q *queue) Len() int { return q.waiting }
