package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// drawPauses makes users pause, resume and change jobs in some lives, and resume ended ones. Its own random source
// leaves the other lives unchanged.
func (w *World) drawPauses() {
	rng := rand.New(rand.NewPCG(w.seed, 0x9a05e))
	if w.calm5() || rng.IntN(4) > 0 {
		return
	}
	for n := range w.jobs {
		id := w.jobs[n].id
		for range rng.IntN(3) {
			at := time.Duration(rng.IntN(400)) * time.Minute
			back := time.Duration(rng.IntN(600)) * time.Second
			if rng.IntN(2) == 0 {
				back *= 60
			}
			w.after(at, func() { w.pauses(id, back) })
		}
		if rng.IntN(2) == 0 {
			c := w.drawChanges(rng, &w.jobs[n])
			w.after(time.Duration(rng.IntN(400))*time.Minute, func() { w.changes(core.JobUpdated{Job: id, Changes: c}) })
		}
		if rng.IntN(2) == 0 {
			at := time.Duration(rng.IntN(40*60)) * time.Minute
			w.after(at, func() { w.reopens(id, rng) })
		}
	}
}

// drawChanges draws new terms: a higher limit of any kind, another deadline or priority.
func (w *World) drawChanges(rng *rand.Rand, j *simJob) (c core.Changes) {
	more := 1 + 3*rng.Float64()
	if j.terms.HasBudget && rng.IntN(2) == 0 {
		b, _ := money.Estimated(j.terms.Budget.Float() * more)
		c.Budget = &b
	}
	if j.terms.WallClock > 0 {
		d := time.Duration(float64(j.terms.WallClock) * more)
		c.WallClock = &d
	}
	if j.terms.GPUHours > 0 {
		h := j.terms.GPUHours * more
		c.GPUHours = &h
	}
	switch rng.IntN(4) {
	case 0:
		c.Deadline = &time.Time{}
	case 1:
		at := w.now.Add(j.terms.Work + time.Duration(rng.IntN(48))*time.Hour)
		c.Deadline = &at
	case 2:
		p := rng.IntN(3)
		c.Priority = &p
	}
	return c
}

// pauses makes the user pause the job and resume it later.
func (w *World) pauses(id string, back time.Duration) {
	b := core.JobPaused{Job: id}
	j, known := w.known(id)
	if !w.up || !known || j.State() != core.Queued && j.State() != core.Running || !j.Terms().Saves {
		return
	}
	var body core.Body = b
	if w.fault == FaultNoPause {
		body = core.Tick{}
	}
	if !w.step(body) {
		return
	}
	w.after(back, func() { w.resumes(id) })
	if !w.up {
		return // the server died after the event was durable
	}
	switch j, _ := w.known(id); {
	case j.State() == core.Paused:
		w.saw("paused at once")
	case j.Ending() == core.Paused:
		w.saw("paused once it has saved")
	case j.State().Over() || j.Ending() != "" || j.State() == core.Held:
	default:
		w.breaks("pause: %s was paused, and is %s", id, j.State())
	}
}

func (w *World) resumes(id string) {
	b := core.JobResumed{Job: id}
	refused := w.up && w.m.Refuses(w.event(b)) != nil // a limit refuses: the job stays paused
	if j, known := w.known(id); w.up && known && j.State().Over() {
		w.anew(id) // the job ended before it was paused, and starts again
	}
	if !w.step(b) {
		w.after(time.Minute, func() { w.resumes(id) })
		return
	}
	if refused {
		w.saw("not resumed, as a limit says")
		w.after(24*time.Hour, func() { w.insist(core.JobEnded{Job: id}) }) // its user cancels it
		return
	}
	w.altered[id] = w.now
	if j, _ := w.known(id); w.up && (j.State() == core.Paused || j.Pausing()) {
		w.breaks("pause: %s was resumed, and is %s", id, j.State())
	}
}

// changes makes the user change a job.
func (w *World) changes(b core.JobUpdated) {
	j, known := w.known(b.Job)
	if !w.up || !known || j.State().Over() || j.Ending() != "" && !j.Pausing() { // the server refuses it
		return
	}
	mine := w.job(b.Job)
	if b.Changes = raised(b.Changes, &mine.terms); b.Changes == (core.Changes{}) {
		return
	}
	asks := mine.asks
	if j.State() == core.Held && b.Changes.Budget != nil { // no limit of these lives requires approval; the submitter asked for it
		mine.asks = 0
	}
	refused := w.m.Refuses(w.event(b)) != nil // a limit refuses: the user learns it, and the job stays unchanged
	if !w.step(b) || refused {
		mine.asks = asks
		return
	}
	w.saw("updated")
	if mine.asks != asks {
		w.saw("an update needs no approval any more")
	}
	w.newTerms(b.Job, b.Changes)
}

// raised returns changes without limits below those of the terms: the job was resumed with more since they were drawn.
func raised(c core.Changes, t *core.Terms) core.Changes {
	if c.Budget != nil && t.HasBudget && c.Budget.Cmp(t.Budget) < 0 {
		c.Budget = nil
	}
	if c.WallClock != nil && *c.WallClock < t.WallClock {
		c.WallClock = nil
	}
	if c.GPUHours != nil && *c.GPUHours < t.GPUHours {
		c.GPUHours = nil
	}
	return c
}

