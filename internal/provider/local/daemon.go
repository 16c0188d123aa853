// Package local is a cloud on one machine: a daemon that rents processes as
// machines, replays a market over them, and takes them away as a provider does.
package local

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/provider"
)

// Options of a daemon.
type Options struct {
	Dir     string        // its folder; one daemon each, by lock
	Trace   market.Trace  // used when the folder has no market yet
	Machine []string      // command that a machine runs; the agent
	Idle    time.Duration // leaves when nothing runs and nobody asked for that long; 0: stays
	Log     *slog.Logger
}

// Names of files in the folder.
const (
	socketName = "market.sock"
	stateName  = "market.json"
	lockName   = "market.lock"
)

// keepEnded is how long an ended instance is still listed, in wall time.
const keepEnded = time.Hour

// state is what survives the daemon.
type state struct {
	Trace  market.Trace `json:"trace"`
	Opened time.Time    `json:"opened"` // wall time; the market time is the same moment
	Seq    int          `json:"seq"`
	Prefix string       `json:"prefix"` // of instance names, so that no two folders share one
	List   []*machine   `json:"instances"`
}

// machine is an instance and its processes.
type machine struct {
	provider.Instance
	Wall    time.Time     `json:"wall"`       // of the launch
	EndWall time.Time     `json:"end_wall"`   // of the end
	PID     int           `json:"pid"`        // of its first process
	Begun   string        `json:"begun"`      // that process's start time, which tells it from a later one of that number
	Port    int           `json:"port"`       // of its metadata
	LostAt  time.Time     `json:"lost_at"`    // market time when it will be taken; zero: never
	Warning time.Duration `json:"warning_ns"` // wall time of notice before that

	meta   *http.Server
	timers []*time.Timer
	ending bool
	exited chan struct{} // closed when the first process has ended, where it is our child
}

type daemon struct {
	opts  Options
	mu    sync.Mutex
	st    state
	asked time.Time
	stop  context.CancelFunc
	quit  <-chan struct{} // closed when the daemon leaves
	tasks sync.WaitGroup
}

// Serve runs a daemon until ctx ends, it is told to stop, or it was idle for
// long enough. Its machines go on without it; the next daemon finds them again.
func Serve(ctx context.Context, o Options) error {
	if err := os.MkdirAll(filepath.Join(o.Dir, "machines"), 0o700); err != nil {
		return fmt.Errorf("open market folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(o.Dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open market folder: %w", err)
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("market in %s: another one serves it: %w", o.Dir, err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	d := &daemon{opts: o, asked: time.Now(), stop: stop, quit: ctx.Done()}
	if err := d.load(); err != nil {
		return err
	}
	socket := filepath.Join(o.Dir, socketName)
	_ = os.Remove(socket) // ours by lock
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", socket, err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return fmt.Errorf("listen on %s: %w", socket, err)
	}
	d.adopt()
	h := &http.Server{Handler: d.routes(), ReadHeaderTimeout: 10 * time.Second}
	d.tasks.Go(func() { _ = h.Serve(l) })
	d.tasks.Go(func() { d.idle(ctx) })
	<-ctx.Done()
	_ = h.Close()
	d.mu.Lock()
	for _, m := range d.st.List {
		m.quiet()
	}
	d.mu.Unlock()
	d.tasks.Wait()
	return nil
}

// load reads the state, or opens the market.
func (d *daemon) load() error {
	path := filepath.Join(d.opts.Dir, stateName)
	b, err := os.ReadFile(path)
	switch {
	case err == nil:
		if err := json.Unmarshal(b, &d.st); err != nil {
			return fmt.Errorf("read %s: %w: move it away to open a new market", path, err)
		}
		return nil
	case !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("read market: %w", err)
	}
	if err := d.opts.Trace.Validate(); err != nil {
		return fmt.Errorf("market %s: %w", d.opts.Trace.Name, err)
	}
	id := make([]byte, 3)
	_, _ = rand.Read(id) // it never fails
	d.st = state{Trace: d.opts.Trace, Opened: time.Now().UTC().Round(0), Prefix: hex.EncodeToString(id)}
	return d.save()
}

// save writes the state durably. The caller holds mu or is alone.
func (d *daemon) save() error {
	b, err := json.MarshalIndent(d.st, "", " ")
	if err != nil {
		return fmt.Errorf("write market: %w", err)
	}
	path := filepath.Join(d.opts.Dir, stateName)
	f, err := os.CreateTemp(d.opts.Dir, stateName+".*")
	if err != nil {
		return fmt.Errorf("write market: %w", err)
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write market: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write market: %w", err)
	}
	return nil
}

// now is the market time: it began with the wall's and runs Speed times as fast,
// also while no daemon runs.
func (d *daemon) now() time.Time { return d.toMarket(time.Now()) }

func (d *daemon) toMarket(wall time.Time) time.Time {
	return d.st.Opened.Add(time.Duration(float64(wall.Round(0).Sub(d.st.Opened)) * d.st.Trace.Speed)).UTC()
}

func (d *daemon) toWall(at time.Time) time.Time {
	return d.st.Opened.Add(time.Duration(float64(at.Sub(d.st.Opened)) / d.st.Trace.Speed))
}

// adopt takes up the machines of an earlier daemon. What fell due meanwhile is done at once.
func (d *daemon) adopt() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.st.List {
		if m.State == provider.Ended {
			continue
		}
		if err := d.serveMeta(m); err != nil {
			d.opts.Log.Error("metadata not served", "instance", m.ID, "error", err)
		}
		d.arm(m)
		d.tasks.Go(func() { d.mourn(m) })
	}
}

