package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"scrimp/internal/agent/attempt"
	"scrimp/internal/agent/datacache"
	"scrimp/internal/agent/keeper"
	"scrimp/internal/agent/notice"
	"scrimp/internal/agent/save"
	"scrimp/internal/lib/confined"
	"scrimp/internal/test/eventually"
	"scrimp/internal/wire/api"
)

// quickPace is the pace of agents in tests. A test in which an event ends a wait makes that wait longer.
var quickPace = attempt.Pace{Poll: 20 * time.Millisecond, Log: 20 * time.Millisecond, Silence: 20 * time.Millisecond,
	Usage: 5 * time.Second, Also: 50 * time.Millisecond, Farewell: 300 * time.Millisecond, HangUp: 100 * time.Millisecond}

// TestMain lets the test binary play the user's program.
func TestMain(m *testing.M) {
	if play, ok := programs[os.Getenv("TEST_PROGRAM")]; ok {
		os.Exit(play())
	}
	os.Exit(m.Run())
}

// memKeeper is a Keeper in memory, for tests of the agent alone.
type memKeeper struct {
	mu       sync.Mutex
	versions []map[string]string // content by file name
	metas    []save.Meta
	refused  []api.Refused
	fail     func(n int) error // error of the n-th publish
	full     func() error      // error of every copy; nil: copies succeed
	tries    int
	kept     []string
	closed   bool
}

type memCapture struct{ files map[string]string }

func (c memCapture) Size() int64    { return int64(len(c.files)) }
func (c memCapture) Discard() error { return nil }
func (c memCapture) Left() string   { return "" }

func (k *memKeeper) Capture(_ context.Context, dir confined.Folder) (save.Capture, error) {
	if k.full != nil {
		if err := k.full(); err != nil {
			return nil, err
		}
	}
	c := memCapture{map[string]string{}}
	tree, err := dir.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = tree.Close() }()
	err = tree.Walk(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, ".tmp") {
			return err
		}
		f, err := tree.File(name)
		if err != nil {
			return save.ErrMoving
		}
		b, err := io.ReadAll(f)
		c.files[name] = string(b)
		return errors.Join(err, f.Close())
	})
	return c, err
}

func (k *memKeeper) Publish(_ context.Context, c save.Capture, m save.Meta) (save.Published, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tries++
	if k.fail != nil {
		if err := k.fail(k.tries); err != nil {
			return save.Published{}, err
		}
	}
	k.versions = append(k.versions, c.(memCapture).files)
	k.metas = append(k.metas, m)
	return save.Published{Manifest: fmt.Sprintf("%06d-%06d", 1, len(k.versions)), Bytes: c.Size()}, nil
}

func (k *memKeeper) Prune(context.Context) error { return nil }

func (k *memKeeper) Restore(_ context.Context, dir string) (keeper.Restored, []api.Refused, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.versions) == 0 {
		return keeper.Restored{}, k.refused, nil
	}
	n := len(k.versions) - 1
	for name, content := range k.versions[n] {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return keeper.Restored{}, nil, err
		}
	}
	return keeper.Restored{Manifest: fmt.Sprintf("%06d-%06d", 1, n+1), Step: k.metas[n].Step}, k.refused, nil
}

func (k *memKeeper) Fetch(context.Context, string, string) error { return nil }

func (k *memKeeper) Keep(_ context.Context, _ confined.Folder, folders []string) (keeper.Outputs, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = folders
	return keeper.Outputs{At: "mem://outputs"}, nil
}

func (k *memKeeper) FromCache() (c datacache.Copied) { return c }

func (k *memKeeper) Close() error { k.closed = true; return nil }

// newest returns the content of a file in the newest version.
func (k *memKeeper) newest(name string) (string, save.Meta) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.versions) == 0 {
		return "", save.Meta{}
	}
	return k.versions[len(k.versions)-1][name], k.metas[len(k.metas)-1]
}

// rig is an agent under test.
type rig struct {
	t      testing.TB
	server *fakeServer
	keeper *memKeeper
	config Config
	stop   context.CancelFunc
	done   chan error
	hard   func()
	ahead  atomic.Int64 // how far the agent's clock is ahead of the real one
	logs   *bytes.Buffer
}

// assign returns an assignment that runs one of the test's programs.
func assign(t testing.TB, play string, env ...string) api.Assignment {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a := api.Assignment{
		Job: "job-1", Name: "test", Attempt: "job-1.1", Nodes: 1, Epoch: 1, AttemptToken: "attempt-token",
		Args: []string{self}, Env: map[string]string{"TEST_PROGRAM": play},
		Checkpoint: api.Checkpoints{URL: "mem://"},
		Grace:      20 * time.Second, Report: 20 * time.Millisecond, Silence: time.Minute,
	}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		a.Env[name] = value
	}
	return a
}

func newRig(t testing.TB, a api.Assignment) *rig {
	t.Helper()
	r := &rig{t: t, server: newServer(t, a), keeper: &memKeeper{}, logs: &bytes.Buffer{}}
	r.config = Config{
		Server: r.server.URL, Token: "bootstrap-token", Instance: "i-1", MachineDir: t.TempDir(), Version: "test",
		Environ: []string{"PATH=" + os.Getenv("PATH"), "SCRIMP_TOKEN=bootstrap-token", "GOCOVERDIR=" + os.TempDir()},
		Quiet:   100 * time.Millisecond, pace: quickPace, Metadata: notice.Endpoints{Interval: 20 * time.Millisecond},
		Now:  func() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) },
		keep: true, FreeDisk: "0", // the disk of the test may be nearly full
		Log:  slog.New(slog.NewTextHandler(r.logs, nil)),
		open: func(context.Context, keeper.Options) (keeper.Keeper, error) { return r.keeper, nil },
	}
	if a.Env["TEST_PROGRAM"] == "deaf" {
		r.config.Quiet = time.Hour // it never stops saving, but a busy machine may not run it for a while
	}
	if _, ok := t.(*testing.B); ok {
		r.config.pace = attempt.UsualPace
	}
	return r
}

// task returns the path of a file or folder of the task.
func (r *rig) task(name string) string {
	return filepath.Join(r.config.MachineDir, "tasks", r.server.assignment.Attempt, name)
}

// start runs the agent until the test ends.
func (r *rig) start() {
	ctx, cancel := context.WithCancel(context.Background())
	hard := make(chan struct{})
	r.config.Hard, r.hard = hard, sync.OnceFunc(func() { close(hard) })
	r.stop, r.done = cancel, make(chan error, 1)
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.done <- Run(ctx, r.config)
	}()
	r.t.Cleanup(func() {
		r.hard()
		<-over
		cancel()
		if r.t.Failed() {
			r.t.Logf("agent's log:\n%s", r.logs)
		}
	})
}

// end waits for the agent to end.
func (r *rig) end() error {
	r.t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(eventually.Limit):
		r.t.Fatalf("the agent did not end within %v; story: %s", eventually.Limit, r.server.story())
		return nil
	}
}

// jump sets the agent's clock ahead by more than the silence limit, but by less than a sleeping laptop.
func (r *rig) jump() { r.ahead.Store(int64(silenceOfJump + time.Second)) }

// silenceOfJump is a silence limit that no test waits for: see jump.
const silenceOfJump = 15 * time.Second

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
