package queue

import (
	"container/heap"
	"time"

	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
)

// presses are the times at which deadlines need queued jobs to start. An entry is stale if the job has another time by
// now.
type presses struct{ step.Wakes }

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
	p.Push(step.Wake{At: at, Job: j})
}

// stale reports whether the job has left the queue, or must start at another time.
func stale(p step.Wake) bool {
	x := At(p.Job).sharing
	return x == nil || !x.press.Equal(p.At)
}

// press puts the jobs whose deadline needs them to start by now before the others of their priority.
func (q *Queue) press(now time.Time) {
	for len(q.presses.Wakes) > 0 && !q.presses.Wakes[0].At.After(now) {
		p := q.presses.Pop()
		if stale(p) {
			continue
		}
		x := At(p.Job)
		if x.sharing.inPresses = false; x.Waits {
			x.pressed = true
			heap.Fix(&x.Subqueue.Sides[x.Side], x.Index)
		}
	}
	if old := q.presses.Wakes; len(old) > 2*q.waiting+MostGroups { // most are of jobs that have left
		q.presses = presses{}
		for _, p := range old {
			if !stale(p) {
				q.presses.Push(p)
			}
		}
	}
}

// nextPress returns when the next job must start; zero: none is known.
func (q *Queue) nextPress() time.Time {
	if len(q.presses.Wakes) == 0 {
		return time.Time{}
	}
	return q.presses.Wakes[0].At
}

// pressAll computes the times of all queued jobs again, after teams began or ceased to share the queue.
func (q *Queue) pressAll() {
	q.presses = presses{}
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
