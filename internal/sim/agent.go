package sim

import (
	"fmt"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/market"
)

// agent is a simulated machine with its program: it restores, makes steps,
// saves, and leaves when told or when the program is done. Its messages are
// sent again until they are durable, in order, as the real agent does.
type agent struct {
	w        *World
	i        *instance
	job      *simJob
	dead     bool // the machine is gone
	over     bool // the program has ended
	began    time.Time
	from     int64 // step restored
	saved    int64 // published by this attempt
	seq      int64
	outbox   []core.Body
	sending  bool
	ended    bool          // it has said so
	captured time.Time     // work up to here is published, or the program's begin
	interval time.Duration // between this save and the next
	before   time.Duration // between the last save and this one
	noticed  bool
	want     int64 // step at the notice
}

// boot starts the agent on a new instance.
func (w *World) boot(i *instance) {
	var job *simJob
	for n := range w.jobs {
		if id := w.jobs[n].id; len(i.key) > len(id) && i.key[:len(id)+1] == id+"." {
			job = &w.jobs[n]
		}
	}
	if job == nil {
		return
	}
	a := &agent{w: w, i: i, job: job}
	i.agent = a
	if w.chance(w.faults.Silent) {
		w.saw("fault never boots × launch")
		return
	}
	w.after(job.boot, func() {
		if a.dead {
			return
		}
		a.from = w.blobs[job.id]
		a.saved = a.from
		a.began, a.captured = w.now, w.now
		restored := ""
		if a.from > 0 {
			restored = fmt.Sprintf("m-%d", a.from)
		}
		w.step(core.AgentClaimed{Attempt: i.key})
		a.say(func(n int64) core.Body {
			return core.AttemptStarted{Attempt: i.key, Message: n, Restored: restored, Step: a.from, Took: time.Second}
		})
		a.report()
		a.saves()
		left := float64(job.steps-a.from) / job.pace
		w.after(time.Duration(left*float64(time.Hour))+time.Millisecond, func() { a.complete() })
	})
}

// step is what the program has reached by now.
func (a *agent) step() int64 {
	if a.began.IsZero() {
		return a.from
	}
	return min(a.job.steps, a.from+int64(a.w.now.Sub(a.began).Hours()*a.job.pace))
}

// say queues a message; messages go out in order until each is durable.
func (a *agent) say(body func(n int64) core.Body) {
	a.seq++
	a.outbox = append(a.outbox, body(a.seq))
	a.send()
}

func (a *agent) send() {
	if a.sending || len(a.outbox) == 0 || a.dead {
		return
	}
	a.sending = true
	a.w.after(500*time.Millisecond, func() {
		a.sending = false
		if a.dead || len(a.outbox) == 0 {
			return
		}
		if !a.w.step(a.outbox[0]) {
			a.sending = true
			a.w.after(10*time.Second, func() { a.sending = false; a.send() })
			return
		}
		if a.w.chance(a.w.faults.Twice) || a.w.plant == PlantTwiceHeard {
			a.w.saw("fault twice × message")
			b := a.outbox[0]
			if a.w.plant == PlantTwiceHeard {
				b = anew(b)
			}
			a.w.step(b)
		}
		if _, last := a.outbox[0].(core.AttemptEnded); last {
			a.ended = true
		}
		a.outbox = a.outbox[1:]
		a.send()
	})
}

// anew makes a message look like one that was not heard.
func anew(b core.Body) core.Body {
	if s, ok := b.(core.CheckpointSaved); ok {
		s.Message += 1000
		s.Step += 50
		return s
	}
	return b
}

func (a *agent) report() {
	if a.dead || a.over {
		return
	}
	if s := a.step(); s > a.from {
		loss := 5.0 - 4.0*float64(s)/float64(a.job.steps)
		a.say(func(n int64) core.Body {
			return core.Progressed{Attempt: a.i.key, Message: n, Step: s, Total: a.job.steps, Metrics: map[string]float64{"loss": loss}}
		})
		if a.w.chance(0.05) {
			a.say(func(n int64) core.Body { return core.UsageSeen{Attempt: a.i.key, Message: n, CPU: 1} })
		}
	}
	a.w.after(90*time.Second, a.report)
}

func (a *agent) saves() {
	interval := 20 * time.Minute
	if a.w.up {
		if j, ok := a.w.m.Job(a.job.id); ok && j.Interval > 0 {
			interval = max(j.Interval, time.Minute)
		}
	}
	a.before, a.interval = a.interval, interval
	a.w.after(interval, func() {
		if a.dead || a.over {
			return
		}
		a.save(a.step(), nil)
		a.saves()
	})
}

