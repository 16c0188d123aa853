package control

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"scrimp/internal/decide/core"
)

const (
	stepLimit = 10 * time.Second // of its thread's processor time a step may use
	longStep  = time.Second      // then it is reported
	lookEvery = 200 * time.Millisecond
)

// stepping is what is known of the step on its way, so that one that does not end is seen. What counts is the processor
// time of its thread: on a host that is overloaded, or was stopped, any step takes long.
type stepping struct {
	mu      sync.Mutex
	request *request                 // that steps are taken of; nil: none is
	event   *core.Event              // of the step; nil: events are let in
	working atomic.Pointer[core.Job] // that the step works on by itself; nil: none
	thread  thread
	began   time.Time
	used    time.Duration // by the thread, before
	said    bool          // that it takes long
	steps   chan struct{} // a step has begun
}

// begin notes that a step begins. The goroutine keeps its thread until end.
func (w *stepping) begin(r *request, e *core.Event) {
	runtime.LockOSThread()
	t := thisThread()
	used, _ := t.used()
	w.working.Store(nil)
	w.mu.Lock()
	w.request, w.event, w.thread, w.began, w.used, w.said = r, e, t, time.Now(), used, false
	w.mu.Unlock()
	select {
	case w.steps <- struct{}{}:
	default:
	}
}

// end is called after begin, and may be again.
func (w *stepping) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.request != nil {
		w.request, w.event = nil, nil
		runtime.UnlockOSThread()
	}
}

// job is what the step works on by itself, or the last one did; "": nothing.
func (w *stepping) job() string {
	if j := w.working.Load(); j != nil {
		return j.ID()
	}
	return ""
}

func (c *Control) onWork(j *core.Job) {
	c.stepping.working.Store(j)
	if c.cfg.OnWork != nil {
		c.cfg.OnWork(j.ID())
	}
}

// A look is what the watch saw of a step.
type look struct {
	on      bool // there is one
	lasts   time.Duration
	used    time.Duration // of its thread's processor time; 0 where the system does not say
	report  bool          // it takes long, and nobody has said so yet
	request *request
	event   *core.Event
	working string
}

func (w *stepping) look() (l look) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.request == nil {
		return l
	}
	l = look{on: true, lasts: time.Since(w.began), request: w.request, event: w.event, working: w.job()}
	if used, ok := w.thread.used(); ok {
		l.used = used - w.used
	}
	l.report = l.lasts >= longStep && !w.said
	w.said = w.said || l.report
	return l
}

// watchSteps reports steps that take long, and ends the process where one does not end.
func (c *Control) watchSteps(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.stepping.steps:
		}
		for l := c.stepping.look(); l.on; l = c.stepping.look() {
			kind := ""
			if l.event != nil {
				kind = l.event.Body.Kind()
			}
			if l.report {
				c.cfg.Log.Warn("a step takes long", "event", kind, "job", l.working, "for", l.lasts, "processor", l.used,
					"stack", stepStack())
			}
			if l.used >= c.cfg.StepLimit {
				a, _ := c.blame(l.request, &failure{event: l.event, working: l.working,
					cause: "it did not end within " + c.cfg.StepLimit.String() + " of processor time"})
				c.die(ctx, a, errors.New("a step does not end"))
				return
			}
			sleep(ctx, lookEvery)
			if ctx.Err() != nil {
				return
			}
		}
	}
}

// stepStack is where the step is.
func stepStack() string {
	all := make([]byte, 4<<20)
	for one := range bytes.SplitSeq(all[:runtime.Stack(all, true)], []byte("\n\n")) {
		if bytes.Contains(one, []byte("control.(*Control).try(")) {
			return string(one)
		}
	}
	return ""
}

// Busy says for how long the core has been at one step.
func (c *Control) Busy() time.Duration { return c.stepping.look().lasts }
