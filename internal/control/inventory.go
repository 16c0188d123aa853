package control

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/engine"
	"scrimp/internal/lib/isolate"
	"scrimp/internal/wire/limits"
)

// poll reports to the core those of our instances on the engine that have ended or will be interrupted.
func (c *Control) poll(ctx context.Context, s *source) {
	live := false
	if !c.Read(func(m *core.Machine) { live = m.Rents(s.Name) }) || !live {
		return
	}
	list, err := s.client.List(ctx)
	if ctx.Err() != nil {
		return
	}
	if s.answered(err); err != nil {
		c.cfg.Log.Warn("instances not listed", "engine", s.Name, "error", err, isolate.Stack(err))
		return
	}
	for _, i := range list {
		switch {
		case c.foreign(&i):
		case i.State == engine.Ended:
			c.proposeEnded(ctx, s, i)
		case !i.Interrupts.IsZero():
			c.proposeInterruption(ctx, s, &i)
		}
	}
}

// proposeInterruption tells the core, once, that an engine will interrupt an instance.
func (c *Control) proposeInterruption(ctx context.Context, s *source, i *engine.Instance) {
	news := false
	c.Read(func(m *core.Machine) {
		known := m.State().Instance(i.ID)
		news = known != nil && known.Live() && known.Announced().IsZero()
	})
	if !news {
		return
	}
	e := c.engineSays(s, core.InterruptionAnnounced{Instance: i.ID, At: i.Interrupts})
	_ = c.Propose(ctx, e) // the next poll sees it again
}

// proposeEnded reports the end of an instance if the core still counts it. Only one goroutine reports an instance at
// a time.
func (c *Control) proposeEnded(ctx context.Context, s *source, i engine.Instance) {
	if !c.reports(i.ID) {
		return
	}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.listed, i.ID)
	}()
	launch := c.ourName(i.Key)
	events := []core.Event{c.engineSays(s, core.InstanceEnded{Instance: i.ID, Until: i.Ended, Cause: string(i.Cause),
		Notice: i.Notice, Launch: launch, Announced: !i.Interrupts.IsZero()})}
	if len(i.Bill) > 0 {
		if bill, ok := c.billed(s, i.ID, launch, i.Bill); ok {
			events = append(events, bill)
		}
	}
	// The next poll sees it again if the core still waits for it.
	_ = c.proposeEnds(ctx, []string{launch}, events...)
}

// reports reports whether the core awaits the end of an instance and nobody else is reporting it.
func (c *Control) reports(instance string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listed[instance] || !c.machine.Awaits(instance) {
		return false
	}
	c.listed[instance] = true
	return true
}

// engineSays returns an event reported by an engine. It clips numbers that are out of bounds: the log must record
// that a machine exists or has ended even if its price makes no sense.
func (c *Control) engineSays(s *source, b core.Body) core.Event {
	now := c.Now()
	b, out := limits.Clipped(b, now)
	if len(out) > 0 {
		c.cfg.Log.Error("the engine reported numbers out of bounds, and they were clipped", "engine", s.Name,
			"event", b.Kind(), "fields", out)
	}
	e := c.event(now, b)
	e.Actor = s.actor()
	return e
}

// billed returns the event of a bill; false means that its amounts make no sense and the bill is dropped.
func (c *Control) billed(s *source, instance, launch string, lines []engine.Line) (core.Event, bool) {
	bill := core.BillReceived{Instance: instance, Launch: launch}
	for _, l := range lines {
		bill.Lines = append(bill.Lines, core.BillLine{Rule: l.Rule, Amount: l.Amount, Currency: l.Currency,
			From: l.From, To: l.To, Category: l.Category, SKU: l.SKU, Rate: l.Rate})
	}
	e := c.event(c.Now(), bill)
	e.Actor = s.actor()
	if err := cmp.Or(currencies(lines), limits.Numbers(bill, e.At)); err != nil {
		c.cfg.Log.Error("a bill makes no sense and is left out", "engine", s.Name, "instance", instance, "error", err)
		return e, false
	}
	return e, true
}

// currencies returns an error for the first line without a valid currency. The currency is a text column of the
// ledger, and PostgreSQL does not accept arbitrary bytes as text.
func currencies(lines []engine.Line) error {
	for _, l := range lines {
		if !l.Currency.Valid() {
			return fmt.Errorf("a line is in %q, not a currency: write its code of three letters, such as EUR", l.Currency)
		}
	}
	return nil
}

