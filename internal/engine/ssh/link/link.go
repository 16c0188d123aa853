// Package link keeps the connection of an ssh engine to each of its machines, over which hostd answers.
package link

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
	"scrimp/internal/engine/ssh/setting"
	"scrimp/internal/lib/wait"
)

// Wall times of a connection.
const (
	AskTime     = 8 * time.Second  // limit for an answer
	retryFirst  = time.Second      // before a connection is retried; doubles with each retry
	retryMax    = 15 * time.Second // longest pause
	LookTime    = 3 * time.Second  // how long others wait for a machine's inventory
	beat        = time.Second      // how often to ping a machine that has nothing to answer
	quietAfter  = 3 * time.Second  // silence after which each beat tries a new connection,
	PingTime    = 3 * time.Second  // each for this long
	maxLine     = 16 << 20         // bytes of one line
	firstAnswer = 60 * time.Second // from connecting to the greeting, since the program may have to be copied
)

// Way connects to hostd on a machine.
type Way interface {
	Dial(ctx context.Context) (io.ReadWriteCloser, error)
	// Ping reports whether the machine answers on a new connection.
	Ping(ctx context.Context) bool
	// Server returns the URL at which agents on the machine reach the server, once connected.
	Server() string
}

// New returns the link to a machine, whose facts may be known from an earlier connection.
func New(host *setting.Machine, w Way, log *slog.Logger, facts *hostd.Facts) *Link {
	return &Link{Host: host, Way: w, log: log, waiting: map[int64]chan hostd.Answer{}, changed: make(chan struct{}),
		facts: facts}
}

// Link is the connection to one machine. It reconnects whenever the connection ends.
type Link struct {
	Host *setting.Machine
	Way  Way
	log  *slog.Logger

	once    sync.Once
	writing sync.Mutex
	mu      sync.Mutex
	conn    io.ReadWriteCloser // nil: none
	next    int64
	waiting map[int64]chan hostd.Answer
	heard   time.Time // time of the last answer or other sign of life
	back    bool      // the machine answers but the connection does not: reconnect at once
	asked   bool      // an inventory was requested that nobody waits for
	why     error     // why there is no connection
	facts   *hostd.Facts
	changed chan struct{} // closed when a connection is established or has failed
}

// Begin connects, and reconnects whenever the connection ends, until ctx is done.
func (l *Link) Begin(ctx context.Context) {
	l.once.Do(func() {
		if g, ok := l.Way.(Guest); ok {
			g.Await()
			return
		}
		go l.keep(ctx)
	})
}

func (l *Link) keep(ctx context.Context) {
	for pause := retryFirst; ctx.Err() == nil; pause = min(2*pause, retryMax) {
		began := time.Now()
		err := l.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		l.Ended(err)
		if time.Since(began) > time.Minute { // the connection was good for a while
			pause = retryFirst
		}
		if !l.takeBack() {
			_ = wait.For(ctx, pause)
		}
	}
}

// takeBack reports whether the connection was closed because the machine answered on a new one.
func (l *Link) takeBack() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	back := l.back
	l.back = false
	return back
}

// Ended records why there is no connection.
func (l *Link) Ended(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil || l.why == nil { // log it once, not with each retry
		l.log.Warn("cannot reach machine; retrying", "host", l.Host.Name, "error", err)
	}
	l.conn, l.why = nil, err
	for id, c := range l.waiting {
		close(c)
		delete(l.waiting, id)
	}
	l.wake()
}

// wake wakes goroutines that wait for a connection. The caller holds mu.
func (l *Link) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

var errEnded = errors.New("the connection has ended")

// connect dials, and returns when its connection has ended.
func (l *Link) connect(ctx context.Context) error {
	conn, err := l.Way.Dial(ctx)
	if err != nil {
		return err
	}
	return l.Serve(ctx, conn)
}

