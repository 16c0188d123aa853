package sim

import (
	"cmp"
	"fmt"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/policy"
)

// agent simulates a machine and its program. It restores, makes steps, saves, and stops on request or when the program
// is done. Like the real agent, it resends its messages in order until they are durable.
type agent struct {
	w        *World
	i        *instance
	attempt  string
	node     int // rank
	nodes    int // of the attempt; 0 means one
	job      *simJob
	epoch    int
	pace     float64 // steps an hour on this machine, with this variant of the work
	dead     bool    // the machine is terminated
	over     bool    // the program has ended
	began    time.Time
	from     int64 // step restored
	saved    int64 // published by this attempt
	seq      int64
	outbox   []core.Body
	sending  bool
	cut      bool          // its messages do not reach the server
	answered time.Time     // last time the server took a message
	ended    bool          // it has reported its end
	captured time.Time     // work up to here is published, or the start of the program
	interval time.Duration // between this save and the next
	before   time.Duration // between the last save and this one
	noticed  bool
	want     int64 // step at the notice
	left     int64 // step at which it was asked to stop
	failed   *failure
	apart    bool // other ranks have not started
	froze    bool // another rank is lost: it makes no step beyond stuck
	stuck    int64
	gpus     int    // of this agent's task
	deaf     bool   // the agent does not end its program when the server takes its seat away
	kept     string // path of its outputs

	since, gone time.Time // of its seat on the machine; gone is zero if it kept the seat to the end

	key      string // the machine's key
	up       time.Time
	mishap   string // fault of its registration; empty for none
	proposed bool   // the server has processed the registration, whatever the answer

	reported int64         // last step that it has reported
	values   policy.Values // all reported values of the metric that decides its job
	upTo     map[int64]int // number of values by message number
}

// boot starts the agent on a new instance.
func (w *World) boot(i *instance) {
	job := w.jobOf(i.key)
	if job == nil {
		return
	}
	a := &agent{w: w, i: i, attempt: i.key, job: job, since: i.from, pace: job.pace * cmp.Or(max(i.offer.Speed, 0), 1)}
	if _, err := fmt.Sscanf(i.key[len(job.id):], ".%d", &a.epoch); err != nil {
		return
	}
	if i.agent = a; w.gang == nil {
		w.agents[a.attempt] = a
	}
	a.gpus = i.offer.Accelerators
	if asked, ok := w.m.Allocation(i.key); ok && asked.Portion() != nil {
		a.gpus = len(asked.Portion().Devices)
	}
	if w.chance(w.faults.Silent) {
		w.saw("fault never boots × launch")
		return
	}
	boot := cmp.Or(job.boots[i.offer.Provider], job.boot)
	if asked, ok := w.m.Allocation(i.key); ok {
		boot += asked.Transfer() // its checkpoint comes from another region
	}
	w.after(boot, a.registers)
}

// jobOf returns the job that the attempt belongs to, or nil. Agents keep it, so nobody moves what lies in w.jobs.
func (w *World) jobOf(attempt string) *simJob {
	for n := range w.jobs {
		if id := w.jobs[n].id; len(attempt) > len(id) && attempt[:len(id)+1] == id+"." {
			return &w.jobs[n]
		}
	}
	return nil
}

// claim takes the task as soon as the server answers.
func (a *agent) claim() {
	w := a.w
	switch {
	case a.dead || a.over:
	case a.cut || !w.up:
		w.after(10*time.Second, a.claim)
	case !a.hasTask(): // another agent has it, or the server is terminating the machine
	case !w.step(core.AgentClaimed{Attempt: a.attempt, Node: a.node, By: a.key}) || !w.up:
		w.after(10*time.Second, a.claim)
	case a.hasTask():
		a.begin()
	}
}

