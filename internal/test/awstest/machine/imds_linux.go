package machine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

func halt(cmd *exec.Cmd) {
	if cmd != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}
}

// imds starts the metadata service: the public ec2-metadata-mock, which requires a session token.
func (m *Machine) imds() (*exec.Cmd, error) {
	m.mu.Lock()
	level, end := m.level, m.end
	m.mu.Unlock()
	file := filepath.Join(m.dir, "imds.json")
	text, err := json.Marshal(m.g.Metadata(m.signature))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	const never, past = "2999-01-01T00:00:00Z", "2001-01-01T00:00:00Z"
	notice, rebalance := never, never
	if level >= 1 {
		rebalance = past
	}
	args := []string{"netns", "exec", m.ns, m.h.mock, "spot", "--action", "terminate", "--imdsv2", "-n", "169.254.169.254",
		"-p", "80", "-c", file, "-x", "1000"}
	if level >= 2 {
		notice = past
		args = append(args, "-t", end.UTC().Format(time.RFC3339))
	}
	cmd := exec.Command("ip", append(args, "--mock-trigger-time", notice, "--rebalance-trigger-time", rebalance)...)
	cmd.Env = []string{"HOME=" + m.dir, "PATH=/usr/bin:/bin"}
	cmd.Dir = m.dir
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for until := time.Now().Add(10 * time.Second); ; {
		if listens(cmd.Process.Pid) {
			if m.signature != "" {
				return cmd, nil
			}
			err := m.sign()
			halt(cmd)
			if err != nil {
				return nil, err
			}
			return m.imds() // it knows its signature now
		}
		if time.Now().After(until) || m.ctx.Err() != nil {
			halt(cmd)
			return nil, fmt.Errorf("%s does not answer: %s", m.h.mock, log.String())
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-m.ctx.Done():
		}
	}
}

// sign signs the identity document as the metadata service returns it.
func (m *Machine) sign() error {
	const ask = `T=$(curl -sS -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' http://169.254.169.254/latest/api/token)
exec curl -sSf -H "X-aws-ec2-metadata-token: $T" http://169.254.169.254/latest/dynamic/instance-identity/document`
	document, err := exec.CommandContext(m.ctx, "ip", "netns", "exec", m.ns, "sh", "-c", ask).Output()
	if err == nil {
		m.signature, err = m.h.o.Sign(document)
	}
	if err != nil {
		return fmt.Errorf("sign the identity document: %w", err)
	}
	return nil
}

// listens reports whether something in a process's network listens on 169.254.169.254:80, in the notation of /proc.
func listens(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
	return err == nil && bytes.Contains(text, []byte(" FEA9FEA9:0050 00000000:0000 0A "))
}
