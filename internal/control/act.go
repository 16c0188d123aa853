package control

import (
	"context"
	"errors"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/market"
	"scrimp/internal/provider"
	"scrimp/internal/state"
)

// act does one action in a goroutine of its own; its outcome is the next event.
func (c *Control) act(ctx context.Context, a core.Action) {
	switch a := a.(type) {
	case core.Drain: // agents pull: the order waits for the next report
		c.mu.Lock()
		c.drains[a.Attempt] = a
		c.mu.Unlock()
	case core.Launch:
		c.acts.Add(1)
		go func() { defer c.acts.Done(); c.launch(ctx, a) }()
	case core.Cancel:
		c.acts.Go(func() { c.cancel(ctx, a) })
	case core.Terminate:
		c.acts.Add(1)
		go func() { defer c.acts.Done(); c.terminate(ctx, a) }()
	case core.BuildTable:
		c.acts.Go(func() { c.build(ctx, a) })
	case core.Notify:
		if c.cfg.Notify != nil {
			c.acts.Add(1)
			go func() { defer c.acts.Done(); c.cfg.Notify(ctx, a) }()
		}
	}
}

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
	for wait := 100 * time.Millisecond; ctx.Err() == nil && wanted(); wait = min(2*wait, 5*time.Second) {
		if !c.leads() {
			sleep(ctx, wait)
			continue
		}
		i, err := c.driver.Launch(ctx, provider.Request{
			Key: c.keyOf(a.Allocation), Offer: a.Offer, MaxRate: a.MaxRate, Env: c.cfg.Env(a.Allocation),
			Tags: c.tags(a),
		})
		var body core.Body
		switch {
		case errors.Is(err, provider.ErrPending):
			c.pending(ctx, a)
			sleep(ctx, max(wait, c.cfg.Poll))
			continue
		case err == nil:
			body = core.LaunchDone{Launch: a.Allocation, Instance: i.ID, Offer: i.Offer, Rate: i.Rate, From: i.Launched}
		case provider.Refused(err):
			body = c.refusal(a.Allocation, err)
		default:
			c.cfg.Log.Warn("launch not answered; asking again with the same key", "attempt", a.Allocation, "error", err)
			sleep(ctx, wait)
			continue
		}
		e := c.event(c.Now(), body)
		e.Actor, e.Cause = "provider:"+c.name, a.Key()
		if err := c.Propose(ctx, e); err != nil && ctx.Err() == nil {
			c.cfg.Log.Error("launch answer not written", "attempt", a.Allocation, "error", err)
		}
		if err == nil && i.State == provider.Ended { // the key was used before and that machine has ended
			c.proposeEnded(ctx, i)
		}
		return
	}
}

// refusal is a clear no, with what it is about and for how long.
func (c *Control) refusal(allocation string, err error) core.LaunchRefused {
	b := core.LaunchRefused{Launch: allocation, Reason: "not_for_sale", Detail: err.Error(), Scope: state.OfferScope}
	switch {
	case errors.Is(err, provider.ErrNoCapacity):
		b.Reason = "no_capacity"
	case errors.Is(err, provider.ErrQuota): // of machines of that type, bought that way
		b.Reason, b.Scope = "quota", state.PoolScope
	case errors.Is(err, provider.ErrPrice):
		b.Reason = "price"
	}
	var r *provider.RefusalError
	if errors.As(err, &r) {
		if r.Scope != "" {
			b.Scope = state.Scope(r.Scope)
		}
		b.Wait = c.cfg.Clock.Stretch(r.Wait)
	}
	return b
}

// pending tells, once, that the provider has a launch in its queue.
func (c *Control) pending(ctx context.Context, a core.Launch) {
	told := false
	c.ReadUncommitted(func(m *core.Machine) {
		t, live := m.Allocation(a.Allocation)
		told = !live || !t.Queued().IsZero()
	})
	if told {
		return
	}
	e := c.event(c.Now(), core.LaunchPending{Launch: a.Allocation})
	e.Actor, e.Cause = "provider:"+c.name, a.Key()
	_ = c.Propose(ctx, e) // said again with the next answer
}

// cancel gives a launch up that is not answered. What was rented for it meanwhile is told
// as granted: the core gives it back.
func (c *Control) cancel(ctx context.Context, a core.Cancel) {
	for wait := 100 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, 5*time.Second) {
		if !c.leads() {
			sleep(ctx, wait)
			continue
		}
		body, err := c.cancelled(ctx, a.Allocation)
		if err == nil {
			e := c.event(c.Now(), body)
			e.Actor, e.Cause = "provider:"+c.name, a.Key()
			_ = c.Propose(ctx, e) // asked again after a restart
			return
		}
		c.cfg.Log.Warn("launch not given up yet; trying again", "allocation", a.Allocation, "error", err)
		sleep(ctx, wait)
	}
}