// sweep compares the engine's whole inventory with the core's instances.
func (c *Control) sweep(ctx context.Context, s *source) {
	asOf := c.Now()
	list, err := s.client.List(ctx)
	if ctx.Err() != nil {
		return
	}
	if s.answered(err); err != nil {
		return
	}
	list = c.ours(s, list)
	b := core.InventorySeen{Provider: s.Name, AsOf: asOf}
	news, ended := false, false
	if !c.Read(func(m *core.Machine) { news, ended = c.compare(m, list, &b) }) {
		return
	}
	for _, i := range list {
		if ended && i.State == engine.Ended {
			c.proposeEnded(ctx, s, i)
		}
	}
	if !news {
		return
	}
	e := c.engineSays(s, b)
	_ = c.Propose(ctx, e) // the next sweep sees it again
}

// compare writes the running machines of an engine's list to b and compares the list with the core's instances. news
// means that one of the two lacks a machine of the other; ended means that a machine has ended whose end the core
// awaits.
func (c *Control) compare(m *core.Machine, list []engine.Instance, b *core.InventorySeen) (news, ended bool) {
	shown := map[string]bool{}
	for _, i := range list {
		shown[i.ID] = true // poll reports ended ones with their bill
		r := core.Rented{Instance: i.ID, Launch: c.ourName(i.Key), Offer: i.Offer, Rate: i.Rate, From: i.Launched}
		if i.State == engine.Running || m.Unheard(r) {
			b.Running = append(b.Running, r)
			news = news || !m.Knows(i.ID)
		} else {
			ended = ended || m.Awaits(i.ID)
		}
	}
	for _, i := range m.State().Instances() {
		news = news || i.Live() && !i.Stray() && i.Machine().Provider == b.Provider && !shown[i.ID()]
	}
	return news, ended
}

// bills is the state of an engine's bills that come outside its instance list.
type bills struct {
	asked time.Time            // last successful request; zero: never
	tried time.Time            // last request
	open  map[string]knownBill // bills that cannot be booked yet, by instance
}

type knownBill struct {
	engine.Bill
	since time.Time
}

const (
	// billsBack is how far back a starting server requests bills, to find those issued while no server ran.
	billsBack = 7 * 24 * time.Hour
	// billsAgain is the overlap of two requests: issue dates follow the engine's clock, which may differ.
	billsAgain = time.Hour
)

// pollBills reports new bills to the core. A bill that comes before the end of its machine waits for that end.
func (c *Control) pollBills(ctx context.Context, s *source) {
	if _, ok := s.Driver.(engine.Biller); !ok {
		return
	}
	now := time.Now()
	c.askBills(ctx, s, now)
	for id, bill := range s.bills.open {
		launch, takes := c.ourName(bill.Key), false
		e, sound := c.billed(s, id, launch, bill.Lines)
		if !sound {
			delete(s.bills.open, id)
			continue
		}
		switch booked, err := c.billedArchived(ctx, e); {
		case err != nil:
			continue // the next poll tries again
		case booked:
			delete(s.bills.open, id)
			continue
		}
		c.Read(func(m *core.Machine) { takes = m.TakesBill(id, launch) })
		switch {
		case takes && c.Propose(ctx, e) == nil:
			delete(s.bills.open, id)
		case now.Sub(bill.since) > billsBack:
			delete(s.bills.open, id)
			c.cfg.Log.Error("dropped a bill for an unknown machine", "engine", s.Name, "instance", id)
		}
	}
}

// askBills requests bills from the engine when that is due. It drops those of other installations.
func (c *Control) askBills(ctx context.Context, s *source, now time.Time) {
	b := &s.bills
	if b.open == nil {
		b.open = map[string]knownBill{}
	}
	if now.Sub(b.tried) < max(s.Timing.Bills, s.Timing.Sweep) {
		return
	}
	b.tried = now
	since := now.Add(-billsBack)
	if !b.asked.IsZero() {
		since = b.asked.Add(-billsAgain)
	}
	list, err := s.client.Bills(ctx, since)
	if err != nil {
		if ctx.Err() == nil {
			c.cfg.Log.Warn("bills not read; asking again", "engine", s.Name, "error", err, isolate.Stack(err))
		}
		return
	}
	b.asked = now
	for _, bill := range list {
		if strings.HasPrefix(bill.Key, c.prefix()) {
			b.open[bill.Instance] = knownBill{bill, now}
		}
	}
}
