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

// Key is a machine's host key before someone has accepted it.
type Key struct {
	Host        string // ssh's destination
	Fingerprint string
	Lines       []byte
}

// Unknown returns the machine's host key if ssh does not know it, or nil if ssh knows it or cannot
// reach the machine.
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
	// ssh uses the first value of an option. It does not matter here whether the login succeeds.
	args := append([]string{"-o", "StrictHostKeyChecking=accept-new", "-o", "UserKnownHostsFile=" + file.Name()},
		o.options(ctx)...)
	_ = child.Command(ctx, "ssh", append(args, "--", o.Target, "exit")...).Run()
	lines, err := os.ReadFile(file.Name())
	if err != nil || len(lines) == 0 {
		return nil, fmt.Errorf("%s: cannot get its host key: run ssh %s once and accept it", o.Target, o.Target)
	}
	out, err := child.Command(ctx, "ssh-keygen", "-lf", file.Name()).Output()
	if err != nil {
		return nil, fmt.Errorf("fingerprint of %s: %w", o.Target, err)
	}
	return &Key{Host: o.Target, Fingerprint: strings.TrimSpace(string(out)), Lines: lines}, nil
}