// launch rents a machine, or returns the one that the key rented.
func (d *daemon) launch(r provider.Request) (provider.Instance, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.st.List {
		if m.Key == r.Key {
			return m.Instance, nil
		}
	}
	line, ok := d.st.Trace.Line(r.Offer)
	if !ok {
		return provider.Instance{}, fmt.Errorf("offer %s: %w", r.Offer, provider.ErrNotFound)
	}
	now := d.now()
	q := d.st.Trace.Quote(line, now.Sub(d.st.Opened), d.st.Opened)
	switch {
	case !q.Available:
		return provider.Instance{}, fmt.Errorf("offer %s: %w", r.Offer, provider.ErrNoCapacity)
	case r.MaxRate > 0 && q.Rate > r.MaxRate:
		return provider.Instance{}, fmt.Errorf("offer %s costs %v an hour, the request allows %v: %w", r.Offer, q.Rate, r.MaxRate, provider.ErrPrice)
	}
	d.st.Seq++
	m := &machine{
		Instance: provider.Instance{ID: fmt.Sprintf("i-%s-%d", d.st.Prefix, d.st.Seq), Key: r.Key, Offer: r.Offer, State: provider.Running, Launched: now, Rate: q.Rate, Tags: r.Tags},
		Wall:     time.Now().UTC().Round(0),
	}
	if lost, notice, ok := d.st.Trace.Loss(line, now.Sub(d.st.Opened)); ok {
		m.LostAt, m.Warning = d.st.Opened.Add(lost), notice
	}
	if err := d.serveMeta(m); err != nil {
		return provider.Instance{}, fmt.Errorf("launch %s: %w", r.Offer, err)
	}
	// Written before it starts: a daemon that dies here leaves a machine without
	// a process, which the next one ends, and not a process without a machine.
	d.st.List = append(d.st.List, m)
	if err := d.save(); err != nil {
		d.st.List = d.st.List[:len(d.st.List)-1]
		m.quiet()
		return provider.Instance{}, err
	}
	if err := d.start(m, r.Env); err != nil {
		d.close(m, provider.Stopped, d.now())
		return provider.Instance{}, fmt.Errorf("launch %s: %w", r.Offer, err)
	}
	if err := d.save(); err != nil {
		d.opts.Log.Error("launch not written", "instance", m.ID, "error", err)
	}
	d.arm(m)
	d.tasks.Go(func() { d.mourn(m) })
	d.opts.Log.Info("rented", "instance", m.ID, "offer", m.Offer, "key", m.Key)
	return m.Instance, nil
}

