package core

import (
	"container/heap"
	"iter"
	"slices"
	"strings"
	"time"
)

// queue holds the jobs that wait, most urgent first: by priority, then by
// deadline (none is last), then in the order of submission. A step looks at a
// few of them at most: those that were looked at in vain wait in tried until
// something changes, so that a million queued jobs do not make each step slow.
//
// Jobs that are under the same quotas are a class. Where a quota has no room for
// the most urgent of a class, the whole class waits and costs no look, so that
// the jobs of others pass it.
type queue struct {
	classes []*class   // that have had jobs since the quotas changed, by key
	fresh   int        // which side of each class holds the jobs to be tried
	again   bool       // something changed while that one was not empty
	touch   func(*Job) // is told of a job before it changes
}

// stuck is the side of jobs for which a quota has no room though nothing ran: they
// are looked at again when its next window opens, or the quotas change.
const stuck = 2

// class is the jobs that are under the same quotas.
type class struct {
	key    string
	quotas []*quota   // by name
	sides  [3]urgency // two that take turns in being tried, and the stuck
	era    int        // of the quotas
}

// place is where a job stands in the queue.
type place struct {
	class *class // nil: not asked for yet
	waits bool   // it stands in one of the class's sides
	side  int
	index int
	order uint64 // of submission
	sum   summed
}

type urgency []*Job

func (u urgency) Len() int           { return len(u) }
func (u urgency) Less(i, j int) bool { return before(u[i], u[j]) }

// before says whether a is more urgent than b.
func before(a, b *Job) bool {
	if a.Terms.Priority != b.Terms.Priority {
		return a.Terms.Priority > b.Terms.Priority
	}
	if !a.Terms.Deadline.Equal(b.Terms.Deadline) {
		if a.Terms.Deadline.IsZero() || b.Terms.Deadline.IsZero() {
			return b.Terms.Deadline.IsZero()
		}
		return a.Terms.Deadline.Before(b.Terms.Deadline)
	}
	return a.place.order < b.place.order
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

func (u urgency) Swap(i, j int) {
	u[i], u[j] = u[j], u[i]
	u[i].place.index, u[j].place.index = i, j
}
func (u *urgency) Push(x any) {
	j := x.(*Job)
	j.place.index = len(*u)
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
	i, found := slices.BinarySearchFunc(q.classes, key, func(c *class, key string) int { return strings.Compare(c.key, key) })
	if !found {
		q.classes = slices.Insert(q.classes, i, &class{key: key, quotas: quotas, era: era})
	}
	return q.classes[i]
}

// add puts j among the jobs to be tried.
func (q *queue) add(j *Job) { q.push(j, q.fresh) }

// tried puts j among those that were tried in vain.
func (q *queue) tried(j *Job) { q.push(j, 1-q.fresh) }

func (q *queue) push(j *Job, side int) {
	q.touch(j)
	q.seat(j, side)
}

// seat is push for a job that stood on that side before.
func (q *queue) seat(j *Job, side int) {
	j.place.waits, j.place.side = true, side
	heap.Push(&j.place.class.sides[side], j)
}

func (q *queue) remove(j *Job) {
	if j.place.waits {
		q.touch(j)
		heap.Remove(&j.place.class.sides[j.place.side], j.place.index)
		j.place.waits = false
	}
}

// head is the most urgent job to be tried for which every quota has room. One
// that has none for a more urgent job, where nothing else is in that job's way,
// keeps what room it has for that one. A job for which there is none in this window is in
// nobody's way: it is given, to be put among the stuck.
func (q *queue) head(blocks func(*Job) blocked) *Job {
	if len(q.classes) == 1 && len(q.classes[0].quotas) == 0 { // nobody has set any
		if u := q.classes[0].sides[q.fresh]; len(u) > 0 {
			return u[0]
		}
		return nil
	}
	var full []*quota
	passed := make([]bool, len(q.classes))
	for {
		var best *Job
		at := 0
		for i, c := range q.classes {
			if u := c.sides[q.fresh]; !passed[i] && len(u) > 0 && (best == nil || before(u[0], best)) {
				best, at = u[0], i
			}
		}
		if best == nil {
			return nil
		}
		passed[at] = true
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
	q.touch(j)
	heap.Pop(&j.place.class.sides[q.fresh])
	j.place.waits = false
	return j, true
}

// changed lets every job be tried again, those that wait for their first try before the others.
func (q *queue) changed() {
	q.again = slices.ContainsFunc(q.classes, func(c *class) bool { return len(c.sides[1-q.fresh]) > 0 })
}

// loosen lets the stuck jobs of a quota be tried.
func (q *queue) loosen(by *quota) {
	for _, c := range q.classes {
		if !slices.Contains(c.quotas, by) {
			continue
		}
		loose := c.sides[stuck]
		c.sides[stuck] = nil
		for _, j := range loose {
			q.add(j)
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
func (q *queue) Len() int {
	n := 0
	for _, c := range q.classes {
		n += len(c.sides[0]) + len(c.sides[1]) + len(c.sides[stuck])
	}
	return n
}

// wakes are the times at which jobs want to be looked at; an entry whose job
// has another time by now is passed over.
type wakes []wake

type wake struct {
	at  time.Time
	job *Job
}

func (w wakes) Len() int { return len(w) }
func (w wakes) Less(i, j int) bool {
	if !w[i].at.Equal(w[j].at) {
		return w[i].at.Before(w[j].at)
	}
	return w[i].job.place.order < w[j].job.place.order
}
func (w wakes) Swap(i, j int) { w[i], w[j] = w[j], w[i] }
func (w *wakes) Push(x any)   { *w = append(*w, x.(wake)) }
func (w *wakes) Pop() any {
	last := len(*w) - 1
	x := (*w)[last]
	(*w)[last] = wake{}
	*w = (*w)[:last]
	return x
}
