// Package stop ends a program: it decides when to signal and when to kill it, and waits until it has ended.
package stop

import (
	"context"
	"log/slog"
	"syscall"
	"time"

	"scrimp/internal/agent/program"
	"scrimp/internal/agent/save"
)

// Request asks to end the program.
type Request struct {
	Why      string
	Source   string        // of a notice: aws, gcp, azure or signal; otherwise empty
	Until    time.Time     // when the machine is terminated; set with Source
	Grace    time.Duration // time between signal and kill; set without Source
	AtOnce   bool          // kill at once and publish nothing
	Fenced   bool          // another attempt has the task: publish nothing; with AtOnce, the machine takes no other task
	Farewell time.Duration // limit for the last report; 0: the usual one
}

// Silent reports whether the agent neither reports nor keeps anything after this request.
func (r *Request) Silent() bool { return r != nil && (r.AtOnce || r.Fenced) }

// Run describes a running program and what may end it.
type Run struct {
	Program  *program.Program
	Signal   syscall.Signal       // asks the program to save and end
	Lead     time.Duration        // how long before the machine's end the program wants the signal; 0: at once
	Gang     bool                 // other machines run the same attempt
	Upload   func() time.Duration // returns how long the last upload will take
	Requests <-chan Request
	// Announce is called with each request before it is carried out.
	Announce func(context.Context, Request)
	Now      func() time.Time
	Log      *slog.Logger
}

// Await waits for the program to end, and signals it once a request arrives. It returns the request that ended the
// program, or the one that ends everything at once.
func (r Run) Await(life context.Context) (save.Ending, *Request) {
	w := ending{Run: r}
	done := r.Program.Done()
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
		case q := <-r.Requests:
			r.Announce(life, q)
			if q.AtOnce {
				return w.known, &q
			}
			w.stop(q)
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
	Run
	known     save.Ending
	asked     *Request
	when      plan
	signalled bool
	strays    bool     // processes outside the program's group were signalled too
	gone      bool     // the main process has ended; others of its group may still save
	late      *Request // the stop that arrived after the main process had ended
}

// why returns the stop that ended the program, or nil. A stop that arrives after the program has
// ended counts in a gang, where another rank may have heard it first, and for a program that died
// of SIGTERM, because the signal may have reached program and agent together.
func (w *ending) why() *Request {
	if w.asked == nil && w.late != nil && (w.Gang || ByTerm(w.Program.Exit())) {
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
func (w *ending) stop(s Request) {
	next := w.plan(s)
	if w.asked != nil || w.gone {
		w.when = plan{signal: earlier(w.when.signal, next.signal), kill: earlier(w.when.kill, next.kill)}
	} else {
		w.asked, w.when = &s, next
	}
	if w.asked == nil {
		if w.late == nil || s.Silent() {
			w.late = &s
		}
		return
	}
	fenced := w.asked.Fenced || s.Fenced
	if w.asked.Source == "" && s.Source != "" {
		w.asked = &s // a provider's notice outranks the other reasons
	}
	if fenced && !w.asked.Fenced {
		asked := *w.asked
		asked.Fenced = true
		w.asked = &asked
	}
}

// over performs the step that is due and reports whether there is nothing left to wait for.
func (w *ending) over() bool {
	now := time.Now()
	w.known.Ended = w.Now()
	switch {
	case w.gone && !w.Program.Alive() && (!w.signalled || !w.signalStrays(now)):
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
		if err := w.Program.Signal(w.Signal); err != nil {
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
		if err := w.Program.SignalStrays(w.Signal); err != nil {
			w.Log.Error("signal processes outside the program's group", "error", err)
		}
	}
	return w.Program.Strays()
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
func (w *ending) plan(s Request) plan {
	now := time.Now()
	if s.Source != "" {
		return planStop(now, now.Add(s.Until.Sub(w.Now())), w.Lead, w.Upload())
	}
	return plan{signal: now, kill: now.Add(s.Grace)}
}

// ByTerm reports whether a program died of SIGTERM or exited with the matching status.
func ByTerm(exit program.Exit) bool { return exit.Status == 128+int(syscall.SIGTERM) }
