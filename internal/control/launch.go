package control

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/engine"
	"scrimp/internal/lib/isolate"
)

// launch rents machines. After an uncertain or partial answer it repeats the launch with the same key, which rents
// once.
func (c *Control) launch(ctx context.Context, a core.Launch) {
	s := c.sourceOf(a.Provider)
	if s == nil { // the engine was removed: once it is back, the server asks what it has granted
		c.refusedFor(ctx, a)
		return
	}
	var told time.Time
	for wait := 100 * time.Millisecond; ctx.Err() == nil && c.wants(a); wait = min(2*wait, 5*time.Second) {
		if !c.leads() || c.cfg.Ends {
			sleep(ctx, wait)
			continue
		}
		list, err := s.client.Launch(ctx, engine.Request{
			Key: c.keyOf(a.Allocation), Nodes: a.Nodes, Offer: a.Offer, MaxRate: a.MaxRate, Image: a.Image,
			Env: c.cfg.Env(&s.Engine, a.Allocation), Tags: c.tags(a),
		})
		switch {
		case err == nil || errors.Is(err, engine.ErrPending):
			c.granted(ctx, s, a, list)
			if err == nil && len(list) >= a.Nodes {
				return
			}
			if err != nil {
				told = c.pending(ctx, s, a, err, told)
			}
			sleep(ctx, max(wait, s.Timing.Poll))
		case engine.Refused(err):
			c.granted(ctx, s, a, list)
			c.answer(ctx, s, a.Key(), c.refusal(a.Allocation, err))
			return
		default:
			c.cfg.Log.Warn("launch not answered; asking again with the same key", "attempt", a.Allocation, "error", err,
				isolate.Stack(err))
			sleep(ctx, wait)
		}
	}
}

// wants reports whether the launch is still wanted. If the log says so, the next leader repeats it.
func (c *Control) wants(a core.Launch) bool {
	ok := false
	durable := c.Read(func(m *core.Machine) {
		t, live := m.Allocation(a.Allocation)
		ok = live && t.Phase() == state.Pending
	})
	return ok && durable
}

// granted reports to the core the machines of a launch that are new to it, and the ends of those that have ended: a
// reused key returns them too.
func (c *Control) granted(ctx context.Context, s *source, a core.Launch, list []engine.Instance) {
	_, bodies := c.grants(a.Allocation, list)
	if len(bodies) == 0 {
		return
	}
	c.answer(ctx, s, a.Key(), bodies...)
	for _, i := range list {
		if i.State == engine.Ended {
			c.proposeEnded(ctx, s, i)
		}
	}
}

// grants returns the events that report a launch's new machines to the core, and how many of the requested machines
// are still missing afterwards.
func (c *Control) grants(allocation string, list []engine.Instance) (missing int, done []core.Body) {
	var known []string
	c.ReadUncommitted(func(m *core.Machine) {
		if t, live := m.Allocation(allocation); live {
			known, missing = t.Granted(), t.Nodes()
		}
	})
	missing -= len(known)
	for _, i := range list {
		if !slices.Contains(known, i.ID) {
			missing--
			done = append(done, core.LaunchDone{Launch: allocation, Instance: i.ID, Offer: i.Offer, Rate: i.Rate,
				From: i.Launched})
		}
	}
	return max(0, missing), done
}

// answer reports the outcome of an action on the engine to the core, in one transaction.
func (c *Control) answer(ctx context.Context, s *source, cause string, bodies ...core.Body) {
	events := make([]core.Event, len(bodies))
	for n, b := range bodies {
		events[n] = c.engineSays(s, b)
		events[n].Cause = cause
	}
	if err := c.Propose(ctx, events...); err != nil && ctx.Err() == nil { // a restart repeats the action
		c.cfg.Log.Error("the engine's answer is not written", "engine", s.Name, "action", cause, "error", err)
	}
}

// refusedFor closes a launch on an engine that is no longer configured.
func (c *Control) refusedFor(ctx context.Context, a core.Launch) {
	e := c.event(c.Now(), core.LaunchRefused{Launch: a.Allocation, Reason: "not_for_sale", Scope: state.OfferScope,
		Detail: noEngine(a.Provider)})
	e.Cause = a.Key()
	_ = c.Propose(ctx, e) // a restart repeats it
}

