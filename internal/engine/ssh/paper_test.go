package ssh

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"scrimp/internal/engine/hostd"
	"scrimp/internal/lib/size"
	"scrimp/internal/lib/wait"
)

// paper is a simulated machine: its instances are entries in a table, and the test controls its
// cable, its power and the processes that serve its folder (the real hostd).
type paper struct {
	world  *world
	name   string
	dir    string
	mu     sync.Mutex
	cable  chan struct{} // closed while the cable is connected
	boot   int
	booted time.Time
	next   int
	runs   map[string]*program // by instance id
	conns  map[*cable]bool
	doomed int // steps until the process that serves the folder dies in the middle of one; below 0: never
}

// program is the first process of an instance.
type program struct {
	hostd.Process
	key, dir   string
	began, end time.Time
}

// world is the state that all machines of a test share.
type world struct {
	mu     sync.Mutex
	rng    *rand.Rand
	faults int
	calm   bool
	server int // number of the live server
	dies   int // steps until the server dies; below 0: never
	end    func()
	wrong  func(format string, args ...any)
}

var errDead = errors.New("the server is dead")

// fault reports whether a fault happens here, with these odds.
func (w *world) fault(odds float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calm || w.rng.Float64() >= odds {
		return false
	}
	w.faults++
	return true
}

func (w *world) upTo(d time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.rng.Int64N(int64(d)))
}

// step is one write of a server, which may be its last.
func (w *world) step(server int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if server != w.server {
		return false
	}
	if w.dies >= 0 {
		if w.dies--; w.dies < 0 {
			w.faults++
			w.server++
			w.end()
			return w.rng.IntN(2) == 0 // the write was done, or not
		}
	}
	return true
}

func newPaper(w *world, name, dir string) *paper {
	in := make(chan struct{})
	close(in)
	return &paper{world: w, name: name, dir: filepath.Join(dir, name), cable: in, boot: 1, booted: time.Now(),
		runs: map[string]*program{}, conns: map[*cable]bool{}, doomed: -1}
}

// in returns a channel that is closed while the cable is connected.
func (p *paper) in() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cable
}

func (p *paper) isCut() bool {
	select {
	case <-p.in():
		return false
	default:
		return true
	}
}

func (p *paper) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cable = make(chan struct{})
}

func (p *paper) restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.cable)
}

// fails cuts the power and restores it: nothing runs there any more.
func (p *paper) fails() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.boot++
	p.booted = time.Now()
	for _, r := range p.runs {
		if r.end.IsZero() {
			r.end = time.Now()
		}
	}
	for c := range p.conns {
		c.stop()
	}
}

// hostdsDie kills the processes that serve the folder, but no program.
func (p *paper) hostdsDie() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.stop()
	}
}

// ends ends one program by itself.
func (p *paper) ends() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.runs {
		if r.end.IsZero() {
			r.end = time.Now()
			_ = os.WriteFile(filepath.Join(r.dir, "ended"), []byte(fmt.Sprint(time.Now().Unix())), 0o600)
		}
	}
}

// dies is one step of the process that serves the folder, which may be its last.
func (p *paper) dies() {
	p.mu.Lock()
	p.doomed--
	last := p.doomed == -1
	if last {
		for c := range p.conns {
			c.stop()
		}
	}
	p.doomed = max(p.doomed, -1)
	p.mu.Unlock()
	if last {
		runtime.Goexit()
	}
}

// Start implements hostd.Processes.
func (p *paper) Start(id, dir string, env map[string]string) (hostd.Process, error) {
	p.dies()
	if p.world.fault(0.05) {
		return hostd.Process{}, &os.PathError{Op: "open", Path: dir, Err: syscall.ENOSPC}
	}
	p.mu.Lock()
	for _, r := range p.runs {
		if r.end.IsZero() {
			p.world.wrong("%s begins %s while %s runs there", p.name, env["KEY"], r.key)
		}
	}
	p.next++
	r := &program{Process: hostd.Process{PID: p.next, Start: fmt.Sprint(p.boot)}, key: env["KEY"], dir: dir, began: time.Now()}
	p.runs[id] = r
	p.mu.Unlock()
	p.dies()
	return r.Process, nil
}

// First implements hostd.Processes.
func (p *paper) First(id string) hostd.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.runs[id]; r != nil && r.end.IsZero() {
		return r.Process
	}
	return hostd.Process{}
}

// Alive implements hostd.Processes.
func (p *paper) Alive(process hostd.Process) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.runs {
		if r.Process == process {
			return r.end.IsZero()
		}
	}
	return false
}

// Kill implements hostd.Processes.
func (p *paper) Kill(id string, _ hostd.Process) bool {
	p.dies()
	p.mu.Lock()
	if r := p.runs[id]; r != nil && r.end.IsZero() {
		r.end = time.Now()
	}
	p.mu.Unlock()
	p.dies()
	return true
}

