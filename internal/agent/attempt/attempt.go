// Package attempt runs one task on a machine once: it prepares the task's folders, runs the
// program, keeps what it saves, reports to the server, and ends the program before the machine is
// terminated.
package attempt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"time"

	"scrimp/internal/agent/command"
	"scrimp/internal/agent/interactive"
	"scrimp/internal/agent/keeper"
	"scrimp/internal/agent/logship"
	"scrimp/internal/agent/measure"
	"scrimp/internal/agent/meter"
	"scrimp/internal/agent/notice"
	"scrimp/internal/agent/outbox"
	"scrimp/internal/agent/progress"
	"scrimp/internal/agent/save"
	"scrimp/internal/agent/stop"
	"scrimp/internal/agent/wire"
	"scrimp/internal/agent/workspace"
	"scrimp/internal/lib/wait"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/limits"
)

// Attempt is one run of one task on this machine.
type Attempt struct {
	Config
	*workspace.Workspace
	server   wire.Server
	Box      *outbox.Box
	mask     logship.Masker
	match    progress.Patterns
	ship     *logship.Shipper
	keeper   keeper.Keeper
	saver    *save.Saver // nil until restore
	stops    chan stop.Request
	heard    chan struct{} // receives a value after each answer of the server
	commands *command.Runner
	seat     *interactive.Seat // nil: the task is not a session
	trouble  trouble
	Contact  func(time.Time) // called with the time of each answer of the server; nil: do not call
	Unended  error           // why some of the program's processes may still run

	objective progress.Objective // guarded by mu, except its name
	GPUs      *meter.GPUs        // the machine's GPUs; nil: do not measure
	series    measure.Series
	pacing    measure.Pacing

	mu   sync.Mutex
	last api.Step // all progress so far
	// Step counters of the three sources: output, progress file and posts.
	printed, written, posted progress.Counter
	orders                   api.Orders
	ordersAt                 time.Time
	asked                    bool // the server wants a checkpoint
	// unsavedSaid is set once the server knows that what the program saves is not kept whole.
	unsavedSaid bool
	draining    bool // a drain order arrived
	// dissolved is set once the server ends the attempt on all machines of its gang.
	dissolved bool
	stopping  bool
	knew      bool // the program has read should_stop
	ended     bool // the program has ended
	off       bool // the server needs nothing more
	unwanted  bool // another attempt has the task: report nothing more
	lastSave  time.Time
	silence   wire.Silence
}

// New makes the folders of an attempt and opens its outbox. The caller must call Run.
func New(c Config, a api.Assignment, server wire.Server) (*Attempt, error) {
	if a.Report <= 0 {
		a.Report = defaultReport
	}
	if a.Grace <= 0 {
		a.Grace = defaultGrace
	}
	c.Log = c.Log.With("attempt", a.Attempt)
	w, err := workspace.New(c.Machine, a)
	if err != nil {
		return nil, err
	}
	box, err := outbox.Open(w.Folders.Own, a.Attempt)
	if err != nil {
		return nil, err
	}
	g := &Attempt{
		Config: c, Workspace: w, server: server, Box: box, mask: logship.NewMasker(a.Secrets),
		stops: make(chan stop.Request, 16), heard: make(chan struct{}, 1),
		silence: wire.NewSilence(a.Silence, c.Now()), lastSave: c.Now(),
		objective: progress.Objective{Name: a.Metric}, seat: interactive.New(&w.Task, c.Now),
	}
	if err := w.AssignUser(); err != nil {
		return nil, errors.Join(err, box.Close())
	}
	g.commands = command.New(command.Config{Server: server, Seat: g.seat, Mask: g.mask, HangUp: c.Pace.HangUp,
		Dir: w.Folders.Work, User: w.User, Log: c.Log})
	g.ship = logship.New(g.Folders.Log, a.Attempt, server, g.mask, g.Log, box.Wake)
	g.ship.Poll = c.Pace.Log
	return g, nil
}

// queue queues a message.
func (g *Attempt) queue(m api.Message) {
	if m.At.IsZero() {
		m.At = g.Now()
	}
	err := g.Box.Add(g.maskMessage(m))
	if err != nil {
		g.Log.Error("write to the outbox; the agent sends the message anyway", "error", err)
	}
	g.trouble.set("write on the machine's disk", err)
}

// requestStop requests the end of the program. It never blocks: it drops requests beyond the first few,
// which would change nothing.
func (g *Attempt) requestStop(s stop.Request) {
	select {
	case g.stops <- s:
	default:
	}
}