// cancelled asks the provider to give a launch up and says what came of it.
func (c *Control) cancelled(ctx context.Context, allocation string) (core.Body, error) {
	if err := c.driver.Cancel(ctx, c.keyOf(allocation)); err != nil && !errors.Is(err, provider.ErrNotFound) {
		return nil, err
	}
	list, err := c.driver.List(ctx)
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

func (c *Control) terminate(ctx context.Context, a core.Terminate) {
	for wait := 100 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, 5*time.Second) {
		if !c.leads() {
			sleep(ctx, wait)
			continue
		}
		err := c.driver.Terminate(ctx, a.Instance)
		if err == nil || errors.Is(err, provider.ErrNotFound) {
			c.poll(ctx) // the bill is in the list
			return
		}
		c.cfg.Log.Warn("instance not given back yet; trying again", "instance", a.Instance, "error", err)
		sleep(ctx, wait)
	}
}

// watch polls prices, instances and silent agents until ctx ends.
func (c *Control) watch(ctx context.Context) {
	c.awake()
	c.acts.Go(func() {
		for ctx.Err() == nil {
			sleep(ctx, time.Second)
			c.awake()
		}
	})
	c.acts.Go(func() {
		for ctx.Err() == nil {
			sleep(ctx, flushEvery)
			c.flush(ctx)
		}
	})
	swept := time.Time{}
	for ctx.Err() == nil {
		c.pollMarket(ctx)
		c.poll(ctx)
		if time.Since(swept) >= c.cfg.Sweep {
			c.sweep(ctx)
			swept = time.Now()
		}
		c.silent(ctx)
		sleep(ctx, c.cfg.Poll)
	}
}

// marketState is what the core was last told of each offer. The watcher owns it.
type marketState struct {
	offers map[market.OfferID]market.Offer
	quotes map[market.OfferID]market.Quote
	bad    map[string]string // what is wrong with an offer or its price, as it was logged
}

// sound reports whether what a provider says of an offer may enter the log,
// which is for ever, and says once what keeps it out. What was known of the offer
// before stays as it was.
func (c *Control) sound(what string, id market.OfferID, err error) bool {
	key := what + " " + string(id)
	if err == nil {
		delete(c.market.bad, key)
		return true
	}
	if text := err.Error(); c.market.bad[key] != text {
		c.market.bad[key] = text
		c.cfg.Log.Error("what the provider says of an offer makes no sense and is left out: fix the market's file or "+
			"its feed", "what", what, "offer", id, "error", err)
	}
	return false
}

// pollMarket tells the core what changed on the market.
func (c *Control) pollMarket(ctx context.Context) {
	offers, quotes, err := c.driver.Offers(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.cfg.Log.Warn("prices not read", "error", err)
		}
		return
	}
	if c.market.offers == nil {
		c.market = marketState{offers: map[market.OfferID]market.Offer{}, quotes: map[market.OfferID]market.Quote{},
			bad: map[string]string{}}
	}
	var seen core.MarketSeen
	left := map[market.OfferID]bool{}
	for _, o := range offers {
		if !c.sound("offer", o.ID, o.Validate()) {
			left[o.ID] = true
			continue
		}
		if old, known := c.market.offers[o.ID]; !known || old != o {
			seen.Offers = append(seen.Offers, o)
		}
	}
	for _, q := range quotes {
		if left[q.Offer] || !c.sound("price", q.Offer, q.Validate()) {
			continue
		}
		old, known := c.market.quotes[q.Offer]
		if !known || old.Rate != q.Rate || old.Priced != q.Priced || old.Available != q.Available {
			seen.Quotes = append(seen.Quotes, q)
		}
	}
	if len(seen.Offers)+len(seen.Quotes) == 0 {
		return
	}
	e := c.event(c.Now(), seen)
	e.Actor = "provider:" + c.name
	if c.Propose(ctx, e) == nil {
		for _, o := range seen.Offers {
			c.market.offers[o.ID] = o
		}
		for _, q := range seen.Quotes {
			c.market.quotes[q.Offer] = q
		}
	}
}

