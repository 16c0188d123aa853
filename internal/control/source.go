package control

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"scrimp/internal/control/inbox"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/engine"
	"scrimp/internal/lib/isolate"
	"scrimp/internal/market"
	"scrimp/internal/wire/limits"
)

// source is a configured engine and its last known status. Each source has its own goroutine, so that an engine that
// hangs does not delay the others.
type source struct {
	engine.Engine
	client *engine.Client
	market marketState               // used by its goroutine only
	bills  bills                     // used by its goroutine only
	said   seldom                    // limits its goroutine's panic reports
	others []engine.Instance         // machines of other installations in the newest inventory; guarded by Control.mu
	away   atomic.Pointer[error]     // error of the last call; nil: it succeeded
	heard  atomic.Pointer[time.Time] // last successful call; nil: never
	pushes atomic.Bool               // the engine reports changes without being polled
	// changed requests a poll: the engine reported a change, or an agent an interruption.
	changed chan struct{}
	// first is closed once the engine has listed its offers for the first time, or has failed to.
	first chan struct{}
	once  sync.Once
}

func newSource(e engine.Engine, on Clock) *source {
	return &source{Engine: e, client: e.Open(on), changed: make(chan struct{}, 1), first: make(chan struct{})}
}

// Priced returns when every engine has listed its offers once or failed to, or when ctx is done.
func (c *Control) Priced(ctx context.Context) {
	for _, s := range c.sources {
		select {
		case <-s.first:
		case <-ctx.Done():
			return
		}
	}
}

// pollNow requests a poll.
func (s *source) pollNow() {
	select {
	case s.changed <- struct{}{}:
	default: // a poll is already pending
	}
}

// actor is the author of the engine's events.
func (s *source) actor() string { return "provider:" + s.Name }

// answered records whether a call of the engine succeeded.
func (s *source) answered(err error) {
	if err != nil {
		s.away.Store(&err)
		return
	}
	now := time.Now()
	s.away.Store(nil)
	s.heard.Store(&now)
}

// sourceOf returns the engine of that name; nil if it is not configured.
func (c *Control) sourceOf(name string) *source {
	for _, s := range c.sources {
		if s.Name == name {
			return s
		}
	}
	return nil
}

func noEngine(name string) string {
	return fmt.Sprintf("engine %s is not configured: add it to %s again and restart the server", cmp.Or(name, "(unknown)"),
		engine.SettingsName)
}

// without logs an action that is impossible because its engine is not configured. A server with that engine takes it at
// its start.
func (c *Control) without(name, what string) {
	c.cfg.Log.Error(what+" until its engine is configured again", "engine", name, "fix", noEngine(name))
}

// EngineStatus is the status of an engine.
type EngineStatus struct {
	Name, Kind, AgentURL string
	Clock                Clock
	Timing               engine.Timing
	Seats                int       // most tasks at once on a machine; 0: one
	Configured           bool      // false: the engine is known only from its machines
	Heard                time.Time // last answer; zero: never
	Err                  error     // error of the last call; nil: it succeeded
	Machines             int       // that cost something now, as far as known
}