// Serve exchanges messages with the machine until the connection ends.
func (l *Link) Serve(ctx context.Context, conn io.ReadWriteCloser) error {
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
	l.wake()
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
			return fmt.Errorf("the machine sent a line that is not an answer: %w", err)
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

// watch pings a machine that has nothing to answer, and tries new connections to a silent one,
// because TCP resends data sent during an outage only long after it. If a new connection answers
// and the old one does not, watch closes the old one.
func (l *Link) watch(ctx context.Context, conn io.Closer) {
	var asking sync.WaitGroup
	defer asking.Wait()
	for wait.For(ctx, beat) == nil {
		_, _, heard, _ := l.State()
		switch quiet := time.Since(heard); {
		case quiet < beat:
		case quiet < quietAfter:
			asking.Go(func() { _, _ = l.Ask(ctx, hostd.Request{Do: "ping"}, quietAfter) })
		default: // concurrently, since none sent during the outage will be answered
			asking.Go(func() { l.ping(ctx, heard, conn) })
		}
	}
}

// ping tries a new connection to a machine. heard is when the machine last answered.
func (l *Link) ping(ctx context.Context, heard time.Time, conn io.Closer) {
	ctx, cancel := context.WithTimeout(ctx, PingTime)
	defer cancel()
	if !l.Way.Ping(ctx) {
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

// said returns what ssh printed about the end of a connection, if anything.
func said(conn io.ReadWriteCloser) error {
	if c, ok := conn.(interface{ Reason() error }); ok {
		return c.Reason()
	}
	return nil
}

// awaitGreeting reads up to the greeting: a login shell may print something before it.
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
	return errors.New("the machine's login prints without end, before any command runs")
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
		if len(line) > maxLine {
			return nil, errors.New("a line without end")
		}
	}
}

// look asks for the machine's facts.
func (l *Link) look(ctx context.Context) {
	a, err := l.Ask(ctx, hostd.Request{Do: "facts"}, 3*AskTime)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && a.Facts != nil {
		l.facts = a.Facts
	}
	l.wake()
}

// Ask sends a request and waits for its answer.
func (l *Link) Ask(ctx context.Context, r hostd.Request, within time.Duration) (hostd.Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("machine %s does not answer", l.Host.Name))
	defer cancel()
	l.mu.Lock()
	if l.conn == nil {
		why := l.why
		l.mu.Unlock()
		if why == nil {
			why = errors.New("no connection yet")
		}
		return hostd.Answer{}, fmt.Errorf("cannot reach machine %s: %w", l.Host.Name, why)
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
		go func() { // a full pipe must not block the caller
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
		return hostd.Answer{}, fmt.Errorf("ask machine %s: %w", l.Host.Name, err)
	}
	select {
	case a, ok := <-c:
		if !ok {
			return hostd.Answer{}, fmt.Errorf("ask machine %s: %w", l.Host.Name, errEnded)
		}
		if _, joins := l.Way.(Guest); joins {
			tidy(&a)
		}
		err := a.Err()
		return a, err
	case <-ctx.Done():
		l.forget(r.ID)
		return hostd.Answer{}, context.Cause(ctx)
	}
}

func (l *Link) forget(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, id)
}

// Until waits until the machine has reported its facts, or a connection has failed.
func (l *Link) Until(ctx context.Context) error {
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

// State returns the state of the connection.
func (l *Link) State() (facts *hostd.Facts, connected bool, heard time.Time, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.facts, l.conn != nil, l.heard, l.why
}

// Silent reports whether the machine has been silent for a while.
func (l *Link) Silent() bool {
	_, _, heard, _ := l.State()
	return time.Since(heard) > quietAfter
}

// MayAsk reports whether no request for the inventory is running, and marks one as running. WasAsked ends that.
func (l *Link) MayAsk() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	may := !l.asked
	l.asked = true
	return may
}

// WasAsked ends what MayAsk began.
func (l *Link) WasAsked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = false
}
