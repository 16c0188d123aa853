package auth

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/server/listener"
)

// pipes is a listener for connections within the process, whose deadlines use the test's own clock.
type pipes struct {
	conns chan net.Conn
	over  chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { close(p.over); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

// open serves an open route as a server does.
func open(do http.HandlerFunc) *http.Server {
	return listener.Server((&Gate{Pace: NewPace(0)}).Serve(Access{Scope: Open}, do, func(int, time.Duration) {}), slog.New(slog.DiscardHandler))
}

// A client that trickles bytes, or does not read the response, is cut off; one that keeps up is not.
func TestSlowClients_AreCutOff(t *testing.T) {
	t.Parallel()
	const large = 1 << 20
	for _, c := range []struct {
		name      string
		head      string
		size      int // of each piece of the body
		pause     time.Duration
		reads     bool
		want      bool // expect a response
		from, til time.Duration
	}{
		{"a head that does not end", "POST / HTTP/1.1\r\nHost: x\r\nX-A: ", 1, time.Second, true, false, 9 * time.Second,
			13 * time.Second},
		{"a body byte by byte", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n", 1, time.Second, true, false,
			14 * time.Second, 17 * time.Second},
		{"a body at 20 KiB a second", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n", 2 << 10,
			100 * time.Millisecond, true, true, 50 * time.Second, 53 * time.Second},
		{"most of a body at once, and then nothing", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n", large, 0,
			true, false, 14 * time.Second, 17 * time.Second},
		{"a body at once", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n", large, 0, true, true, 0,
			time.Second},
		{"an answer that nobody takes", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n", large, 0, false,
			false, 29 * time.Second, 31 * time.Second},
		{"no request at all", "", 0, 0, true, false, 9 * time.Second, 11 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := open(func(w http.ResponseWriter, r *http.Request) {
				if b, err := io.ReadAll(r.Body); err != nil || len(b) != large {
					http.Error(w, "cut off", http.StatusRequestTimeout)
					return
				}
				_, _ = w.Write(make([]byte, large))
			})
			l := pipes{make(chan net.Conn), make(chan struct{})}
			done := make(chan struct{})
			go func() { defer close(done); _ = h.Serve(l) }()
			ours, theirs := net.Pipe()
			l.conns <- theirs
			begun := time.Now()
			var answer []byte
			over := make(chan struct{})
			if c.reads {
				go func() {
					defer close(over)
					b := make([]byte, 64<<10)
					for {
						n, err := ours.Read(b)
						answer = append(answer, b[:n]...)
						if err != nil || bytes.HasPrefix(answer, []byte("HTTP/1.1 200")) && len(answer) > large {
							return
						}
					}
				}()
			}
			_, err := io.WriteString(ours, c.head)
			for sent := 0; err == nil && c.size > 0 && sent < large; sent += c.size {
				_, err = ours.Write(make([]byte, min(c.size, large-sent)))
				time.Sleep(c.pause)
			}
			if c.reads {
				<-over
			} else { // the handler's write fails in the end, and the pipe is closed
				for err == nil {
					_, err = ours.Write([]byte("x"))
				}
			}
			took := time.Since(begun)
			if got := bytes.HasPrefix(answer, []byte("HTTP/1.1 200")); got != c.want || took < c.from || took > c.til {
				t.Errorf("%s: an answer %v (%.60q), after %v; want %v, after %v to %v", c.name, got, answer, took, c.want,
					c.from, c.til)
			}
			_ = ours.Close()
			_ = h.Close()
			<-done
		})
	}
}

// A connection that is reused after a pause has the full time for its new request, not the rest of the one before.
func TestConnection_MayIdleBetweenRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := open(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/empty" {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			time.Sleep(4 * time.Minute) // as a command on a machine may take
			_, _ = io.WriteString(w, "done")
		})
		l := pipes{make(chan net.Conn), make(chan struct{})}
		served := make(chan struct{})
		go func() { defer close(served); _ = h.Serve(l) }()
		ours, theirs := net.Pipe()
		l.conns <- theirs
		client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn,
			error) {
			return ours, nil
		}}}
		for _, path := range []string{"/empty", "/slow", "/empty", "/slow", "/empty"} {
			// it ends with the test
			r, err := client.Post("http://x"+path, "text/plain", strings.NewReader("body"))
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if b, err := io.ReadAll(r.Body); err != nil || r.StatusCode != http.StatusNoContent && string(b) != "done" {
				t.Errorf("%s: %d %q %v", path, r.StatusCode, b, err)
			}
			_ = r.Body.Close()
			time.Sleep(time.Minute)
		}
		client.CloseIdleConnections()
		_ = h.Close()
		<-served
	})
}
