// Package attempt is one run of one task on a machine: it makes the folders of the task ready, runs its program,
// keeps what the program saves, reports to the server, and ends the program in time where the machine goes.
package attempt

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"scrimp/internal/agent/keeper"
	"scrimp/internal/agent/logship"
	"scrimp/internal/agent/measure"
	"scrimp/internal/agent/meter"
	"scrimp/internal/agent/notice"
	"scrimp/internal/agent/outbox"
	"scrimp/internal/agent/place"
	"scrimp/internal/agent/progress"
	"scrimp/internal/agent/save"
	"scrimp/internal/agent/session"
	"scrimp/internal/agent/wire"
	"scrimp/internal/lib/wait"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/bound"
)

// Attempt is one run of one task on this machine.
type Attempt struct {
	Config
	Task    api.Assignment
	server  wire.Server
	Box     *outbox.Box
	Folders place.Folders
	mask    logship.Masker
	match   progress.Patterns
	ship    *logship.Shipper
	keeper  keeper.Keeper
	saver   *save.Saver // nil until the keeper is open
	stops   chan stop
	heard   chan struct{} // has a value after each answer of the server
	execs   sync.WaitGroup
	slots   chan struct{}
	// sessions has a value for each session that is open.
	sessions chan struct{}
	trouble  trouble
	User     int // of the program; 0: ours
	// of the machine; 0: none is known
	Accelerators int
	Contact      func(time.Time) // told of each answer of the server; nil: nobody is
	Only         func() bool     // whether no other task runs on the machine; nil: nobody knows
	kept         kept
	python       bool               // its set-up may install packages of Python
	before       map[string]version // the work folder before the program began, where what it writes is kept
	Unended      error              // why processes of the program may live on

	objective objective   // guarded by mu, but for its name
	GPUs      *meter.GPUs // of the machine; nil: nobody reads them
	series    measure.Series
	pacing    measure.Pacing

	mu   sync.Mutex
	last api.Step // all progress so far
	// what counts the steps: lines of output, the progress file, and posts
	printed, written, posted progress.Counter
	orders                   api.Orders
	ordersAt                 time.Time
	asked                    bool // the server wants a checkpoint
	// the server knows that what the program saves is not kept whole
	unsavedSaid bool
	draining    bool // the server's order was heard
	// the server ends the attempt on all machines of its gang
	dissolved bool
	stopping  bool
	knew      bool // the program has read should_stop
	ended     bool // the program is over
	off       bool // the server has heard enough
	unwanted  bool // another attempt has the task: the server hears nothing more
	lastSave  time.Time
	silence   silence
	env       []string // of the program; nil until it is known
	ran       map[string]bool
}

// stop asks for the program's end.
type stop struct {
	why      string
	source   string        // of a notice: aws, gcp, azure, signal; "" else
	until    time.Time     // when the machine goes, with source
	grace    time.Duration // between signal and kill, without source
	at       bool          // at once, publishing nothing
	fenced   bool          // another attempt has the task: nothing is published; with at, the machine takes no other
	farewell time.Duration // how long the last report may take; 0 is the usual
}

// silent reports whether nothing is said or kept of what follows.
func (s *stop) silent() bool { return s != nil && (s.at || s.fenced) }

// New makes the folders of an attempt and opens its outbox. The caller runs it.
func New(c Config, a api.Assignment, server wire.Server) (*Attempt, error) {
	if name := filepath.Base(a.Attempt); name != a.Attempt || !filepath.IsLocal(name) || name == "." {
		return nil, fmt.Errorf("the attempt's name %q is no name of a folder", a.Attempt)
	}
	if err := place.TakeSlot(c.MachineDir, a); err != nil {
		return nil, err
	}
	f := place.LayOut(c.MachineDir, a)
	if err := errors.Join(os.MkdirAll(f.Own, 0o700), os.MkdirAll(f.Top, 0o700)); err != nil {
		return nil, err
	}
	box, err := outbox.Open(f.Own, a.Attempt)
	if err != nil {
		return nil, err
	}
	if a.Report <= 0 {
		a.Report = defaultReport
	}
	if a.Grace <= 0 {
		a.Grace = defaultGrace
	}
	g := &Attempt{
		Config: c, Task: a, server: server, Box: box, Folders: f, mask: logship.NewMasker(a.Secrets),
		stops: make(chan stop, 16), heard: make(chan struct{}, 1), slots: make(chan struct{}, session.AtOnce),
		sessions: make(chan struct{}, session.AtOnce),
		silence:  newSilence(a.Silence, c.Now()), ran: map[string]bool{}, lastSave: c.Now(),
		objective: objective{name: a.Metric},
	}
	if ok, _ := place.Separate(c.TaskUser, c.MachineDir); ok {
		if err := g.openTo(); err != nil {
			return nil, errors.Join(err, box.Close())
		}
	}
	g.Log = c.Log.With("attempt", a.Attempt)
	g.ship = logship.New(g.Folders.Log, a.Attempt, server, g.mask, g.Log, box.Wake)
	g.ship.Poll = c.Pace.Log
	return g, nil
}

