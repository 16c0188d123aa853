// Package marketd is a cloud on one machine: a daemon that rents out processes as machines, replays a market, and
// interrupts the machines as a provider does.
package marketd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/local"
	"scrimp/internal/engine/procs"
	"scrimp/internal/lib/wait"
	"scrimp/internal/market"
)

// Options configure a daemon.
type Options struct {
	Dir     string       // its folder; a lock admits one daemon
	Trace   market.Trace // used if the folder has no market yet
	Name    string       // provider of a new market's offers; empty: the trace's
	Machine []string     // command that a machine runs: the agent
	// Machines is the parent of its machines' folders; empty: machines below Dir. Programs run as
	// separate users if other users can reach it.
	Machines string
	After    time.Time     // earliest market time for a new market to start; zero: wall time
	Idle     time.Duration // exit after this time without machines and requests; 0: never
	Log      *slog.Logger

	now  func() time.Time // clock of tests, instead of time.Now
	disk func(disk) disk  // wraps the journal's file in tests
}

const (
	keepEnded   = time.Hour           // an ended instance is listed at least this long, in wall time,
	keepNewest  = 100                 // as are this many of the newest, however old: a laptop may sleep for days
	keepKeys    = 30 * 24 * time.Hour // a key stays valid this long after its instances have ended
	lookProcess = 200 * time.Millisecond
	retryEnd    = time.Second // between attempts to write an end
)

// lockName is the name of the lock file in the folder of a market.
const lockName = "market.lock"

type daemon struct {
	opts   Options
	opened opened
	high   atomic.Int64    // the latest market time seen, in Unix nanoseconds
	quit   <-chan struct{} // closed when the daemon stops
	stop   context.CancelFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex
	journal journal
	seq     int
	list    []*machine            // in order of launch
	keys    map[string][]*machine // machines by launch key, in the same order
	asked   time.Time
}

// Serve runs a daemon until ctx ends, Stop is called, or it has been idle for long enough. Its
// machines keep running, and the next daemon finds them.
func Serve(ctx context.Context, o Options) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.now == nil {
		o.now = time.Now
	}
	if err := makeMachines(&o); err != nil {
		return fmt.Errorf("open market folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(o.Dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open market folder: %w", err)
	}
	defer func() { _ = lock.Close() }()
	if err := lockFolder(ctx, lock); err != nil {
		return fmt.Errorf("market in %s: another daemon serves it: %w", o.Dir, err)
	}
	if err := errors.Join(lock.Truncate(0), writePID(lock)); err != nil {
		o.Log.Warn("process id not written", "error", err) // only people and tests read it
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	d := &daemon{opts: o, asked: time.Now(), stop: stop, quit: ctx.Done(), keys: map[string][]*machine{}}
	if err := d.load(); err != nil {
		return err
	}
	defer func() { _ = d.journal.f.Close() }() // every record was synced
	l, err := listen(ctx, filepath.Join(o.Dir, local.SocketName))
	if err != nil {
		return err
	}
	d.adopt()
	h := &http.Server{Handler: d.routes(), ReadHeaderTimeout: 10 * time.Second}
	d.tasks.Go(func() { _ = h.Serve(l) })
	d.tasks.Go(func() { d.idle(ctx) })
	<-ctx.Done()
	_ = h.Close()
	d.mu.Lock()
	for _, m := range d.list {
		m.stopMetadata()
	}
	d.mu.Unlock()
	d.tasks.Wait()
	return nil
}

func writePID(f *os.File) error {
	_, err := fmt.Fprintln(f, os.Getpid())
	return err
}

// listen opens the folder's socket for its owner alone.
func listen(ctx context.Context, socket string) (net.Listener, error) {
	_ = os.Remove(socket) // the lock makes it this daemon's
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", socket)
	if err != nil && len(socket) > maxSocketPath {
		return nil, fmt.Errorf("listen on %s: the path is longer than the %d bytes that a socket's may have: choose a "+
			"data folder with a shorter path", socket, maxSocketPath)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", socket, err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("listen on %s: %w", socket, err)
	}
	return l, nil
}

// maxSocketPath is the length of a socket's path that every system allows, with its final NUL.
const maxSocketPath = 103