// poll tells the core of instances of ours that have ended.
func (c *Control) poll(ctx context.Context) {
	live := 0
	if !c.Read(func(m *core.Machine) { live = len(m.Live()) + len(m.Pending()) }) || live == 0 {
		return
	}
	list, err := c.driver.List(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.cfg.Log.Warn("instances not listed", "error", err)
		}
		return
	}
	for _, i := range list {
		if i.State == provider.Ended && !c.foreign(&i) {
			c.proposeEnded(ctx, i)
		}
	}
}

// proposeEnded tells the core one time at once, and only where it still counts the instance.
func (c *Control) proposeEnded(ctx context.Context, i provider.Instance) {
	c.mu.Lock()
	known := c.listed[i.ID]
	if !known && c.machine.Awaits(i.ID) {
		c.listed[i.ID] = true
	} else {
		known = true
	}
	c.mu.Unlock()
	if known {
		return
	}
	launch := c.ourName(i.Key)
	ended := c.event(c.Now(), core.InstanceEnded{Instance: i.ID, Until: i.Ended, Cause: string(i.Cause), Notice: i.Notice,
		Launch: launch})
	ended.Actor = "provider:" + c.name
	events := []core.Event{ended}
	if len(i.Bill) > 0 {
		bill := core.BillReceived{Instance: i.ID, Launch: launch}
		for _, l := range i.Bill {
			bill.Lines = append(bill.Lines, core.BillLine{Rule: l.Rule, Amount: l.Amount, Currency: l.Currency,
				From: l.From, To: l.To})
		}
		events = append(events, c.event(c.Now(), bill))
		events[1].Actor = ended.Actor
	}
	_ = c.Propose(ctx, events...) // the next poll sees the same again, where the core still waits for it
	c.mu.Lock()
	delete(c.listed, i.ID)
	c.mu.Unlock()
}

// sweep compares the whole inventory with what the core knows.
func (c *Control) sweep(ctx context.Context) {
	asOf := c.Now()
	list, err := c.driver.List(ctx)
	if err != nil {
		return
	}
	list = c.ours(list)
	b := core.InventorySeen{Provider: c.name, AsOf: asOf}
	news, ended := false, false
	if !c.Read(func(m *core.Machine) {
		shown := map[string]bool{}
		for _, i := range list {
			shown[i.ID] = true // ended ones come with their bill, by poll
			r := core.Rented{Instance: i.ID, Launch: c.ourName(i.Key), Offer: i.Offer, Rate: i.Rate, From: i.Launched}
			if i.State == provider.Running || m.Unheard(r) {
				b.Running = append(b.Running, r)
				news = news || !m.Knows(i.ID)
			} else {
				ended = ended || m.Awaits(i.ID)
			}
		}
		for _, a := range m.Live() {
			news = news || !shown[a.Instance()]
		}
	}) {
		return
	}
	for _, i := range list {
		if ended && i.State == provider.Ended {
			c.proposeEnded(ctx, i)
		}
	}
	if !news {
		return
	}
	e := c.event(c.Now(), b)
	e.Actor = "provider:" + c.name
	_ = c.Propose(ctx, e) // the next sweep sees the same again
}

// silent tells the core of agents that said nothing for too long. An agent that
// never spoke is the boot limit's matter.
func (c *Control) silent(ctx context.Context) {
	c.awake()
	now := time.Now()
	var events []core.Event
	living := map[string]bool{}
	c.mu.RLock()
	for _, a := range c.machine.Live() {
		living[a.ID()] = true
		if a.Task() == core.Ended || a.Releasing() || a.Disowned() {
			continue
		}
		if heard := c.agents.heard(a.ID()); !heard.IsZero() && now.Round(0).Sub(heard.Round(0)) > c.cfg.Silence {
			events = append(events, c.event(c.Now(), core.AgentSilent{Attempt: a.ID(), Since: c.cfg.Clock.ToMarket(heard)}))
		}
	}
	c.mu.RUnlock()
	c.agents.keep(living, now)
	if len(events) > 0 {
		_ = c.Propose(ctx, events...) // said again at the next poll
	}
}

// awake is called about once a second. After a gap, as on a laptop that slept,
// every agent has the whole limit again: nobody could speak to a server that was
// stopped, and the agents slept with it.
func (c *Control) awake() {
	now := time.Now().Round(0) // the hours asleep count
	c.mu.Lock()
	gap, first := now.Sub(c.beat), c.beat.IsZero()
	c.beat = now
	c.mu.Unlock()
	if !first && gap > c.cfg.Silence/4 {
		c.agents.all(now)
		c.cfg.Log.Info("the computer slept, or its clock was set: its agents have the whole limit to be heard again",
			"gap", gap, "limit", c.cfg.Silence)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
