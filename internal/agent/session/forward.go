package session

import (
	"context"
	"net"
	"strconv"
	"time"

	"scrimp/internal/wire/api"
	"scrimp/internal/wire/tunnel"
)

// Limits of forwarded ports: how long a connection to the machine's own port may take, and the bytes that wait to be
// sent to the user.
const (
	dialLimit    = 10 * time.Second
	forwardQueue = 1 << 20
	forwardChunk = 256 << 10
)

// Forward connects the user to ports of this machine's 127.0.0.1 until the user leaves. It calls connected with the
// change in the number of open connections.
func (s *Session) Forward(ctx context.Context, connected func(change int)) api.ExecResult {
	ctx, end := context.WithCancel(ctx)
	defer end()
	in, out := tunnel.NewQueue(forwardQueue), tunnel.NewQueue(forwardQueue)
	stop := context.AfterFunc(ctx, func() { _, _ = in.Close(), out.Close() })
	defer stop()
	t := tunnel.New(out)
	t.Accept = func(port int, c *tunnel.Conn) {
		d := net.Dialer{Timeout: dialLimit}
		to, err := d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			_ = c.Close() // the user sees a connection that is reset
			return
		}
		connected(1)
		defer connected(-1)
		c.Join(to.(*net.TCPConn))
	}
	done := make(chan error, 2)
	go func() { done <- t.Run(in); end() }()
	go func() { s.input(ctx, end, in, nil); done <- nil }()
	quiet := *s
	quiet.Mask = plain
	quiet.output(ctx, end, out, forwardChunk)
	end()
	var r api.ExecResult
	for range 2 {
		if err := <-done; err != nil {
			r = api.ExecResult{Exit: 1, Error: err.Error()}
		}
	}
	return r
}