// refusal turns a definite refusal into an event, with its scope and duration.
func (c *Control) refusal(allocation string, err error) core.LaunchRefused {
	b := core.LaunchRefused{Launch: allocation, Reason: "not_for_sale", Detail: c.hidden(err.Error()),
		Scope: state.OfferScope}
	switch {
	case errors.Is(err, engine.ErrNoCapacity):
		b.Reason = "no_capacity"
	case errors.Is(err, engine.ErrQuota): // the quota is per machine type and capacity
		b.Reason, b.Scope = "quota", state.PoolScope
	case errors.Is(err, engine.ErrPrice):
		b.Reason = "price"
	case errors.Is(err, engine.ErrImage):
		b.Reason = "image"
	case errors.Is(err, engine.ErrThrottled):
		b.Reason, b.Scope = "throttled", state.AccountScope
	}
	var r *engine.RefusalError
	if errors.As(err, &r) {
		if r.Scope != "" {
			b.Scope = state.Scope(r.Scope)
		}
		b.Wait = c.cfg.Clock.Stretch(r.Wait)
	}
	return b
}

// hidden removes the path of the data folder from a text that users read.
func (c *Control) hidden(text string) string {
	if c.cfg.Dir == "" {
		return text
	}
	return strings.ReplaceAll(text, c.cfg.Dir, "the data folder")
}

// pendingAgain is the shortest time between two different reports of a provider about one pending launch.
const pendingAgain = time.Minute

// pending reports that the provider has queued a launch, with its reason for the wait: once, and again if the reason
// changes later. It returns the time of the last report.
func (c *Control) pending(ctx context.Context, s *source, a core.Launch, why error, last time.Time) time.Time {
	b := core.LaunchPending{Launch: a.Allocation}
	if said, ok := errors.AsType[*engine.PendingError](why); ok {
		b.Detail = c.hidden(said.Error())
	}
	told := false
	c.ReadUncommitted(func(m *core.Machine) {
		t, live := m.Allocation(a.Allocation)
		told = !live || !t.Queued().IsZero() && (t.Detail() == b.Detail || time.Since(last) < pendingAgain)
	})
	if told {
		return last
	}
	c.answer(ctx, s, a.Key(), b)
	return time.Now()
}

// cancel gives up a launch that is not answered. Machines rented for it meanwhile are reported as granted, and the
// core terminates them.
func (c *Control) cancel(ctx context.Context, a core.Cancel) {
	s := c.sourceOf(a.Provider)
	if s == nil {
		c.without(a.Provider, "the launch of "+a.Allocation+" is not given up")
		return
	}
	for wait := 100 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, 5*time.Second) {
		if !c.leads() {
			sleep(ctx, wait)
			continue
		}
		bodies, err := c.cancelled(ctx, s, a.Allocation)
		if err == nil {
			c.answer(ctx, s, a.Key(), bodies...)
			return
		}
		c.cfg.Log.Warn("launch not given up yet; trying again", "allocation", a.Allocation, "error", err,
			isolate.Stack(err))
		sleep(ctx, wait)
	}
}

// cancelled asks the provider to cancel a launch and returns the result: the machines rented for it, and the refusal
// of the rest.
func (c *Control) cancelled(ctx context.Context, s *source, allocation string) ([]core.Body, error) {
	if err := s.client.Cancel(ctx, c.keyOf(allocation)); err != nil && !errors.Is(err, engine.ErrNotFound) {
		return nil, err
	}
	list, err := s.client.List(ctx)
	if err != nil {
		return nil, err
	}
	key := c.keyOf(allocation)
	list = slices.DeleteFunc(slices.Clone(list), func(i engine.Instance) bool { return i.Key != key })
	missing, bodies := c.grants(allocation, list)
	if missing > 0 || len(bodies) == 0 {
		bodies = append(bodies, core.LaunchCancelled{Launch: allocation})
	}
	return bodies, nil
}
