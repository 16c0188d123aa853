package ssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/hostd"
	"scrimp/internal/engine/ssh/link"
)

// Launch implements engine.Driver. It records the chosen machines before it contacts them. If one
// of them refuses, it tries others.
func (d *Driver) Launch(ctx context.Context, r engine.Request) ([]engine.Instance, error) {
	if r.Key == "" {
		return nil, fmt.Errorf("%w: a launch needs a key", engine.ErrRequest)
	}
	if err := r.NoImage(); err != nil {
		return nil, err
	}
	d.reach(ctx)
	release, err := d.hold(ctx, r.Key)
	if err != nil {
		return nil, err
	}
	defer release()
	var why error
	for refused := map[string]bool{}; ; {
		d.mu.Lock()
		k := d.journal.Keys[r.Key]
		d.mu.Unlock()
		if k == nil || k.Refused {
			d.look(ctx) // find out which are free now
			if k, err = d.assignHosts(&r, refused); err != nil {
				return nil, cmp.Or(why, err)
			}
		}
		if k.GivenUp {
			return nil, cmp.Or(why, fmt.Errorf("launch %s was cancelled: %w", r.Key, engine.ErrNoCapacity))
		}
		list, err := d.launch(ctx, &r, k, refused)
		if err == nil || !errors.Is(err, engine.ErrNoCapacity) {
			return list, err
		}
		why = err
	}
}

