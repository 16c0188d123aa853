package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"scrimp/internal/decide/core"
)

// A step that fails is a bug, and the event that caused it would come again: an agent repeats it, and a restart reads
// it. So the server refuses the event for good, sets aside the job that the step worked on, and continues from the
// state before the event.

// AsideError reports that an event was refused because its step failed.
type AsideError struct {
	Kind  string // of the event
	Job   string // that the event concerns; empty: none
	Cause string
	at    int // index of the event in the request
}

func (e *AsideError) Error() string {
	about := ""
	if e.Job != "" {
		about = " of job " + e.Job
	}
	return fmt.Sprintf("the server failed at %s%s (%s): it is refused, and will be when it comes again; the server's log "+
		"has the place, please report it", e.Kind, about, e.Cause)
}

// An aside is the record of a refused event, or of a job to set aside.
type aside struct {
	Kind  string    `json:"kind"`
	Key   string    `json:"key,omitempty"` // idempotency key of the event
	Hash  string    `json:"hash"`          // of the event's kind and body
	Job   string    `json:"job,omitempty"` // to set aside
	Cause string    `json:"cause"`
	At    time.Time `json:"at"` // market time
}

// asidePrefix begins the names of asides in the store's metadata, which is kept outside the log and included in
// backups.
const asidePrefix = "refused_events/"

func (a aside) error(at int) error { return &AsideError{a.Kind, a.Job, a.Cause, at} }

// id identifies the event by its key, or by its hash if it has no key. Without an event it identifies the job.
func (a aside) id() string {
	switch {
	case a.Key != "":
		return "key " + a.Kind + " " + a.Key
	case a.Hash != "":
		return "hash " + a.Hash
	}
	return "job " + a.Job
}

func (a aside) name() string {
	h := sha256.Sum256([]byte(a.id()))
	return asidePrefix + hex.EncodeToString(h[:16])
}

// hashOf identifies an event regardless of its time.
func hashOf(kind string, body []byte) string {
	h := sha256.Sum256(append([]byte(kind+"\x00"), body...))
	return hex.EncodeToString(h[:])
}

// asideTTL is how long an event without its own key is refused: a user may want the same again later.
const asideTTL = time.Hour

// readAsides reads the asides of earlier servers.
func (c *Control) readAsides(ctx context.Context) error {
	all, err := c.store.AllMeta(ctx)
	if err != nil {
		return fmt.Errorf("read which events were refused: %w", err)
	}
	for name, text := range all {
		if !strings.HasPrefix(name, asidePrefix) {
			continue
		}
		var a aside
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			return fmt.Errorf("read which events were refused: %s: %w", name, err)
		}
		c.asides[a.id()] = a
	}
	return nil
}

// keepAside stores a durable record of a refused event or of a job to set aside.
func (c *Control) keepAside(ctx context.Context, a aside) error {
	text, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("keep a refused event: %w", err)
	}
	if err := c.store.PutMeta(context.WithoutCancel(ctx), a.name(), string(text)); err != nil {
		return fmt.Errorf("keep a refused event: %w", err)
	}
	return nil
}

// asideOf returns the error of the first event that was refused before; nil if none was.
func (c *Control) asideOf(r request) error {
	if len(c.asides) == 0 {
		return nil
	}
	for i, e := range r.events {
		id := aside{Kind: e.Body.Kind(), Key: e.Key}
		if e.Key == "" {
			id.Hash = hashOf(id.Kind, r.bodies[i])
		}
		if a, ok := c.asides[id.id()]; ok && (e.Key != "" || c.Now().Before(a.At.Add(asideTTL))) {
			return a.error(i)
		}
	}
	return nil
}

// setsAside returns the events that set aside the jobs which an earlier server recorded and could not set aside.
func (c *Control) setsAside(ctx context.Context) ([]core.Event, error) {
	var list []core.Event
	for _, a := range c.asides {
		j, known := c.machine.Job(a.Job)
		if !known || j.State().Over() {
			continue
		}
		e := c.setAside(a)
		seen, err := c.store.Seen(ctx, e.Tenant, e.Key)
		if err != nil {
			return nil, fmt.Errorf("read which jobs are set aside: %w", err)
		}
		if len(seen) == 0 {
			list = append(list, e)
		}
	}
	return list, nil
}

// setAside returns the event that sets aside the job of a. Its key marks it as done.
func (c *Control) setAside(a aside) core.Event {
	e := c.event(c.Now(), core.JobPaused{Job: a.Job, Cause: fmt.Sprintf("the server failed at a step of this job (%s): "+
		"please report it; scrimp resume %s tries again", a.Cause, a.Job)})
	e.Key = a.name()
	return e
}

// A failure is a step that failed or does not end.
type failure struct {
	event   *core.Event // that the step took; nil: the core was still admitting the events
	working string      // job that the step worked on
	cause   any
	stack   []byte
}

