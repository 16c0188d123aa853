// Package session runs commands beside the program of a job: short ones whose result a user waits
// for, and long ones with a terminal or pipes that the server connects to the user.
package session

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"scrimp/internal/agent/logship"
	"scrimp/internal/agent/program"
	"scrimp/internal/agent/wire"
	"scrimp/internal/lib/wait"
	"scrimp/internal/wire/api"
)

// lastWords is how long to read output after a session's command has ended: its children may hold the terminal.
const lastWords = time.Second

// Session is a command beside the program. While it runs, a user sends its input and receives its output.
type Session struct {
	Server wire.Server
	ID     string
	Mask   logship.Masker
	HangUp time.Duration // how long the command may run once nobody follows it
	Typed  func()        // called at each input of the user; may be nil
}

// resizer is an input whose terminal has a size.
type resizer interface{ Resize(*api.Terminal) }

// keys returns the input of a command, which calls Typed.
func (s *Session) keys(in io.WriteCloser) io.WriteCloser { return typing{in, s.Typed} }

// typing is the input of a command.
type typing struct {
	io.WriteCloser
	typed func()
}

func (t typing) Write(p []byte) (int, error) {
	if t.typed != nil && len(p) > 0 {
		t.typed()
	}
	return t.WriteCloser.Write(p)
}

func (t typing) Resize(size *api.Terminal) {
	if f, ok := t.WriteCloser.(*os.File); ok {
		_ = resize(f, size) // a failed resize is harmless
	}
}

// Run runs the command until it ends or nobody follows it.
func (s *Session) Run(ctx context.Context, e api.Exec, dir string, env []string, user int) api.ExecResult {
	if len(e.Command) == 0 {
		return api.ExecResult{Exit: 2, Error: "the command is empty"}
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	cmd := exec.CommandContext(ctx, e.Command[0], e.Command[1:]...)
	cmd.Dir, cmd.Env = dir, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: program.As(user)}
	cmd.Cancel = func() error { return s.hang(cmd.Process.Pid) }
	cmd.WaitDelay = s.HangUp
	program.DefaultSignals()
	out, in, err := start(cmd, e.Terminal, user)
	if err != nil {
		return exited(err)
	}
	defer func() { _ = out.Close() }()
	typed := make(chan struct{})
	go func() {
		defer close(typed)
		s.input(ctx, end, s.keys(in), e.Terminal)
	}()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		s.output(ctx, end, out, 32<<10)
	}()
	err = cmd.Wait()
	last := time.AfterFunc(lastWords, func() { _ = out.SetDeadline(time.Now()) })
	<-sent
	last.Stop()
	end()
	_ = out.SetDeadline(time.Now()) // stop reading input
	<-typed
	return exited(err)
}

// hang sends SIGHUP to a session's command, as a closed terminal does, and later kills what is left.
func (s *Session) hang(group int) error {
	err := syscall.Kill(-group, syscall.SIGHUP)
	time.AfterFunc(s.HangUp/2, func() { _ = syscall.Kill(-group, syscall.SIGKILL) })
	return err
}

// start starts the command with its own terminal or with pipes, and returns its output and input.
func start(cmd *exec.Cmd, terminal *api.Terminal, user int) (out *os.File, in io.WriteCloser, err error) {
	if terminal == nil {
		return startPiped(cmd)
	}
	own, theirs, err := openTerminal(user)
	if own == nil {
		return nil, nil, err
	}
	defer func() { _ = theirs.Close() }() // the command has a copy
	if err = errors.Join(err, resize(own, terminal)); err == nil {
		if terminal.Kind != "" {
			cmd.Env = slices.DeleteFunc(slices.Clone(cmd.Env), func(v string) bool { return strings.HasPrefix(v, "TERM=") })
			cmd.Env = append(cmd.Env, "TERM="+terminal.Kind)
		}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
		cmd.SysProcAttr.Setctty = true
		err = cmd.Start()
	}
	if err != nil {
		_ = own.Close()
		return nil, nil, err
	}
	return own, own, nil
}

// openTerminal opens a terminal of the given user (0 is the agent's) whose reads end at their deadline. own is nil if
// there is none to close.
func openTerminal(user int) (own, theirs *os.File, err error) {
	if own, theirs, err = pty.Open(); err != nil {
		return nil, nil, err
	}
	err = syscall.SetNonblock(int(own.Fd()), true) // pty.Open makes reads block, whatever their deadline
	if user > 0 {
		err = errors.Join(err, os.Chown(theirs.Name(), user, user))
	}
	return own, theirs, err
}

func startPiped(cmd *exec.Cmd) (out *os.File, in io.WriteCloser, err error) {
	if in, err = cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = theirs.Close() }() // the command has a copy
	cmd.Stdout, cmd.Stderr = theirs, theirs
	if err = cmd.Start(); err != nil {
		_ = out.Close()
		return nil, nil, err
	}
	return out, in, nil
}

func resize(f *os.File, t *api.Terminal) error {
	raw, err := f.SyscallConn() // Fd would make the reads of f block, whatever their deadline
	if err != nil {
		return err
	}
	size := unix.Winsize{Row: cells(t.Rows, 24), Col: cells(t.Cols, 80)}
	closed := raw.Control(func(fd uintptr) { err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &size) })
	return errors.Join(closed, err)
}

// cells returns n if a terminal can have that size, and otherwise usual.
func cells(n, usual int) uint16 {
	if n < 1 || n > 10_000 {
		n = usual
	}
	return uint16(n)
}

// input writes the user's input to the command until the session has ended.
func (s *Session) input(ctx context.Context, end func(), in io.WriteCloser, size *api.Terminal) {
	for offset := int64(0); ctx.Err() == nil; {
		got, err := s.Server.SessionInput(ctx, s.ID, offset)
		switch {
		case errors.Is(err, wire.ErrBad), errors.Is(err, wire.ErrFenced):
			end()
			return
		case err != nil:
			_ = wait.For(ctx, 300*time.Millisecond) // the loop checks ctx
			continue
		}
		if r, ok := in.(resizer); ok && size != nil && got.Terminal != nil && *got.Terminal != *size {
			size = got.Terminal
			r.Resize(size)
		}
		offset += int64(len(got.Input))
		_, _ = in.Write(got.Input) // a command that has ended reads nothing
		if got.End && size == nil {
			_ = in.Close()
		}
	}
}

// output sends the command's output, at most chunk bytes at a time, until it has ended or nobody follows it.
func (s *Session) output(ctx context.Context, end func(), out io.Reader, chunk int) {
	buffer := make([]byte, chunk)
	for offset := int64(0); ; {
		n, err := out.Read(buffer)
		if n > 0 {
			chunk := s.Mask.Mask(slices.Clone(buffer[:n]))
			failed := wire.Retry(ctx, func(ctx context.Context) error {
				return s.Server.SessionOutput(ctx, s.ID, offset, chunk)
			})
			if failed != nil {
				end()
				return
			}
			offset += int64(len(chunk))
		}
		if err != nil { // a terminal always ends with an error
			return
		}
	}
}
