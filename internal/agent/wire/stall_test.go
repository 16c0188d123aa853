package wire

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/wire/api"
)

// pipes is a listener whose connections are pipes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

// stalling is a connection that silently stops transferring anything.
type stalling struct {
	net.Conn
	over    atomic.Bool
	stalled chan struct{} // closed when it stalls
}

func (s *stalling) Write(b []byte) (int, error) {
	if s.over.Load() {
		return len(b), nil
	}
	return s.Conn.Write(b)
}

func (s *stalling) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if s.over.Load() && err == nil {
		<-s.stalled
		return 0, net.ErrClosed
	}
	return n, err
}

func (s *stalling) Close() error {
	if s.over.Swap(false) {
		close(s.stalled)
	}
	return s.Conn.Close()
}

// The client soon abandons a stalled TLS connection, although calls that time out do not close it.
func TestHTTP_AbandonsStalledConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		ts := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 {
				t.Errorf("spoken is %s", r.Proto)
			}
			_, _ = w.Write([]byte(`{}`))
		}))
		_ = ts.Listener.Close()
		ts.Listener, ts.EnableHTTP2 = l, true
		ts.StartTLS()
		defer ts.Close()
		s, err := Dial("https://example.com", func() string { return "token" })
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		roots := x509.NewCertPool()
		roots.AddCert(ts.Certificate())
		s.Trust(roots)
		var conns []*stalling
		s.ways[0].DialContext = func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			l.conns <- far
			conns = append(conns, &stalling{Conn: near, stalled: make(chan struct{})})
			return conns[len(conns)-1], nil
		}
		if _, err := s.Report(t.Context(), api.Report{}); err != nil {
			t.Fatal(err)
		}
		conns[0].over.Store(true)
		began := time.Now()
		for {
			if _, err = s.Report(t.Context(), api.Report{}); err == nil {
				break
			}
			if time.Since(began) > time.Minute {
				t.Fatalf("nothing arrives: %v", err)
			}
		}
		if took := time.Since(began); took > 2*pingAfter+time.Second || len(conns) != 2 {
			t.Errorf("a report arrives after %v, by connection %d", took, len(conns))
		}
	})
}
