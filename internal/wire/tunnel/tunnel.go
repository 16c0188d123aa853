// Package tunnel carries many connections over one pair of byte streams. Each side may send a connection as much as
// the other has room for, so a slow reader of one connection delays no other one.
package tunnel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Limits of a tunnel.
const (
	MaxConns = 128       // open connections
	window   = 256 << 10 // bytes of one connection that its receiver buffers
	maxData  = 32 << 10  // bytes of data in one frame
)

// A frame is a header of headerSize bytes, big-endian: the connection's number (4), the kind (1) and a value (4). The
// value is the port of open, the length of the data that follows, or the further bytes that the sender may send.
const headerSize = 9

// Kinds of frames.
const (
	kindOpen  = iota + 1 // connect to a port
	kindData             // data follows
	kindEnd              // the sender sends no more data
	kindReset            // the connection is over
	kindRoom             // the receiver has room for more data
)

// ErrReset means that the other side has ended the connection, or that the tunnel is over.
var ErrReset = errors.New("the connection is reset")

// Tunnel is one side of a tunnel. The side that opens connections calls Open, and the other one serves them.
type Tunnel struct {
	// Accept serves a connection to a port of this side, in a goroutine of its own; nil refuses all.
	Accept func(port int, c *Conn)

	writing sync.Mutex // held while a frame is written
	out     io.Writer

	mu    sync.Mutex
	last  uint32
	conns map[uint32]*Conn
	over  bool
}

// New returns a tunnel that sends its frames to out. The caller must call Run.
func New(out io.Writer) *Tunnel { return &Tunnel{out: out, conns: map[uint32]*Conn{}} }

// Conn is a connection in a tunnel.
type Conn struct {
	t      *Tunnel
	id     uint32
	news   *sync.Cond // on the tunnel's mu
	in     []byte     // received and not read yet
	read   int        // bytes that were read since the last kindRoom
	room   int        // bytes that may be sent
	ended  bool       // the other side sends no more
	reset  bool
	closed bool // this side sends no more
}

// Run receives frames until in ends or is invalid, and resets all connections.
func (t *Tunnel) Run(in io.Reader) error {
	defer t.end()
	header, data := make([]byte, headerSize), make([]byte, maxData)
	for {
		if _, err := io.ReadFull(in, header); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		id, kind, value := binary.BigEndian.Uint32(header), header[4], binary.BigEndian.Uint32(header[5:])
		if kind == kindData {
			if value > maxData {
				return fmt.Errorf("a frame of %d bytes is above the limit of %d", value, maxData)
			}
			if _, err := io.ReadFull(in, data[:value]); err != nil {
				return err
			}
		}
		if err := t.take(id, kind, value, data); err != nil {
			return err
		}
	}
}

// take handles a frame. It never blocks on the other side.
func (t *Tunnel) take(id uint32, kind byte, value uint32, data []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if kind == kindOpen {
		return t.opened(id, value)
	}
	c := t.conns[id]
	if c == nil {
		return nil // it was reset on this side
	}
	switch kind {
	case kindData:
		if len(c.in)+int(value) > window {
			return errors.New("the other side sends more than there is room for")
		}
		c.in = append(c.in, data[:value]...)
	case kindEnd:
		c.ended = true
	case kindReset:
		c.reset = true
		delete(t.conns, id)
	case kindRoom:
		c.room = min(c.room+int(min(value, window)), window)
	default:
		return fmt.Errorf("a frame has the unknown kind %d", kind)
	}
	c.news.Broadcast()
	return nil
}

// opened starts to serve a connection. The caller holds the lock.
func (t *Tunnel) opened(id, port uint32) error {
	switch {
	case port == 0 || port > 65535:
		return fmt.Errorf("%d is not a port", port)
	case t.conns[id] != nil:
		return fmt.Errorf("connection %d is open already", id)
	case t.Accept == nil || len(t.conns) >= MaxConns:
		go func() { _ = t.send(id, kindReset, 0, nil) }() // if it fails, the tunnel is over
		return nil
	}
	c := t.add(id)
	go t.Accept(int(port), c)
	return nil
}

