//go:build !local

// Package kube rents machines from a Kubernetes cluster as an ordinary user of one namespace. A machine is a pod of a
// Job, in the user's image, into which an init container puts scrimp's agent. The cluster contains all that is known
// of a request, so that any server finds it.
package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"

	"scrimp/internal/engine"
	"scrimp/internal/engine/kube/client"
	"scrimp/internal/engine/kube/mirror"
	"scrimp/internal/engine/kube/pool"
	"scrimp/internal/engine/kube/price"
	"scrimp/internal/engine/kube/reason"
	"scrimp/internal/engine/kube/record"
	"scrimp/internal/market"
)

// Kind is the kind of this package's engines.
const Kind = pool.Kind

// usual is a cluster's typical timing. The watch has already delivered what a poll returns.
var usual = engine.Timing{Poll: 2 * time.Second, Sweep: time.Minute, Boot: 15 * time.Minute, Start: 30 * time.Second,
	Consistency: 15 * time.Second, GrantWait: time.Minute, Detect: 10 * time.Second}

// Driver implements engine.Driver for one namespace of a cluster.
type Driver struct {
	name   string
	with   pool.With
	server string // the server's address, as given to agents
	log    *slog.Logger
	start  time.Duration         // how long a launch waits for its pods to start
	wrap   transport.WrapperFunc // sees each request; nil: none

	mirror  *mirror.Mirror
	changes chan struct{} // signals a change
	records *record.Store
	prices  *price.Prices

	looking chan struct{} // serialises checks whether the API server answers

	mu       sync.Mutex
	api      *client.Client // nil: not connected
	stop     context.CancelFunc
	answered time.Time // last answer of the API server
	failed   time.Time // last failure to answer, with the error failure; zero: it has answered since
	failure  error
	turns    engine.Turns
	troubles map[string]trouble // by pool
}

// trouble is what kept a pod from working for us.
type trouble struct {
	at   time.Time
	text string
}

// troubleFor is how long no machine is rented from a pool after one could not start its work.
const troubleFor = 2 * time.Minute

var (
	_ engine.Driver    = (*Driver)(nil)
	_ engine.Canceller = (*Driver)(nil)
	_ engine.Watcher   = (*Driver)(nil)
	_ engine.Examiner  = (*Driver)(nil)
)

var quiet sync.Once

// Open opens the engine of a cluster without contacting it, so it succeeds while the cluster does not answer.
func Open(_ context.Context, s engine.Setting, h engine.Host) (engine.Engine, error) {
	with, err := pool.Read(&s)
	if err != nil {
		return engine.Engine{}, err
	}
	if s.Agents == "" || s.Agents == "socket" || s.Agents == "ssh" {
		return engine.Engine{}, errors.New("agents: pods do not reach the server's socket: write agents: " +
			"listen, or the URL " +
			"by which pods reach the server, such as http://scrimp.NAMESPACE.svc:7077")
	}
	agents, err := h.AgentURL(s)
	switch {
	case err != nil && h.Trial: // doctor checks the rest all the same
		agents = ""
	case err != nil && s.Agents != "listen":
		return engine.Engine{}, err
	case err != nil:
		return engine.Engine{}, errors.New("agents: listen: the server listens on no address, or on any port that is " +
			"free: start it with scrimp serve --listen HOST:PORT, an address that pods reach, or write its URL")
	}
	d := newDriver(s.Name, with)
	d.server, d.prices.Dir = agents, h.Dir
	if h.Log != nil {
		d.log, d.records.Log, d.prices.Log = h.Log, h.Log, h.Log
	}
	quiet.Do(func() { klog.SetSlogLogger(d.log.With("part", "client-go")) })
	client := engine.DefaultClient()
	client.Act = engine.Limit{Every: 5 * time.Millisecond, Burst: 200} // requests have their own limit
	return engine.Engine{Name: s.Name, Kind: Kind, Driver: d, Timing: s.Timing.Over(usual), AgentURL: agents,
		Users: cmp.Or(s.Users, engine.UsersSame), Seats: int(s.Seats), Client: &client}, nil
}

func newDriver(name string, with pool.With) *Driver {
	d := &Driver{name: name, with: with, log: slog.New(slog.DiscardHandler), start: 2 * time.Second,
		changes: make(chan struct{}, 1), looking: make(chan struct{}, 1), records: record.NewStore(name),
		troubles: map[string]trouble{}}
	d.prices = price.New(name, &d.with)
	d.mirror = mirror.New(func() {
		select {
		case d.changes <- struct{}{}:
		default: // a signal is already pending
		}
	})
	return d
}

