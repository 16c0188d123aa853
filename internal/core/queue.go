package core

import (
	"container/heap"
	"time"
)

// queue holds the jobs that wait, most urgent first: by priority, then by
// deadline (none is last), then in the order of submission. A step looks at a
// few of them at most: those that were looked at in vain wait in tried until
// something changes, so that a million queued jobs do not make each step slow.
type queue struct {
	heaps [2]urgency
	fresh int        // which heap holds the jobs to be tried
	again bool       // something changed while that one was not empty
	touch func(*Job) // is told of a job before it changes
}

// place is where a job stands in the queue.
type place struct {
	in    *urgency
	index int
	order uint64 // of submission
}

type urgency []*Job

func (u urgency) Len() int { return len(u) }
func (u urgency) Less(i, j int) bool {
	a, b := u[i], u[j]
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

// add puts j among the jobs to be tried.
func (q *queue) add(j *Job) { q.push(j, q.fresh) }

// tried puts j among those that were tried in vain.
func (q *queue) tried(j *Job) { q.push(j, 1-q.fresh) }

func (q *queue) push(j *Job, to int) {
	q.touch(j)
	j.place.in = &q.heaps[to]
	heap.Push(j.place.in, j)
}

func (q *queue) remove(j *Job) {
	if j.place.in != nil {
		q.touch(j)
		heap.Remove(j.place.in, j.place.index)
		j.place.in = nil
	}
}

// next takes the most urgent job that was not tried since the last change.
func (q *queue) next() (*Job, bool) {
	if len(q.heaps[q.fresh]) == 0 && q.again {
		q.again, q.fresh = false, 1-q.fresh
	}
	if len(q.heaps[q.fresh]) == 0 {
		return nil, false
	}
	j := heap.Pop(&q.heaps[q.fresh]).(*Job)
	q.touch(j)
	j.place.in = nil
	return j, true
}

// changed lets every job be tried again, those that wait for their first try before the others.
func (q *queue) changed() { q.again = len(q.heaps[1-q.fresh]) > 0 }

// untried reports whether next would give a job.
func (q *queue) untried() bool { return len(q.heaps[q.fresh]) > 0 || q.again }

// Len is how many jobs wait.
func (q *queue) Len() int { return len(q.heaps[0]) + len(q.heaps[1]) }

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
