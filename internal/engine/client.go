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

// ClientConfig holds the timeouts, retries and rate limits of a Client. Spans are wall time.
type ClientConfig struct {
	Timeout time.Duration // of one call to the driver
	Tries   int           // most calls before a request fails as unanswered
	Wait    time.Duration // before the second call; doubles with each retry
	MaxWait time.Duration // longest wait
	Read    Limit         // List and Offers
	Act     Limit         // Launch and Terminate; separate, so that reads never delay a termination
	// Jitter returns a fraction from 0 to below 1. It shortens each wait by up to half, so that
	// requests that failed together are not retried together.
	Jitter func() float64
}

// Limit is a rate limit: Burst calls at once, then one per Every.
type Limit struct {
	Every time.Duration // 0: no limit
	Burst int
}

// DefaultClient returns limits below those of the clouds.
func DefaultClient() ClientConfig {
	return ClientConfig{
		Timeout: 30 * time.Second, Tries: 4, Wait: 100 * time.Millisecond, MaxWait: 5 * time.Second,
		Read: Limit{Every: 50 * time.Millisecond, Burst: 20}, Act: Limit{Every: 100 * time.Millisecond, Burst: 20},
		Jitter: rand.Float64,
	}
}

// Validate returns an error that names what is wrong.
func (c ClientConfig) Validate() error {
	switch {
	case c.Timeout <= 0, c.Wait <= 0, c.MaxWait < c.Wait:
		return fmt.Errorf("engine: timeout %v, wait %v, longest wait %v: all must be above zero, and the longest wait not "+
			"below the "+
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

// Client calls a Driver and adds what every cloud needs. It limits the rate and duration of calls
// and retries unanswered ones: reads, Terminate, which is idempotent, and Launch, which its key
// makes idempotent. It returns a refusal at once.
type Client struct {
	driver Driver
	clocks clocks
	cfg    ClientConfig
	read   pace
	act    pace
}

var _ Driver = (*Client)(nil)

// NewClient returns a Client for d. It panics if cfg is invalid, which is a bug.
func NewClient(d Driver, cfg ClientConfig) *Client {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	return &Client{driver: d, cfg: cfg, read: pace{limit: cfg.Read}, act: pace{limit: cfg.Act}}
}

// Open returns a Client of the engine whose times follow the clock on.
func (e *Engine) Open(on Clock) *Client {
	cfg := DefaultClient()
	if e.Client != nil {
		cfg = *e.Client
	}
	c := NewClient(e.Driver, cfg)
	c.clocks = clocks{to: on, from: e.Clock}
	return c
}

// Launch rents the machines of a request, once for each key. After ErrUnanswered it is unknown
// whether it did: call again with the same key. With ErrPending it also returns the machines
// granted so far, and with a refusal the only ones that will be.
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
			return wrong // ignore the answer: a sweep finds the machines by their tag
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

// answered returns an error if a driver's answer does not match the request.
func answered(r *Request, list []Instance, pending bool) error {
	most := r.Machines()
	if pending {
		most-- // at least one is pending
	}
	if len(list) > most || len(list) == 0 && !pending {
		return fmt.Errorf("the answer has %d machines, the request asks for %d, pending: %v", len(list),
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

// Terminate ends the rental of an instance. ErrNotFound means success.
func (c *Client) Terminate(ctx context.Context, id string) error {
	if err := c.call(ctx, &c.act, func(ctx context.Context) error { return c.driver.Terminate(ctx, id) }); err != nil {
		return fmt.Errorf("terminate %s: %w", id, err)
	}
	return nil
}

// Cancel gives up the part of a launch that is not granted, if the driver has pending launches.
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

// List returns the instances with the server's tag.
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

// Offers returns what is for sale now.
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

// Bills returns the bills that became known or changed since a wall time. It returns none if the
// driver has no bills besides those of List.
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

// call calls f until it succeeds, is refused, or is out of tries.
func (c *Client) call(ctx context.Context, pace *pace, f func(context.Context) error) error {
	span := c.cfg.Wait
	for try := 1; ; try++ {
		if err := pace.wait(ctx); err != nil {
			return fmt.Errorf("%w: %w", ErrUnanswered, err)
		}
		within, cancel := context.WithTimeoutCause(ctx, c.cfg.Timeout, fmt.Errorf("no answer within %v", c.cfg.Timeout))
		err := isolate.Do(func() error { return f(within) })
		if failed, ok := errors.AsType[*isolate.PanicError](err); ok { // the caller waits longer than a retry would
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
			pace.hold(pause) // for all callers, not only this request
		case errors.Is(err, ErrThrottled):
			pace.hold(c.cfg.MaxWait)
			return err // nothing was done: the caller may do something else meanwhile
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

// waitOf returns how long the engine asks callers to wait; 0: unknown.
func waitOf(err error) time.Duration {
	var r *RefusalError
	if errors.As(err, &r) {
		return r.Wait
	}
	return 0
}

// Refused reports whether err is a definite refusal: nothing was done beyond what the call
// returned, and retrying at once is useless. After any other error it is unknown what was done.
func Refused(err error) bool {
	if errors.Is(err, ErrUnanswered) { // of some try
		return false
	}
	if errors.Is(err, ErrThrottled) && waitOf(err) > 0 {
		return true
	}
	definite := []error{ErrNoCapacity, ErrQuota, ErrPrice, ErrNotFound, ErrRequest, ErrImage}
	return slices.ContainsFunc(definite, func(no error) bool { return errors.Is(err, no) })
}

// pace enforces a rate limit. It stores a single time: when the whole burst is available again.
type pace struct {
	limit Limit
	mu    sync.Mutex
	full  time.Time // when the burst is full again, after all calls so far
	held  time.Time // no call may start before
}

// wait returns when the next call may start.
func (p *pace) wait(ctx context.Context) error {
	return wait.For(ctx, time.Until(p.take(time.Now())))
}

// take reserves a call and returns when it may start.
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

// hold blocks all calls for a while.
func (p *pace) hold(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := time.Now().Add(d); until.After(p.held) {
		p.held = until
	}
}
