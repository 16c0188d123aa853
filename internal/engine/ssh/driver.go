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
	"scrimp/internal/lib/isolate"
	"scrimp/internal/market"
)

// usualLost is how long a machine may not answer until what runs there is taken for lost: a cable that is out
// for 20 s loses nothing, with what lies between two beats before it and the new connection after it. Another
// time of detection has the same share of it.
const usualLost = 24 * time.Second

// Driver rents machines of one's own.
type Driver struct {
	name string
	dir  string
	with *With
	lost time.Duration // how long a machine may not answer until what runs there is taken for lost
	log  *slog.Logger

	ctx  context.Context // of the connections
	stop context.CancelFunc

	asking sync.WaitGroup // for what nobody waits for
	links  []*link
	opened time.Time
	first  sync.Once
	// closed when each machine was reached for the first time, or was not
	reached chan struct{}

	mu      sync.Mutex
	journal *journal
	seen    map[string]inventory // by host
	// closed when the call that launches a key is over
	launching map[string]chan struct{}
}

// inventory is what a machine last said of what runs there.
type inventory struct {
	list []engine.Instance
	at   time.Time // when it was asked: it is no older than that; zero: never
	// began is when a launch there was last answered: what it was asked before that may lack it.
	began time.Time
}

var (
	_ engine.Driver    = (*Driver)(nil)
	_ engine.Canceller = (*Driver)(nil)
)

func newDriver(name, dir string, with *With, detect time.Duration, log *slog.Logger) (*Driver, error) {
	j, err := readJournal(dir)
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	d := &Driver{name: name, dir: dir, with: with, log: log.With("engine", name), journal: j, opened: time.Now(),
		lost: time.Duration(float64(detect) * float64(usualLost) / float64(usual.Detect)),
		seen: map[string]inventory{}, reached: make(chan struct{}),
		launching: map[string]chan struct{}{}}
	d.ctx, d.stop = context.WithCancel(context.Background())
	return d, nil
}

// add names a machine and the way there.
func (d *Driver) add(m *Machine, w way) {
	d.links = append(d.links, &link{host: m, way: w, log: d.log, waiting: map[int64]chan hostd.Answer{},
		changed: make(chan struct{}), facts: d.journal.Facts[m.Name]})
}

// Close implements engine.Closer: what runs there goes on.
func (d *Driver) Close(context.Context) error {
	d.stop()
	d.asking.Wait()
	return nil
}

// firstTime is how long the first call waits for the machines.
const firstTime = 25 * time.Second

// reach begins the connections at the first call, and waits until each is there or has failed once: or
// the first job after a start would be told that nothing is for sale.
func (d *Driver) reach(ctx context.Context) {
	d.first.Do(func() {
		for _, l := range d.links {
			l.begin(d.ctx)
		}
		d.asking.Go(func() {
			defer close(d.reached)
			ctx, cancel := context.WithTimeout(d.ctx, firstTime)
			defer cancel()
			d.each(func(l *link) { _ = l.until(ctx) })
		})
	})
	select {
	case <-d.reached:
	case <-ctx.Done():
	}
}

// each asks all machines at once.
func (d *Driver) each(do func(*link)) {
	var asked sync.WaitGroup
	for _, l := range d.links {
		asked.Go(func() { do(l) })
	}
	asked.Wait()
}

func (d *Driver) link(host string) *link {
	for _, l := range d.links {
		if l.host.Name == host {
			return l
		}
	}
	return nil
}

