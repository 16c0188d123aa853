package ssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/hostd"
	"scrimp/internal/engine/ssh/link"
	"scrimp/internal/engine/ssh/setting"
	"scrimp/internal/lib/isolate"
	"scrimp/internal/market"
)

// defaultLost is how long a machine may be silent before its instances count as lost. It tolerates a
// cable that is out for 20 s, with the time between two beats before it and the time to reconnect
// after it. For another detection time the driver uses the same fraction.
const defaultLost = 24 * time.Second

// Driver rents out the user's own machines.
type Driver struct {
	name string
	dir  string
	with *setting.With
	lost time.Duration // how long a machine may be silent before its instances count as lost
	log  *slog.Logger

	ctx  context.Context // for the connections
	stop context.CancelFunc

	asking sync.WaitGroup // requests whose answer nobody waits for
	links  []*link.Link
	opened time.Time
	first  sync.Once
	// reached is closed once every machine was reached or has failed once.
	reached chan struct{}

	mu      sync.Mutex
	journal *journal
	seen    map[string]inventory // last inventory by host
	// launching holds a channel per key that is being launched; it is closed when that call ends.
	launching map[string]chan struct{}
}

// inventory is a machine's last answer about its instances.
type inventory struct {
	list []engine.Instance
	at   time.Time // time of the request, so the list is no older; zero: never
	// began is when the machine last started an instance. An answer to an earlier request may lack it.
	began time.Time
}

var (
	_ engine.Driver    = (*Driver)(nil)
	_ engine.Canceller = (*Driver)(nil)
)

func newDriver(name, dir string, with *setting.With, detect time.Duration, log *slog.Logger) (*Driver, error) {
	j, err := readJournal(dir)
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	d := &Driver{name: name, dir: dir, with: with, log: log.With("engine", name), journal: j, opened: time.Now(),
		lost: time.Duration(float64(detect) * float64(defaultLost) / float64(usual.Detect)),
		seen: map[string]inventory{}, reached: make(chan struct{}),
		launching: map[string]chan struct{}{}}
	d.ctx, d.stop = context.WithCancel(context.Background())
	return d, nil
}

// add adds a machine and the way to reach it.
func (d *Driver) add(m *setting.Machine, w link.Way) {
	d.links = append(d.links, link.New(m, w, d.log, d.journal.Facts[m.Name]))
}

// Close implements engine.Closer. Instances on the machines keep running.
func (d *Driver) Close(context.Context) error {
	d.stop()
	d.asking.Wait()
	return nil
}

// firstWait is how long the first call waits for the machines.
const firstWait = 25 * time.Second

// reach starts the connections on the first call, and waits until each is established or has failed
// once. Otherwise the first job after a start would find nothing for sale.
func (d *Driver) reach(ctx context.Context) {
	d.first.Do(func() {
		for _, l := range d.links {
			l.Begin(d.ctx)
		}
		d.asking.Go(func() {
			defer close(d.reached)
			ctx, cancel := context.WithTimeout(d.ctx, firstWait)
			defer cancel()
			d.each(func(l *link.Link) { _ = l.Until(ctx) })
		})
	})
	select {
	case <-d.reached:
	case <-ctx.Done():
	}
}

// each calls do for all machines concurrently.
func (d *Driver) each(do func(*link.Link)) {
	var asked sync.WaitGroup
	for _, l := range d.links {
		asked.Go(func() { do(l) })
	}
	asked.Wait()
}

func (d *Driver) link(host string) *link.Link {
	for _, l := range d.links {
		if l.Host.Name == host {
			return l
		}
	}
	return nil
}

// List implements engine.Driver. It leaves out the instances of a machine that has been silent for
// longer than lost: they count as lost until the machine responds again.
func (d *Driver) List(ctx context.Context) ([]engine.Instance, error) {
	d.reach(ctx)
	d.look(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []engine.Instance
	for _, l := range d.links {
		known := d.seen[l.Host.Name]
		switch quiet := d.quiet(l); {
		case known.at.IsZero() && quiet < d.lost && d.served(l.Host.Name):
			_, _, _, why := l.State()
			return nil, fmt.Errorf("machine %s has not answered yet: %w", l.Host.Name, cmp.Or(why, errors.New("no connection")))
		case quiet < d.lost:
			for _, i := range known.list {
				if d.made(l, &i) {
					list = append(list, i)
				}
			}
		}
	}
	return list, nil
}

// quiet returns how long a machine has been silent. The caller holds mu.
func (d *Driver) quiet(l *link.Link) time.Duration {
	at := cmp.Or(d.seen[l.Host.Name].at, d.opened)
	if _, _, heard, _ := l.State(); heard.After(at) {
		at = heard
	}
	return time.Since(at)
}

// Away implements engine.Absence.
func (d *Driver) Away() (list []engine.AwayMachine) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.links {
		_, connected, _, why := l.State()
		switch quiet := d.quiet(l); {
		case !connected && why != nil:
			list = append(list, engine.AwayMachine{Name: l.Host.Name, Err: why})
		case quiet >= d.lost:
			list = append(list, engine.AwayMachine{Name: l.Host.Name,
				Err: fmt.Errorf("%s has been silent for %v", l.Host.Name, quiet.Round(time.Second))})
		}
	}
	return list
}

