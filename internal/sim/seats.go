package sim

import (
	"cmp"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
)

// seats returns how many tasks a machine of this life may run at once; 0 means one.
func (w *World) seats() int {
	if !w.warm() || w.seed%2 == 0 {
		return 0
	}
	return 2 + int(w.seed/3%3)
}

// all returns the agents of the machine's current or last tasks.
func (i *instance) all() []*agent {
	if i.agent == nil {
		return nil
	}
	return append([]*agent{i.agent}, i.beside...)
}

// noticed warns all agents that the machine will be interrupted in d. The core learns it with its next poll.
func (w *World) noticed(i *instance, d time.Duration) {
	if d > 0 {
		i.announced = true
		w.announce(i, w.now.Add(d))
	}
	for _, a := range i.all() {
		a.notice(d)
	}
}

// announce reports a coming interruption to the core until the event is durable or the machine has ended.
func (w *World) announce(i *instance, at time.Time) {
	w.after(time.Second, func() {
		if !i.running() || !w.answers(&i.offer, func() { w.announce(i, at) }) {
			return
		}
		if !w.step(core.InterruptionAnnounced{Instance: i.id, At: at}) {
			w.announce(i, at)
		}
	})
}

// kills ends all programs on the machine.
func (i *instance) kills() {
	for _, a := range i.all() {
		a.dead = true
	}
}

// pullsOn makes a machine with several seats poll for more tasks while one runs, as the real agent does, until the
// machine ends.
func (w *World) pullsOn(i *instance) {
	if w.seats() == 0 {
		return
	}
	w.after(time.Duration(1+w.extra.IntN(40))*time.Second, func() {
		if !i.running() {
			return
		}
		if w.up && !i.agent.cut {
			w.pulled(i)
		}
		w.pullsOn(i)
	})
}

// pulled ends the tasks that lost their seats and starts the new ones.
func (w *World) pulled(i *instance) {
	known := w.m.State().Instance(i.id)
	if known == nil || !w.m.Stays(known) {
		return
	}
	for _, t := range w.m.State().Leaving() {
		if t.Instance() == i.id {
			w.evicts(t.Attempt().ID(), t.Rank())
			return
		}
	}
	_, idle := known.Idle()
	if idle && !i.pulls && i.agent.mayRest() {
		i.agent.cleans()
		return
	}
	if idle || i.pulls { // pull does it
		return
	}
	for _, t := range w.m.Tasks(known) {
		if w.agents[t.Attempt().ID()] == nil {
			w.joins(i, known, t.Attempt())
			return
		}
	}
}

// evicts ends a task that lost its seat, and reports it.
func (w *World) evicts(attempt string, node int) {
	a := w.agents[rankName(attempt, node)]
	switch {
	case a == nil: // the task never started
	case a.deaf:
		return
	case a.over && a.sending && !a.dead: // an agent reports the end of a program before it leaves the seat
		return
	case !a.dead && w.later(0.1):
		w.saw("fault never ends × seat")
		a.deaf = true
		return
	default:
		a.dead, a.gone = true, cmp.Or(a.gone, w.now.Add(w.skew))
	}
	if !w.step(core.TaskGone{Attempt: attempt, Node: node}) || !w.up {
		return
	}
	w.saw("a seat is left")
}

// joins starts a task beside others.
func (w *World) joins(i *instance, known *state.Instance, t *core.Attempt) {
	job := w.jobOf(t.ID())
	if job == nil {
		return
	}
	w.checkSeats(i, known)
	for _, other := range w.m.State().SeatedAll(known) {
		if with := w.jobOf(other.Job() + ".1"); with != nil && w.userOf(with) != w.userOf(job) {
			w.breaks("seats: %s of %q begins on %s beside %s of %q", t.ID(), w.userOf(job), i.id, other.ID(), w.userOf(with))
		}
	}
	b := &agent{w: w, i: i, attempt: t.ID(), job: job, epoch: t.Epoch(), since: t.From(), key: i.agent.key, up: i.agent.up,
		pace: job.pace * cmp.Or(max(i.offer.Speed, 0), 1)}
	if len(known.Seats()) > 1 {
		w.saw("a machine has several tasks")
	}
	i.beside, w.agents[b.attempt] = append(i.beside, b), b
	b.answered, b.gpus = w.now, t.GPUs()
	w.tell("%s begins on %s, beside others", b.attempt, i.id)
	w.after(time.Second, b.claim)
}

// checkSeats verifies that the parts in use do not exceed the machine.
func (w *World) checkSeats(i *instance, known *state.Instance) {
	cpus, devices := 0, map[int]string{}
	for _, s := range known.Seats() {
		if s.Portion == nil {
			if len(known.Seats()) > 1 {
				w.breaks("seats: %s has all of %s, and others have parts", s.Attempt, i.id)
			}
			continue
		}
		cpus += s.Portion.CPUs
		for _, d := range s.Portion.Devices {
			if other, taken := devices[d]; taken || d >= i.offer.Accelerators {
				w.breaks("seats: accelerator %d of %s is %s's and %q's", d, i.id, s.Attempt, other)
			}
			devices[d] = s.Attempt
		}
	}
	if cpus > i.offer.CPUs || len(known.Seats()) > max(1, w.seats()) {
		w.breaks("seats: %d tasks have %d of the %d processors of %s", len(known.Seats()), cpus, i.offer.CPUs, i.id)
	}
}

// gain is how many times as fast as on its least resources the job's own way an attempt works on what it has of its
// machine, at the offer's speed.
func (w *World) gain(a *agent, live *core.Attempt) float64 {
	need, units := &a.job.terms.Need, 0
	asks := need.RequirementsOf(live.Variant())
	switch p := live.Portion(); {
	case p != nil && asks.Accelerator != "":
		units = len(p.Devices)
	case p != nil:
		units = p.CPUs
	}
	return need.SpeedOn(&a.i.offer, live.Variant(), units) / cmp.Or(max(a.i.offer.Speed, 0), 1)
}
