package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"scrimp/internal/server/auth"
	"scrimp/internal/server/listener"
	"scrimp/internal/server/pages"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
)

// Limits on the pages that follow changes (open streams): of one user, and of all users.
const (
	userPages = 100
	allPages  = 2000
)

// newSite builds the dashboard on top of the handler of the API.
func (s *Server) newSite(api http.Handler) *pages.Site {
	open := &auth.Streams{}
	site := &pages.Site{API: api, Changed: s.control.Changed, Now: time.Now,
		Stream: func(caller string) (func(), error) { return open.Open(caller, userPages, allPages) }}
	if s.wide && s.provider != nil {
		site.Provider = signIn{s.provider, s}
	}
	if !s.wide {
		site.Owner = func(r *http.Request) *http.Request {
			r = r.WithContext(auth.OnSocket(r.Context()))
			r.Header.Set("Authorization", "Bearer "+s.gate.Owner)
			return r
		}
	}
	return site
}

// servePages adds the dashboard to the routes of a shared server. A single-user server serves it at an address
// of its own instead; see dashboard.
func (s *Server) servePages(mux *http.ServeMux) {
	s.dashboard.site, s.dashboard.begun = s.newSite(mux), make(chan struct{})
	if !s.wide {
		return
	}
	for pattern, do := range s.dashboard.site.Routes() {
		a := auth.Access{Route: pattern, Scope: open, Reads: true}
		mux.HandleFunc(pattern, s.gate.Serve(a, do, func(int, time.Duration) {}))
	}
}

// dashboard holds the listener for the pages of a single-user server: a port on loopback, opened on the first
// request for it.
type dashboard struct {
	site *pages.Site

	mu       sync.Mutex // guards the fields below
	listener net.Listener
	begun    chan struct{} // closed once there is a listener
}

// address returns the address of the dashboard, and opens its listener on the first call.
func (d *dashboard) address(ctx context.Context) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.listener == nil {
		var lc net.ListenConfig
		l, err := lc.Listen(context.WithoutCancel(ctx), "tcp", "127.0.0.1:0")
		if err != nil {
			return "", fmt.Errorf("listen on 127.0.0.1: %w", err)
		}
		d.listener = l
		close(d.begun)
	}
	return d.listener.Addr().String(), nil
}

// runDashboard serves the dashboard on that listener until ctx ends.
func (s *Server) runDashboard(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-s.dashboard.begun:
	}
	l := s.dashboard.listener
	h := listener.Server(pages.Here(l.Addr().String(), s.dashboard.site.Handler()), s.opts.Log)
	h.BaseContext = func(net.Listener) context.Context { return ctx }
	defer context.AfterFunc(ctx, func() { _ = h.Close() })()
	_ = h.Serve(l) // returns when ctx ends
}

// postDashboard returns the address of the dashboard, and on a single-user server a link that works once.
func (s *Server) postDashboard(w http.ResponseWriter, r *http.Request) {
	if s.wide { // users sign in with a token
		reply.JSON(w, api.Dashboard{Address: s.listens})
		return
	}
	at, err := s.dashboard.address(r.Context())
	if err != nil {
		reply.Problem(w, http.StatusInternalServerError, "the dashboard has no port", "try again", err)
		return
	}
	reply.JSON(w, api.Dashboard{Address: "http://" + at, Key: s.dashboard.site.Link()})
}