// freshFor is how long an answer of the API server counts for later callers.
const freshFor = 2 * time.Second

// look connects if necessary, waits until all pods are known, and returns the client once the API server answers.
func (d *Driver) look(ctx context.Context) (*client.Client, error) {
	came := time.Now()
	select {
	case d.looking <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-d.looking }()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	d.mu.Lock()
	a, fresh, read := d.api, time.Since(d.answered) < freshFor, time.Since(d.records.ReadAt()) < loadEvery
	failed, failure := d.failed, d.failure
	d.mu.Unlock()
	switch {
	case failed.After(came): // another caller has just tried
		return nil, failure
	case a != nil && fresh && read && !d.mirror.Since().IsZero():
		return a, nil
	}
	a, err := d.connected(ctx, a)
	if err != nil {
		d.disconnect(err)
		err = d.explain(err)
		if ctx.Err() == nil {
			d.mu.Lock()
			d.failed, d.failure = time.Now(), err
			d.mu.Unlock()
		}
		return nil, err
	}
	if !failed.IsZero() { // changes during the failure were not heard
		d.mirror.Anew()
		d.mu.Lock()
		d.failed = time.Time{}
		d.mu.Unlock()
	}
	if !read {
		if err := d.records.Load(ctx, a); err != nil {
			return nil, d.explain(err)
		}
	}
	if err := d.awaitPods(ctx); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answered = time.Now()
	return a, nil
}

// awaitPods waits until the mirror knows all pods, at most ten seconds.
func (d *Driver) awaitPods(ctx context.Context) error {
	for until := time.Now().Add(10 * time.Second); d.mirror.Since().IsZero(); {
		if time.Now().After(until) {
			return fmt.Errorf("the cluster's pods are not listed yet: scrimp doctor %s says whether this user may list "+
				"them", d.name)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// connected returns the client once the API server has answered this user.
func (d *Driver) connected(ctx context.Context, a *client.Client) (*client.Client, error) {
	begin := a == nil
	if begin {
		var err error
		if a, err = client.Connect(&d.with, d.wrap); err != nil {
			return nil, err
		}
	}
	if err := a.Answers(ctx); err != nil {
		return nil, err
	}
	if begin {
		following, stop := context.WithCancel(context.Background())
		go d.mirror.Follow(following, a, client.LabelEngine+"="+d.name)
		d.mu.Lock()
		d.api, d.stop = a, stop
		d.mu.Unlock()
	}
	return a, nil
}

// disconnect makes the driver read the credentials again if they were refused, because they may have been renewed.
func (d *Driver) disconnect(why error) {
	if !reason.UnknownUser(why) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop != nil {
		d.stop()
	}
	d.api, d.stop = nil, nil
}

// close ends the watch.
func (d *Driver) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop != nil {
		d.stop()
	}
	d.api, d.stop = nil, nil
}

// Watch implements engine.Watcher.
func (d *Driver) Watch(ctx context.Context, changed func()) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-d.changes:
			changed()
		}
		select { // reports changes that come meanwhile together
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Offers implements engine.Driver. A machine in use still counts as available: its launch waits for a node.
func (d *Driver) Offers(ctx context.Context) ([]market.Offer, []market.Quote, error) {
	a, err := d.look(ctx)
	if err != nil {
		return nil, nil, err
	}
	d.prices.Refresh(ctx, a)
	sales := d.prices.Sales()
	offers, quotes := make([]market.Offer, len(sales)), make([]market.Quote, len(sales))
	for n, s := range sales {
		if left, _ := d.troubled(s.Of.Name); left > 0 {
			s.Quote.Available = false
		}
		offers[n], quotes[n] = s.Offer, s.Quote
	}
	return offers, quotes, nil
}

// troubled returns for how long no machine of a pool is rented yet, and why.
func (d *Driver) troubled(pool string) (time.Duration, string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, bad := d.troubles[pool]
	if left := troubleFor - time.Since(t.at); bad && left > 0 {
		return left, t.text
	}
	return 0, ""
}

func (d *Driver) trouble(pool, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.troubles[pool] = trouble{time.Now(), text}
}