// Run runs the attempt from set-up to last report and returns when the machine can be switched off.
func (g *Attempt) Run(soft, life context.Context, end context.CancelCauseFunc) (err error) {
	var wg sync.WaitGroup
	defer func() {
		end(ErrOver)
		wg.Wait()
		g.commands.Wait()
		err = errors.Join(err, g.Box.Close())
	}()
	output, err := os.OpenFile(g.Folders.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("agent: open log: %w", err)
	}
	defer func() { _ = output.Close() }() // the program wrote to it, not the agent
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
			g.requestStop(stop.Request{Why: "the machine's agent received a signal to end", Source: "signal",
				Until: g.Now().Add(cmp.Or(g.Notice, g.Task.Grace))})
		case <-life.Done():
		}
	})

	o := g.play(life, output)
	o.ended.Data = g.LeaveData()
	g.mu.Lock()
	g.ended = true
	g.mu.Unlock()
	if o.silent { // fenced, switched off, or killed at once
		if o.stop != nil && o.stop.Fenced && !o.stop.AtOnce {
			return fmt.Errorf("agent: %w: %w", ErrDissolved, wire.ErrFenced)
		}
		if o.stop != nil && o.stop.Fenced {
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
	g.queue(api.Message{At: now, Ended: &o.ended})
	g.farewell(life, o.stop, shipping)
	return nil
}

// lastLines waits until the server has the whole log, because users read the log once the attempt has ended and the
// server may refuse log lines after that. It waits up to patience while the server makes progress or its disk is full.
// After a stop it waits only a moment, since the machine may be terminated first.
func (g *Attempt) lastLines(life context.Context, s *stop.Request, shipping <-chan struct{}) {
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

// patience returns how long it is worth paying for the machine until the server has received everything.
func (g *Attempt) patience(s *stop.Request) time.Duration {
	limit := g.Task.Silence
	if limit <= 0 {
		limit = wire.DefaultSilence
	}
	if s != nil {
		limit = min(limit, 20*time.Second)
		if s.Farewell > 0 {
			limit = min(limit, s.Farewell)
		}
	}
	return limit
}

// farewell waits until the server has received everything, or patience is over. shipping is closed
// if the agent cannot ship the log.
func (g *Attempt) farewell(life context.Context, s *stop.Request, shipping <-chan struct{}) {
	limit := g.patience(s)
	ctx, cancel := context.WithTimeout(life, limit)
	defer cancel()
	size, unshippable := g.ship.Size(), false
	for {
		g.mu.Lock()
		unwanted := g.unwanted
		off, logged := g.off, g.orders.LogEnd >= size || g.orders.LogEnd == 0 && g.ship.Sent() >= size || unshippable
		g.mu.Unlock()
		if unwanted || g.Box.Empty() && (off || logged) { // a server that says off needs no more log either
			return
		}
		select {
		case <-ctx.Done():
			g.Log.Warn("the server has not received everything before the end", "waited", limit)
			return
		case <-shipping:
			shipping, unshippable = nil, true
		case <-g.heard:
		}
	}
}

// noticed handles a notice from the metadata service.
func (g *Attempt) noticed(n notice.Notice) {
	if n.Advice {
		g.Log.Info("the provider advises to leave the machine; requesting a checkpoint", "source", n.Source)
		g.mu.Lock()
		g.asked = true
		g.mu.Unlock()
		return
	}
	g.requestStop(stop.Request{Why: "the provider interrupts the machine", Source: n.Source, Until: n.Until})
}

// watchServer asks for the end once the server has been unreachable for too long.
func (g *Attempt) watchServer(life context.Context) {
	for wait.For(life, g.Pace.Silence) == nil {
		g.mu.Lock()
		due := g.silence.Due(g.Now())
		g.mu.Unlock()
		if due {
			g.requestStop(stop.Request{Why: fmt.Sprintf("the server was silent for more than %v", g.Task.Silence),
				Grace: g.Task.Grace, Farewell: g.Pace.Farewell})
			return
		}
	}
}

// Progress records a report that the program posted. It returns an error if the objective metric
// exceeds its rate; it records the rest of the report anyway.
func (g *Attempt) Progress(s api.Step) error { return g.reported(&g.posted, s, 0) }

// anew reports whether the steps of a source start again at zero each epoch.
func (g *Attempt) anew(source *progress.Counter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return source.Anew
}

// reported records a report of one source. epochs is the number of epochs the program runs; 0: unknown.
func (g *Attempt) reported(source *progress.Counter, s api.Step, epochs float64) error {
	g.mu.Lock()
	s = source.Count(s, cmp.Or(epochs, g.Task.Epochs))
	g.mu.Unlock()
	if s.Anew {
		g.trouble.set(troubleSteps, errors.New(stepsAnew(max(g.Task.Total, s.Total))))
	}
	s = g.maskStep(s)
	now := g.Now()
	if out := limits.ClipNumbers(&s, now); len(out) > 0 {
		g.trouble.set(troubleNumber, errors.New(strings.Join(out[:min(len(out), 3)], ", ")))
	}
	g.mu.Lock()
	g.last.Broken = nil // Broken describes the current report only
	g.last = progress.Merge(g.last, s)
	if g.last.Step > 0 {
		g.pacing.Saw(time.Now(), g.last.Step)
	}
	if g.Task.Node > 0 { // rank 0 speaks for the gang
		g.mu.Unlock()
		return nil
	}
	value, err := g.objective.Take(now, s, g.last)
	g.mu.Unlock()
	if err != nil {
		s = g.objective.Without(s)
		g.trouble.set(troubleMetric, err)
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
	if step > last { // a save also counts as progress
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
