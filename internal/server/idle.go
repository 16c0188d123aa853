package server

import (
	"context"
	"errors"
	"time"

	"scrimp/internal/decide/core"
)

// noteRequest records the time of the latest request.
func (s *Server) noteRequest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = time.Now()
}

var errIdle = errors.New("idle")

// idle stops the server once no job is live and no request has come for the idle time.
func (s *Server) idle(ctx context.Context) {
	if s.opts.Idle <= 0 {
		return
	}
	t := time.NewTicker(min(s.opts.Idle, 10*time.Second))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		quiet := false
		s.control.Read(func(m *core.Machine) { quiet = m.Quiet() })
		s.mu.Lock()
		if !quiet {
			s.asked = time.Now()
		}
		long := time.Since(s.asked) >= s.opts.Idle
		s.mu.Unlock()
		if quiet && long {
			s.stop(errIdle)
			return
		}
	}
}

// errStopped is the reason for a stop that a user requested.
var errStopped = errors.New("asked to stop")
