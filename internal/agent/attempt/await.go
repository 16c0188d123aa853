package attempt

import (
	"context"
	"syscall"
	"time"

	"scrimp/internal/agent/program"
	"scrimp/internal/agent/save"
)

// await waits for the program to end, and signals it once something asks the attempt to end. It
// returns the stop that ended the program, or the one that ends everything at once.
func (g *Attempt) await(life context.Context, p *program.Program, sig syscall.Signal) (save.Ending, *stop) {
	w := ending{Attempt: g, p: p, sig: sig}
	done := p.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var tick <-chan time.Time
		if w.asked != nil || w.gone {
			timer.Reset(w.nextPoll(time.Now()))
			tick = timer.C
		}
		select {
		case <-life.Done():
			return w.known, w.asked
		case <-done:
			done = nil
			w.exited()
		case s := <-g.stops:
			g.announceStop(s)
			if s.at {
				return w.known, &s
			}
			if s.source != "" {
				g.awaitNoticeHeard(life)
			}
			w.stop(s)
		case <-tick:
		}
		if w.over() {
			asked := w.why() // why also updates w.known
			return w.known, asked
		}
	}
}

// ending tracks how far the end of a program has come.
type ending struct {
	*Attempt
	p         *program.Program
	sig       syscall.Signal // the signal that asks the program to save and end
	known     save.Ending
	asked     *stop
	when      plan
	signalled bool
	strays    bool  // processes outside the program's group were signalled too
	gone      bool  // the main process has ended; others of its group may still save
	late      *stop // the stop that arrived after the main process had ended
}

// why returns the stop that ended the program, or nil. A stop that arrives after the program has
// ended counts in a gang, where another rank may have heard it first, and for a program that died
// of SIGTERM, because the signal may have reached program and agent together.
func (w *ending) why() *stop {
	if w.asked == nil && w.late != nil && (w.Task.Nodes > 1 || byTerm(w.p.Exit())) {
		w.known.Heard = true
		return w.late
	}
	return w.asked
}

// exited records that the main process has ended.
func (w *ending) exited() {
	w.gone = true
	if w.asked == nil { // background processes get a moment to end
		w.when = plan{signal: time.Now(), kill: time.Now().Add(late)}
	}
}

// stop schedules the signal and the kill for s. If two stops arrive, the earlier times apply.
func (w *ending) stop(s stop) {
	next := w.plan(s)
	if w.asked != nil || w.gone {
		w.when = plan{signal: earlier(w.when.signal, next.signal), kill: earlier(w.when.kill, next.kill)}
	} else {
		w.asked, w.when = &s, next
	}
	if w.asked == nil {
		if w.late == nil || s.silent() {
			w.late = &s
		}
		return
	}
	fenced := w.asked.fenced || s.fenced
	if w.asked.source == "" && s.source != "" {
		w.asked = &s // a provider's notice outranks the other reasons
	}
	if fenced && !w.asked.fenced {
		asked := *w.asked
		asked.fenced = true
		w.asked = &asked
	}
}

// over performs the step that is due and reports whether there is nothing left to wait for.
func (w *ending) over() bool {
	now := time.Now()
	w.known.Ended = w.Now()
	switch {
	case w.gone && !w.p.Alive() && (!w.signalled || !w.signalStrays(now)):
		return true
	case w.asked == nil && !w.gone:
		return false
	case !now.Before(w.when.kill):
		w.known.Killed = w.asked != nil
		return true // Close kills
	case !w.signalled && !now.Before(w.when.signal):
		w.signalled = true
		if w.asked != nil {
			w.known.Asked = w.Now()
		}
		if err := w.p.Signal(w.sig); err != nil {
			w.Log.Error("signal the program to end", "error", err)
		}
	case w.signalled:
		w.signalStrays(now)
	}
	return false
}

// signalStrays signals processes that left the program's group, as a wrapper (timeout, setsid)
// makes its program do. It signals them at once if the wrapper has ended, otherwise after half of
// the grace. A live wrapper may forward the signal, as torchrun does, and a second signal could
// interrupt a save. signalStrays reports whether the program continues in such a process.
func (w *ending) signalStrays(now time.Time) bool {
	if w.asked == nil || !w.gone && (w.strays || now.Before(w.strayAt())) {
		return false
	}
	if !w.strays {
		w.strays = true
		if err := w.p.SignalStrays(w.sig); err != nil {
			w.Log.Error("signal processes outside the program's group", "error", err)
		}
	}
	return w.p.Strays()
}

// strayAt returns the time halfway between the signal and the kill.
func (w *ending) strayAt() time.Time { return w.when.signal.Add(w.when.kill.Sub(w.when.signal) / 2) }

// Poll intervals after the main process has ended: for the rest of its group, and for processes
// that left the group, which take longer to find.
const (
	groupPoll = 20 * time.Millisecond
	strayPoll = 100 * time.Millisecond
)

// nextPoll returns the time until the next scheduled step.
func (w *ending) nextPoll(now time.Time) time.Duration {
	next := w.when.kill.Sub(now)
	switch {
	case !w.signalled:
		next = min(next, w.when.signal.Sub(now))
	case !w.strays:
		next = min(next, w.strayAt().Sub(now))
	}
	switch {
	case w.gone && w.strays:
		next = min(next, strayPoll)
	case w.gone:
		next = min(next, groupPoll)
	}
	return max(0, next)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// plan returns when to signal and when to kill the program for s.
func (g *Attempt) plan(s stop) plan {
	now := time.Now()
	if s.source != "" {
		return planStop(now, now.Add(s.until.Sub(g.Now())), g.Task.SignalLead, g.saver.Expected())
	}
	return plan{signal: now, kill: now.Add(s.grace)}
}

// byTerm reports whether a program died of SIGTERM or exited with the matching status.
func byTerm(exit program.Exit) bool { return exit.Status == 128+int(syscall.SIGTERM) }

// awaitAgentStop handles a program that SIGTERM ended although the agent did not send it. It waits a
// moment for the agent to receive a stop too: a shutdown may signal all processes of a machine in
// any order.
func (g *Attempt) awaitAgentStop(life context.Context, exit program.Exit) *stop {
	if !byTerm(exit) {
		return nil
	}
	timer := time.NewTimer(g.Pace.Also)
	defer timer.Stop()
	select {
	case s := <-g.stops:
		g.announceStop(s)
		return &s
	case <-timer.C:
	case <-life.Done():
	}
	return nil
}
