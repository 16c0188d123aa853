package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/hostd"
	"scrimp/internal/engine/ssh/link"
	"scrimp/internal/engine/ssh/setting"
)

// Wall times of connections of machines that join.
const (
	joinTime    = 5 * time.Second  // after the server's start, for machines that had joined its predecessor
	claimTime   = 3 * time.Second  // for a ping to the present owner of a claimed name
	revokedLook = 5 * time.Second  // between two checks of a connected machine's token
	maxSilence  = time.Minute      // silence after which the connection is closed
	sendTime    = 30 * time.Second // for a write
)

// joining is the way to a machine that connects to the server itself.
type joining struct {
	link   *link.Link
	driver *Driver
	trial  bool // no machine joins this process: the server runs elsewhere

	mu      sync.Mutex
	session string   // session that holds the machine's name; empty: none
	conn    net.Conn // connection of that session; nil: not served yet
	since   time.Time
	serving sync.Mutex // held while a connection is served
}

var _ engine.Joiner = (*Driver)(nil)

// addJoining adds a machine that connects itself.
func (d *Driver) addJoining(m *setting.Machine, trial bool) {
	j := &joining{driver: d, trial: trial}
	d.add(m, j)
	j.link = d.links[len(d.links)-1]
}

// joining returns the way to the machine of that name, or nil if it is not one that joins.
func (d *Driver) joining(machine string) *joining {
	l := d.link(machine)
	if l == nil {
		return nil
	}
	j, _ := l.Way.(*joining)
	return j
}

// Dial implements way. It always fails, since only the machine can connect.
func (j *joining) Dial(context.Context) (io.ReadWriteCloser, error) { return nil, j.missing() }

// Ping implements way. A machine that joins has only its one connection. Ping closes a connection
// that has been silent for long: a live machine would have reconnected.
func (j *joining) Ping(ctx context.Context) bool {
	_, err := j.link.Ask(ctx, hostd.Request{Do: "ping"}, link.PingTime)
	if _, _, heard, _ := j.link.State(); err != nil && time.Since(heard) > maxSilence {
		j.drop()
	}
	return err == nil
}

// Server implements way. It is empty because the machine knows the URL with which it joined.
func (j *joining) Server() string { return "" }

// missing returns the error for a machine that has not joined.
func (j *joining) missing() error {
	if j.trial {
		return fmt.Errorf("%s joins a running server, and this command has none: stop the server that runs elsewhere "+
			"(scrimp server stop), "+
			"then scrimp serve", j.link.Host.Name)
	}
	return fmt.Errorf("%s has not joined: run there scrimp agent join URL with its token, which scrimp engine token %s "+
		"%s makes anew", j.link.Host.Name, j.driver.name, j.link.Host.Name)
}

// Await implements link.Guest.
func (j *joining) Await() {
	after := joinTime
	if j.trial {
		after = 0
	}
	time.AfterFunc(after, func() {
		if _, connected, _, why := j.link.State(); !connected && why == nil {
			j.link.Ended(j.missing())
		}
	})
}

// drop closes the present connection, if any.
func (j *joining) drop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.conn != nil {
		_ = j.conn.Close()
	}
}

// seat implements engine.Seat.
type seat struct {
	*joining
	token, own string // used for the claim
}

// Claim implements engine.Joiner. A machine that reconnects after an outage gets its own place back at once.
func (d *Driver) Claim(ctx context.Context, token, session string) (engine.Seat, error) {
	machine, ok := d.Admits(token)
	if !ok || session == "" {
		return nil, engine.ErrStranger
	}
	j := d.joining(machine)
	for {
		j.mu.Lock()
		other := j.session
		if other == "" || other == session {
			j.session = session
			j.mu.Unlock()
			return &seat{j, token, session}, nil
		}
		j.mu.Unlock()
		if _, err := j.link.Ask(ctx, hostd.Request{Do: "ping"}, claimTime); err == nil {
			return nil, fmt.Errorf("%s: %w", machine, engine.ErrTaken)
		}
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		j.mu.Lock()
		if j.session == other { // it is dead
			j.session = ""
			if j.conn != nil {
				_ = j.conn.Close()
			}
		}
		j.mu.Unlock()
	}
}

