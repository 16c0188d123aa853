package attempt

import (
	"context"
	"syscall"
	"time"

	"scrimp/internal/agent/program"
	"scrimp/internal/agent/save"
)

// await waits for the program's end, and asks for it when something says so.
// It returns the stop that the program was asked with, or that ends everything at once.
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
			g.tellStop(s)
			if s.at {
				return w.known, &s
			}
			if s.source != "" {
				g.letServerKnow(life)
			}
			w.stop(s)
		case <-tick:
		}
		if w.over() {
			asked := w.why() // it adds to what is known
			return w.known, asked
		}
	}
}

// ending is how far the end of a program has come.
type ending struct {
	*Attempt
	p         *program.Program
	sig       syscall.Signal // that asks it to save and end
	known     save.Ending
	asked     *stop
	when      plan
	signalled bool
	strays    bool  // what left the program's group was signalled too
	gone      bool  // the main process; others of its group may still save
	late      *stop // that came when it was gone
}

// why is what asked the program to end. One of a gang may have gone because of what is heard
// only then: another rank's program knew; so may one that was signalled when its agent was.
func (w *ending) why() *stop {
	if w.asked == nil && w.late != nil && (w.Task.Nodes > 1 || byTerm(w.p.Exit())) {
		w.known.Heard = true
		return w.late
	}
	return w.asked
}

// exited notes that the main process has ended.
func (w *ending) exited() {
	w.gone = true
	if w.asked == nil { // what it left running in the background gets a moment
		w.when = plan{signal: time.Now(), kill: time.Now().Add(late)}
	}
}

// stop plans the end that is asked for; the earlier one holds of two.
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
		w.asked = &s // the provider's word is the stronger one
	}
	if fenced && !w.asked.fenced {
		asked := *w.asked
		asked.fenced = true
		w.asked = &asked
	}
}

// over does what is due, and reports whether nothing is left to wait for.
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
			w.Log.Error("ask the program to end", "error", err)
		}
	case w.signalled:
		w.signalStrays(now)
	}
	return false
}

// signalStrays asks what has left the program's group to end, as a wrapper (timeout, setsid) makes its program leave
// it: at once where the wrapper is gone, else when half of the grace is over. A wrapper that lives may hand the signal
// on, as torchrun does, and a second one could break off a save. It reports whether the program goes on in such a
// process.
func (w *ending) signalStrays(now time.Time) bool {
	if w.asked == nil || !w.gone && (w.strays || now.Before(w.strayAt())) {
		return false
	}
	if !w.strays {
		w.strays = true
		if err := w.p.SignalStrays(w.sig); err != nil {
			w.Log.Error("ask what has left the program's group to end", "error", err)
		}
	}
	return w.p.Strays()
}

// strayAt is when half of the time between the signal and the kill is over.
func (w *ending) strayAt() time.Time { return w.when.signal.Add(w.when.kill.Sub(w.when.signal) / 2) }

// How often a group is polled whose main process has ended, and what has left it, which takes longer.
const (
	groupPoll = 20 * time.Millisecond
	strayPoll = 100 * time.Millisecond
)

// nextPoll says how long to wait for the next thing that is planned.
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

// plan says when to signal and to kill for this reason to stop.
func (g *Attempt) plan(s stop) plan {
	now := time.Now()
	if s.source != "" {
		return planStop(now, now.Add(s.until.Sub(g.Now())), g.Task.SignalLead, g.saver.Expected())
	}
	return plan{signal: now, kill: now.Add(s.grace)}
}

// byTerm reports whether a program ended of SIGTERM, or says so.
func byTerm(exit program.Exit) bool { return exit.Status == 128+int(syscall.SIGTERM) }

// alsoTold waits a moment, where a program ended by SIGTERM unasked, for the agent to be told to end too: what ends a
// machine may signal all that runs there, in any order.
func (g *Attempt) alsoTold(life context.Context, exit program.Exit) *stop {
	if !byTerm(exit) {
		return nil
	}
	timer := time.NewTimer(g.Pace.Also)
	defer timer.Stop()
	select {
	case s := <-g.stops:
		g.tellStop(s)
		return &s
	case <-timer.C:
	case <-life.Done():
	}
	return nil
}