func (t *Tunnel) add(id uint32) *Conn {
	c := &Conn{t: t, id: id, news: sync.NewCond(&t.mu), room: window}
	t.conns[id] = c
	return c
}

// end resets all connections.
func (t *Tunnel) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	for id, c := range t.conns {
		c.reset = true
		c.news.Broadcast()
		delete(t.conns, id)
	}
}

// Open connects to a port of the other side. A refusal shows at the first read.
func (t *Tunnel) Open(port int) (*Conn, error) {
	t.mu.Lock()
	if t.over || len(t.conns) >= MaxConns {
		over := t.over
		t.mu.Unlock()
		if over {
			return nil, ErrReset
		}
		return nil, fmt.Errorf("%d connections are open, which is the limit", MaxConns)
	}
	t.last++
	c := t.add(t.last)
	t.mu.Unlock()
	if err := t.send(c.id, kindOpen, uint32(port), nil); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// send writes a frame as one piece.
func (t *Tunnel) send(id uint32, kind byte, value uint32, data []byte) error {
	frame := make([]byte, headerSize, headerSize+len(data))
	binary.BigEndian.PutUint32(frame, id)
	frame[4] = kind
	binary.BigEndian.PutUint32(frame[5:], value)
	t.writing.Lock()
	defer t.writing.Unlock()
	_, err := t.out.Write(append(frame, data...))
	return err
}

// Read implements io.Reader.
func (c *Conn) Read(p []byte) (int, error) {
	c.t.mu.Lock()
	for len(c.in) == 0 && !c.ended && !c.reset && !c.t.over {
		c.news.Wait()
	}
	n := copy(p, c.in)
	c.in = c.in[n:]
	if len(c.in) == 0 {
		c.in = nil
	}
	ended, room := c.ended, 0
	if c.read += n; c.read >= window/4 {
		room, c.read = c.read, 0
	}
	c.t.mu.Unlock()
	if room > 0 {
		if err := c.t.send(c.id, kindRoom, uint32(room), nil); err != nil {
			return n, err
		}
	}
	switch {
	case n > 0 || len(p) == 0:
		return n, nil
	case ended:
		return 0, io.EOF
	}
	return 0, ErrReset
}

// Write implements io.Writer. It waits until the other side has room.
func (c *Conn) Write(p []byte) (n int, err error) {
	for n < len(p) {
		c.t.mu.Lock()
		for c.room == 0 && !c.reset && !c.closed && !c.t.over {
			c.news.Wait()
		}
		if c.reset || c.closed || c.t.over {
			c.t.mu.Unlock()
			return n, ErrReset
		}
		size := min(len(p)-n, c.room, maxData)
		c.room -= size
		c.t.mu.Unlock()
		if err := c.t.send(c.id, kindData, uint32(size), p[n:n+size]); err != nil {
			return n, err
		}
		n += size
	}
	return n, nil
}

// CloseWrite tells the other side that no more data comes.
func (c *Conn) CloseWrite() error {
	c.t.mu.Lock()
	done := c.closed || c.reset || c.t.over
	c.closed = true
	c.t.mu.Unlock()
	if done {
		return nil
	}
	return c.t.send(c.id, kindEnd, 0, nil)
}

// Close ends the connection on both sides.
func (c *Conn) Close() error {
	c.t.mu.Lock()
	done := c.reset || c.t.over
	c.reset = true
	delete(c.t.conns, c.id)
	c.news.Broadcast()
	c.t.mu.Unlock()
	if done {
		return nil
	}
	return c.t.send(c.id, kindReset, 0, nil)
}

// Stream is the other end of a connection, such as a TCP connection.
type Stream interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// Join copies both ways between the connection and a stream until both directions have ended or one fails, and closes
// both.
func (c *Conn) Join(s Stream) {
	defer func() { _, _ = c.Close(), s.Close() }() // the copies have reported what matters
	ended := make(chan error, 2)
	go func() {
		_, err := io.Copy(c, s)
		ended <- errors.Join(err, c.CloseWrite())
	}()
	go func() {
		_, err := io.Copy(s, c)
		ended <- errors.Join(err, s.CloseWrite())
	}()
	if err := <-ended; err != nil {
		return // closing both ends the other copy
	}
	<-ended
}