// save publishes the state of now after the time that it takes, then calls done.
func (a *agent) save(step int64, done func()) {
	captured := a.w.now
	a.w.after(a.job.save, func() {
		if a.dead {
			a.w.saw("fault killed while saving")
			return
		}
		if step > a.saved && step > a.w.blobs[a.job.id] {
			a.saved, a.w.blobs[a.job.id] = step, step
			a.captured = captured
			a.say(func(n int64) core.Body {
				return core.CheckpointSaved{Attempt: a.i.key, Message: n, Manifest: fmt.Sprintf("m-%d", step), Step: step, Bytes: 1000, Uploaded: 500, Captured: captured, Took: a.job.save}
			})
		}
		if done != nil {
			done()
		}
	})
}

func (a *agent) complete() {
	if a.dead || a.over {
		return
	}
	a.over = true
	a.save(a.job.steps, func() {
		a.say(func(n int64) core.Body {
			return core.AttemptEnded{Attempt: a.i.key, Message: n, Reason: "completed", Step: a.job.steps, Saved: true}
		})
	})
}

// drain ends the program, saves, and says so.
func (a *agent) drain(reason string) {
	if a.dead || a.over {
		return
	}
	if a.began.IsZero() {
		a.over = true
		a.say(func(n int64) core.Body {
			return core.AttemptEnded{Attempt: a.i.key, Message: n, Reason: reason, Exit: 143}
		})
		return
	}
	step := a.step()
	a.over = true
	a.save(step, func() {
		a.say(func(n int64) core.Body {
			return core.AttemptEnded{Attempt: a.i.key, Message: n, Reason: reason, Exit: 143, Step: step, Saved: true}
		})
	})
}

// notice tells the agent that its machine goes away in d.
func (a *agent) notice(d time.Duration) {
	if a.dead || d == 0 {
		return
	}
	a.w.saw("notice")
	a.want, a.noticed = a.step(), !a.over && !a.began.IsZero()
	if a.w.plant == PlantDeaf {
		return
	}
	until := a.w.now.Add(d)
	a.say(func(n int64) core.Body {
		return core.NoticeGiven{Attempt: a.i.key, Message: n, Source: "sim", Until: until}
	})
	a.drain("drained")
}

// turn opens or closes a zone and lets its machines go.
func (w *World) turn(z *zone) {
	if z.open {
		z.notice = 0
		switch {
		case w.calm:
			z.notice = z.offer.Notice
		case w.chance(0.6):
			z.notice = 2 * time.Minute
		}
		for _, i := range w.order {
			if i.running() && i.offer.ID == z.spot && i.agent != nil {
				i.agent.notice(z.notice)
			}
		}
		w.after(z.notice, func() {
			z.open = false
			for _, i := range w.order {
				if i.running() && i.offer.ID == z.spot {
					i.notice = z.notice
					w.lost(i)
				}
			}
			w.quotes()
			w.after(w.spanOf(z, 40), func() { w.turn(z) })
		})
		return
	}
	z.open = true
	switch {
	case w.calm:
	case w.chance(0.5):
		z.rate = z.rate * 11 / 10
	default:
		z.rate = z.rate * 10 / 11
	}
	for _, i := range w.order {
		if i.running() && i.offer.ID == z.spot {
			i.segments = append(i.segments, market.Segment{From: w.now, Rate: z.rate})
		}
	}
	w.quotes()
	w.after(w.spanOf(z, 90), func() { w.turn(z) })
}

// lost takes a machine and checks the promise on work: none is lost after a
// notice that is long enough for the save, else at most one checkpoint interval.
func (w *World) lost(i *instance) {
	a := i.agent
	w.saw("interruption")
	switch {
	case a == nil || a.began.IsZero() || a.ended:
	case i.notice >= a.job.save+time.Second && a.noticed:
		if a.saved < a.want {
			w.breaks("work: %s had %v notice and a save takes %v, yet step %d was lost after %d", i.id, i.notice, a.job.save, a.want, a.saved)
		}
	case !a.over:
		if gap := w.now.Sub(a.captured); gap > max(a.before, a.interval)+2*a.job.save+time.Second {
			w.breaks("work: %s lost %v of work, the interval was %v", i.id, gap, a.interval)
		}
	}
	w.end(i, "interrupted")
	w.after(2*time.Second, func() { w.endTold(i) })
}

// spanOf draws how long the zone stays as it is.
func (w *World) spanOf(z *zone, median float64) time.Duration {
	if w.calm {
		return w.exponential(z.up, z.down, z.open)
	}
	return w.span(median)
}

func (w *World) exponential(up, down time.Duration, open bool) time.Duration {
	mean := down
	if open {
		mean = up
	}
	return time.Duration(w.rng.ExpFloat64()*float64(mean)) + time.Second
}

// span draws a heavy-tailed span with that median in minutes.
func (w *World) span(median float64) time.Duration {
	u := max(1e-3, w.rng.Float64())
	m := median * (1/u - 0.6) // Pareto-like
	return time.Duration(min(m, 1440) * float64(time.Minute))
}
