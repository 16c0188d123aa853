package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"scrimp/internal/server/reply"
)

const (
	readyFor   = 500 * time.Millisecond // how long an answer of the database stays valid
	readyLimit = 5 * time.Second        // after this, the database counts as away
	busyLimit  = 2 * time.Second        // for one step; after this, the core counts as away
)

// readiness caches the last answer of the database. Anybody may ask without a token whether a server is ready,
// as often as they like, so concurrent callers share one query.
type readiness struct {
	mu     sync.Mutex
	asked  time.Time // when the last answer came; zero: never
	err    error
	asking chan struct{} // closed when the query in progress is answered; nil: no query in progress
}

// ask returns the answer of the database, at most readyFor old. A caller that leaves does not cancel the query
// for the others.
func (r *readiness) ask(ctx context.Context, end func(context.Context) (uint64, error)) error {
	r.mu.Lock()
	for r.asked.IsZero() || time.Since(r.asked) >= readyFor {
		if others := r.asking; others != nil {
			r.mu.Unlock()
			select {
			case <-others:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			r.mu.Lock()
			continue
		}
		done := make(chan struct{})
		r.asking = done
		r.mu.Unlock()
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyLimit)
		_, err := end(limited)
		cancel()
		r.mu.Lock()
		r.asked, r.err, r.asking = time.Now(), err, nil
		close(done)
	}
	defer r.mu.Unlock()
	return r.err
}

// begun reports whether the first event of this server is in the log.
func (s *Server) begun() bool {
	select {
	case <-s.control.Begun():
		return true
	default:
		return false
	}
}

func (s *Server) getReady(w http.ResponseWriter, r *http.Request) {
	if !s.store.Leads() {
		reply.Problem(w, http.StatusServiceUnavailable, "another server may lead", "ask again in a second", nil)
		return
	}
	if err := s.control.Full(); err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "nothing can be written",
			"free disk space: the server then continues by itself", err)
		return
	}
	if !s.begun() {
		reply.Problem(w, http.StatusServiceUnavailable, "this server begins", "ask again in a second", nil)
		return
	}
	if busy := s.control.Busy(); busy >= busyLimit {
		reply.Problem(w, http.StatusServiceUnavailable, "the core has been processing one event for "+
			busy.Round(time.Second).String(), "see the server's log", nil)
		return
	}
	if err := s.ready.ask(r.Context(), s.store.End); err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "the database does not answer", "see the server's log", nil)
		return
	}
	_, _ = w.Write([]byte("ready\n"))
}
