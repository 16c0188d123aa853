package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"scrimp/internal/decide/core"
)

// socket listens in the data folder, for its owner and for agents on this machine.
func (s *Server) socket(ctx context.Context) (net.Listener, error) {
	path := filepath.Join(s.opts.Dir, SocketName)
	_ = os.Remove(path) // ours by lock; one that was killed leaves it behind
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // the next leader's may lie there already
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return l, nil
}

// wasAsked notes that somebody asks.
func (s *Server) wasAsked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = time.Now()
}

var errIdle = errors.New("idle")

// idle ends the server when nothing lives and nobody asks.
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

// errStopped is why a server left that was asked to.
var errStopped = errors.New("asked to stop")