func (a *agent) begin() {
	w, job := a.w, a.job
	a.checkImage()
	if a.node > 0 {
		a.began, a.answered = w.now, w.now
		a.say(func(n int64) core.Body {
			return core.AttemptStarted{Attempt: a.attempt, Node: a.node, Message: n, Took: time.Second}
		})
		a.report()
		a.together()
		return
	}
	w.claims[job.id] = max(w.claims[job.id], a.epoch)
	a.answered = w.now
	if f, ok := a.failure(); ok && f.setup {
		w.failed[job.id]++
		a.over, a.failed = true, &f
		a.end("setup", f.exit, 0, false)
		return
	}
	if live, ok := w.m.Attempt(a.attempt); ok && (live.Variant() != "" || job.terms.Need.Parallel > 0) {
		a.pace *= w.gain(a, live)
	}
	a.from = w.blobs[job.id]
	a.saved = a.from
	a.began, a.captured = w.now, w.now
	restored := ""
	if a.from > 0 {
		restored = fmt.Sprintf("m-%d", a.from)
	}
	a.say(func(n int64) core.Body {
		return core.AttemptStarted{Attempt: a.attempt, Message: n, Restored: restored, Step: a.from, Took: time.Second}
	})
	a.report()
	if a.apart = a.nodes > 1; a.apart {
		a.together()
		return
	}
	a.works()
}

// works makes steps and saves checkpoints.
func (a *agent) works() {
	if a.job.terms.Saves {
		a.saves()
	}
	a.reach()
}

// failure returns the next failure of the program.
func (a *agent) failure() (failure, bool) {
	if n := a.w.failed[a.job.id]; n < len(a.job.fails) {
		return a.job.fails[n], true
	}
	return failure{}, false
}

// limit returns the next step at which the program ends, fails or hangs.
func (a *agent) limit() int64 {
	limit := a.job.steps
	if f, ok := a.failure(); ok {
		limit = min(limit, f.step)
	}
	if a.job.hangs > 0 {
		limit = min(limit, a.job.hangs)
	}
	return max(limit, a.from)
}

// step returns the step that the program has reached by now.
func (a *agent) step() int64 {
	switch {
	case a.began.IsZero() || a.apart || a.node > 0:
		return a.from
	case a.froze:
		return a.stuck
	}
	return min(a.limit(), a.job.rhythm.step(a.from, a.w.now.Sub(a.began), a.pace))
}

// reach waits until the program reaches its limit and then ends it, fails it or leaves it hanging.
func (a *agent) reach() {
	left := a.job.rhythm.takes(a.from, a.limit(), a.pace) - a.w.now.Sub(a.began)
	a.w.after(max(0, left)+time.Millisecond, func() {
		switch step := a.step(); {
		case a.dead || a.over || a.froze:
		case step < a.limit(): // the machine slept meanwhile
			a.reach()
		case step >= a.job.steps:
			a.complete()
		default:
			if f, ok := a.failure(); ok && step >= f.step {
				a.w.failed[a.job.id]++
				a.w.saw("program fails")
				a.over, a.failed = true, &f
				a.end("failed", f.exit, step, false)
			}
		}
	})
}

// end reports how the program ended, after storing its outputs.
func (a *agent) end(reason string, exit int, step int64, saved bool) {
	outputs, text := "", ""
	if a.job.outputs && a.node == 0 && a.holds() && (!a.began.IsZero() || reason == "setup") {
		outputs = "outputs/" + a.attempt
		a.w.outputs[a.job.id], a.kept = outputs, outputs
		if a.w.fault == FaultNoOutputs {
			outputs = ""
		}
	}
	if reason == "failed" && a.job.secret != "" { // its last output names the secret
		a.w.saw("secret in the last words")
		text = "login with TOKEN=*** failed"
		if a.w.fault == FaultNoMask {
			text = "login with TOKEN=" + a.job.secret + " failed"
		}
	}
	if reason == "failed" && a.w.fault == FaultRetryAll {
		exit = 75
	}
	status := 0
	if reason == "setup" {
		status = exit
	}
	a.say(func(n int64) core.Body {
		return core.AttemptEnded{Attempt: a.attempt, Node: a.node, Message: n, Reason: reason, Exit: exit, Step: step,
			Saved: saved, Outputs: outputs, OutputsDigest: digestOf(outputs), Error: text, SetupStatus: status}
	})
}

// holds reports whether no later attempt has claimed the task.
func (a *agent) holds() bool {
	return a.epoch >= a.w.claims[a.job.id] || a.w.fault == FaultNoFence
}

