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

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/engine"
	"scrimp/internal/lib/isolate"
	"scrimp/internal/market"
	"scrimp/internal/wire/bound"
)

// source is an engine that is configured, and what it was heard to say. Each is watched in
// a goroutine of its own, so that one that does not answer delays nothing of the others.
type source struct {
	engine.Engine
	client *engine.Client
	market marketState               // of its goroutine
	bills  bills                     // of its goroutine
	said   seldom                    // when its goroutine reports the next panic
	others []engine.Instance         // of other installations, in its newest inventory; guarded by Control.mu
	away   atomic.Pointer[error]     // why it did not answer the last time; nil: it did
	heard  atomic.Pointer[time.Time] // when it answered last; nil: never
	pushes atomic.Bool               // it tells of changes by itself
	// changed asks for a poll now: the engine told of a change, or an agent of a notice.
	changed chan struct{}
	// first is closed when it has said for the first time what it sells, or could not.
	first chan struct{}
	once  sync.Once
}

func newSource(e engine.Engine, on Clock) *source {
	return &source{Engine: e, client: e.Open(on), changed: make(chan struct{}, 1), first: make(chan struct{})}
}

// Priced returns when every engine has said once what it sells, or could not, or when ctx is done.
func (c *Control) Priced(ctx context.Context) {
	for _, s := range c.sources {
		select {
		case <-s.first:
		case <-ctx.Done():
			return
		}
	}
}

// pollNow asks for a poll.
func (s *source) pollNow() {
	select {
	case s.changed <- struct{}{}:
	default: // it is about to be polled
	}
}

// actor is who an event of the engine is by.
func (s *source) actor() string { return "provider:" + s.Name }

// answered notes whether the engine answered.
func (s *source) answered(err error) {
	if err != nil {
		s.away.Store(&err)
		return
	}
	now := time.Now()
	s.away.Store(nil)
	s.heard.Store(&now)
}

// sourceOf is the engine of that name; nil: none of the configured ones.
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

// without says what is left undone because its engine is not configured: it is done once
// a server with that engine starts.
func (c *Control) without(name, what string) {
	c.cfg.Log.Error(what+" until its engine is configured again", "engine", name, "fix", noEngine(name))
}

// EngineStatus is how an engine stands.
type EngineStatus struct {
	Name, Kind, AgentURL string
	Clock                Clock
	Timing               engine.Timing
	Seats                int       // tasks that a machine may have at once; 0: one
	Configured           bool      // false: machines of it are known only
	Heard                time.Time // when it answered last; zero: never
	Err                  error     // why it did not answer the last time; nil: it did
	Machines             int       // that cost something now, as far as is known
}

// Engines says how the configured engines stand, and those that are not any more while
// something of theirs may still cost something.
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

// How long a job that is over stays in memory, on the wall: one all of whose machines are
// billed, and one whose bills may come.
const (
	archiveAfter    = 24 * time.Hour
	archiveUnbilled = 7 * 24 * time.Hour
)

// Rules are what the core works by with these engines.
func (c *Control) Rules() core.Config {
	engines := make([]engine.Engine, len(c.sources))
	for n, s := range c.sources {
		engines[n] = s.Engine
	}
	rules := CoreConfig(c.cfg.Clock, engines)
	rules.MaxRunning = cmp.Or(c.cfg.Running, rules.MaxRunning)
	if c.cfg.Archive != nil {
		rules.ArchiveAfter = c.cfg.Clock.Stretch(archiveAfter)
		rules.ArchiveUnbilled = c.cfg.Clock.Stretch(archiveUnbilled)
	}
	return rules
}

// CoreConfig is the core's configuration with these engines, in market time.
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
			sleep(ctx, flushEvery)
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

// follow polls and sweeps an engine at its own pace. One that tells of changes by itself is
// asked when it does, and with each sweep.
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

// ask asks the engine for something. An answer that makes the server panic is the engine's error, and keeps nobody
// from asking for something else.
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

// hear lets the engine tell of changes. While it cannot, it is polled.
func (c *Control) hear(ctx context.Context, s *source, w engine.Watcher) {
	for ctx.Err() == nil {
		s.pushes.Store(true)
		err := isolate.Do(func() error { return w.Watch(ctx, s.pollNow) })
		s.pushes.Store(false)
		s.pollNow()
		if ctx.Err() == nil {
			c.cfg.Log.Warn("the engine tells of changes no more: it is polled, and asked again", "engine", s.Name, "error", err,
				isolate.Stack(err))
			sleep(ctx, max(s.Timing.Poll, time.Second))
		}
	}
}

// marketState is what the core was last told of each offer.
type marketState struct {
	offers map[market.OfferID]market.Offer
	quotes map[market.OfferID]market.Quote
	bad    map[string]string // what is wrong with an offer or its price, as it was logged
}

// sound reports whether what an engine says of an offer may enter the log,
// which is for ever, and says once what keeps it out. What was known of the offer
// before stays as it was.
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

// sells checks an offer of the engine.
func (s *source) sells(o *market.Offer, now time.Time) error {
	if err := cmp.Or(o.Validate(), bound.Numbers(*o, now)); err != nil {
		return err
	}
	if o.Provider != s.Name {
		return fmt.Errorf("its provider is %q, and the engine that sells it is %s", o.Provider, s.Name)
	}
	return nil
}

// pollMarket tells the core what changed on the engine's market.
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

// newsOf is what is new of the offers and prices that an engine has answered with. What is not sound is left out.
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
		if left[q.Offer] || !c.sound(s, "price", q.Offer, cmp.Or(q.Validate(), bound.Numbers(q, now))) {
			continue
		}
		old, known := s.market.quotes[q.Offer]
		if !known || old.Rate != q.Rate || old.Priced != q.Priced || old.Available != q.Available {
			seen.Quotes = append(seen.Quotes, q)
		}
	}
	return seen
}
