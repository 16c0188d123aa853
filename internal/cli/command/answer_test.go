package command

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	api "scrimp/client"
)

// answers is a server that fails the given number of times and then describes itself.
type answers struct {
	silent int
	fails  error
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.fails != nil {
		return nil, a.fails
	}
	if a.silent--; a.silent >= 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"build": "b"}`)), Request: r}, nil
}

// A busy server is retried for some seconds. It used to count as one of another build and was told to exit.
func TestAnswer_RetriesBusyServer(t *testing.T) {
	of := func(a *answers) *Client {
		return &Client{Dir: "folder", Base: "http://scrimp", Client: api.New("http://scrimp", "", &http.Client{Transport: a})}
	}
	for _, c := range []struct {
		silent int
		says   string
	}{{0, ""}, {2, ""}, {9, "runs and does not answer"}} {
		synctest.Test(t, func(t *testing.T) {
			v, err := of(&answers{silent: c.silent}).answer(t.Context())
			switch {
			case c.says == "" && (err != nil || v.Build != "b"):
				t.Errorf("silent %d times: %+v, %v", c.silent, v, err)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, ErrNoServer)):
				t.Errorf("silent %d times: %v", c.silent, err)
			}
		})
	}
	left := &net.OpError{Op: "dial", Net: "unix", Err: syscall.ECONNREFUSED}
	if _, err := of(&answers{fails: left}).answer(t.Context()); !errors.Is(err, ErrNoServer) {
		t.Errorf("one that has left: %v", err)
	}
	if _, err := of(&answers{fails: context.Canceled}).answer(t.Context()); err == nil || errors.Is(err, ErrNoServer) {
		t.Errorf("one that was given up: %v", err)
	}
}
