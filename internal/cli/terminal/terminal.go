// Package terminal connects this process's terminal, or its ports, to a session on the machine of a job.
package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/term"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/lib/wait"
)

// DetachKey is Ctrl-], which leaves a session that goes on without a user.
const DetachKey = 0x1d

// ErrDetached means that the user has left with DetachKey.
var ErrDetached = errors.New("detached")

// ErrBroken means that the connection to a session ended before the session did.
var ErrBroken = errors.New("the session was closed: the server stopped, or you may no longer use it")

// Keys is the input of this process. Only one reader can exist, so that a command that connects again loses no key.
type Keys struct {
	pieces chan []byte // closed at the end of the input
}

// Read begins to read the input. The reader ends with the input, or with the process.
func Read(in io.Reader) *Keys {
	k := &Keys{pieces: make(chan []byte)}
	go func() {
		defer close(k.pieces)
		for {
			b := make([]byte, 16<<10)
			n, err := in.Read(b)
			if n > 0 {
				k.pieces <- b[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	return k
}

// Of returns the terminal that in is, or an error.
func Of(in io.Reader) (*os.File, error) {
	f, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, errors.New("the input is not a terminal")
	}
	return f, nil
}

// Session is a command on the machine of a job that this process follows.
type Session struct {
	Client *command.Client
	Job    string
	Exec   api.Exec
	Out    io.Writer
	Keys   *Keys
	// Screen is this process's terminal, which the remote one has the size of; nil: the command has no terminal.
	Screen *os.File
	// Detaches lets DetachKey end the connection.
	Detaches bool

	path string
}

// Begin starts the session on the machine.
func (s *Session) begin(ctx context.Context) (*http.Response, error) {
	s.Exec.Input = true
	if s.Screen != nil {
		s.Exec.Terminal = sizeOf(s.Screen)
		s.Exec.Terminal.Kind = os.Getenv("TERM")
	}
	var begun api.ExecResult
	if err := s.Client.Do(ctx, http.MethodPost, command.OfJob(s.Job, "/exec"), s.Exec, &begun); err != nil {
		return nil, err
	}
	if begun.Session == "" {
		return nil, errors.New("the server does not support sessions: it is older than this command")
	}
	s.path = command.OfJob(s.Job, "/exec/") + url.PathEscape(begun.Session)
	return s.Client.Request(ctx, http.MethodGet, s.path)
}

// Run follows the session until it ends, and returns its result. It returns ErrDetached if the user leaves, and
// ErrBroken if the connection ends.
func (s *Session) Run(ctx context.Context) (end api.ExecOutput, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, err := s.begin(ctx)
	if err != nil {
		return end, err
	}
	defer func() { _ = r.Body.Close() }()
	if s.Screen != nil {
		before, err := term.MakeRaw(int(s.Screen.Fd()))
		if err != nil {
			return end, fmt.Errorf("take the terminal: %w", err)
		}
		defer func() { _ = term.Restore(int(s.Screen.Fd()), before) }()
		go s.sizes(ctx)
	}
	go s.keys(ctx, cancel)
	from := json.NewDecoder(r.Body)
	for {
		var o api.ExecOutput
		if err := from.Decode(&o); err != nil {
			if ctx.Err() != nil {
				return end, context.Cause(ctx)
			}
			return end, fmt.Errorf("%w (%w)", ErrBroken, err)
		}
		if _, err := s.Out.Write(o.Output); err != nil {
			return end, err
		}
		if o.Over {
			return o, nil
		}
	}
}

// send retries while the command has not read the previous input.
func (s *Session) send(ctx context.Context, in api.ExecInput) error {
	for {
		err := s.Client.Do(ctx, http.MethodPost, s.path, in, nil)
		problem, ok := errors.AsType[*api.Problem](err)
		if !ok || problem.Status != http.StatusTooManyRequests {
			return err
		}
		if err := wait.For(ctx, time.Second/2); err != nil {
			return err
		}
	}
}

// keys sends the input until the input or the session ends.
func (s *Session) keys(ctx context.Context, cancel context.CancelCauseFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case b, more := <-s.Keys.pieces:
			if !more {
				_ = s.send(ctx, api.ExecInput{End: true}) // the session's output reports its end
				return
			}
			leaves := s.Detaches && slices.Contains(b, DetachKey)
			if leaves {
				b = b[:slices.Index(b, DetachKey)]
			}
			if len(b) > 0 && s.send(ctx, api.ExecInput{Input: b}) != nil {
				return
			}
			if leaves {
				cancel(ErrDetached)
				return
			}
		}
	}
}

// sizes sends the size of the terminal whenever it changes.
func (s *Session) sizes(ctx context.Context) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	defer signal.Stop(changed)
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			_ = s.send(ctx, api.ExecInput{Terminal: sizeOf(s.Screen)}) // the next change repeats it
		}
	}
}

func sizeOf(f *os.File) *api.Terminal {
	width, height, _ := command.TerminalSize(f)
	return &api.Terminal{Rows: height, Cols: width}
}
