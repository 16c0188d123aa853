package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/api"
)

// patience is how long a test waits for a condition. It is no measure of speed.
const patience = time.Minute

var deadlines sync.Map // of waits, by test

func patienceOver(t testing.TB) bool {
	d, ok := deadlines.Load(t)
	return ok && time.Now().After(d.(time.Time))
}

func wakeAfterPatience(s *fakeServer) (stop func()) {
	deadlines.Store(s.t, time.Now().Add(patience))
	timer := time.AfterFunc(patience+100*time.Millisecond, func() { s.order(func() {}) })
	return func() { timer.Stop(); deadlines.Delete(s.t) }
}

// TestMain lets the test binary play the user's program.
func TestMain(m *testing.M) {
	if play, ok := programs[os.Getenv("TEST_PROGRAM")]; ok {
		os.Exit(play())
	}
	os.Exit(m.Run())
}

// programs that the tests run, by name.
var programs = map[string]func() int{
	"print":    playPrint,
	"train":    playTrain,
	"deaf":     playDeaf,
	"helper":   playHelper,
	"hugging":  playHugging,
	"env":      playEnv,
	"progress": playProgress,
	"burn":     playBurn,
}

// playPrint prints TEST_LINES lines on both streams and exits with TEST_EXIT.
func playPrint() int {
	n, _ := strconv.Atoi(os.Getenv("TEST_LINES"))
	for i := range n {
		out := os.Stdout
		if i%3 == 0 {
			out = os.Stderr
		}
		_, _ = fmt.Fprintf(out, "line %d %s\n", i, strings.Repeat("x", i%97))
	}
	_, _ = fmt.Fprint(os.Stdout, os.Getenv("TEST_TAIL"))
	exit, _ := strconv.Atoi(os.Getenv("TEST_EXIT"))
	return exit
}

// checkpointFile is the state of playTrain.
func checkpointFile(dir string) string { return filepath.Join(dir, "state") }

func readStep(dir string) int {
	b, _ := os.ReadFile(checkpointFile(dir))
	n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return n
}

// playTrain is an unmodified trainer: it goes on from its checkpoint, saves
// every TEST_EVERY steps by writing aside and renaming, and on SIGTERM waits
// TEST_SAVE before it saves and ends. It ends by itself after TEST_STEPS steps.
func playTrain() int {
	dir := os.Getenv("SCRIMP_CHECKPOINT_DIR")
	steps, _ := strconv.Atoi(os.Getenv("TEST_STEPS"))
	every, _ := strconv.Atoi(os.Getenv("TEST_EVERY"))
	wait, _ := time.ParseDuration(os.Getenv("TEST_SAVE"))
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM, syscall.SIGUSR1)
	save := func(step int) {
		if err := os.WriteFile(checkpointFile(dir)+".tmp", []byte(strconv.Itoa(step)), 0o600); err != nil {
			panic(err)
		}
		if err := os.Rename(checkpointFile(dir)+".tmp", checkpointFile(dir)); err != nil {
			panic(err)
		}
	}
	step := readStep(dir)
	fmt.Printf("begin at %d restored %s\n", step, os.Getenv("SCRIMP_RESTORED"))
	for steps == 0 || step < steps {
		select {
		case s := <-term:
			fmt.Printf("signal %v at %d\n", s, step)
			time.Sleep(wait)
			save(step)
			fmt.Printf("saved %d\n", step)
			return 0
		case <-time.After(2 * time.Millisecond):
		}
		step++
		fmt.Printf("step=%d loss=%g\n", step, 10/float64(step))
		if every > 0 && step%every == 0 {
			save(step)
			fmt.Printf("saved %d\n", step)
		}
	}
	save(step)
	return 0
}

// playDeaf ignores every signal, and so does its child.
func playDeaf() int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1)
	dir := os.Getenv("SCRIMP_CHECKPOINT_DIR")
	_ = os.WriteFile(checkpointFile(dir), []byte("7"), 0o600)
	fmt.Println("deaf")
	for i := 0; ; i++ { // it is in the middle of a save for ever
		_ = os.WriteFile(checkpointFile(dir), []byte(strconv.Itoa(i)), 0o600)
		time.Sleep(time.Millisecond)
	}
}

