package control

import (
	"context"
	"errors"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/engine"
	"scrimp/internal/state"
)

// launch rents. What cannot be said for certain is asked again with the same key, which rents once.
func (c *Control) launch(ctx context.Context, a core.Launch) {
	wanted := func() bool {
		ok := false
		durable := c.Read(func(m *core.Machine) {
			t, live := m.Allocation(a.Allocation)
			ok = live && t.Phase() == state.Pending
		})
		return ok && durable // the next leader asks for it where the log says so
	}
	s := c.sourceOf(a.Provider)
	if s == nil { // the engine was removed since: it is asked about what it may have granted when it is back
		c.refusedFor(ctx, a)
		return
	}
	for wait := 100 * time.Millisecond; ctx.Err() == nil && wanted(); wait = min(2*wait, 5*time.Second) {
		if !c.leads() {
			sleep(ctx, wait)
			continue
		}
		i, err := s.client.Launch(ctx, engine.Request{
			Key: c.keyOf(a.Allocation), Offer: a.Offer, MaxRate: a.MaxRate, Env: c.cfg.Env(&s.Engine, a.Allocation),
			Tags: c.tags(a),
		})
		var body core.Body
		switch {
		case errors.Is(err, engine.ErrPending):
			c.pending(ctx, s, a)
			sleep(ctx, max(wait, s.Timing.Poll))
			continue
		case err == nil:
			body = core.LaunchDone{Launch: a.Allocation, Instance: i.ID, Offer: i.Offer, Rate: i.Rate, From: i.Launched}
		case engine.Refused(err):
			body = c.refusal(a.Allocation, err)
		default:
			c.cfg.Log.Warn("launch not answered; asking again with the same key", "attempt", a.Allocation, "error", err)
			sleep(ctx, wait)
			continue
		}
		e := c.event(c.Now(), body)
		e.Actor, e.Cause = s.actor(), a.Key()
		if err := c.Propose(ctx, e); err != nil && ctx.Err() == nil {
			c.cfg.Log.Error("launch answer not written", "attempt", a.Allocation, "error", err)
		}
		if err == nil && i.State == engine.Ended { // the key was used before and that machine has ended
			c.proposeEnded(ctx, s, i)
		}
		return
	}
}

// refusedFor closes a launch at an engine that is not configured any more.
func (c *Control) refusedFor(ctx context.Context, a core.Launch) {
	e := c.event(c.Now(), core.LaunchRefused{Launch: a.Allocation, Reason: "not_for_sale", Scope: state.OfferScope,
		Detail: noEngine(a.Provider)})
	e.Cause = a.Key()
	_ = c.Propose(ctx, e) // asked again after a restart
}

// refusal is a clear no, with what it is about and for how long.
func (c *Control) refusal(allocation string, err error) core.LaunchRefused {
	b := core.LaunchRefused{Launch: allocation, Reason: "not_for_sale", Detail: err.Error(), Scope: state.OfferScope}
	switch {
	case errors.Is(err, engine.ErrNoCapacity):
		b.Reason = "no_capacity"
	case errors.Is(err, engine.ErrQuota): // of machines of that type, bought that way
		b.Reason, b.Scope = "quota", state.PoolScope
	case errors.Is(err, engine.ErrPrice):
		b.Reason = "price"
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

// pending tells, once, that the provider has a launch in its queue.
func (c *Control) pending(ctx context.Context, s *source, a core.Launch) {
	told := false
	c.ReadUncommitted(func(m *core.Machine) {
		t, live := m.Allocation(a.Allocation)
		told = !live || !t.Queued().IsZero()
	})
	if told {
		return
	}
	e := c.event(c.Now(), core.LaunchPending{Launch: a.Allocation})
	e.Actor, e.Cause = s.actor(), a.Key()
	_ = c.Propose(ctx, e) // said again with the next answer
}

// cancel gives a launch up that is not answered. What was rented for it meanwhile is told
// as granted: the core gives it back.
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
		body, err := c.cancelled(ctx, s, a.Allocation)
		if err == nil {
			e := c.event(c.Now(), body)
			e.Actor, e.Cause = s.actor(), a.Key()
			_ = c.Propose(ctx, e) // asked again after a restart
			return
		}
		c.cfg.Log.Warn("launch not given up yet; trying again", "allocation", a.Allocation, "error", err)
		sleep(ctx, wait)
	}
}

// cancelled asks the provider to give a launch up and says what came of it.
func (c *Control) cancelled(ctx context.Context, s *source, allocation string) (core.Body, error) {
	if err := s.client.Cancel(ctx, c.keyOf(allocation)); err != nil && !errors.Is(err, engine.ErrNotFound) {
		return nil, err
	}
	list, err := s.client.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, i := range list {
		if i.Key == c.keyOf(allocation) {
			return core.LaunchDone{Launch: allocation, Instance: i.ID, Offer: i.Offer, Rate: i.Rate, From: i.Launched}, nil
		}
	}
	return core.LaunchCancelled{Launch: allocation}, nil
}