// newTerms records the terms that the user wants from now on.
func (w *World) newTerms(id string, c core.Changes) {
	j := w.job(id)
	j.terms = c.Apply(j.terms)
}

// reopens makes the user resume an ended job, with more of the limit that it exhausted.
func (w *World) reopens(id string, rng *rand.Rand) {
	j, known := w.known(id)
	if !w.up || !known || !j.State().Over() || j.State() == core.Succeeded {
		return
	}
	b := core.JobResumed{Job: id, Changes: w.drawChanges(rng, w.job(id))}
	if j.Terms().HasBudget && j.Spent(w.now).Cmp(cmp.Or(deref(b.Changes.Budget), j.Terms().Budget)) >= 0 {
		b.Changes.Budget, b.Changes.NoBudget = nil, true
	}
	if w.m.Exhausted(j, b.Changes.Apply(*j.Terms())) != "" {
		return // as the server does
	}
	if rng.IntN(2) == 0 && w.job(id).asks > 0 {
		b.Asking = w.asking(*w.job(id))
	}
	wants := b.Changes
	if w.fault == FaultOldTerms {
		b.Changes = core.Changes{}
	}
	w.anew(id) // whatever the result, the job has ended
	if !w.rehydrates(b) {
		return // the server died
	}
	unapproved := j.Approval() != nil && !j.Approval().Approved
	refused := w.m.Refuses(w.event(b)) != nil
	if !w.step(b) || refused || unapproved && b.Asking == nil {
		return
	}
	w.saw("reopened")
	w.newTerms(id, wants)
	w.altered[id] = w.now
	delete(w.failed, id)
	w.after(72*time.Hour, func() { w.giveUp(id) })
}

func deref(a *money.Amount) money.Amount {
	if a == nil {
		return money.Amount{}
	}
	return *a
}

// reopened forgets the results of the job's earlier life.
func (t *twin) reopened(id string) {
	delete(t.seen, id)
	delete(t.retries, id)
	delete(t.setups, id)
	delete(t.refused, id)
}

// paused verifies that a paused job is not launched, and that its program saved before: its work is published.
func (t *twin) paused(out core.Outcome) {
	for _, a := range out.Actions {
		if l, ok := a.(core.Launch); ok {
			if j, _ := t.w.known(l.Job); j.State() == core.Paused {
				t.w.breaks("pause: %s is launched while it is paused", l.Job)
			}
		}
	}
	for _, f := range out.Facts {
		s, ok := f.(state.JobSuspended)
		if !ok {
			continue
		}
		j, _ := t.w.known(s.Job)
		a := j.Attempt()
		if a != nil && a.Live() && a.Task() == core.TaskRunning && !incomplete(a) {
			t.w.breaks("pause: the program of %s runs, and was not asked to save", a.ID())
		}
		if a == nil || !j.Terms().Saves || a.Lead().End() != "drained" || a.Live() && a.Releasing() && a.Over().IsZero() {
			continue
		}
		ag := t.w.agents[a.ID()]
		if ag == nil || ag.job.deaf || !ag.holds() || ag.began.IsZero() {
			continue
		}
		t.w.saw("paused with a checkpoint")
		if t.w.blobs[j.ID()] < ag.left {
			t.w.breaks("pause: %s was paused at step %d, its checkpoint holds %d", j.ID(), ag.left, t.w.blobs[j.ID()])
		}
	}
}

// anyPaused reports whether some job is paused.
func (w *World) anyPaused() bool {
	return slices.ContainsFunc(w.allJobs(), func(j *core.Job) bool { return j.State() == core.Paused })
}

// pause parses pause JOB, resume JOB [budget=$5] [deadline=9h] [wall_clock=3h] [priority=2], and update JOB with the
// same fields.
func (s *stage) pause(verb string, a *args) error {
	id := a.first()
	c, says := s.newTerms(a)
	s.line("user", "%ss %s%s", verb, id, says)
	switch verb {
	case "pause":
		s.w.insist(core.JobPaused{Job: id})
	case "resume":
		s.w.insist(core.JobResumed{Job: id, Changes: c})
	case "update":
		s.w.insist(core.JobUpdated{Job: id, Changes: c})
	}
	return nil
}

func (s *stage) newTerms(a *args) (c core.Changes, says string) {
	if text := a.text("budget", ""); text != "" {
		b := value(a, "budget", money.Amount{}, func(string) (money.Amount, error) { return money.Parse(text[1:]) })
		c.Budget, says = &b, says+" budget="+text
	}
	if d := a.span("deadline", 0); d > 0 {
		at := epoch.Add(d)
		c.Deadline, says = &at, says+" deadline="+d.String()
	}
	if d := a.span("wall_clock", 0); d > 0 {
		c.WallClock, says = &d, says+" wall_clock="+d.String()
	}
	if a.text("priority", "") != "" {
		p := int(a.count("priority", 1))
		c.Priority, says = &p, says+" priority="+a.text("priority", "")
	}
	return c, says
}
