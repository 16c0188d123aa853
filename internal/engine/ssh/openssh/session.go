package openssh

import (
	"io"
	"os/exec"
	"sync"
	"time"
)

// session is a running ssh process.
type session struct {
	io.Reader
	in        io.WriteCloser
	cmd       *exec.Cmd
	complaint *tail
	over      sync.Once
	ended     chan struct{}
	err       error
	way       *Host
}

func begin(cmd *exec.Cmd, o *Host) (*session, error) {
	s := &session{cmd: cmd, complaint: &tail{}, ended: make(chan struct{}), way: o}
	var err error
	if s.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, into := io.Pipe()
	cmd.Stdout, cmd.Stderr, s.Reader = into, s.complaint, out
	if err := cmd.Start(); err != nil {
		return nil, o.explain(err, "")
	}
	go func() {
		s.err = cmd.Wait()
		close(s.ended)
		_ = into.CloseWithError(io.EOF)
	}()
	return s, nil
}

func (s *session) Write(b []byte) (int, error) { return s.in.Write(b) }

// Close ends the connection. What it started on the machine keeps running.
func (s *session) Close() error {
	s.over.Do(func() {
		_ = s.in.Close()
		_ = s.cmd.Process.Kill()
	})
	<-s.ended
	return nil
}

// Reason returns what ssh printed when it ended.
func (s *session) Reason() error {
	select {
	case <-s.ended:
	case <-time.After(2 * time.Second):
		return nil
	}
	return s.way.explain(s.err, s.complaint.String())
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-4096):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