// served reports whether the journal contains a launch on a machine, even an ended one, whose end
// the server may not know. The caller holds mu.
func (d *Driver) served(host string) bool {
	for _, k := range d.journal.Keys {
		if slices.Contains(k.Hosts, host) {
			return true
		}
	}
	return false
}

// look asks every machine for its instances, and ends those that were given up meanwhile. It does
// not wait for a silent machine, and processes the answer whenever it comes.
func (d *Driver) look(ctx context.Context) {
	d.each(func(l *link.Link) {
		quiet := l.Silent()
		if quiet && !l.MayAsk() {
			return
		}
		said := make(chan struct{})
		d.asking.Go(func() {
			defer close(said)
			if err := isolate.Call(func() { d.inquire(d.ctx, l) }); err != nil {
				d.log.Error("a machine's answer caused a panic", "host", l.Host.Name, "error", err, isolate.Stack(err))
			}
			if quiet {
				l.WasAsked()
			}
		})
		if quiet {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, link.LookTime)
		defer cancel()
		select {
		case <-said:
		case <-ctx.Done():
		}
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget()
}

// inquire asks one machine for its instances.
func (d *Driver) inquire(ctx context.Context, l *link.Link) {
	asked := time.Now()
	a, err := l.Ask(ctx, hostd.Request{Do: "list"}, link.AskTime)
	if err != nil {
		return
	}
	for _, id := range d.heard(l, &a, asked) {
		if _, err := l.Ask(ctx, hostd.Request{Do: "end", Instance: id}, link.AskTime); err != nil {
			d.log.Warn("cannot end an instance that was given up yet", "instance", id, "error", err)
		}
	}
}

// heard records a machine's answer about its instances, and returns those that must be ended.
func (d *Driver) heard(l *link.Link, a *hostd.Answer, asked time.Time) (unwanted []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n := range a.Instances {
		i := &a.Instances[n]
		if i.State == engine.Running && d.made(l, i) && !d.journal.wants(l.Host.Name, i.Key) {
			unwanted = append(unwanted, i.ID)
		}
	}
	a.Instances = d.believed(l, a.Instances)
	for n := range a.Instances {
		d.finish(&a.Instances[n])
	}
	if v := d.seen[l.Host.Name]; v.at.Before(asked) && v.began.Before(asked) {
		d.seen[l.Host.Name] = inventory{a.Instances, asked, v.began}
	}
	return unwanted
}

// finish converts a machine's instance to the engine's: it sets the key of the launch, and computes
// the bill from time and rate.
func (d *Driver) finish(i *engine.Instance) {
	i.Key, _, _ = strings.Cut(i.Key, rankMark)
	if i.State != engine.Ended {
		return
	}
	for _, line := range market.Bill(market.Billing{}, []market.Segment{{From: i.Launched, Rate: i.Rate}}, i.Ended,
		false) {
		i.Bill = append(i.Bill, engine.Line{Rule: line.Rule, From: line.From, To: line.To, Amount: line.Amount,
			Currency: d.with.Currency})
	}
}

// forget marks launches whose instances have all ended, and deletes old ones. The caller holds mu.
func (d *Driver) forget() {
	changed := false
	live := map[string]bool{}
	for _, v := range d.seen {
		for _, i := range v.list {
			live[i.Key] = live[i.Key] || i.State == engine.Running
		}
	}
	for key, k := range d.journal.Keys {
		switch {
		case k.Over.IsZero() && d.heardAll(k) && !live[key] && (k.GivenUp || d.ended(key, k)):
			k.Over, changed = time.Now().UTC(), true
		case !k.Over.IsZero() && time.Since(k.Over) > keepKeys:
			delete(d.journal.Keys, key)
			changed = true
		}
	}
	if changed {
		if err := d.journal.write(d.dir); err != nil {
			d.log.Error("cannot write the journal; retrying", "error", err)
		}
	}
}

// heardAll reports whether all machines of a launch have answered since it was requested.
func (d *Driver) heardAll(k *launched) bool {
	return !slices.ContainsFunc(k.Hosts, func(host string) bool {
		return d.link(host) != nil && !d.seen[host].at.After(k.At.Add(link.AskTime))
	})
}

// ended reports whether every instance of a launch is known to have ended. The caller holds mu.
func (d *Driver) ended(key string, k *launched) bool {
	n := 0
	for _, v := range d.seen {
		for _, i := range v.list {
			if k.has(key, &i) && i.State == engine.Ended {
				n++
			}
		}
	}
	return n >= len(k.Hosts)
}