// try applies the events in before, which set jobs aside, and then the events of s. It returns the failure if a step
// fails; the machine is unusable then. The caller holds the lock.
func (c *Control) try(s *stepped, before []core.Event) (failed *failure) {
	var now *core.Event
	defer c.stepping.end()
	defer func() {
		if v := recover(); v != nil {
			failed = &failure{event: now, working: c.stepping.job(), cause: v, stack: debug.Stack()}
		}
	}()
	step := func(e *core.Event) {
		if e.At.Before(c.machine.Now()) {
			e.At = c.machine.Now() // the clock was set back, or a newer message came first
		}
		now = e
		c.stepping.begin(&s.request, e)
		out := c.machine.Step(*e)
		c.stepping.end()
		if out.Stale > 0 {
			c.cfg.Log.Debug("groups of moves were stale", "dropped", out.Stale, "happened", out.Moved)
		}
		s.outs, c.wake = append(s.outs, out), out.Wake
	}
	s.first, s.outs = c.machine.Seq()+1, s.outs[:0]
	for i := range before {
		step(&before[i])
	}
	now = nil
	c.stepping.begin(&s.request, nil)
	if s.no = c.missing(s.request); s.no == nil {
		s.no = c.machine.Admit(s.events)
	}
	c.stepping.end()
	if s.no != nil {
		s.events, s.bodies = nil, nil
	}
	for i := range s.events {
		if i%turn == turn-1 { // let readers in
			c.mu.Unlock()
			c.mu.Lock()
		}
		step(&s.events[i])
	}
	return nil
}

// maxAsides bounds the jobs set aside for one request. If that is not enough, the process restarts.
const maxAsides = 8

// step applies the events of a request to the core. If a step fails, it returns to the state before the request and
// tries again without the event or job that caused the failure.
func (c *Control) step(ctx context.Context, r request) stepped {
	s := stepped{request: r, outs: make([]core.Outcome, 0, len(r.events))}
	c.mu.Lock()
	defer c.mu.Unlock()
	refused := c.asideOf(r)
	if refused != nil {
		s.events, s.no = nil, refused
		return s
	}
	var jobs []core.Event // events that set jobs aside
	for f := c.try(&s, jobs); f != nil; f = c.try(&s, jobs) {
		a, at := c.blame(&s.request, f)
		c.cfg.Log.Error("a step failed: this is a bug, please report it", "event", a.Kind, "key", a.Key, "job", a.Job,
			"refused", at >= 0, "panic", f.cause, "stack", string(f.stack))
		switch {
		case len(jobs) == maxAsides, isAside(jobs, f.event, a):
			c.die(ctx, a, errors.New("steps fail whatever is set aside"))
		case at < 0 && a.Job == "":
			c.die(ctx, a, errors.New("a step fails, and nothing is known that could be set aside"))
		}
		if err := c.goBack(ctx, s.first-1, a); err != nil {
			c.die(ctx, a, err)
		}
		if a.Job != "" {
			jobs = append(jobs, c.setAside(a))
		}
		if at >= 0 {
			refused = a.error(at)
			s.events, s.bodies = nil, nil
		}
	}
	s.no = cmp.Or(refused, s.no)
	if len(jobs) > 0 {
		told, err := ask(jobs)
		if err != nil {
			c.die(ctx, aside{}, err)
		}
		s.events, s.bodies = append(told.events, s.events...), append(told.bodies, s.bodies...)
	}
	c.snapshot(ctx)
	return s
}

// isAside reports whether the failed event is one that sets a job aside, or a names a job that was just set aside.
func isAside(jobs []core.Event, failed *core.Event, a aside) bool {
	for i := range jobs {
		if failed == &jobs[i] || jobs[i].Key == a.name() {
			return true
		}
	}
	return false
}

// blame returns the event of the request to refuse (-1: none) and the job to set aside. If the step was working on
// another job than the event's, only that job is set aside, and the event is tried without it.
func (c *Control) blame(r *request, f *failure) (a aside, at int) {
	a = aside{Job: f.working, Cause: fmt.Sprint(f.cause), At: c.Now()}
	for i := range r.events {
		e := &r.events[i]
		if f.event != e && f.event != nil { // nil: the core was admitting the events
			continue
		}
		about := core.Concerns(e.Body)
		if _, tick := e.Body.(core.Tick); tick || f.event != nil && f.working != "" && f.working != about {
			break
		}
		a.Kind, a.Key, a.Hash, a.Job = e.Body.Kind(), e.Key, hashOf(e.Body.Kind(), r.bodies[i]), about
		if _, submitted := e.Body.(core.JobSubmitted); submitted {
			a.Job = "" // no such job exists; another may take the name
		}
		return a, i
	}
	return a, -1
}

// goBack restores the state after event before, as a restart does, and records the aside.
func (c *Control) goBack(ctx context.Context, before uint64, a aside) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the log cannot be read again: %v", v)
		}
	}()
	if !c.durable.wait(before) {
		return errors.New("the earlier steps are not written")
	}
	if err := c.keepAside(ctx, a); err != nil {
		return err
	}
	c.asides[a.id()] = a
	return c.restore(context.WithoutCancel(ctx))
}

// die records the aside and ends the process, so that its supervisor starts another.
func (c *Control) die(ctx context.Context, a aside, why error) {
	if a.Job != "" || a.Hash != "" {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), dieTimeout)
		defer cancel()
		if err := c.keepAside(limited, a); err != nil {
			c.cfg.Log.Error("the next server will try the same again", "error", err)
		}
	}
	c.cfg.Log.Error("the server ends: it cannot go on", "why", why, "event", a.Kind, "job", a.Job)
	c.cfg.Die()
}

// dieTimeout bounds how long a dying server tries to record why.
const dieTimeout = 5 * time.Second