// Engines returns the status of the configured engines, and of removed ones while their machines may still cost
// something.
func (c *Control) Engines() []EngineStatus {
	machines := map[string]int{}
	c.ReadUncommitted(func(m *core.Machine) {
		for _, i := range m.State().Instances() {
			if i.Live() {
				machines[i.Machine().Provider]++
			}
		}
	})
	var list []EngineStatus
	for _, s := range c.sources {
		e := EngineStatus{Name: s.Name, Kind: s.Kind, AgentURL: s.AgentURL, Clock: s.Clock, Timing: s.Timing,
			Configured: true, Seats: s.Seats,
			Machines: machines[s.Name]}
		if at := s.heard.Load(); at != nil {
			e.Heard = *at
		}
		if why := s.away.Load(); why != nil {
			e.Err = *why
		}
		list = append(list, e)
		delete(machines, s.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(machines)) {
		list = append(list, EngineStatus{Name: name, Machines: machines[name]})
	}
	return list
}

// Starts returns the expected wall time from the launch of a machine to a restored program, by name of engine.
func (c *Control) Starts() map[string]time.Duration {
	starts := make(map[string]time.Duration, len(c.sources))
	for _, s := range c.sources {
		starts[s.Name] = s.Timing.Start
	}
	return starts
}

// Kinds returns the driver of each configured engine, by the engine's name.
func (c *Control) Kinds() map[string]string {
	kinds := make(map[string]string, len(c.sources))
	for _, s := range c.sources {
		kinds[s.Name] = s.Kind
	}
	return kinds
}

// How long an ended job stays in memory, wall time: once all its machines are billed, and while bills may still come.
const (
	archiveAfter    = 24 * time.Hour
	archiveUnbilled = 7 * 24 * time.Hour
)

// Rules returns the core's configuration with these engines.
func (c *Control) Rules() core.Config {
	engines := make([]engine.Engine, len(c.sources))
	for n, s := range c.sources {
		engines[n] = s.Engine
	}
	rules := CoreConfig(c.cfg.Clock, engines)
	rules.MaxRunning = cmp.Or(c.cfg.Running, rules.MaxRunning)
	rules.PreemptAfter = c.cfg.Clock.Stretch(c.cfg.PreemptAfter)
	if c.cfg.Archive != nil {
		rules.ArchiveAfter = c.cfg.Clock.Stretch(archiveAfter)
		rules.ArchiveUnbilled = c.cfg.Clock.Stretch(archiveUnbilled)
	}
	return rules
}

// CoreConfig returns the core's configuration with these engines, in market time.
func CoreConfig(clock Clock, engines []engine.Engine) core.Config {
	d := core.DefaultConfig()
	d.Speed = clock.Speed
	d.CoolOff = clock.Stretch(2 * time.Second)
	d.Patience = clock.Stretch(30 * time.Second)
	if len(engines) > 0 {
		d.Providers = map[string]state.Timing{}
	}
	for n, e := range engines {
		t := state.Timing{
			Detect: clock.Stretch(e.Timing.Detection()), BootLimit: clock.Stretch(e.Timing.Boot),
			Consistency: clock.Stretch(e.Timing.Consistency), GrantWait: clock.Stretch(e.Timing.GrantWait),
			Idle: clock.Stretch(e.Timing.Idle), Seats: e.Seats,
		}
		if d.Providers[e.Name] = t; n == 0 {
			d.Detect, d.BootLimit, d.Consistency, d.GrantWait = t.Detect, t.BootLimit, t.Consistency, t.GrantWait
			d.Idle, d.Seats = t.Idle, t.Seats
		}
	}
	return d
}

// watch watches the engines and the agents until ctx ends.
func (c *Control) watch(ctx context.Context) {
	c.awake()
	c.acts.Go(func() {
		for ctx.Err() == nil {
			sleep(ctx, time.Second)
			c.awake()
		}
	})
	c.retry(ctx, "what agents have said", func() {
		for ctx.Err() == nil {
			sleep(ctx, inbox.FlushEvery)
			c.flush(ctx)
		}
	})
	for _, s := range c.sources {
		c.acts.Go(func() { c.follow(ctx, s) })
	}
	isolate.Retry(ctx, c.cfg.Log, "agents that are silent", func() {
		for ctx.Err() == nil {
			c.silent(ctx)
			sleep(ctx, min(c.cfg.Silence/60, time.Second))
		}
	})
}

// follow polls and sweeps an engine at its own pace. It polls an engine that reports changes when it reports one, and
// with each sweep.
func (c *Control) follow(ctx context.Context, s *source) {
	if w, ok := s.Driver.(engine.Watcher); ok {
		c.acts.Go(func() { c.hear(ctx, s, w) })
	}
	var swept time.Time
	for ctx.Err() == nil {
		c.ask(ctx, s, c.pollMarket)
		c.ask(ctx, s, c.poll)
		if time.Since(swept) >= s.Timing.Sweep {
			c.ask(ctx, s, c.sweep)
			swept = time.Now()
		}
		c.ask(ctx, s, c.pollBills)
		pause := s.Timing.Poll
		if s.pushes.Load() {
			pause = max(pause, s.Timing.Sweep-time.Since(swept))
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-s.changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// ask calls the engine. An answer that makes the server panic counts as an error of the engine, and later calls go
// on.
func (c *Control) ask(ctx context.Context, s *source, f func(context.Context, *source)) {
	err := isolate.Call(func() { f(ctx, s) })
	if err == nil {
		return
	}
	s.answered(err)
	if s.said.again(time.Now()) {
		c.cfg.Log.Error("an answer of the engine made the server fail", "engine", s.Name, "error", err, isolate.Stack(err))
	}
}

// hear waits for changes that the engine reports. While it cannot, the engine is polled.
func (c *Control) hear(ctx context.Context, s *source, w engine.Watcher) {
	for ctx.Err() == nil {
		s.pushes.Store(true)
		err := isolate.Do(func() error { return w.Watch(ctx, s.pollNow) })
		s.pushes.Store(false)
		s.pollNow()
		if ctx.Err() == nil {
			c.cfg.Log.Warn("the engine stopped reporting changes; polling until it does", "engine", s.Name, "error", err,
				isolate.Stack(err))
			sleep(ctx, max(s.Timing.Poll, time.Second))
		}
	}
}

// marketState is the last known state of each offer.
type marketState struct {
	offers map[market.OfferID]market.Offer
	quotes map[market.OfferID]market.Quote
	bad    map[string]string // logged error of each bad offer or price
}

// sound reports whether an engine's statement about an offer may enter the permanent log, and logs once what is wrong
// with it. An invalid statement leaves the known state of the offer unchanged.
func (c *Control) sound(s *source, what string, id market.OfferID, err error) bool {
	key := what + " " + string(id)
	if err == nil {
		delete(s.market.bad, key)
		return true
	}
	if text := err.Error(); s.market.bad[key] != text {
		s.market.bad[key] = text
		c.cfg.Log.Error("what the engine says of an offer makes no sense and is left out: fix the market's file or "+
			"its feed", "engine", s.Name, "what", what, "offer", id, "error", err)
	}
	return false
}

// sells validates an offer of the engine.
func (s *source) sells(o *market.Offer, now time.Time) error {
	if err := cmp.Or(o.Validate(), limits.Numbers(*o, now)); err != nil {
		return err
	}
	if o.Provider != s.Name {
		return fmt.Errorf("its provider is %q, and the engine that sells it is %s", o.Provider, s.Name)
	}
	return nil
}

// pollMarket reports changes of the engine's market to the core.
func (c *Control) pollMarket(ctx context.Context, s *source) {
	offers, quotes, err := s.client.Offers(ctx)
	if ctx.Err() != nil {
		return
	}
	defer s.once.Do(func() { close(s.first) })
	if s.answered(err); err != nil {
		c.cfg.Log.Warn("prices not read", "engine", s.Name, "error", err, isolate.Stack(err))
		return
	}
	if s.market.offers == nil {
		s.market = marketState{offers: map[market.OfferID]market.Offer{}, quotes: map[market.OfferID]market.Quote{},
			bad: map[string]string{}}
	}
	seen := c.newsOf(s, offers, quotes)
	if len(seen.Offers)+len(seen.Quotes) == 0 {
		return
	}
	e := c.event(c.Now(), seen)
	e.Actor = s.actor()
	if c.Propose(ctx, e) == nil {
		for _, o := range seen.Offers {
			s.market.offers[o.ID] = o
		}
		for _, q := range seen.Quotes {
			s.market.quotes[q.Offer] = q
		}
	}
}

// newsOf returns what is new in the offers and quotes of an engine's answer. It leaves out invalid ones.
func (c *Control) newsOf(s *source, offers []market.Offer, quotes []market.Quote) (seen core.MarketSeen) {
	now := c.Now()
	left := map[market.OfferID]bool{}
	for _, o := range offers {
		if !c.sound(s, "offer", o.ID, s.sells(&o, now)) {
			left[o.ID] = true
			continue
		}
		if old, known := s.market.offers[o.ID]; !known || old != o {
			seen.Offers = append(seen.Offers, o)
		}
	}
	for _, q := range quotes {
		if left[q.Offer] || !c.sound(s, "price", q.Offer, cmp.Or(q.Validate(), limits.Numbers(q, now))) {
			continue
		}
		old, known := s.market.quotes[q.Offer]
		if !known || old.Rate != q.Rate || old.Priced != q.Priced || old.Available != q.Available {
			seen.Quotes = append(seen.Quotes, q)
		}
	}
	return seen
}