// hold waits until no other call launches the key. Of two concurrent calls, one could be refused
// what the other was granted.
func (d *Driver) hold(ctx context.Context, key string) (release func(), err error) {
	for {
		d.mu.Lock()
		other := d.launching[key]
		if other == nil {
			over := make(chan struct{})
			d.launching[key] = over
			d.mu.Unlock()
			return func() {
				d.mu.Lock()
				defer d.mu.Unlock()
				delete(d.launching, key)
				close(over)
			}, nil
		}
		d.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// launch contacts the machines of a key. If some refuse, it adds them to refused and undoes the launch.
func (d *Driver) launch(ctx context.Context, r *engine.Request, k *launched,
	refused map[string]bool) ([]engine.Instance, error) {
	list := make([]engine.Instance, len(k.Hosts))
	errs := make([]error, len(k.Hosts))
	var asked sync.WaitGroup
	for rank, host := range k.Hosts {
		asked.Go(func() { list[rank], errs[rank] = d.start(ctx, r, k, rank, host) })
	}
	asked.Wait()
	err := errors.Join(errs...)
	if err == nil {
		return d.recordStarted(r.Key, k, list)
	}
	for rank, err := range errs {
		if err != nil && !engine.Refused(err) { // whatever started keeps running: the same key finds it
			return nil, d.abandon(r.Key, k, errors.Join(errs...))
		}
		refused[k.Hosts[rank]] = refused[k.Hosts[rank]] || err != nil
	}
	return nil, d.undo(ctx, r, k, list, err)
}

// abandon gives a launch up if one of its machines is lost and none is known to have started.
// Otherwise the job would wait for that machine as long as the core waits for an answer. abandon
// returns the launch's error.
func (d *Driver) abandon(key string, k *launched, why error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	lost := slices.ContainsFunc(k.Hosts, func(host string) bool {
		l := d.link(host)
		return l != nil && d.quiet(l) >= d.lost
	})
	if !lost || d.began(key, k) || d.journal.Keys[key] != k {
		return why
	}
	over := *k
	over.GivenUp = true
	if err := d.note(key, &over); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", why, engine.ErrNoCapacity)
}

// began reports whether an instance of a launch is known. The caller holds mu.
func (d *Driver) began(key string, k *launched) bool {
	for _, v := range d.seen {
		if slices.ContainsFunc(v.list, func(i engine.Instance) bool { return k.has(key, &i) }) {
			return true
		}
	}
	return false
}

// assignHosts assigns a key free machines that have not refused it, and records them.
func (d *Driver) assignHosts(r *engine.Request, refused map[string]bool) (*launched, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g, ok := d.groups()[r.Offer]
	if !ok {
		return nil, fmt.Errorf("offer %s: %w", r.Offer, engine.ErrNotFound)
	}
	if r.MaxRate > 0 && g.rate > r.MaxRate {
		return nil, fmt.Errorf("offer %s costs %v an hour, the request allows %v: %w", r.Offer, g.rate, r.MaxRate,
			engine.ErrPrice)
	}
	var free []string
	for _, l := range g.links {
		if d.free(l) && !refused[l.Host.Name] {
			free = append(free, l.Host.Name)
		}
	}
	if len(free) < r.Machines() {
		return nil, fmt.Errorf("%d of %d machines are free: %w", len(free), len(g.links), engine.ErrNoCapacity)
	}
	k := &launched{Hosts: free[:r.Machines()], Offer: r.Offer, Rate: g.rate, At: time.Now().UTC()}
	if before := d.journal.Keys[r.Key]; before != nil {
		k.Try = before.Try + 1
	}
	return k, d.note(r.Key, k)
}

// free reports whether a machine responds, nothing runs there, and no launch is pending. The caller holds mu.
func (d *Driver) free(l *link.Link) bool {
	_, connected, _, _ := l.State()
	v := d.seen[l.Host.Name]
	if !connected || l.Silent() || d.quiet(l) > d.lost {
		return false
	}
	if slices.ContainsFunc(v.list, func(i engine.Instance) bool { return i.State == engine.Running }) {
		return false
	}
	for key, k := range d.journal.Keys { // a pending launch
		if k.Over.IsZero() && slices.Contains(k.Hosts, l.Host.Name) &&
			!slices.ContainsFunc(v.list, func(i engine.Instance) bool { return k.has(key, &i) && i.State == engine.Ended }) &&
			(!k.GivenUp || !v.at.After(k.At.Add(link.AskTime))) {
			return false
		}
	}
	return true
}

// start asks one machine to start its part of a launch.
func (d *Driver) start(ctx context.Context, r *engine.Request, k *launched, rank int, host string) (engine.Instance,
	error) {
	l := d.link(host)
	if l == nil {
		return engine.Instance{}, fmt.Errorf("machine %s is no longer in the settings: %w", host, engine.ErrNoCapacity)
	}
	env := maps.Clone(r.Env)
	if env == nil {
		env = map[string]string{}
	}
	if at := l.Way.Server(); at != "" {
		env["SCRIMP_SERVER"] = at
	}
	a, err := l.Ask(ctx, hostd.Request{Do: "launch", Launch: &hostd.Launch{Key: k.keyOf(r.Key, rank),
		Name: d.name + "-" + host, Offer: r.Offer, Rate: *l.Host.Rate, At: k.At, Tags: r.Tags, Env: env}}, 2*link.AskTime)
	if err != nil {
		return engine.Instance{}, fmt.Errorf("%s: %w", host, err)
	}
	d.mu.Lock()
	a.Instances = d.believed(l, a.Instances)
	d.mu.Unlock()
	if len(a.Instances) != 1 {
		return engine.Instance{}, fmt.Errorf("machine %s answers with %d machines", host, len(a.Instances))
	}
	d.finish(&a.Instances[0])
	return a.Instances[0], nil
}

// recordStarted records started instances, so that the next request does not consider their machines free.
// It refuses a launch that was given up meanwhile; the next look ends its instances.
func (d *Driver) recordStarted(key string, k *launched, list []engine.Instance) ([]engine.Instance, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.journal.Keys[key] != k {
		return nil, fmt.Errorf("launch %s was cancelled: %w", key, engine.ErrNoCapacity)
	}
	for n, host := range k.Hosts {
		v := d.seen[host]
		if !slices.ContainsFunc(v.list, func(i engine.Instance) bool { return i.ID == list[n].ID }) {
			v.list = append(slices.Clone(v.list), list[n])
		}
		v.began = time.Now()
		d.seen[host] = v
	}
	return list, nil
}

// undo ends the started part of a launch that another machine refused, so that the launch counts as not rented.
func (d *Driver) undo(ctx context.Context, r *engine.Request, k *launched, list []engine.Instance, why error) error {
	for rank, i := range list {
		if i.ID == "" {
			continue
		}
		if _, err := d.link(k.Hosts[rank]).Ask(ctx, hostd.Request{Do: "end", Instance: i.ID}, link.AskTime); err != nil &&
			!errors.Is(err, engine.ErrNotFound) {
			return fmt.Errorf("%w; and cannot end %s: %w", errUndone, i.ID, err) // not a refusal, so the caller retries
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.journal.Keys[r.Key] != k { // another call was faster
		return why
	}
	over := *k
	over.Refused, over.Over = true, time.Now().UTC()
	if err := d.note(r.Key, &over); err != nil {
		return err
	}
	return why
}

// note records a key's launch, or leaves the journal unchanged on an error. The caller holds mu.
func (d *Driver) note(key string, k *launched) error {
	before := d.journal.Keys[key]
	d.journal.Keys[key] = k
	err := d.journal.write(d.dir)
	if err != nil {
		if d.journal.Keys[key] = before; before == nil {
			delete(d.journal.Keys, key)
		}
	}
	return err
}

var errUndone = errors.New("some of the machines refused")

// Cancel implements engine.Canceller. It does not wait for a missing answer: whatever started
// nevertheless is ended as soon as its machine responds.
func (d *Driver) Cancel(ctx context.Context, key string) error {
	d.look(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.journal.Keys[key]
	if k == nil || k.Refused || d.began(key, k) { // it was granted, or never will be
		return engine.ErrNotFound
	}
	over := *k
	over.GivenUp = true
	return d.note(key, &over)
}

// Terminate implements engine.Driver.
func (d *Driver) Terminate(ctx context.Context, id string) error {
	d.reach(ctx)
	for _, l := range d.links {
		if at, ok := strings.CutPrefix(id, d.name+"-"+l.Host.Name+"-"); ok && !strings.Contains(at, "-") {
			_, err := l.Ask(ctx, hostd.Request{Do: "end", Instance: id}, 2*link.AskTime)
			return err
		}
	}
	return fmt.Errorf("instance %q: %w", id, engine.ErrNotFound)
}
