package ssh

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"scrimp/internal/engine/hostd"
	"scrimp/internal/lib/wait"
)

// Spans of a connection, on the wall.
const (
	askTime     = 8 * time.Second  // for an answer; then the connection is not used for this question any more
	againFirst  = time.Second      // before a connection is tried again; each further pause is twice as long
	againMost   = 15 * time.Second // and no longer than this
	lookTime    = 3 * time.Second  // so long the others are kept waiting for what runs on a machine
	beat        = time.Second      // a machine that has nothing to answer is asked whether it is there so often
	quietAfter  = 3 * time.Second  // without an answer a machine is tried by a new connection with each beat,
	pingTime    = 3 * time.Second  // each for so long
	mostAnswer  = 16 << 20         // bytes of one line
	firstAnswer = 60 * time.Second // from the beginning of a connection to its greeting: the program may be copied
)

// way begins a connection to hostd on a machine.
type way interface {
	Dial(ctx context.Context) (io.ReadWriteCloser, error)
	// Ping reports whether the machine answers to a new connection.
	Ping(ctx context.Context) bool
	// Server is the URL by which machines there reach the server, once connected.
	Server() string
}

// link is the connection to one machine, begun again whenever it ends.
type link struct {
	host *Machine
	way  way
	log  *slog.Logger

	once    sync.Once
	writing sync.Mutex
	mu      sync.Mutex
	conn    io.ReadWriteCloser // nil: none
	next    int64
	waiting map[int64]chan hostd.Answer
	heard   time.Time // of the last answer, or sign of life
	back    bool      // the machine answers, and the connection does not: it is begun again at once
	asked   bool      // what runs there, and nobody waits for it
	why     error     // there is no connection
	facts   *hostd.Facts
	changed chan struct{} // closed when a connection is there, or one failed
}

// begin connects, and does so again whenever the connection ends, until ctx does.
func (l *link) begin(ctx context.Context) {
	l.once.Do(func() {
		if j, ok := l.way.(*joining); ok {
			j.begin()
			return
		}
		go l.keep(ctx)
	})
}

func (l *link) keep(ctx context.Context) {
	for pause := againFirst; ctx.Err() == nil; pause = min(2*pause, againMost) {
		began := time.Now()
		err := l.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		l.ended(err)
		if time.Since(began) > time.Minute { // it was good for a while
			pause = againFirst
		}
		if !l.isBack() {
			_ = wait.For(ctx, pause)
		}
	}
}

// isBack reports whether the connection was ended because a new one was answered.
func (l *link) isBack() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	back := l.back
	l.back = false
	return back
}

// ended notes why there is no connection.
func (l *link) ended(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil || l.why == nil { // once, and not with each try
		l.log.Warn("machine not reached; trying again", "host", l.host.Name, "error", err)
	}
	l.conn, l.why = nil, err
	for id, c := range l.waiting {
		close(c)
		delete(l.waiting, id)
	}
	l.tell()
}

// tell wakes who waits for a connection. The caller holds mu.
func (l *link) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

var errEnded = errors.New("the connection has ended")

// connect returns when its connection has ended.
func (l *link) connect(ctx context.Context) error {
	conn, err := l.way.Dial(ctx)
	if err != nil {
		return err
	}
	return l.serve(ctx, conn)
}

// serve speaks with the machine until the connection ends.
func (l *link) serve(ctx context.Context, conn io.ReadWriteCloser) error {
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	late := time.AfterFunc(firstAnswer, func() { _ = conn.Close() })
	defer late.Stop()
	lines := bufio.NewReaderSize(conn, 64<<10)
	if err := awaitGreeting(lines); err != nil {
		return errors.Join(err, said(conn))
	}
	late.Stop()
	l.mu.Lock()
	l.conn, l.why, l.heard = conn, nil, time.Now()
	l.tell()
	l.mu.Unlock()
	go l.look(ctx)
	over, stop2 := context.WithCancel(ctx)
	defer stop2()
	go l.watch(over, conn)
	for {
		line, err := readLine(lines)
		if err != nil {
			return errors.Join(errEnded, said(conn))
		}
		var a hostd.Answer
		if err := json.Unmarshal(line, &a); err != nil {
			return fmt.Errorf("a line of the machine is no answer: %w", err)
		}
		l.mu.Lock()
		l.heard = time.Now()
		if c := l.waiting[a.ID]; c != nil {
			delete(l.waiting, a.ID)
			c <- a
		}
		l.mu.Unlock()
	}
}

