package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"scrimp/internal/agent/place"
)

// update replaces this program by the server's build, if that differs, and starts it in this
// process. The agent calls it between tasks. It returns only if it fails, and the agent does not
// try the same build again.
func (d *daemon) update(ctx context.Context, build string) error {
	d.tried = build
	if !authenticated(d.Server) {
		return fmt.Errorf("update the agent: %s is plain HTTP: an attacker could send another program, and its hash "+
			"with it: give the server TLS", d.Server)
	}
	path := filepath.Join(place.OwnFolder(d.MachineDir), "scrimp")
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o700)
	if err != nil {
		return fmt.Errorf("update the agent: %w", err)
	}
	sum := sha256.New()
	err = errors.Join(d.machine.Binary(ctx, io.MultiWriter(f, sum)), f.Sync(), f.Close())
	if got := hex.EncodeToString(sum.Sum(nil)); err == nil && !strings.HasPrefix(got, build) {
		err = fmt.Errorf("the server is build %s and sends %s", build, got)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("update the agent: %w", errors.Join(err, os.Remove(path+".new")))
	}
	d.Log.Info("the server has another build: starting its agent", "was", d.Build, "is", build)
	return fmt.Errorf("update the agent: %w", d.Restart(path))
}

// outdated reports whether the agent should update now: the builds differ and no task runs.
func (d *daemon) outdated(build string) bool {
	known := d.Restart != nil && len(build) >= 16 && d.Build != ""
	return known && build != d.Build && build != d.tried && len(d.runs()) == 0
}

// authenticated reports whether nobody can alter what the server sends: over TLS, its socket, or this
// machine's loopback network.
func authenticated(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "unix" || u.Hostname() == "localhost" || err == nil && address.IsLoopback()
}