// say queues a message. Messages go out in order, each repeated until it is durable.
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
		if len(a.outbox) == 0 {
			return
		}
		b := a.outbox[0]
		if a.cut || !a.w.step(b) {
			a.away()
			a.sending = true
			a.w.after(10*time.Second, func() { a.sending = false; a.send() })
			return
		}
		if a.dead {
			a.w.saw("word of a dead machine")
		}
		a.answered = a.w.now
		a.echo(b)
		if _, last := b.(core.AttemptEnded); last {
			a.ended = true
			a.rests()
		}
		a.outbox = a.outbox[1:]
		a.send()
	})
}

// away saves and switches the machine off if the server has been unreachable for too long.
func (a *agent) away() {
	if a.dead || a.w.leave == 0 || a.w.now.Sub(a.answered) < a.w.leave {
		return
	}
	if a.over || a.began.IsZero() {
		a.off()
		return
	}
	a.over = true
	if a.node > 0 {
		a.off()
		return
	}
	a.save(a.step(), a.off)
}

func (a *agent) report() {
	if a.dead || a.over {
		return
	}
	if s := a.step(); s > a.from {
		said := a.speaks(s)
		a.say(func(n int64) core.Body { return a.progressed(n, s, said) })
	}
	if a.job.terms.IdleLimit > 0 || a.w.chance(0.05) {
		used, lead := core.UsageSeen{Attempt: a.attempt, Node: a.node, CPU: 1}, a.w.agents[a.attempt]
		hangs := a.job.hangs > 0 && lead != nil && lead.step() >= a.job.hangs && a.w.fault != FaultBusy
		switch gpus := a.gpus > 0; {
		case gpus && hangs: // its processors spin in a wait loop
			used.GPU = new(0.0)
		case gpus:
			used.GPU = new(1.0)
		case hangs:
			used.CPU = 0
		}
		a.say(func(n int64) core.Body { used.Message = n; return used })
	}
	a.w.after(a.nextReport(), a.report)
}

// nextReport is the time until the next report. A program that reports rarely reports its first step when that is done:
// otherwise the core would take the wait for the report for a slow start.
func (a *agent) nextReport() time.Duration {
	usual := a.job.rhythm.reports()
	if usual <= reportEvery || a.began.IsZero() || a.node > 0 || a.step() > a.from {
		return usual
	}
	first := a.job.rhythm.takes(a.from, a.from+1, a.pace) - a.w.now.Sub(a.began) + time.Millisecond
	return max(reportEvery, min(usual, first))
}

// reportEvery is the usual time between two progress reports.
const reportEvery = 90 * time.Second

func (a *agent) saves() {
	interval := 20 * time.Minute
	if a.w.up {
		if j, ok := a.w.m.Job(a.job.id); ok {
			if d := a.w.m.Interval(j); d > 0 {
				interval = max(d, time.Minute)
			}
		}
	}
	interval = max(interval, a.job.rhythm.saved)
	a.before, a.interval = a.interval, interval
	a.w.after(interval, func() {
		if a.dead || a.over {
			return
		}
		a.save(a.step(), nil)
		a.saves()
	})
}

// save publishes the current state after the job's save time and then calls done.
func (a *agent) save(step int64, done func()) {
	captured := a.w.now
	a.w.after(a.job.save, func() {
		if a.dead {
			a.w.saw("fault killed while saving")
			return
		}
		if !a.job.terms.Saves {
			step = 0
		}
		switch {
		case !a.holds():
			a.w.saw("fenced out")
			if a.w.note != nil {
				a.w.note("fenced", fmt.Sprintf("%s may not publish step %d", a.attempt, step))
			}
		case step > a.saved && (step > a.w.blobs[a.job.id] || a.epoch < a.w.claims[a.job.id]):
			a.saved, a.w.blobs[a.job.id], a.w.saver[a.job.id] = step, step, a.epoch
			a.captured = captured
			if a.epoch < a.w.claims[a.job.id] {
				a.w.breaks("fence: %s published step %d after a later attempt had begun", a.attempt, step)
			}
			a.say(func(n int64) core.Body {
				return core.CheckpointSaved{Attempt: a.attempt, Message: n, Manifest: fmt.Sprintf("m-%d", step), Step: step,
					Bytes: 1000, Uploaded: 500, Captured: captured, Took: a.job.save}
			})
		}
		if done != nil {
			done()
		}
	})
}