func newPrefix() string {
	id := make([]byte, 3)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

// wall returns the wall time without the monotonic clock, so that the hours in which the computer sleeps count.
func (d *daemon) wall() time.Time { return d.opts.now().Round(0).UTC() }

// now returns the market time. It starts at wall time and runs Speed times as fast, even while no
// daemon runs. If the wall clock is set back, market time stands still until the clock has caught
// up: it never runs backwards, and neither does a bill.
func (d *daemon) now() time.Time { return d.see(d.toMarket(d.wall())) }

// see records that market time has reached t, and returns the latest time seen.
func (d *daemon) see(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	for {
		high, n := d.high.Load(), t.UnixNano()
		if n <= high {
			return time.Unix(0, high).UTC()
		}
		if d.high.CompareAndSwap(high, n) {
			return t.UTC()
		}
	}
}

func (d *daemon) toMarket(wall time.Time) time.Time {
	return d.opened.At.Add(time.Duration(float64(wall.Sub(d.opened.begun())) * d.opened.Trace.Speed)).UTC()
}

func (d *daemon) toWall(at time.Time) time.Time {
	return d.opened.begun().Add(time.Duration(float64(at.Sub(d.opened.At)) / d.opened.Trace.Speed))
}

// since returns the market time since the market opened.
func (d *daemon) since(at time.Time) time.Duration { return at.Sub(d.opened.At) }

// adopt takes over the machines of an earlier daemon. It ends those whose interruption was due
// meanwhile, and kills processes that belong to no rented machine.
func (d *daemon) adopt() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if ahead := time.Unix(0, d.high.Load()).Sub(d.toMarket(d.wall())); d.high.Load() > 0 && ahead > time.Minute {
		d.opts.Log.Error("the clock was set back: market time stands still until it has caught up", "ahead", ahead)
	}
	rented := map[string]bool{}
	for _, m := range d.list {
		if m.State == engine.Ended {
			continue
		}
		rented[m.ID] = true
		m.over = make(chan struct{})
		d.tasks.Go(func() { d.watch(m) })
	}
	for id, pids := range procs.Strays("i-"+d.opened.Prefix+"-", rented) {
		d.opts.Log.Error("ended processes of a machine that nobody rents", "instance", id, "processes", len(pids))
		procs.KillAll(id, 0, "")
	}
}

// show returns the instances to list: all that run, all that ended recently, and the newest of the others.
func (d *daemon) show() []engine.Instance {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := []engine.Instance{}
	now := d.wall()
	ended := 0
	for _, m := range slices.Backward(d.list) {
		if m.State == engine.Ended {
			if ended++; ended > keepNewest && now.Sub(m.EndWall) > keepEnded {
				continue
			}
		}
		i := m.Instance
		if _, ok := d.announced(m); ok && i.State == engine.Running {
			i.Interrupts = m.LostAt
		}
		i.Bill = slices.Clone(i.Bill)
		list = append(list, i)
	}
	slices.Reverse(list)
	return list
}

// idle stops the daemon if nothing runs and no requests arrive, or if none can: if the socket was
// deleted, new servers get no answer, and the lock would keep another daemon out.
func (d *daemon) idle(ctx context.Context) {
	every := time.Second // less than a daemon waits for the lock
	if d.opts.Idle > 0 {
		every = min(d.opts.Idle, every)
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if _, err := os.Stat(filepath.Join(d.opts.Dir, local.SocketName)); errors.Is(err, os.ErrNotExist) {
			d.opts.Log.Error("the market's socket was deleted: exiting; the next daemon adopts the machines")
			d.stop()
			return
		}
		d.mu.Lock()
		busy := slices.ContainsFunc(d.list, func(m *machine) bool { return m.State != engine.Ended })
		idle := d.opts.Idle > 0 && !busy && time.Since(d.asked) >= d.opts.Idle
		d.mu.Unlock()
		if idle {
			d.stop()
			return
		}
	}
}

// lockFolder locks the folder. A daemon that was killed while it started a machine leaves the lock to
// that child until the child has executed its program, a moment later. So alone retries for a
// while.
func lockFolder(ctx context.Context, lock *os.File) error {
	for tries := 0; ; tries++ {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) || tries >= 20 {
			return err
		}
		if wait.For(ctx, 100*time.Millisecond) != nil {
			return err
		}
	}
}

// makeMachines makes the folder of the machines. Other users can pass a folder with a configured
// path but not list it. An existing folder stays unchanged.
func makeMachines(o *Options) error {
	if o.Machines == "" {
		o.Machines = filepath.Join(o.Dir, "machines")
		return os.MkdirAll(o.Machines, 0o700)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return err
	}
	if _, err := os.Stat(o.Machines); err == nil {
		return nil
	}
	// Programs that run as other users pass through the folder.
	const passable = 0o711
	return errors.Join(os.MkdirAll(o.Machines, passable), os.Chmod(o.Machines, passable))
}
