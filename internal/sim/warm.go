package sim

import (
	"cmp"
	"fmt"
	"time"

	"scrimp/internal/decide/core"
)

// warm reports whether idle machines of this life may wait for the next job.
func (w *World) warm() bool { return w.extra != nil && w.seed%3 == 1 && w.seed%5 != 0 }

// rests cleans up a machine whose task has ended and asks for another task, as the real agent does.
func (a *agent) rests() {
	w := a.w
	if w.seats() == 0 && a.mayRest() {
		a.cleans()
	}
}

// mayRest reports whether the task's machine may wait for another task.
func (a *agent) mayRest() bool { return a.w.warm() && !a.i.pulls && a.i.agent == a && a.i.running() }

// cleans cleans up the machine and asks for another task.
func (a *agent) cleans() {
	w := a.w
	a.i.pulls = true
	if a.gone.IsZero() {
		a.gone = w.now.Add(w.skew)
	}
	if w.later(0.1) {
		w.saw("fault not cleaned × machine")
		w.after(10*time.Second, func() { a.pull(false) })
		return
	}
	w.after(time.Duration(1+w.extra.IntN(90))*time.Second, func() { a.pull(true) })
}

// pull polls for a task on an idle machine until it gets one or the machine is terminated. A task starts only on a
// clean machine, and only if the same user owns it.
func (a *agent) pull(clean bool) {
	w, i := a.w, a.i
	again := func() { w.after(10*time.Second, func() { a.pull(clean) }) }
	switch {
	case !i.running() || i.agent != a:
		return
	case a.cut || !w.up:
		if w.leave > 0 && w.now.Sub(a.answered) >= w.leave {
			a.off()
			return
		}
		again()
		return
	}
	a.answered = w.now
	known := w.m.State().Instance(i.id)
	if known == nil || !w.m.Stays(known) {
		return // the server is terminating it
	}
	if clean && w.m.Cleans(i.id) {
		i.clean = true // even if the answer is lost
		w.step(core.MachineCleaned{Instance: i.id})
		again()
		return
	}
	for _, t := range w.m.Tasks(known) {
		if w.agents[t.Attempt().ID()] == nil {
			a.next(t.Attempt())
			return
		}
	}
	again()
}

// userOf returns the job's submitter as its client knows it, or as the server knows it.
func (w *World) userOf(j *simJob) string {
	if known, ok := w.known(j.id); ok && j.by == "" {
		return known.User()
	}
	return j.by
}

// next starts another task on the machine.
func (a *agent) next(t *core.Attempt) {
	w, i := a.w, a.i
	job := w.jobOf(t.ID())
	if job == nil {
		return
	}
	w.saw("a machine serves another task")
	if job.id != a.job.id {
		w.saw("a machine serves another job")
	}
	if !i.clean {
		w.breaks("warm: %s begins on %s, and what %s left is there", t.ID(), i.id, a.attempt)
	}
	if now, before := w.userOf(job), w.userOf(a.job); now != before {
		w.breaks("warm: %s of %q begins on %s, which served %q", t.ID(), now, i.id, before)
	}
	b := &agent{w: w, i: i, attempt: t.ID(), job: job, epoch: t.Epoch(), since: t.From(), key: a.key, up: a.up,
		pace: job.pace * cmp.Or(max(i.offer.Speed, 0), 1)}
	i.agent, i.beside, i.clean, i.pulls, w.agents[b.attempt] = b, nil, false, false, b
	b.answered, b.gpus = w.now, t.GPUs()
	w.tell("%s begins on %s", b.attempt, fmt.Sprintf("%s, warm", i.id))
	w.after(time.Second, b.claim)
}
