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

// Limits of a console: the bytes of the newest output that it keeps, the bytes of it that a viewer gets who connects,
// or is behind when the program ends, and the lines of Say that it keeps.
const (
	consoleKeeps = 256 << 10
	consoleShows = 16 << 10
	consoleSays  = 32
)

// said is a line of Say: it belongs before the program's output at that position.
type said struct {
	at   int64
	text []byte
}

// Console is the terminal of a program that outlives its viewers. The program never waits for a viewer: a slow one
// misses output, but no line of Say.
type Console struct {
	pty    *os.File
	theirs *os.File // the program's end; nil once the program has it

	mu      sync.Mutex
	kept    []byte // newest output
	end     int64  // bytes printed so far
	said    []said // newest lines of Say
	says    int    // lines of Say so far
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
func (c *Console) Say(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said = append(c.said, said{at: c.end, text: []byte("\r\n\x1b[7m[scrimp]\x1b[0m " + line + "\r\n")})
	c.said = c.said[max(0, len(c.said)-consoleSays):]
	c.says++
	c.wake()
}

// Said returns the newest lines of Say.
func (c *Console) Said() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := ""
	for _, s := range c.said {
		text += string(s.text)
	}
	return text
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
	v := &viewer{c: c, ctx: ctx, at: c.end - int64(len(shown)), heard: c.says - len(c.said)}
	for _, s := range c.said {
		if s.at < v.at {
			v.heard++
		}
	}
	return v
}

// viewer reads the output of a console.
type viewer struct {
	c     *Console
	ctx   context.Context //nolint:containedctx // an io.Reader has no other way to end
	at    int64
	heard int    // lines of Say that it has had
	line  []byte // rest of a line of Say
}

// Read waits for output. A viewer that is too slow continues with the oldest output that the console keeps or, after
// the program's end, with the last lines. It gets each line of Say at its place, or at once if it is far behind.
func (v *viewer) Read(p []byte) (int, error) {
	for {
		v.c.mu.Lock()
		n := v.take(p)
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

// take copies what comes next into p. The caller holds the lock.
func (v *viewer) take(p []byte) (n int) {
	c := v.c
	v.at = max(v.at, c.end-int64(len(c.kept)))
	if c.closed {
		v.at = max(v.at, c.end-consoleShows)
	}
	next := c.end
	if v.heard = max(v.heard, c.says-len(c.said)); len(v.line) == 0 && v.heard < c.says {
		s := c.said[len(c.said)-(c.says-v.heard)]
		if s.at <= v.at || c.end-v.at > consoleShows {
			v.line, v.heard = s.text, v.heard+1
		}
		next = max(v.at, s.at)
	}
	if len(v.line) > 0 {
		n = copy(p, v.line)
		v.line = v.line[n:]
		return n
	}
	rest := c.kept[len(c.kept)-int(c.end-v.at):]
	n = copy(p, rest[:next-v.at])
	v.at += int64(n)
	return n
}

// keyboard passes a viewer's input to the program. The program keeps running when the input ends.
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

// plain masks nothing: a forwarded connection carries bytes that must arrive unchanged.
var plain logship.Masker