// newToken returns a secret that nobody can guess.
func newToken() string { return strings.ToLower(rand.Text()) }

// say queues a message.
func (g *Attempt) say(m api.Message) {
	if m.At.IsZero() {
		m.At = g.Now()
	}
	err := g.Box.Add(g.unsecret(m))
	if err != nil {
		g.Log.Error("write to the outbox; the message is sent all the same", "error", err)
	}
	g.trouble.is("write on the machine's disk", err)
}

// ask asks for the program's end. It never blocks: beyond the first few, more reasons change nothing.
func (g *Attempt) ask(s stop) {
	select {
	case g.stops <- s:
	default:
	}
}

// Run does everything, and returns when the machine can be switched off.
func (g *Attempt) Run(soft, life context.Context, end context.CancelCauseFunc) (err error) {
	var wg sync.WaitGroup
	defer func() {
		end(ErrOver)
		wg.Wait()
		g.execs.Wait()
		err = errors.Join(err, g.Box.Close())
	}()
	output, err := os.OpenFile(g.Folders.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("agent: open log: %w", err)
	}
	defer func() { _ = output.Close() }() // the program wrote to it, not we
	if g.User != 0 {
		if err := output.Chown(g.User, g.User); err != nil {
			return fmt.Errorf("agent: open log: %w", err)
		}
	}
	shipping := make(chan struct{})
	wg.Go(func() { defer close(shipping); g.ship.Run(life) })
	wg.Go(func() { g.report(life) })
	wg.Go(func() { notice.Watch(life, g.Metadata, nil, g.noticed) })
	wg.Go(func() { g.watchServer(life) })
	wg.Go(func() {
		select {
		case <-soft.Done():
			g.ask(stop{why: "the machine's agent was told to end", source: "signal",
				until: g.Now().Add(cmp.Or(g.Notice, g.Task.Grace))})
		case <-life.Done():
		}
	})

	o := g.play(life, output)
	g.mu.Lock()
	g.ended = true
	g.mu.Unlock()
	if o.silent { // fenced, switched off, or told to end at once
		if o.stop != nil && o.stop.fenced && !o.stop.at {
			return fmt.Errorf("agent: %w: %w", ErrDissolved, wire.ErrFenced)
		}
		if o.stop != nil && o.stop.fenced {
			return fmt.Errorf("agent: %w", wire.ErrFenced)
		}
		return context.Cause(life)
	}
	g.ship.Finish()
	g.lastLines(life, o.stop, shipping)
	now := g.Now()
	if !o.over.IsZero() {
		o.ended.Keeping = max(0, now.Sub(o.over))
	}
	g.say(api.Message{At: now, Ended: &o.ended})
	g.farewell(life, o.stop, shipping)
	return nil
}

// lastLines waits until the server has the whole log: whoever hears of the end reads
// the log then, and a server that knows the end may want no more of it. It waits for as
// long as it is worth, while the server takes some or has no room on its disk now; but for
// a moment only where the program was told to end: the machine may be gone before the rest is.
func (g *Attempt) lastLines(life context.Context, s *stop, shipping <-chan struct{}) {
	ctx, cancel := context.WithTimeout(life, max(time.Second, g.patience(s)))
	defer cancel()
	moment := time.NewTimer(time.Second)
	defer moment.Stop()
	sent := g.ship.Sent()
	for size := g.ship.Size(); g.ship.Sent() < size; {
		select {
		case <-ctx.Done():
			return
		case <-moment.C:
			if now := g.ship.Sent(); (now == sent || s != nil) && !g.ship.Full() {
				return
			} else {
				sent = now
			}
			moment.Reset(time.Second)
		case <-shipping:
			return
		case <-g.heard:
		}
	}
}

// patience is how long it is worth to pay for the machine until the server has heard all.
func (g *Attempt) patience(s *stop) time.Duration {
	limit := g.Task.Silence
	if limit <= 0 {
		limit = DefaultSilence
	}
	if s != nil {
		limit = min(limit, 20*time.Second)
		if s.farewell > 0 {
			limit = min(limit, s.farewell)
		}
	}
	return limit
}

