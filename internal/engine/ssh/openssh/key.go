package openssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"scrimp/internal/lib/child"
)

// Key is what a machine says that its key is, before somebody has accepted it.
type Key struct {
	Host        string // as ssh is told it
	Fingerprint string
	Lines       []byte
}

// Unknown is the machine's key, where it is not known; nil: it is, or the machine is not reached.
func (o *Host) Unknown(ctx context.Context) (*Key, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var complaint bytes.Buffer
	cmd := o.ssh(ctx, nil, "exit")
	cmd.Stderr = &complaint
	if err := cmd.Run(); err == nil || !strings.Contains(complaint.String(), "Host key verification failed") ||
		strings.Contains(complaint.String(), "HAS CHANGED") {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, o.explain(err, "")
		}
		return nil, nil
	}
	file, err := os.CreateTemp("", "scrimp-known-")
	if err != nil {
		return nil, err
	}
	_ = file.Close()
	defer func() { _ = os.Remove(file.Name()) }()
	// What is given first holds; whether the key opens the machine does not matter here.
	args := append([]string{"-o", "StrictHostKeyChecking=accept-new", "-o", "UserKnownHostsFile=" + file.Name()},
		o.options(ctx)...)
	_ = child.Command(ctx, "ssh", append(args, "--", o.Target, "exit")...).Run()
	lines, err := os.ReadFile(file.Name())
	if err != nil || len(lines) == 0 {
		return nil, fmt.Errorf("%s: its key cannot be asked for: run ssh %s once and accept it", o.Target, o.Target)
	}
	out, err := child.Command(ctx, "ssh-keygen", "-lf", file.Name()).Output()
	if err != nil {
		return nil, fmt.Errorf("fingerprint of %s: %w", o.Target, err)
	}
	return &Key{Host: o.Target, Fingerprint: strings.TrimSpace(string(out)), Lines: lines}, nil
}