// Close implements engine.Seat.
func (s *seat) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == s.own && s.conn == nil {
		s.session = ""
	}
}

// Serve implements engine.Seat.
func (s *seat) Serve(ctx context.Context, conn net.Conn) error {
	defer func() { _ = conn.Close() }()
	s.mu.Lock()
	if s.session != s.own {
		s.mu.Unlock()
		return engine.ErrTaken
	}
	if s.conn != nil { // its own previous connection
		_ = s.conn.Close()
	}
	s.conn = conn
	s.mu.Unlock()
	s.serving.Lock() // after the previous connection has ended
	defer s.serving.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.driver.ctx, cancel)()
	s.begins(conn)
	go s.watchToken(ctx, cancel)
	err := s.link.Serve(ctx, &bounded{Conn: conn})
	s.ends(conn, err)
	return err
}

func (s *seat) begins(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == conn {
		s.since = time.Now()
	}
}

// ends records the end of a connection, unless a newer one has replaced it.
func (s *seat) ends(conn net.Conn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Time{}
	if s.conn == conn {
		s.conn = nil
		if s.session == s.own {
			s.session = ""
		}
	}
	s.link.Ended(fmt.Errorf("%s is no longer connected (%w): it joins again if scrimp agent join still runs there",
		s.link.Host.Name, err))
}

// watchToken ends the connection once its token is invalid.
func (s *seat) watchToken(ctx context.Context, end func()) {
	t := time.NewTicker(revokedLook)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if _, ok := s.driver.Admits(s.token); !ok {
				s.driver.log.Warn("the token of a machine was revoked: disconnecting it", "host", s.link.Host.Name)
				end()
				return
			}
		}
	}
}

// Joined implements engine.Joiner.
func (d *Driver) Joined() (list []engine.Joined) {
	for _, l := range d.links {
		j, ok := l.Way.(*joining)
		if !ok {
			continue
		}
		_, _, heard, _ := l.State()
		v := engine.Joined{Name: l.Host.Name, Heard: heard}
		j.mu.Lock()
		if j.conn != nil && !j.since.IsZero() {
			v.Since, v.From = j.since, j.conn.RemoteAddr().String()
		}
		j.mu.Unlock()
		list = append(list, v)
	}
	return list
}

// Limits on what a machine that joined may send, since it is not trusted to follow the protocol.
const (
	maxJoinedLine = 4 << 20 // bytes
	maxUnasked    = 16      // lines that are not answers, such as the greeting
)

var errBound = errors.New("it sends more than the requested answers")

// bounded is a connection that accepts only as many lines as were requested, each of limited length.
type bounded struct {
	net.Conn

	mu    sync.Mutex
	asked int // lines sent
	came  int // lines received
	long  int // bytes of the line being received
	over  bool
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	for _, c := range p {
		if c == '\n' {
			b.asked++
		}
	}
	b.mu.Unlock()
	_ = b.SetWriteDeadline(time.Now().Add(sendTime)) // a pipe in tests has no deadline
	return b.Conn.Write(p)
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range p[:n] {
		if b.long++; c == '\n' {
			b.came, b.long = b.came+1, 0
		}
	}
	if b.long > maxJoinedLine || b.came > b.asked+maxUnasked {
		b.over = true
		return 0, errBound
	}
	return n, err
}

// Reason returns why the connection ended, if bounded ended it.
func (b *bounded) Reason() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return errBound
	}
	return nil
}

// Admits implements engine.Joiner.
func (d *Driver) Admits(token string) (machine string, ok bool) {
	name, machine, ok := setting.TokenOf(token)
	if !ok || name != d.name || d.joining(machine) == nil {
		return "", false
	}
	admitted, err := setting.IsToken(d.dir, machine, token)
	if err != nil {
		d.log.Error("no machine is admitted", "error", err)
		return "", false
	}
	return machine, admitted
}
