package queue

import (
	"container/heap"
	"slices"
	"time"

	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
)

// pressing is a queued job, and the time at which its deadline needs it to start. It is stale if that time has changed.
type pressing struct {
	at  time.Time
	job *state.Job
}

// presses is a heap of those, the earliest first.
type presses []pressing

func (p presses) Len() int           { return len(p) }
func (p presses) Less(i, j int) bool { return p[i].at.Before(p[j].at) }
func (p presses) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }

// Push implements heap.Interface.
func (p *presses) Push(x any) { *p = append(*p, x.(pressing)) }

// Pop implements heap.Interface.
func (p *presses) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	(*p)[last] = pressing{}
	*p = (*p)[:last]
	return x
}

// add notes when the deadline of a job that enters the queue needs it to start.
func (p *presses) add(j *state.Job, now time.Time) {
	at, ok := step.LatestStart(j)
	if !ok {
		if At(j).pressed = false; At(j).sharing != nil {
			At(j).sharing.press = time.Time{}
		}
		return
	}
	x := At(j).share()
	if At(j).pressed = !at.After(now); At(j).pressed {
		x.press = at
		return
	}
	if x.inPresses && x.press.Equal(at) {
		return
	}
	x.press, x.inPresses = at, true
	heap.Push(p, pressing{at, j})
}

// stale reports whether the job has left the queue, or must start at another time.
func (p pressing) stale() bool {
	x := At(p.job).sharing
	return x == nil || !x.press.Equal(p.at)
}

// press puts the jobs whose deadline needs them to start by now before the others of their priority.
func (q *Queue) press(now time.Time) {
	for len(q.presses) > 0 && !q.presses[0].at.After(now) {
		p, _ := heap.Pop(&q.presses).(pressing)
		if p.stale() {
			continue
		}
		x := At(p.job)
		if x.sharing.inPresses = false; x.Waits {
			x.pressed = true
			heap.Fix(&x.Subqueue.Sides[x.Side], x.Index)
		}
	}
	if len(q.presses) > 2*q.waiting+MostGroups { // most are of jobs that have left
		q.presses = slices.DeleteFunc(q.presses, pressing.stale)
		heap.Init(&q.presses)
	}
}

// nextPress returns when the next job must start; zero: none is known.
func (q *Queue) nextPress() time.Time {
	if len(q.presses) == 0 {
		return time.Time{}
	}
	return q.presses[0].at
}

// pressAll computes the times of all queued jobs again, after teams began or ceased to share the queue.
func (q *Queue) pressAll() {
	q.presses = nil
	for _, c := range q.Classes {
		for _, p := range c.Subqueues {
			for side := range p.Sides {
				for _, j := range p.Sides[side] {
					At(j).pressed, At(j).sharing = false, nil
					if q.shares != nil {
						q.presses.add(j, q.now)
					}
				}
				heap.Init(&p.Sides[side])
			}
		}
	}
}
