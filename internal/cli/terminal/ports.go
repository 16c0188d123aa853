package terminal

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/wire/tunnel"
)

// Limits of forwarded ports: bytes that wait to be sent to the machine, and bytes of one request.
const (
	portsQueue = 1 << 20
	portsChunk = 64 << 10
)

// Ports connects a local port to one of the machines that a job has, one after the other.
type Ports struct {
	Listener net.Listener

	mu   sync.Mutex
	via  *tunnel.Tunnel // nil: no machine is connected
	port int
}

// Accept serves local connections until the listener is closed.
func (p *Ports) Accept() {
	for {
		c, err := p.Listener.Accept()
		if err != nil {
			return
		}
		go p.serve(c)
	}
}

// serve connects a local connection to the machine, or closes it if no machine is connected.
func (p *Ports) serve(local net.Conn) {
	p.mu.Lock()
	via, port := p.via, p.port
	p.mu.Unlock()
	if via == nil {
		_ = local.Close()
		return
	}
	c, err := via.Open(port)
	if err != nil {
		_ = local.Close()
		return
	}
	stream, ok := local.(tunnel.Stream)
	if !ok { // listeners of other kinds than TCP do not occur
		_, _ = c.Close(), local.Close()
		return
	}
	c.Join(stream)
}

// Run forwards connections to a port of the job's present machine until that ends. It calls ready once the machine is
// connected.
func (p *Ports) Run(ctx context.Context, c *command.Client, job string, port int, ready func()) (api.ExecOutput,
	error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, out := tunnel.NewQueue(portsQueue), tunnel.NewQueue(portsQueue)
	defer func() { _, _ = in.Close(), out.Close() }()
	t := tunnel.New(out)
	s := &Session{Client: c, Job: job, Exec: api.Exec{Forward: true, Command: []string{"forward"}}, Out: in,
		Keys: &Keys{pieces: make(chan []byte)}}
	go func() {
		_ = t.Run(in) // invalid frames end the forwarding
		cancel()
	}()
	go func() {
		for {
			b := make([]byte, portsChunk)
			n, err := out.Read(b)
			if err != nil {
				return
			}
			select {
			case s.Keys.pieces <- b[:n]:
			case <-ctx.Done():
				return
			}
		}
	}()
	p.mu.Lock()
	p.via, p.port = t, port
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.via = nil
		p.mu.Unlock()
	}()
	ready()
	end, err := s.Run(ctx)
	if errors.Is(err, io.ErrClosedPipe) {
		err = ErrBroken
	}
	return end, err
}
