// Package listener serves the network address, both while this server leads and while another does.
package listener

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"scrimp/internal/server/reply"
)

const (
	readHeader     = 10 * time.Second // to read a request's header
	idleConnection = 2 * time.Minute  // between two requests
	maxHeader      = 64 << 10         // bytes of a request's header
)

// Options configures the network address.
type Options struct {
	Listen   string // host:port; "" for none
	Cert     string // files in PEM; "" for plain HTTP
	Key      string
	Insecure bool              // allow plain HTTP on an address that other hosts reach
	Ready    func(addr string) // called once with the address; may be nil
	Log      *slog.Logger
}

// Server returns an http.Server for the network or the socket, with limits on request headers.
func Server(h http.Handler, l *slog.Logger) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: readHeader, IdleTimeout: idleConnection, MaxHeaderBytes: maxHeader,
		ErrorLog: newThrottled(l)}
}

// Front serves the network address across leaderships. While another server leads, it answers so, and says where to
// retry.
type Front struct {
	Address string // URL at which others reach it; "": it does not listen

	mu     sync.RWMutex
	leader http.Handler
	leads  context.Context //nolint:containedctx // requests end with the leadership that serves them
}

// Open passes requests to the handler from now on; they end with ctx.
func (f *Front) Open(ctx context.Context, h http.Handler) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leader, f.leads = h, ctx
}

// Close answers from now on that another server leads.
func (f *Front) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leader, f.leads = nil, nil
}

// ServeHTTP implements http.Handler.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	reply.Guard(w)
	if r.URL.Path == "/healthz" {
		_, _ = w.Write([]byte("ok: follows\n"))
		return
	}
	w.Header().Set("Retry-After", "1")
	reply.Problem(w, http.StatusServiceUnavailable, "another server leads, or this one is starting",
		"ask again in a second, or ask the one whose /readyz answers 200", nil)
}

// loopback reports whether only this host reaches the address.
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

// Listen opens the network address if there is one. done closes it.
func (f *Front) Listen(ctx context.Context, o Options) (done func(), err error) {
	if o.Listen == "" {
		return func() {}, nil
	}
	near, secure, err := o.reach()
	if err != nil {
		return nil, err
	}
	h := Server(f, o.Log)
	h.ConnState = newGuests().state
	scheme := "http"
	if secure {
		cert := &certificateFiles{cert: o.Cert, key: o.Key, log: o.Log, every: rereadEvery}
		if err := cert.open(); err != nil {
			return nil, err
		}
		h.TLSConfig, scheme = &tls.Config{GetCertificate: cert.get, MinVersion: tls.VersionTLS12}, "https"
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w: give another with --listen", o.Listen, err)
	}
	address := scheme + "://" + l.Addr().String()
	f.Address = strings.Replace(address, "[::]", "localhost", 1) // for this host, which reaches all its addresses
	o.Log.Info("listening", "address", address)
	if !near && !secure {
		o.Log.Warn("plain HTTP where others reach it (--insecure): tokens, secrets and output pass in the clear, unless "+
			"something in front of it encrypts", "address", address)
	}
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

// reach reports whether only this machine reaches the address, and whether connections are encrypted. It refuses an
// address that others reach without encryption, unless the options allow it.
func (o Options) reach() (near, secure bool, err error) {
	near, err = loopback(o.Listen)
	secure = o.Cert != "" || o.Key != ""
	switch {
	case err != nil:
		return false, false, err
	case !near && !secure && !o.Insecure:
		return false, false, fmt.Errorf("listen on %s: others reach it, and tokens would pass in the clear: give --tls-cert "+
			"and --tls-key, or --insecure where something in front of it encrypts", o.Listen)
	case secure && o.Insecure:
		return false, false, errors.New("--insecure and --tls-cert exclude each other: leave one out")
	}
	return near, secure, nil
}