// call talks to the program's API.
func call(method, path string, body any) (int, []byte, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequest(method, os.Getenv("SCRIMP_AGENT_URL")+path, bytes.NewReader(b))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+os.Getenv("SCRIMP_AGENT_TOKEN"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// playHelper is a program with the helper: it saves when it should, in place
// and in several files, and stops when it should.
func playHelper() int {
	dir := os.Getenv("SCRIMP_CHECKPOINT_DIR")
	for step := 1; ; step++ {
		if code, _, err := call("POST", "/v1/progress", map[string]any{"step": step, "total": 6000, "epoch": 1.5, "metrics": map[string]any{"loss": 2.31}}); err != nil || code != 204 {
			fmt.Println("progress", code, err)
			return 3
		}
		_, b, err := call("GET", "/v1/state", nil)
		var s ProgramState
		if err != nil || json.Unmarshal(b, &s) != nil {
			fmt.Println("state", err)
			return 4
		}
		if s.ShouldCheckpoint {
			for _, name := range []string{"a", "b"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(strconv.Itoa(step)), 0o600); err != nil {
					return 5
				}
			}
			code, _, err := call("POST", "/v1/saved", map[string]any{"step": step})
			if err != nil || code != 204 {
				fmt.Println("saved", code, err)
				return 6
			}
			if s.ShouldStop {
				return 0
			}
			// The agent has its copy: what is written now is not in it.
			_ = os.WriteFile(filepath.Join(dir, "a"), []byte("torn"), 0o600)
		}
		if s.ShouldStop {
			return 0
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// playHugging posts as Hugging Face's callback does.
func playHugging() int {
	token, err := os.ReadFile(os.Getenv("KUBEFLOW_TRAINER_SERVER_TOKEN"))
	if err != nil {
		return 2
	}
	post := func(body string) int {
		req, _ := http.NewRequest("POST", os.Getenv("KUBEFLOW_TRAINER_SERVER_URL"), strings.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if post(`{"trainerStatus": {"lastUpdatedTime": "2026-01-01T00:00:00+00:00", "progressPercentage": 25, "estimatedRemainingSeconds": 90, "metrics": [{"name": "loss", "value": "1.5"}, {"name": "grad_norm", "value": "nan"}, {"name": "current_step", "value": "50"}, {"name": "total_steps", "value": "200"}, {"name": "current_epoch", "value": "0.75"}]}}`) != 200 {
		return 3
	}
	return 0
}

func playEnv() int {
	for _, kv := range os.Environ() {
		fmt.Println(kv)
	}
	wd, _ := os.Getwd()
	fmt.Println("cwd=" + wd)
	b, _ := os.ReadFile("data/input.txt")
	fmt.Println("input=" + string(b))
	return 0
}

func playProgress() int {
	f, err := os.OpenFile(os.Getenv("SCRIMP_PROGRESS_FILE"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 2
	}
	_, _ = f.WriteString("{\"step\":11,\"loss\":2.5}\n{\"step\": 12, \"loss\": NaN, \"acc\": 0.5, \"name\": \"NaN is a word\"}\nnot json\n")
	return 0
}

// memKeeper is a keeper in memory, for tests of the agent alone.
type memKeeper struct {
	dir      string
	mu       sync.Mutex
	versions []map[string]string // file to content
	metas    []meta
	refused  []api.Refused
	fail     func(n int) error // of the n-th publish
	tries    int
	kept     []string
	closed   bool
}

type memCapture struct{ files map[string]string }

func (c memCapture) Size() int64    { return int64(len(c.files)) }
func (c memCapture) Discard() error { return nil }

func (k *memKeeper) Capture(_ context.Context, dir string) (capture, error) {
	c := memCapture{map[string]string{}}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if aside(e.Name()) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, errMoving
		}
		c.files[e.Name()] = string(b)
	}
	return c, err
}

func (k *memKeeper) Publish(_ context.Context, c capture, m meta) (published, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tries++
	if k.fail != nil {
		if err := k.fail(k.tries); err != nil {
			return published{}, err
		}
	}
	k.versions = append(k.versions, c.(memCapture).files)
	k.metas = append(k.metas, m)
	return published{Manifest: fmt.Sprintf("%06d-%06d", 1, len(k.versions)), Bytes: c.Size()}, nil
}

func (k *memKeeper) Restore(_ context.Context, dir string) (restored, []api.Refused, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.versions) == 0 {
		return restored{}, k.refused, nil
	}
	n := len(k.versions) - 1
	for name, content := range k.versions[n] {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return restored{}, nil, err
		}
	}
	return restored{Manifest: fmt.Sprintf("%06d-%06d", 1, n+1), Step: k.metas[n].Step}, k.refused, nil
}

func (k *memKeeper) Fetch(context.Context, string, string) error { return nil }

func (k *memKeeper) Keep(_ context.Context, _ string, folders []string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = folders
	return "mem://outputs", nil
}

func (k *memKeeper) Close() error { k.closed = true; return nil }

// newest is the content of a file in the newest version.
func (k *memKeeper) newest(name string) (string, meta) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.versions) == 0 {
		return "", meta{}
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
		Job: "job-1", Name: "test", Attempt: "job-1.1", Tasks: 1, Epoch: 1, AttemptToken: "attempt-token",
		Args: []string{self}, Env: map[string]string{"TEST_PROGRAM": play},
		Grace: 20 * time.Second, Report: 20 * time.Millisecond, Silence: time.Minute,
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
		Server: r.server.URL, Token: "claim-token", Instance: "i-1", MachineDir: t.TempDir(), Version: "test",
		Environ: []string{"PATH=/usr/bin:/bin", "SCRIMP_TOKEN=claim-token", "GOCOVERDIR=" + os.TempDir()}, Quiet: 200 * time.Millisecond,
		Log:  slog.New(slog.NewTextHandler(r.logs, nil)),
		open: func(context.Context, api.Assignment, folders) (keeper, error) { return r.keeper, nil },
	}
	return r
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

// end waits for the agent's end.
func (r *rig) end() error {
	r.t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(patience):
		r.t.Fatalf("the agent did not end within %v; story: %s", patience, r.server.story())
		return nil
	}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
