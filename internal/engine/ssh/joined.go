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
)

// Spans of connections of machines that join, on the wall.
const (
	joinTime    = 5 * time.Second  // after a server's begin, for machines that had joined the one before
	claimTime   = 3 * time.Second  // for an answer of whoever has the name that another machine claims
	revokedLook = 5 * time.Second  // between two checks of the token of a machine that is connected
	silentMost  = time.Minute      // without an answer: then the connection is closed
	sendTime    = 30 * time.Second // for what is sent to be accepted
)

// joining is the way of a machine that connects to the server by itself.
type joining struct {
	link   *link
	driver *Driver
	trial  bool // no machine joins here: the server runs elsewhere

	mu      sync.Mutex
	session string   // that has the machine's name; "": none
	conn    net.Conn // of that session; nil: it is not served yet
	since   time.Time
	serving sync.Mutex // held while a connection is served
}

var _ engine.Joiner = (*Driver)(nil)

// addJoining names a machine that comes by itself.
func (d *Driver) addJoining(m *Machine, trial bool) {
	j := &joining{driver: d, trial: trial}
	d.add(m, j)
	j.link = d.links[len(d.links)-1]
}

// joining is the way of the machine of that name, where it is one that joins; nil: it is not.
func (d *Driver) joining(machine string) *joining {
	l := d.link(machine)
	if l == nil {
		return nil
	}
	j, _ := l.way.(*joining)
	return j
}

// Dial implements way. The machine does.
func (j *joining) Dial(context.Context) (io.ReadWriteCloser, error) { return nil, j.missing() }

// Ping implements way: a machine that joins has no other way than its connection. One that does not
// answer for long is taken for gone, since it would have come anew.
func (j *joining) Ping(ctx context.Context) bool {
	_, err := j.link.ask(ctx, hostd.Request{Do: "ping"}, pingTime)
	if _, _, heard, _ := j.link.state(); err != nil && time.Since(heard) > silentMost {
		j.drop()
	}
	return err == nil
}

// Server implements way: the machine knows by which URL it joined.
func (j *joining) Server() string { return "" }

// missing says why the machine is not there.
func (j *joining) missing() error {
	if j.trial {
		return fmt.Errorf("%s joins the server, and none that knows of it runs here: scrimp server stop where one runs, "+
			"then scrimp serve", j.link.host.Name)
	}
	return fmt.Errorf("%s has not joined: run there scrimp agent join URL with its token, which scrimp engine token %s "+
		"%s makes anew", j.link.host.Name, j.driver.name, j.link.host.Name)
}

// begin waits a moment for a machine that had joined the server before.
func (j *joining) begin() {
	after := joinTime
	if j.trial {
		after = 0
	}
	time.AfterFunc(after, func() {
		if _, connected, _, why := j.link.state(); !connected && why == nil {
			j.link.ended(j.missing())
		}
	})
}

// drop closes the connection that there is.
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
	token, own string // what it was claimed with
}

// Claim implements engine.Joiner. A machine that comes anew, after a cable was out, takes its own place at once.
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
		if _, err := j.link.ask(ctx, hostd.Request{Do: "ping"}, claimTime); err == nil {
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
	if s.conn != nil { // its own of before
		_ = s.conn.Close()
	}
	s.conn = conn
	s.mu.Unlock()
	s.serving.Lock() // when the one before has ended
	defer s.serving.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.driver.ctx, cancel)()
	s.begins(conn)
	go s.watchToken(ctx, cancel)
	err := s.link.serve(ctx, &bounded{Conn: conn})
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

// ends notes that a connection has ended, where no newer one has taken its place.
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
	s.link.ended(fmt.Errorf("%s is not connected any more (%w): it joins again by itself where scrimp agent join runs",
		s.link.host.Name, err))
}

// watchToken ends the connection once its token is good no more.
func (s *seat) watchToken(ctx context.Context, end func()) {
	t := time.NewTicker(revokedLook)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if _, ok := s.driver.Admits(s.token); !ok {
				s.driver.log.Warn("the token of a machine is revoked: it is cut off", "host", s.link.host.Name)
				end()
				return
			}
		}
	}
}

// Joined implements engine.Joiner.
func (d *Driver) Joined() (list []engine.Joined) {
	for _, l := range d.links {
		j, ok := l.way.(*joining)
		if !ok {
			continue
		}
		_, _, heard, _ := l.state()
		v := engine.Joined{Name: l.host.Name, Heard: heard}
		j.mu.Lock()
		if j.conn != nil && !j.since.IsZero() {
			v.Since, v.From = j.since, j.conn.RemoteAddr().String()
		}
		j.mu.Unlock()
		list = append(list, v)
	}
	return list
}

// What a machine that joined may send: it is not believed to keep to what it is asked.
const (
	mostJoinedLine = 4 << 20 // bytes
	mostUnasked    = 16      // lines beyond those that answer: the greeting
)

var errBound = errors.New("it sends more than answers")

// bounded is a connection on which no more comes than answers of some length.
type bounded struct {
	net.Conn

	mu    sync.Mutex
	asked int // lines that were sent
	came  int // lines that came
	long  int // bytes of the line that comes
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
	_ = b.SetWriteDeadline(time.Now().Add(sendTime)) // a test's pipe has none
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
	if b.long > mostJoinedLine || b.came > b.asked+mostUnasked {
		b.over = true
		return 0, errBound
	}
	return n, err
}

// Reason is why the connection ended, where it is ours.
func (b *bounded) Reason() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return errBound
	}
	return nil
}
