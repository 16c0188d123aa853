package lifecycle

import (
	"time"

	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/queue"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
)

// TriesAfter returns how many queued jobs to try after one event. A submission tries one job, and an event that is
// only recorded tries none. Otherwise each of ten thousand submissions a second would try 64 jobs that were tried
// without success before. Other jobs follow on a later event, at the latest with the next tick.
func TriesAfter(b state.Body) int {
	switch b.(type) {
	case state.JobSubmitted:
		return 1
	case state.Audited, state.IdentityChanged, state.Rehydrated, state.RehydratedGroup:
		return 0
	}
	return step.Tries
}

// Due reviews jobs whose wake time has come, the longest waiting first, up to the limit of a step: after a restart
// all running jobs are due at once.
func (js *Jobs) Due() {
	for e := (effort{}); !e.enough() && len(js.Wakes) > 0 && !js.Wakes[0].At.After(js.Now()); {
		w := js.Wakes.Pop()
		p := step.TimesOf(w.Job)
		if !w.At.Equal(p.Wake) || w.Job.State().Over() && !w.Job.Holds() {
			continue
		}
		p.Wake = time.Time{}
		js.Works(w.Job)
		switch {
		case w.Job.State() == state.Held:
			js.Finish(w.Job, state.Cancelled, step.ApprovalExpired, w.Job.Detail())
		case w.Job.State() == state.Queued && len(w.Job.Waits()) > 0:
			if _, spent := admission.TimeLimitReached(w.Job, js.Now()); spent {
				js.launches.try(w.Job)
			}
		case w.Job.State() == state.Queued && queue.At(w.Job).Waits:
			js.dueInQueue(w.Job)
		default:
			js.attempts.reviewWithin(w.Job, &e)
		}
	}
}

func (js *Jobs) dueInQueue(j *state.Job) {
	_, spent := admission.TimeLimitReached(j, js.Now())
	switch {
	case spent && !js.decider.Awaits(j):
		js.queue.Queue.Remove(j)
		js.launches.try(j)
	case js.queue.Room(): // in its turn, which may not have come
		js.queue.Queue.Remove(j)
		js.queue.Queue.Add(j)
		js.launches.OverAt(j)
	default:
		js.launches.OverAt(j)
	}
}

// TryNew tries a new job even if its equivalence class is unschedulable, so that it has a reason for waiting.
func (js *Jobs) TryNew(j *state.Job) bool {
	at := queue.At(j)
	if !at.Waits || !at.Group.Equivalence.Unschedulable || !js.queue.Room() || js.queue.Blocks()(j).By != nil ||
		js.queue.Stopped(j) {
		return false
	}
	js.queue.Queue.Remove(j)
	js.launches.try(j)
	return true
}

// Consider gives free places to queued jobs, the most urgent first.
func (js *Jobs) Consider(most int) {
	for n := most; n > 0; n-- {
		if !js.queue.Room() {
			return
		}
		blocks := js.queue.Blocks()
		j, ok := js.queue.Queue.Next(blocks)
		switch {
		case !ok:
			return
		case blocks(j).Never:
			js.queue.Queue.Push(j, queue.OverQuota)
		case js.decider.Awaits(j):
			js.queue.Queue.Tried(j)
			js.WakeAt(j, js.decider.YieldsUntil(j))
		default:
			js.launches.try(j)
		}
	}
}