// arm sets the clock for the machine's loss.
func (d *daemon) arm(m *machine) {
	if m.LostAt.IsZero() {
		return
	}
	m.timers = append(m.timers, time.AfterFunc(max(0, time.Until(d.toWall(m.LostAt))), func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		m.Notice = m.Warning
		d.finish(m, provider.Interrupted, m.LostAt)
	}))
}

// finish kills the machine and ends its bill at a market time. The caller holds mu.
func (d *daemon) finish(m *machine, cause provider.Cause, at time.Time) {
	if m.State == provider.Ended || m.ending {
		return
	}
	m.ending = true
	d.mu.Unlock()
	killAll(m.ID, m.PID, m.Begun)
	d.mu.Lock()
	d.close(m, cause, at)
}

// close ends the bill. The caller holds mu.
func (d *daemon) close(m *machine, cause provider.Cause, at time.Time) {
	if m.State == provider.Ended {
		return
	}
	if at.Before(m.Launched) {
		at = m.Launched
	}
	m.quiet()
	m.State, m.Cause, m.Ended, m.EndWall = provider.Ended, cause, at, time.Now().UTC().Round(0)
	line, _ := d.st.Trace.Line(m.Offer)
	segments := d.st.Trace.Prices(line, m.Launched.Sub(d.st.Opened), at.Add(line.Offer.Billing.Minimum).Sub(d.st.Opened), d.st.Opened)
	m.Bill = nil
	for _, l := range market.Bill(line.Offer.Billing, segments, at, cause == provider.Interrupted) {
		m.Bill = append(m.Bill, provider.Line{Rule: l.Rule, From: l.From, To: l.To, Amount: l.Amount, Currency: currency(d.st.Trace)})
	}
	d.st.List = slices.DeleteFunc(d.st.List, func(o *machine) bool {
		return o.State == provider.Ended && time.Since(o.EndWall) > keepEnded && o.Key != m.Key
	})
	if err := d.save(); err != nil {
		d.opts.Log.Error("end not written", "instance", m.ID, "error", err)
	}
	d.opts.Log.Info("ended", "instance", m.ID, "cause", cause)
}

func currency(t market.Trace) money.Currency {
	if t.Currency == "" {
		return money.USD
	}
	return t.Currency
}

// mourn waits until the machine's first process has ended by itself.
func (d *daemon) mourn(m *machine) {
	poll := time.NewTicker(200 * time.Millisecond)
	defer poll.Stop()
wait:
	for !d.over(m) {
		select {
		case <-d.quit:
			return // the machine goes on; the next daemon mourns it
		case <-m.exited: // never, where an earlier daemon started it
			break wait
		case <-poll.C:
			if m.exited == nil && !alive(m.PID, m.Begun) {
				break wait
			}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.finish(m, provider.Stopped, d.now())
}

func (d *daemon) over(m *machine) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return m.State == provider.Ended || m.ending
}

// quiet ends the machine's metadata and timers.
func (m *machine) quiet() {
	for _, t := range m.timers {
		t.Stop()
	}
	if m.meta != nil {
		_ = m.meta.Close()
	}
}

// idle ends the daemon when nothing runs and nobody asks.
func (d *daemon) idle(ctx context.Context) {
	if d.opts.Idle <= 0 {
		return
	}
	t := time.NewTicker(min(d.opts.Idle, 5*time.Second))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		d.mu.Lock()
		busy := slices.ContainsFunc(d.st.List, func(m *machine) bool { return m.State != provider.Ended })
		idle := !busy && time.Since(d.asked) >= d.opts.Idle
		d.mu.Unlock()
		if idle {
			d.stop()
			return
		}
	}
}