// List implements engine.Driver. A machine that did not answer for so long is left out, with what runs
// there: it is lost until it answers again.
func (d *Driver) List(ctx context.Context) ([]engine.Instance, error) {
	d.reach(ctx)
	d.look(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []engine.Instance
	for _, l := range d.links {
		known := d.seen[l.host.Name]
		switch quiet := d.quiet(l); {
		case known.at.IsZero() && quiet < d.lost && d.served(l.host.Name):
			_, _, _, why := l.state()
			return nil, fmt.Errorf("machine %s has not answered yet: %w", l.host.Name, cmp.Or(why, errors.New("no connection")))
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

// quiet is for how long a machine has given no sign of life. The caller holds mu.
func (d *Driver) quiet(l *link) time.Duration {
	at := cmp.Or(d.seen[l.host.Name].at, d.opened)
	if _, _, heard, _ := l.state(); heard.After(at) {
		at = heard
	}
	return time.Since(at)
}

// Away implements engine.Absence.
func (d *Driver) Away() (list []engine.AwayMachine) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.links {
		_, connected, _, why := l.state()
		switch quiet := d.quiet(l); {
		case !connected && why != nil:
			list = append(list, engine.AwayMachine{Name: l.host.Name, Err: why})
		case quiet >= d.lost:
			list = append(list, engine.AwayMachine{Name: l.host.Name,
				Err: fmt.Errorf("%s has given no sign of life for %v", l.host.Name, quiet.Round(time.Second))})
		}
	}
	return list
}

// served reports whether the journal knows of a launch on a machine, also of one that has ended: whether its end
// was told is not known. The caller holds mu.
func (d *Driver) served(host string) bool {
	for _, k := range d.journal.Keys {
		if slices.Contains(k.Hosts, host) {
			return true
		}
	}
	return false
}

// look asks every machine what runs there, and ends what was given up meanwhile. Nobody is kept waiting for a
// machine that is quiet: what it says is taken when it does.
func (d *Driver) look(ctx context.Context) {
	d.each(func(l *link) {
		quiet := l.silent()
		if quiet && !l.mayAsk() {
			return
		}
		said := make(chan struct{})
		d.asking.Go(func() {
			defer close(said)
			if err := isolate.Call(func() { d.inquire(d.ctx, l) }); err != nil {
				d.log.Error("what a machine says made the server fail", "host", l.host.Name, "error", err, isolate.Stack(err))
			}
			if quiet {
				l.wasAsked()
			}
		})
		if quiet {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, lookTime)
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

// inquire asks one machine what runs there.
func (d *Driver) inquire(ctx context.Context, l *link) {
	asked := time.Now()
	a, err := l.ask(ctx, hostd.Request{Do: "list"}, askTime)
	if err != nil {
		return
	}
	for _, id := range d.heard(l, &a, asked) {
		if _, err := l.ask(ctx, hostd.Request{Do: "end", Instance: id}, askTime); err != nil {
			d.log.Warn("a machine that was given up is not ended yet", "instance", id, "error", err)
		}
	}
}

// heard notes what a machine said that runs there, and returns what of that is to be ended.
func (d *Driver) heard(l *link, a *hostd.Answer, asked time.Time) (unwanted []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n := range a.Instances {
		i := &a.Instances[n]
		if i.State == engine.Running && d.made(l, i) && !d.journal.wants(l.host.Name, i.Key) {
			unwanted = append(unwanted, i.ID)
		}
	}
	a.Instances = d.believed(l, a.Instances)
	for n := range a.Instances {
		d.finish(&a.Instances[n])
	}
	if v := d.seen[l.host.Name]; v.at.Before(asked) && v.began.Before(asked) {
		d.seen[l.host.Name] = inventory{a.Instances, asked, v.began}
	}
	return unwanted
}

// finish makes what a machine said of an instance what the engine says: its key is the launch's, and
// its bill its time at its rate.
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

// forget notes launches whose machines have all ended, and drops those that did long ago. The caller holds mu.
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
			d.log.Error("not written; it is tried again", "error", err)
		}
	}
}

// heardAll reports whether all machines of a launch have been heard since it was asked for.
func (d *Driver) heardAll(k *launched) bool {
	for _, host := range k.Hosts {
		if d.link(host) != nil && !d.seen[host].at.After(k.At.Add(askTime)) {
			return false
		}
	}
	return true
}

// ended reports whether every machine of a launch was seen to have ended. The caller holds mu.
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
