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
	stepLimit = 10 * time.Second // processor time that a step's thread may use
	longStep  = time.Second      // a step that takes longer is logged
	lookEvery = 200 * time.Millisecond
)

// stepping tracks the running step, so that a step that does not end is detected. It counts the processor time of the
// step's thread, because any step takes long on a host that is overloaded or was suspended.
type stepping struct {
	mu      sync.Mutex
	request *request                 // whose events are being stepped; nil: none
	event   *core.Event              // of the step; nil: the core is admitting events
	working atomic.Pointer[core.Job] // that the step works on; nil: none
	thread  thread
	began   time.Time
	used    time.Duration // processor time of the thread before the step
	said    bool          // the long step has been logged
	steps   chan struct{} // signals the start of a step
}

// begin marks the start of a step. The goroutine keeps its thread until end.
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

// end follows begin and may be called again.
func (w *stepping) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.request != nil {
		w.request, w.event = nil, nil
		runtime.UnlockOSThread()
	}
}

// job returns the name of the job that the running or last step works on; empty means none.
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

// A stepView is the state of a step when the watch checked it.
type stepView struct {
	on      bool // a step is running
	lasts   time.Duration
	used    time.Duration // processor time of its thread; 0 if the system does not report it
	report  bool          // the step is long and has not been logged
	request *request
	event   *core.Event
	working string
}

func (w *stepping) view() (l stepView) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.request == nil {
		return l
	}
	l = stepView{on: true, lasts: time.Since(w.began), request: w.request, event: w.event, working: w.job()}
	if used, ok := w.thread.used(); ok {
		l.used = used - w.used
	}
	l.report = l.lasts >= longStep && !w.said
	w.said = w.said || l.report
	return l
}

// watchSteps logs long steps, and ends the process if a step does not end.
func (c *Control) watchSteps(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.stepping.steps:
		}
		for l := c.stepping.view(); l.on; l = c.stepping.view() {
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

// stepStack returns the stack of the goroutine that runs the step.
func stepStack() string {
	all := make([]byte, 4<<20)
	for one := range bytes.SplitSeq(all[:runtime.Stack(all, true)], []byte("\n\n")) {
		if bytes.Contains(one, []byte("control.(*Control).try(")) {
			return string(one)
		}
	}
	return ""
}

// Busy returns how long the current step has been running.
func (c *Control) Busy() time.Duration { return c.stepping.view().lasts }
