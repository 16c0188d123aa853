package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"scrimp/internal/lib/isolate"
	"scrimp/internal/lib/wait"
	"scrimp/internal/market"
)

// ClientConfig says how patient a Client is. Spans are wall time.
type ClientConfig struct {
	Timeout time.Duration // of one call to the driver
	Tries   int           // calls at most before a request is given up as unanswered
	Wait    time.Duration // before the second call; each further wait is twice as long
	MaxWait time.Duration // a wait grows no longer than this
	Read    Limit         // List and Offers
	Act     Limit         // Launch and Terminate: of their own, so that looking never delays giving back
	// Jitter returns a fraction from 0 to below 1. It shortens each wait by up to
	// a half, so that those who failed together do not ask again together.
	Jitter func() float64
}

// Limit is how often calls may begin: Burst at once, and then one for each Every.
type Limit struct {
	Every time.Duration // 0 is no limit
	Burst int
}

// DefaultClient is gentler than what the clouds allow to an account.
func DefaultClient() ClientConfig {
	return ClientConfig{
		Timeout: 30 * time.Second, Tries: 4, Wait: 100 * time.Millisecond, MaxWait: 5 * time.Second,
		Read: Limit{Every: 50 * time.Millisecond, Burst: 20}, Act: Limit{Every: 100 * time.Millisecond, Burst: 20},
		Jitter: rand.Float64,
	}
}

// Validate says what is wrong.
func (c ClientConfig) Validate() error {
	switch {
	case c.Timeout <= 0, c.Wait <= 0, c.MaxWait < c.Wait:
		return fmt.Errorf("engine: timeout %v, wait %v, longest wait %v: all must be above zero, the longest wait the "+
			"longer one", c.Timeout, c.Wait, c.MaxWait)
	case c.Tries < 1:
		return fmt.Errorf("engine: %d tries: at least one is needed", c.Tries)
	case c.Read.Every < 0, c.Act.Every < 0, c.Read.Every > 0 && c.Read.Burst < 1, c.Act.Every > 0 && c.Act.Burst < 1:
		return errors.New("engine: a limit needs a span of zero or more, and a burst of at least one")
	case c.Jitter == nil:
		return errors.New("engine: no source of jitter")
	}
	return nil
}

// Client rents machines: a Driver, and what every cloud needs alike. It limits
// how often the driver is called and how long a call may take, and calls again
// what was not answered: reads, Terminate, which is idempotent, and Launch, which
// is by its key. A refusal is returned at once.
type Client struct {
	driver Driver
	clocks clocks
	cfg    ClientConfig
	read   pace
	act    pace
}

var _ Driver = (*Client)(nil)

// NewClient returns a Client over d. It panics where cfg is not valid, which is a bug.
func NewClient(d Driver, cfg ClientConfig) *Client {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	return &Client{driver: d, cfg: cfg, read: pace{limit: cfg.Read}, act: pace{limit: cfg.Act}}
}

// Open returns a Client of the engine that speaks in times by the clock on.
func (e *Engine) Open(on Clock) *Client {
	cfg := DefaultClient()
	if e.Client != nil {
		cfg = *e.Client
	}
	c := NewClient(e.Driver, cfg)
	c.clocks = clocks{to: on, from: e.Clock}
	return c
}

// Launch rents the machines of a request, once for each key however often it is called. An
// error that is ErrUnanswered leaves open whether it did: ask again with the same key. Beside
// ErrPending it returns what is granted of them so far, and beside a refusal all that will be.
func (c *Client) Launch(ctx context.Context, r Request) ([]Instance, error) {
	if r.Key == "" || r.Nodes < 0 {
		return nil, fmt.Errorf("launch %s: %w: %d machines with key %q: a request without a key could rent twice", r.Offer,
			ErrRequest, r.Nodes, r.Key)
	}
	var list []Instance
	err := c.call(ctx, &c.act, func(ctx context.Context) error {
		var err error
		list, err = c.driver.Launch(ctx, r)
		part := Refused(err) && len(list) > 0 && len(list) < r.Machines()
		if err != nil && !errors.Is(err, ErrPending) && !part {
			list = nil
			return err
		}
		if wrong := answered(&r, list, err != nil); wrong != nil {
			return wrong // not acted on: a sweep finds what was rented, by its tag
		}
		return err
	})
	if err != nil && !errors.Is(err, ErrPending) && !Refused(err) {
		return nil, fmt.Errorf("launch %s: %w", r.Offer, err)
	}
	list = c.clocks.instances(list)
	if err != nil {
		return list, fmt.Errorf("launch %s: %w", r.Offer, err)
	}
	return list, nil
}

// answered says what is wrong with the machines that a request is answered with.
func answered(r *Request, list []Instance, pending bool) error {
	most := r.Machines()
	if pending {
		most-- // one waits at least
	}
	if len(list) > most || len(list) == 0 && !pending {
		return fmt.Errorf("the answer has %d machines of the %d that the request asks for, pending: %v", len(list),
			r.Machines(), pending)
	}
	ids := map[string]bool{}
	for _, i := range list {
		if i.ID == "" || ids[i.ID] || i.Key != r.Key || i.Launched.IsZero() {
			return fmt.Errorf("the answer names instance %q with key %q from %v, twice: %v; the request has key %q", i.ID,
				i.Key, i.Launched, ids[i.ID], r.Key)
		}
		ids[i.ID] = true
	}
	return nil
}

