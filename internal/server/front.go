package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

const (
	readHeader     = 10 * time.Second // for a request's head
	idleConnection = 2 * time.Minute  // between two requests
	maxHeader      = 64 << 10         // bytes of a request's head
)

// socketKey marks requests that came through the socket of the data folder.
type socketKey struct{}

func bySocket(r *http.Request) bool { return r.Context().Value(socketKey{}) != nil }

// front answers on the network. It outlives leaderships: while another server
// leads it says so, and where it can be asked again.
type front struct {
	pace    *pace
	address string // URL by which it is reached; "": it listens nowhere

	mu     sync.RWMutex
	leader http.Handler
	leads  context.Context //nolint:containedctx // requests end with the leadership that they are served by
}

func (f *front) open(ctx context.Context, h http.Handler) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leader, f.leads = h, ctx
}

func (f *front) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leader, f.leads = nil, nil
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.RLock()
	h, leads := f.leader, f.leads
	f.mu.RUnlock()
	if h != nil {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		defer context.AfterFunc(leads, func() { cancel(context.Cause(leads)) })()
		h.ServeHTTP(w, r.WithContext(ctx))
		return
	}
	guard(w)
	if r.URL.Path == "/healthz" {
		_, _ = w.Write([]byte("ok: follows\n"))
		return
	}
	w.Header().Set("Retry-After", "1")
	problem(w, http.StatusServiceUnavailable, "another server leads, or this one begins",
		"ask again in a second, or ask the one whose /readyz answers 200", nil)
}

// loopback reports whether only this machine reaches the address.
func loopback(address string) (bool, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return false, fmt.Errorf("listen on %q: write HOST:PORT, such as 127.0.0.1:7077", address)
	}
	if host == "localhost" {
		return true, nil
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback(), nil
}

// listen answers on the network, if it is asked to. done ends that.
func (f *front) listen(ctx context.Context, o Options) (done func(), err error) {
	if o.Listen == "" {
		return func() {}, nil
	}
	near, err := loopback(o.Listen)
	secure := o.TLSCert != "" || o.TLSKey != ""
	switch {
	case err != nil:
		return nil, err
	case !near && !secure && !o.Insecure:
		return nil, fmt.Errorf("listen on %s: others reach it, and tokens would pass in the clear: give --tls-cert and "+
			"--tls-key, or --insecure where something in front of it encrypts", o.Listen)
	case secure && o.Insecure:
		return nil, errors.New("--insecure and --tls-cert exclude each other: leave one out")
	}
	h := &http.Server{Handler: f, ReadHeaderTimeout: readHeader, IdleTimeout: idleConnection, MaxHeaderBytes: maxHeader,
		ConnState: newGuests().state, ErrorLog: newThrottled(o.Log)}
	scheme := "http"
	if secure {
		cert, err := tls.LoadX509KeyPair(o.TLSCert, o.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("read the certificate: %w: --tls-cert and --tls-key are files in PEM", err)
		}
		h.TLSConfig, scheme = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, "https"
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w: give another with --listen", o.Listen, err)
	}
	address := scheme + "://" + strings.Replace(l.Addr().String(), "[::]", "localhost", 1)
	f.address = address
	o.Log.Info("listening", "address", address)
	if o.Ready != nil {
		o.Ready(address)
	}
	var owned sync.WaitGroup
	owned.Go(func() {
		if secure {
			_ = h.ServeTLS(l, "", "")
		} else {
			_ = h.Serve(l)
		}
	})
	return func() {
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if h.Shutdown(down) != nil {
			_ = h.Close()
		}
		owned.Wait()
	}, nil
}
