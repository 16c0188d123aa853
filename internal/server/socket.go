package server

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// socket listens in the data folder, for its owner and for agents on this host.
func (s *Server) socket(ctx context.Context) (net.Listener, error) {
	path := filepath.Join(s.opts.Dir, SocketName)
	_ = os.Remove(path) // the lock makes it ours; a killed server leaves its socket behind
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // the next leader may already have made its own
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return l, nil
}