// Terminate gives an instance back. ErrNotFound means that the goal is reached.
func (c *Client) Terminate(ctx context.Context, id string) error {
	if err := c.call(ctx, &c.act, func(ctx context.Context) error { return c.driver.Terminate(ctx, id) }); err != nil {
		return fmt.Errorf("terminate %s: %w", id, err)
	}
	return nil
}

// Cancel gives up what is not granted of a launch, where the driver can have one.
func (c *Client) Cancel(ctx context.Context, key string) error {
	d, ok := c.driver.(Canceller)
	if !ok {
		return nil
	}
	if err := c.call(ctx, &c.act, func(ctx context.Context) error { return d.Cancel(ctx, key) }); err != nil {
		return fmt.Errorf("cancel %s: %w", key, err)
	}
	return nil
}

// List returns what carries our tag, as the driver has it.
func (c *Client) List(ctx context.Context) ([]Instance, error) {
	var list []Instance
	err := c.call(ctx, &c.read, func(ctx context.Context) error {
		var err error
		list, err = c.driver.List(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list instances: %w", err)
	}
	return c.clocks.instances(list), nil
}

// Offers returns what can be bought now.
func (c *Client) Offers(ctx context.Context) ([]market.Offer, []market.Quote, error) {
	var offers []market.Offer
	var quotes []market.Quote
	err := c.call(ctx, &c.read, func(ctx context.Context) error {
		var err error
		offers, quotes, err = c.driver.Offers(ctx)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read offers: %w", err)
	}
	offers, quotes = c.clocks.sale(offers, quotes)
	return offers, quotes, nil
}

// Bills returns the bills that became known or changed since a time on the wall; none
// where the driver has none besides those of its list.
func (c *Client) Bills(ctx context.Context, since time.Time) ([]Bill, error) {
	d, ok := c.driver.(Biller)
	if !ok {
		return nil, nil
	}
	var bills []Bill
	err := c.call(ctx, &c.read, func(ctx context.Context) error {
		var err error
		bills, err = d.Bills(ctx, since)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read bills: %w", err)
	}
	bills = slices.Clone(bills)
	for n := range bills {
		bills[n].Lines = c.clocks.lines(bills[n].Lines)
	}
	return bills, nil
}

// call calls f until it is answered, refused, or given up.
func (c *Client) call(ctx context.Context, pace *pace, f func(context.Context) error) error {
	span := c.cfg.Wait
	for try := 1; ; try++ {
		if err := pace.wait(ctx); err != nil {
			return fmt.Errorf("%w: %w", ErrUnanswered, err)
		}
		within, cancel := context.WithTimeoutCause(ctx, c.cfg.Timeout, fmt.Errorf("no answer within %v", c.cfg.Timeout))
		err := isolate.Do(func() error { return f(within) })
		if failed, ok := errors.AsType[*isolate.PanicError](err); ok { // who calls waits longer than a second try would
			cancel()
			return fmt.Errorf("%w: %w", ErrUnanswered, failed)
		}
		if err != nil && within.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", context.Cause(within), err)
		}
		cancel()
		pause := span - time.Duration(float64(span/2)*c.cfg.Jitter())
		switch said := waitOf(err); {
		case errors.Is(err, ErrThrottled) && said <= c.cfg.MaxWait:
			pause = max(pause, said)
			pace.hold(pause) // for all who ask, not for this request alone
		case errors.Is(err, ErrThrottled):
			pace.hold(c.cfg.MaxWait)
			return err // nothing was done: who asks may do something else meanwhile
		case err == nil, Refused(err), errors.Is(err, ErrPending):
			return err
		}
		if try >= c.cfg.Tries || ctx.Err() != nil {
			return fmt.Errorf("%w after %d tries: %w", ErrUnanswered, try, err)
		}
		if wait.For(ctx, pause) != nil {
			return fmt.Errorf("%w: %w: %w", ErrUnanswered, context.Cause(ctx), err)
		}
		span = min(2*span, c.cfg.MaxWait)
	}
}

// waitOf is how long the engine asks to be left alone; 0: it does not say.
func waitOf(err error) time.Duration {
	var r *RefusalError
	if errors.As(err, &r) {
		return r.Wait
	}
	return 0
}

// Refused reports whether err is a clear no: nothing was done beyond what is told beside it,
// and asking the same again at once is useless. Every other error leaves open what was done.
func Refused(err error) bool {
	if errors.Is(err, ErrUnanswered) { // of some try
		return false
	}
	if errors.Is(err, ErrThrottled) && waitOf(err) > 0 {
		return true
	}
	for _, no := range []error{ErrNoCapacity, ErrQuota, ErrPrice, ErrNotFound, ErrRequest, ErrImage} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// pace holds calls to a limit. It remembers one time only: when the next call
// may begin if the whole burst is spent.
type pace struct {
	limit Limit
	mu    sync.Mutex
	full  time.Time // when the burst is whole again, with every call so far
	held  time.Time // nobody begins before
}

// wait returns when the next call may begin.
func (p *pace) wait(ctx context.Context) error {
	return wait.For(ctx, time.Until(p.take(time.Now())))
}

// take books a call and returns when it may begin.
func (p *pace) take(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := now
	if p.limit.Every > 0 {
		if p.full.Before(now) {
			p.full = now
		}
		p.full = p.full.Add(p.limit.Every)
		if begin := p.full.Add(-time.Duration(p.limit.Burst) * p.limit.Every); begin.After(at) {
			at = begin
		}
	}
	if p.held.After(at) {
		at = p.held
	}
	return at
}

// hold lets nobody begin for a while.
func (p *pace) hold(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := time.Now().Add(d); until.After(p.held) {
		p.held = until
	}
}