// Boot implements hostd.Processes.
func (p *paper) Boot() (string, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprint(p.boot), p.booted
}

// paperWay is a server's way to a simulated machine.
type paperWay struct {
	*paper
	of int // number of the server
}

func (w paperWay) Server() string { return "unix:///server.sock" }

func (w paperWay) Ping(ctx context.Context) bool {
	select {
	case <-w.in():
		return wait.For(ctx, 50*time.Millisecond) == nil && !w.isCut()
	case <-ctx.Done():
		return false
	}
}

func (w paperWay) Dial(ctx context.Context) (io.ReadWriteCloser, error) {
	within, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	select {
	case <-w.in():
	case <-within.Done():
		return nil, errors.New("connection timed out")
	}
	if err := wait.For(ctx, 300*time.Millisecond); err != nil {
		return nil, err
	}
	if w.world.fault(0.1) {
		return nil, errors.New("connection refused")
	}
	far, farEnd := context.WithCancel(context.Background())
	c := &cable{way: w, up: newStream(w.paper), down: newStream(w.paper), stop: farEnd}
	w.mu.Lock()
	w.conns[c] = true
	w.mu.Unlock()
	go c.up.carry()
	go c.down.carry()
	go func() {
		stop := context.AfterFunc(far, c.up.end) // its input ends with it
		defer stop()
		_ = hostd.Serve(far, c.up.out, c.far(far), hostd.Options{Dir: w.dir, Processes: w.paper})
		farEnd()
		_ = c.up.out.Close()
		c.down.end()
		w.mu.Lock()
		delete(w.conns, c)
		w.mu.Unlock()
	}()
	return c, nil
}

// cable is a connection. What was sent arrives in order once the cable is connected, even after the
// sender has died.
type cable struct {
	way      paperWay
	up, down *stream
	stop     func() // stops the far end
}

func (c *cable) Read(b []byte) (int, error) { return c.down.out.Read(b) }

func (c *cable) Write(b []byte) (int, error) {
	var r hostd.Request
	if json.Unmarshal(b, &r) == nil && r.Do == "facts" { // a simulated machine has no real facts
		text, _ := json.Marshal(hostd.Answer{ID: r.ID, Facts: &hostd.Facts{OS: "linux", Arch: "amd64", CPUs: 4,
			Memory: 8 * size.GiB}})
		c.down.send(append(text, '\n'))
		return len(b), nil
	}
	if r.Do != "ping" && r.Do != "list" && !c.way.world.step(c.way.of) {
		return 0, errDead
	}
	switch {
	case c.way.world.fault(0.01): // the connection ends and loses its data
		c.stop()
		return len(b), nil
	case r.Do != "ping" && c.way.world.fault(0.02): // delivered twice
		c.up.send(b)
	}
	c.up.send(b)
	return len(b), nil
}

// Close closes the near end. What was sent still arrives.
func (c *cable) Close() error {
	c.up.end()
	c.down.end()
	_ = c.down.out.Close()
	return nil
}

// far returns the writer of the far end.
func (c *cable) far(ctx context.Context) io.Writer { return farEnd{c, ctx} }

type farEnd struct {
	*cable
	ctx context.Context
}

func (f farEnd) Write(b []byte) (int, error) {
	if f.ctx.Err() != nil { // it was killed
		return 0, f.ctx.Err()
	}
	if f.way.world.fault(0.01) { // an answer is lost, and the connection with it
		f.stop()
		return len(b), nil
	}
	f.down.send(b)
	return len(b), nil
}

// stream carries lines in one direction.
type stream struct {
	paper *paper
	lines chan parcel
	over  chan struct{}
	once  sync.Once
	out   *io.PipeReader
	in    *io.PipeWriter
}

type parcel struct {
	text []byte
	at   time.Time // time of arrival, if the cable is connected
}

func newStream(p *paper) *stream {
	s := &stream{paper: p, lines: make(chan parcel, 1<<12), over: make(chan struct{})}
	s.out, s.in = io.Pipe()
	return s
}

func (s *stream) end() { s.once.Do(func() { close(s.over) }) }

func (s *stream) send(b []byte) {
	late := time.Millisecond
	if s.paper.world.fault(0.01) {
		late = s.paper.world.upTo(20 * time.Second)
	}
	select {
	case s.lines <- parcel{bytes.Clone(b), time.Now().Add(late)}:
	case <-s.over:
	}
}

// carry returns after everything sent has arrived and no more is sent.
func (s *stream) carry() {
	defer func() { _ = s.in.Close() }()
	for {
		select {
		case p := <-s.lines:
			s.carries(p)
			continue
		default:
		}
		select {
		case p := <-s.lines:
			s.carries(p)
		case <-s.over:
			if len(s.lines) == 0 {
				return
			}
		}
	}
}

func (s *stream) carries(p parcel) {
	_ = wait.For(context.Background(), time.Until(p.at))
	<-s.paper.in()
	_, _ = s.in.Write(p.text)
}
