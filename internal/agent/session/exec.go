package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"scrimp/internal/agent/logship"
	"scrimp/internal/agent/program"
	"scrimp/internal/wire/api"
)

// Limits of a command that the server requests.
const (
	Limit      = time.Minute
	execOutput = 1 << 20
	AtOnce     = 4
)

// bounded keeps the first bytes written to it and discards the rest without an error. Use only its
// Write: the other methods of the buffer ignore the bound.
type bounded struct {
	kept bytes.Buffer
	left int
	cut  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	b.cut = b.cut || n < len(p)
	_, _ = b.kept.Write(p[:n]) // a buffer never fails
	return len(p), nil
}

// Execute runs a command in folder dir with the program's environment.
func Execute(ctx context.Context, command []string, dir string, env []string, user int, mask logship.Masker,
	limit time.Duration) api.ExecResult {
	if len(command) == 0 {
		return api.ExecResult{Exit: 2, Error: "the command is empty"}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out := &bounded{left: execOutput}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: program.As(user)}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for children that left the group and hold the pipe
	program.DefaultSignals()
	err := cmd.Run()
	r := exited(err)
	r.Output = mask.Mask(out.kept.Bytes())
	if ctx.Err() != nil {
		r.Exit, r.Error = 124, fmt.Sprintf("ended after %v", limit)
	}
	if out.cut {
		r.Error = fmt.Sprintf("the output is cut at %d bytes; %s", execOutput, r.Error)
	}
	return r
}

// exited returns how a command ended.
func exited(err error) (r api.ExecResult) {
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		r.Exit = exit.ExitCode()
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			r.Exit = 128 + int(ws.Signal())
		}
	case err != nil:
		r.Exit, r.Error = 127, err.Error()
	}
	return r
}
