package server

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/agent"
	"scrimp/internal/decide/core"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
	"scrimp/internal/test/proc"
	"scrimp/internal/wire/api"
)

// TestMain lets the test binary play an agent on a machine.
func TestMain(m *testing.M) {
	if text := os.Getenv("TEST_AGENT"); text != "" {
		os.Exit(playAgent(text))
	}
	os.Exit(m.Run())
}

// machine is the environment of an agent's machine.
type machine struct {
	Server, Token, Instance, Dir string
	Forbidden                    string // a path that the process must not be able to open
}

func playAgent(text string) int {
	var m machine
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		fmt.Println(err)
		return 2
	}
	if _, err := os.ReadDir(m.Forbidden); m.Forbidden != "" && !errors.Is(err, os.ErrPermission) {
		fmt.Println("the machine can open the server's data folder:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := agent.Run(ctx, agent.Config{Server: m.Server, Token: m.Token, Instance: m.Instance, MachineDir: m.Dir,
		Quiet: 100 * time.Millisecond, Environ: []string{"PATH=/usr/bin:/bin"},
		Log: slog.New(slog.NewTextHandler(os.Stdout, nil))})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// elsewhere starts an agent for an attempt as a process that cannot open the data folder: as another user if the
// test runs as root. The returned function waits for its end.
func (w *world) elsewhere(t *testing.T, url, attempt string) (p *os.Process, end func() error) {
	t.Helper()
	top, err := os.MkdirTemp("", "scrimp-machine-")
	must.Do(t, err)
	m := machine{Server: url, Token: w.gate.Tickets.For(auth.BootstrapTicket, attempt), Instance: w.instance(attempt),
		Dir: filepath.Join(top, "m")}
	exe, err := os.Executable()
	must.Do(t, err)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), exe)
	if os.Getuid() == 0 {
		const nobody = 65534
		m.Forbidden = w.opts.Dir
		cmd.Path = filepath.Join(top, "agent") // others may not read where the build put it
		b, err := os.ReadFile(exe)
		err = errors.Join(err, os.WriteFile(cmd.Path, b, 0o755), os.Mkdir(m.Dir, 0o700),
			os.Chmod(cmd.Path, 0o755), // a server of another test may have changed the process's umask
			os.Chown(m.Dir, nobody, nobody), os.Chmod(top, 0o755), os.Chmod(w.opts.Dir, 0o700))
		must.Do(t, err)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	text, err := json.Marshal(m)
	must.Do(t, err)
	cmd.Env = append(os.Environ(), "TEST_AGENT="+string(text))
	said := &strings.Builder{}
	cmd.Stdout, cmd.Stderr, cmd.Dir = said, said, top
	t.Cleanup(func() { // after the agent has ended
		if t.Failed() {
			t.Logf("agent of %s:\n%s\nserver:\n%s", attempt, said, w.log)
		}
		_ = os.RemoveAll(top)
	})
	started := proc.Start(t, cmd)
	over := make(chan error, 1)
	go func() { over <- started.Wait() }()
	return cmd.Process, func() error {
		select {
		case err := <-over:
			return err
		case <-time.After(eventually.Limit):
			return errors.New("the agent does not end")
		}
	}
}

// newest waits for an attempt of the job other than before.
func (w *world) newest(job, before string) (attempt string) {
	w.t.Helper()
	w.until(func(m *core.Machine) bool {
		j, _ := m.Job(job)
		if a := j.Attempt(); a != nil && a.Live() && a.Task() == core.Assigned && a.ID() != before {
			attempt = a.ID()
		}
		return attempt != ""
	})
	return attempt
}

const trains = `#!/bin/sh
cat data/input > /dev/null || exit 3
test -e set-up || exit 4
if [ -e ckpt/state ]; then
  echo resumed from $(cat ckpt/state)
  mkdir -p out && cp ckpt/state out/result && exit 0
fi
echo 41 > ckpt/state.tmp && mv ckpt/state.tmp ckpt/state
echo saved
trap 'exit 0' TERM
while :; do sleep 0.1; done
`

// A machine needs only the address of the server: an agent that cannot open the data folder gets its work folder,
// runs setup, resumes from the previous attempt's checkpoint, and stores its outputs and log.
func TestMachine_NeedsOnlyTheServersAddress(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &rents{}, nil)
	url := w.listens(t, "tcp")
	folder := t.TempDir()
	err := errors.Join(os.WriteFile(filepath.Join(folder, "train.sh"), []byte(trains), 0o755),
		os.Mkdir(filepath.Join(folder, "data"), 0o755),
		os.WriteFile(filepath.Join(folder, "data", "input"), []byte(strings.Repeat("x", 1<<20)), 0o644))
	must.Do(t, err)
	spec := `{"name":"a","command":"./train.sh","setup":"touch set-up","outputs":["out"],"checkpoint":{"dir":"ckpt"},"grace":"3s"}`
	w.must("POST", "/v1/jobs", api.Submission{Spec: []byte(spec), Folder: folder}, nil)

	first := w.newest("a", "")
	p, _ := w.elsewhere(t, url, first)
	w.until(func(m *core.Machine) bool { j, _ := m.Job("a"); return j.HasSaved() })
	if err := p.Signal(syscall.SIGTERM); err != nil { // as at the provider's notice
		t.Fatal(err)
	}
	_, end := w.elsewhere(t, url, w.newest("a", first))
	if err := end(); err != nil {
		t.Fatal(err)
	}
	w.until(func(m *core.Machine) bool { j, _ := m.Job("a"); return j.State() == core.Succeeded })

	if rec, _ := w.ask("GET", "/v1/jobs/a/log", auth.OwnerName, nil); !strings.HasPrefix(rec.Body.String(), "saved\n") ||
		!strings.HasSuffix(rec.Body.String(), "\nresumed from 41\n") {
		t.Errorf("the log holds %q", rec.Body)
	}
	rec, problem := w.ask("GET", "/v1/jobs/a/outputs", auth.OwnerName, nil)
	if rec.Code != 200 {
		t.Fatalf("%+v", problem)
	}
	if got := fileOf(t, rec.Body, "out/result"); got != "41\n" {
		t.Errorf("the outputs hold %q", got)
	}
}

// fileOf returns the content of a file in a tar file in gzip.
func fileOf(t *testing.T, from io.Reader, name string) string {
	t.Helper()
	zip, err := gzip.NewReader(from)
	must.Do(t, err)
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if h.Name == name {
			b, err := io.ReadAll(r)
			must.Do(t, err)
			return string(b)
		}
	}
}

// An assignment contains no path of the server.
func TestAssignment_ContainsNoServerPath(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &rents{}, nil)
	spec := `{"name":"a","command":"true","outputs":["out"],"checkpoint":{"dir":"ckpt"},"grace":"3s"}`
	w.must("POST", "/v1/jobs", api.Submission{Spec: []byte(spec), Folder: t.TempDir()}, nil)
	attempt := w.newest("a", "")
	as := w.take(attempt)
	text, err := json.Marshal(as)
	must.Do(t, err)
	if strings.Contains(string(text), w.opts.Dir) || as.Workdir != api.ServerWork ||
		as.Checkpoint.URL != api.ServerStore || as.OutputsURL != api.ServerStore || as.Checkpoint.Prefix != "jobs/a/" {
		t.Errorf("the agent is told %s", text)
	}
}
