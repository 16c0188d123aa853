package tunnel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"scrimp/internal/test/must"
)

// pair returns two sides of a tunnel. The second one serves connections with accept.
func pair(t *testing.T, accept func(port int, c *Conn)) (open, serve *Tunnel) {
	t.Helper()
	a, b := NewQueue(1<<20), NewQueue(1<<20)
	open, serve = New(a), New(b)
	serve.Accept = accept
	var running sync.WaitGroup
	running.Go(func() { _ = open.Run(b) })
	running.Go(func() { _ = serve.Run(a) })
	t.Cleanup(func() { _, _ = a.Close(), b.Close(); running.Wait() })
	return open, serve
}

// Several connections at once carry more than their windows hold, keep their bytes apart, and end on both sides.
func TestTunnel_CarriesManyConnections(t *testing.T) {
	t.Parallel()
	open, serve := pair(t, func(port int, c *Conn) {
		b, _ := io.ReadAll(c)
		_, _ = c.Write(bytes.Repeat(append(b, byte(port)), 3)) // the reader below compares it
		_, _ = c.CloseWrite(), c.Close()
	})
	var all sync.WaitGroup
	for port := 1; port <= 20; port++ {
		all.Go(func() {
			c, err := open.Open(port)
			if err != nil {
				t.Error(err)
				return
			}
			sent := bytes.Repeat([]byte{byte(port), 'x'}, 150_000)
			go func() { _, _ = c.Write(sent); _ = c.CloseWrite() }()
			got, _ := io.ReadAll(c) // a reset may follow the end
			if !bytes.Equal(got, bytes.Repeat(append(sent, byte(port)), 3)) {
				t.Errorf("port %d: %d bytes", port, len(got))
			}
			_ = c.Close()
		})
	}
	all.Wait()
	for _, side := range []*Tunnel{open, serve} {
		side.mu.Lock()
		if n := len(side.conns); side == open && n > 0 {
			t.Errorf("%d connections are left", n)
		}
		side.mu.Unlock()
	}
}

// A connection that nobody reads fills only its own window and does not delay another one.
func TestTunnel_SlowReaderDelaysNoOther(t *testing.T) {
	t.Parallel()
	stuck := make(chan *Conn, 1)
	open, _ := pair(t, func(port int, c *Conn) {
		if port == 1 {
			stuck <- c // never read
			return
		}
		_, _ = io.Copy(c, c)
		_ = c.CloseWrite()
	})
	slow, err := open.Open(1)
	must.Do(t, err)
	blocked := make(chan error, 1)
	go func() { _, err := slow.Write(make([]byte, 2*window)); blocked <- err }()
	<-stuck
	echo, err := open.Open(2)
	must.Do(t, err)
	if _, err := echo.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	_ = echo.CloseWrite()
	if got, _ := io.ReadAll(echo); string(got) != "hello" {
		t.Errorf("the other connection carries %q", got)
	}
	_ = slow.Close()
	if err := <-blocked; !errors.Is(err, ErrReset) {
		t.Errorf("the blocked write ends with %v", err)
	}
}

// A port that nobody serves, a stream that ends, and frames that break the rules all reset the connections.
func TestTunnel_ResetsConnectionsOnInvalidFrames(t *testing.T) {
	t.Parallel()
	open, _ := pair(t, nil)
	c, err := open.Open(9)
	must.Do(t, err)
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, ErrReset) {
		t.Errorf("a refused connection: %v", err)
	}
	frame := func(id uint32, kind byte, value uint32, data int) []byte {
		b := binary.BigEndian.AppendUint32(nil, id)
		return append(binary.BigEndian.AppendUint32(append(b, kind), value), make([]byte, data)...)
	}
	opens := frame(1, kindOpen, 80, 0)
	for want, in := range map[string][]byte{
		"is above the limit": append(bytes.Clone(opens), frame(1, kindData, maxData+1, 0)...),
		"room for":           append(bytes.Clone(opens), bytes.Repeat(frame(1, kindData, maxData, maxData), window/maxData+1)...),
		"unknown kind 99":    append(bytes.Clone(opens), frame(1, 99, 0, 0)...),
		"is not a port":      frame(1, kindOpen, 70_000, 0),
		"is open already":    append(bytes.Clone(opens), opens...),
		"unexpected EOF":     opens[:5],
	} {
		side := New(io.Discard)
		side.Accept = func(_ int, c *Conn) {}
		if err := side.Run(bytes.NewReader(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if _, err := side.Open(1); !errors.Is(err, ErrReset) {
			t.Errorf("%s: another connection opens: %v", want, err)
		}
	}
	many := New(io.Discard)
	for range MaxConns {
		if _, err := many.Open(1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := many.Open(1); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("one connection too many: %v", err)
	}
}

// Join connects a tunnel with TCP connections at both ends.
func TestConn_JoinsTCP(t *testing.T) {
	t.Parallel()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	defer func() { _ = server.Close() }()
	go func() {
		c, err := server.Accept()
		if err != nil {
			return
		}
		b, _ := io.ReadAll(c)
		_, _ = c.Write(append([]byte("got "), b...))
		_ = c.Close()
	}()
	open, _ := pair(t, func(_ int, c *Conn) {
		s, err := net.Dial("tcp", server.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		c.Join(s.(*net.TCPConn))
	})
	c, err := open.Open(1)
	must.Do(t, err)
	_, _ = c.Write([]byte("abc"))
	_ = c.CloseWrite()
	if got, err := io.ReadAll(c); string(got) != "got abc" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