// farewell waits until the server has heard all, for as long as it is worth.
// shipping is closed where the log can not be shipped.
func (g *Attempt) farewell(life context.Context, s *stop, shipping <-chan struct{}) {
	limit := g.patience(s)
	ctx, cancel := context.WithTimeout(life, limit)
	defer cancel()
	size, unshippable := g.ship.Size(), false
	for {
		g.mu.Lock()
		unwanted := g.unwanted
		off, logged := g.off, g.orders.LogEnd >= size || g.orders.LogEnd == 0 && g.ship.Sent() >= size || unshippable
		g.mu.Unlock()
		if unwanted || g.Box.Empty() && (off || logged) { // a server that says off wants no more, not even the log
			return
		}
		select {
		case <-ctx.Done():
			g.Log.Warn("the server has not heard all before the end", "waited", limit)
			return
		case <-shipping:
			shipping, unshippable = nil, true
		case <-g.heard:
		}
	}
}

// noticed takes what the metadata said.
func (g *Attempt) noticed(n notice.Notice) {
	if n.Advice {
		g.Log.Info("the provider advises to leave; a checkpoint is asked for", "source", n.Source)
		g.mu.Lock()
		g.asked = true
		g.mu.Unlock()
		return
	}
	g.ask(stop{why: "the provider interrupts the machine", source: n.Source, until: n.Until})
}

// watchServer asks for the end when the server has been away for too long.
func (g *Attempt) watchServer(life context.Context) {
	for wait.For(life, g.Pace.Silence) == nil {
		g.mu.Lock()
		due := g.silence.due(g.Now())
		g.mu.Unlock()
		if due {
			g.ask(stop{why: fmt.Sprintf("the server was silent for more than %v", g.Task.Silence), grace: g.Task.Grace,
				farewell: g.Pace.Farewell})
			return
		}
	}
}

// The program's API.

// Progress takes a report that the program has posted. It fails where the report's value of the metric
// that the job is judged by is one too many; the rest of it is taken.
func (g *Attempt) Progress(s api.Step) error { return g.reported(&g.posted, s, 0) }

// anew reports whether what a source counts begins anew each epoch.
func (g *Attempt) anew(source *progress.Counter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return source.Anew
}

// reported takes a report of one source, which may say how many epochs the program runs.
func (g *Attempt) reported(source *progress.Counter, s api.Step, epochs float64) error {
	g.mu.Lock()
	s = source.Count(s, cmp.Or(epochs, g.Task.Epochs))
	g.mu.Unlock()
	if s.Anew {
		g.trouble.is(troubleSteps, errors.New(stepsAnew(max(g.Task.Total, s.Total))))
	}
	s = g.unsecretStep(s)
	now := g.Now()
	if out := bound.ClipNumbers(&s, now); len(out) > 0 {
		g.trouble.is(troubleNumber, errors.New(strings.Join(out[:min(len(out), 3)], ", ")))
	}
	g.mu.Lock()
	g.last.Broken = nil // it is about now
	g.last = progress.Merge(g.last, s)
	if g.last.Step > 0 {
		g.pacing.Saw(time.Now(), g.last.Step)
	}
	if g.Task.Node > 0 { // rank 0 speaks for the gang
		g.mu.Unlock()
		return nil
	}
	value, err := g.objective.take(now, s, g.last)
	g.mu.Unlock()
	if err != nil {
		s = g.objective.without(s)
		g.trouble.is(troubleMetric, err)
	}
	g.Box.Step(now, s, value)
	return err
}

// Total implements programapi.Backend.
func (g *Attempt) Total() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(g.Task.Total, g.last.Total)
}

// seen returns the last step and a copy of the metrics.
func (g *Attempt) seen() (int64, map[string]float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last.Step, maps.Clone(g.last.Metrics)
}

// Save implements programapi.Backend.
func (g *Attempt) Save(ctx context.Context, step int64) error {
	at := g.Now()
	last, metrics := g.seen()
	if step == 0 {
		step = last
	}
	if step > last { // a save says more than the progress before it
		g.mu.Lock()
		g.last.Step = max(g.last.Step, step)
		g.mu.Unlock()
	}
	if err := g.saver.Take(ctx, save.Meta{Step: step, Captured: at, Metrics: metrics}, true); err != nil {
		return err
	}
	g.mu.Lock()
	g.lastSave, g.asked = at, false
	g.mu.Unlock()
	return nil
}
