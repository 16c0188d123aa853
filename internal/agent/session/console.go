package session

import (
	"bytes"
	"context"
	"io"
	"os"
	"sync"
	"time"

	"scrimp/internal/agent/logship"
	"scrimp/internal/wire/api"
)

// Limits of a console: the newest output that it keeps, and how much of that a new viewer gets.
const (
	consoleKeeps = 256 << 10
	consoleShows = 16 << 10
)

// Console is the terminal of a program that outlives its viewers. The program never waits for a viewer: a slow one
// misses output.
type Console struct {
	pty    *os.File
	theirs *os.File // the program's end; nil once the program has it

	mu      sync.Mutex
	kept    []byte // newest output
	end     int64  // bytes printed so far
	changed chan struct{}
	closed  bool
}

// OpenConsole opens a terminal for a program of the given user; 0 is the agent's.
func OpenConsole(user int) (*Console, error) {
	own, theirs, err := openTerminal(user)
	if own == nil {
		return nil, err
	}
	c := &Console{pty: own, theirs: theirs, changed: make(chan struct{})}
	if err == nil {
		err = resize(own, &api.Terminal{})
	}
	if err != nil {
		_, _ = own.Close(), theirs.Close()
		return nil, err
	}
	return c, nil
}

// Terminal returns the program's end. It is valid until Run.
func (c *Console) Terminal() *os.File { return c.theirs }

// Run collects the program's output until the program and its children have closed the terminal, or Close.
func (c *Console) Run() {
	_ = c.theirs.Close() // the program has a copy
	buffer := make([]byte, 32<<10)
	for {
		n, err := c.pty.Read(buffer)
		c.put(buffer[:n])
		if err != nil { // a terminal always ends with an error
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.wake()
	_ = c.pty.Close() // a write of a late key fails
}

// Close ends Run soon, although a child of the program may still hold the terminal.
func (c *Console) Close() { _ = c.pty.SetDeadline(time.Now().Add(lastWords)) }

// Say shows viewers a line that does not come from the program.
func (c *Console) Say(line string) { c.put([]byte("\r\n\x1b[7m[scrimp]\x1b[0m " + line + "\r\n")) }

// Kept returns the newest output.
func (c *Console) Kept() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.kept)
}

// put appends output and drops what is too old.
func (c *Console) put(b []byte) {
	if len(b) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept, c.end = append(c.kept, b...), c.end+int64(len(b))
	if over := len(c.kept) - consoleKeeps; over > consoleKeeps/2 { // seldom, since it copies
		c.kept = append([]byte(nil), c.kept[over:]...)
	}
	c.wake()
}

// wake wakes viewers. The caller holds the lock.
func (c *Console) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// view returns a viewer that starts with the newest whole lines and ends with ctx.
func (c *Console) view(ctx context.Context) *viewer {
	c.mu.Lock()
	defer c.mu.Unlock()
	shown := c.kept[max(0, len(c.kept)-consoleShows):]
	if len(shown) < len(c.kept) {
		shown = shown[bytes.IndexByte(shown, '\n')+1:]
	}
	return &viewer{c: c, ctx: ctx, at: c.end - int64(len(shown))}
}

// viewer reads the output of a console.
type viewer struct {
	c   *Console
	ctx context.Context //nolint:containedctx // an io.Reader has no other way to end
	at  int64
}

// Read waits for output. A viewer that is too slow goes on with the oldest output that is kept.
func (v *viewer) Read(p []byte) (int, error) {
	for {
		v.c.mu.Lock()
		v.at = max(v.at, v.c.end-int64(len(v.c.kept)))
		n := copy(p, v.c.kept[len(v.c.kept)-int(v.c.end-v.at):])
		v.at += int64(n)
		changed, closed := v.c.changed, v.c.closed
		v.c.mu.Unlock()
		switch {
		case n > 0:
			return n, nil
		case closed:
			return 0, io.EOF
		}
		select {
		case <-v.ctx.Done():
			return 0, io.EOF
		case <-changed:
		}
	}
}

// keyboard passes a viewer's input to the program. The program goes on when the input ends.
type keyboard struct {
	c     *Console
	typed func()
	end   func()
}

func (k keyboard) Write(p []byte) (int, error) {
	if len(p) > 0 {
		k.typed()
	}
	return k.c.pty.Write(p)
}

func (k keyboard) Close() error {
	k.end()
	return nil
}

// Resize gives the terminal the size of the viewer that changed last.
func (k keyboard) Resize(t *api.Terminal) { _ = resize(k.c.pty, t) } // a failed resize is harmless

// Attach connects the user to a console until the user leaves or the console closes. It calls typed at each input.
func (s *Session) Attach(ctx context.Context, e api.Exec, c *Console, typed func()) api.ExecResult {
	ctx, end := context.WithCancel(ctx)
	defer end()
	keys := keyboard{c: c, typed: typed, end: end}
	if e.Terminal != nil {
		keys.Resize(e.Terminal)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.input(ctx, end, keys, e.Terminal)
	}()
	s.output(ctx, end, c.view(ctx), 32<<10)
	end()
	<-done
	return api.ExecResult{}
}

// plain masks nothing: a forwarded connection carries bytes that must arrive as they are.
var plain logship.Masker
