//go:build unix

// Package proc starts the programs that tests run, each in a process group that ends with the test. It is for tests
// only.
package proc

import (
	"errors"
	"os/exec"
	"sync"
	"syscall"
	"testing"
)

// A Process is a program that a test has started.
type Process struct {
	*exec.Cmd
	once sync.Once
	err  error
}

// Start starts cmd in a process group of its own. When the test ends, the whole group is killed and the program is
// waited for, so that nothing of it outlives the test.
func Start(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = !cmd.SysProcAttr.Setsid // a new session is a new group already
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", cmd.Path, err)
	}
	p := &Process{Cmd: cmd}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Errorf("end %s: %v", cmd.Path, err)
		}
	})
	return p
}

// Signal sends a signal to the program alone, not to its group.
func (p *Process) Signal(s syscall.Signal) error { return p.Process.Signal(s) }

// Kill kills the group and waits for the program. Killing a group that has ended is no error.
func (p *Process) Kill() error {
	err := syscall.Kill(-p.Process.Pid, syscall.SIGKILL)
	_ = p.Wait()
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// Wait waits for the program's end and returns what exec.Cmd.Wait does. It may be called more than once, and by
// several goroutines.
func (p *Process) Wait() error {
	p.once.Do(func() { p.err = p.Cmd.Wait() })
	return p.err
}
