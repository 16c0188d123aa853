package listener

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
)

// A client that opens endless idle connections gets at most the limit; others are served, and none of their requests
// is cut off.
func TestGuests_IdleConnectionsMakeRoomForActiveOnes(t *testing.T) {
	t.Parallel()
	g := newGuests()
	if g.most < 1 || g.most > mostGuests {
		t.Errorf("%d connections are allowed", g.most)
	}
	g.most = 8
	entered, leave := make(chan bool), make(chan bool)
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			entered <- true
			<-leave
		}
		_, _ = io.WriteString(w, "ok")
	}))
	front.Config.ConnState = g.state
	front.Start()
	defer front.Close()
	defer close(leave)
	long := make(chan error, 1)
	go func() {
		r, err := http.Get(front.URL + "/long")
		if err == nil {
			_ = r.Body.Close()
		}
		long <- err
	}()
	<-entered
	var silent []net.Conn
	for range 100 {
		c, err := net.Dial("tcp", front.Listener.Addr().String())
		must.Do(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetReadDeadline(time.Now().Add(eventually.Limit))
		silent = append(silent, c)
	}
	for n := range 3 { // each on its own connection
		c, err := net.Dial("tcp", front.Listener.Addr().String())
		must.Do(t, err)
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("request %d beside 100 connections that rest: %v", n, err)
		}
		_ = r.Body.Close()
		_ = c.Close()
	}
	for n, c := range silent[:90] { // the oldest ones were closed
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("connection %d of 100 is held still: %v", n, err)
		}
	}
	g.mu.Lock()
	if len(g.at) > g.most {
		t.Errorf("%d connections are held, at most %d are allowed", len(g.at), g.most)
	}
	g.mu.Unlock()
	leave <- true
	if err := <-long; err != nil {
		t.Errorf("a request was cut off for those who asked for nothing: %v", err)
	}
}