// watch asks a machine that has nothing to answer whether it is there, and tries a quiet one by new connections,
// since what was sent while a cable was out is sent again only long after it is back. Where one is answered and
// the old one is not, the old one is given up.
func (l *link) watch(ctx context.Context, conn io.Closer) {
	var asking sync.WaitGroup
	defer asking.Wait()
	for wait.For(ctx, beat) == nil {
		_, _, heard, _ := l.state()
		switch quiet := time.Since(heard); {
		case quiet < beat:
		case quiet < quietAfter:
			asking.Go(func() { _, _ = l.ask(ctx, hostd.Request{Do: "ping"}, quietAfter) })
		default: // the next one does not wait for this one: of those that are sent while the cable is out none is answered
			asking.Go(func() { l.ping(ctx, heard, conn) })
		}
	}
}

// ping tries a machine that was last heard of then by a new connection.
func (l *link) ping(ctx context.Context, heard time.Time, conn io.Closer) {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	if !l.way.Ping(ctx) {
		return
	}
	l.mu.Lock()
	silent := l.heard.Equal(heard)
	l.heard = time.Now()
	l.back = l.back || silent
	l.mu.Unlock()
	if silent {
		_ = conn.Close()
	}
}

// said is what ssh printed about the end of a connection, where it did.
func said(conn io.ReadWriteCloser) error {
	if c, ok := conn.(interface{ Reason() error }); ok {
		return c.Reason()
	}
	return nil
}

// awaitGreeting reads up to the greeting: a login shell may print before.
func awaitGreeting(lines *bufio.Reader) error {
	for n := 0; n < 10_000; n++ {
		line, err := readLine(lines)
		if err != nil {
			return errEnded
		}
		if strings.HasPrefix(string(line), strings.TrimSpace(hostd.Greeting)) {
			return nil
		}
	}
	return errors.New("the machine's login prints without end: what it prints must not depend on a command")
}

func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, more, err := r.ReadLine()
		if err != nil {
			return nil, err
		}
		if line = append(line, part...); !more {
			return line, nil
		}
		if len(line) > mostAnswer {
			return nil, errors.New("a line without end")
		}
	}
}

// look asks what the machine has.
func (l *link) look(ctx context.Context) {
	a, err := l.ask(ctx, hostd.Request{Do: "facts"}, 3*askTime)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && a.Facts != nil {
		l.facts = a.Facts
	}
	l.tell()
}

// ask sends a request and waits for its answer.
func (l *link) ask(ctx context.Context, r hostd.Request, within time.Duration) (hostd.Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("machine %s does not answer", l.host.Name))
	defer cancel()
	l.mu.Lock()
	if l.conn == nil {
		why := l.why
		l.mu.Unlock()
		if why == nil {
			why = errors.New("no connection yet")
		}
		return hostd.Answer{}, fmt.Errorf("machine %s is not reached: %w", l.host.Name, why)
	}
	l.next++
	r.ID = l.next
	c := make(chan hostd.Answer, 1)
	l.waiting[r.ID] = c
	conn := l.conn
	l.mu.Unlock()
	text, err := json.Marshal(r)
	if err == nil {
		sent := make(chan error, 1)
		go func() { // a pipe that is full must not hold up who asks
			l.writing.Lock()
			defer l.writing.Unlock()
			_, err := conn.Write(append(text, '\n'))
			sent <- err
		}()
		select {
		case err = <-sent:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		l.forget(r.ID)
		return hostd.Answer{}, fmt.Errorf("ask machine %s: %w", l.host.Name, err)
	}
	select {
	case a, ok := <-c:
		if !ok {
			return hostd.Answer{}, fmt.Errorf("ask machine %s: %w", l.host.Name, errEnded)
		}
		if _, joins := l.way.(*joining); joins {
			tidy(&a)
		}
		err := a.Err()
		return a, err
	case <-ctx.Done():
		l.forget(r.ID)
		return hostd.Answer{}, context.Cause(ctx)
	}
}

func (l *link) forget(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, id)
}

// until waits until the machine has said what it has, or a connection has failed.
func (l *link) until(ctx context.Context) error {
	for {
		l.mu.Lock()
		there, why, changed := l.conn != nil && l.facts != nil, l.why, l.changed
		l.mu.Unlock()
		if there || why != nil {
			return why
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// state is how the connection stands.
func (l *link) state() (facts *hostd.Facts, connected bool, heard time.Time, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.facts, l.conn != nil, l.heard, l.why
}

// silent reports whether the machine has given no sign of life for a while.
func (l *link) silent() bool {
	_, _, heard, _ := l.state()
	return time.Since(heard) > quietAfter
}

// mayAsk reports whether what runs there is not asked for already, and notes that it is; wasAsked ends that.
func (l *link) mayAsk() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	may := !l.asked
	l.asked = true
	return may
}

func (l *link) wasAsked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = false
}
