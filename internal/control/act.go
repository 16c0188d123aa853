package control

import (
	"context"
	"errors"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/engine"
	"scrimp/internal/market"
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

func (c *Control) terminate(ctx context.Context, a core.Terminate) {
	for wait := 100 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, 5*time.Second) {
		if !c.leads() {
			sleep(ctx, wait)
			continue
		}
		err := c.driver.Terminate(ctx, a.Instance)
		if err == nil || errors.Is(err, engine.ErrNotFound) {
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
		if i.State == engine.Ended && !c.foreign(&i) {
			c.proposeEnded(ctx, i)
		}
	}
}

// proposeEnded tells the core one time at once, and only where it still counts the instance.
func (c *Control) proposeEnded(ctx context.Context, i engine.Instance) {
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
			if i.State == engine.Running || m.Unheard(r) {
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
		if ended && i.State == engine.Ended {
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
