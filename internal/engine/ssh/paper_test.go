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

// paper is a machine on paper: what runs there is a line in a table, and its cable, its power and those who
// serve its folder (the real hostd) come and go as a test says.
type paper struct {
	world  *world
	name   string
	dir    string
	mu     sync.Mutex
	cable  chan struct{} // closed while it is in
	boot   int
	booted time.Time
	next   int
	runs   map[string]*program // by machine's id
	conns  map[*cable]bool
	doomed int // steps until whoever serves the folder dies in the middle of one; below 0: never
}

// program is the first process of a machine.
type program struct {
	hostd.Process
	key, dir   string
	began, end time.Time
}

// world is what all machines of a test have in common.
type world struct {
	mu     sync.Mutex
	rng    *rand.Rand
	faults int
	calm   bool
	server int // which one lives
	dies   int // steps until the server dies; below 0: never
	end    func()
	wrong  func(format string, args ...any)
}

var errDead = errors.New("the server is dead")

// fault reports whether something goes wrong here, with these odds.
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

// step is one write of a server: it may be its last.
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
			return w.rng.IntN(2) == 0 // it has written this, or not
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

// in is closed while the cable is in.
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

// fails is its power that fails, and comes back: nothing runs there any more.
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

// hostdsDie ends those who serve its folder, and no program.
func (p *paper) hostdsDie() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.stop()
	}
}

// ends is a program that ends by itself.
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

// dies is a step of whoever serves the folder: it may be the last.
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

// paperWay is the way of one server to a machine on paper.
type paperWay struct {
	*paper
	of int // which server
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

// cable is a connection: what was sent arrives in its order, once the cable is in, also when who sent it is gone.
type cable struct {
	way      paperWay
	up, down *stream
	stop     func() // ends the far end
}

func (c *cable) Read(b []byte) (int, error) { return c.down.out.Read(b) }

func (c *cable) Write(b []byte) (int, error) {
	var r hostd.Request
	if json.Unmarshal(b, &r) == nil && r.Do == "facts" { // paper has none of its own
		text, _ := json.Marshal(hostd.Answer{ID: r.ID, Facts: &hostd.Facts{OS: "linux", Arch: "amd64", CPUs: 4,
			Memory: 8 * size.GiB}})
		c.down.send(append(text, '\n'))
		return len(b), nil
	}
	if r.Do != "ping" && r.Do != "list" && !c.way.world.step(c.way.of) {
		return 0, errDead
	}
	switch {
	case c.way.world.fault(0.01): // the connection ends, with what it had to carry
		c.stop()
		return len(b), nil
	case r.Do != "ping" && c.way.world.fault(0.02): // twice
		c.up.send(b)
	}
	c.up.send(b)
	return len(b), nil
}

// Close is the end of who asks: what was sent is on its way.
func (c *cable) Close() error {
	c.up.end()
	c.down.end()
	_ = c.down.out.Close()
	return nil
}

// far is where the far end writes.
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

// stream carries lines one way.
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
	at   time.Time // when it is there, where the cable is in
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

// carry ends when no more is sent and all is there.
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
