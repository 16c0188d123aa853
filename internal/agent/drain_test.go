package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"scrimp/internal/agent/outbox"
	"scrimp/internal/agent/place"
	"scrimp/internal/agent/save"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/port"
	"scrimp/internal/test/proc"
	"scrimp/internal/wire/api"
)

// market serves a spot notice as EC2 does, once notice is called.
type market struct {
	*httptest.Server
	until   atomic.Pointer[time.Time]
	address atomic.Pointer[string] // of the machine
}

func newMarket(t testing.TB) *market {
	m := &market{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		until, address := m.until.Load(), m.address.Load()
		switch {
		case r.URL.Path == "/latest/meta-data/local-ipv4" && address != nil:
			_, _ = fmt.Fprint(w, *address)
		case r.URL.Path == "/latest/api/token":
			_, _ = fmt.Fprint(w, "token")
		case r.URL.Path == "/latest/meta-data/spot/instance-action" && until != nil:
			_, _ = fmt.Fprintf(w, `{"action":"terminate","time":"%s"}`, until.UTC().Format(time.RFC3339Nano))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *market) notice(d time.Duration) { t := time.Now().Add(d); m.until.Store(&t) }

// running starts an agent with play and waits until its program prints.
func running(t *testing.T, a api.Assignment, change func(*rig)) *rig {
	t.Helper()
	r := newRig(t, a)
	if change != nil {
		change(r)
	}
	r.start()
	r.server.wait("the program's first output", func() bool { return len(r.server.log) > 0 })
	return r
}

// lastSaved returns the step in the last line of the program's output that says saved.
func lastSaved(t *testing.T, r *rig) string {
	t.Helper()
	b, err := os.ReadFile(r.task("log"))
	if err != nil {
		t.Fatal(err)
	}
	i := strings.LastIndex(string(b), "saved ")
	if i < 0 {
		return ""
	}
	return strings.TrimSpace(string(b[i+len("saved "):]))
}

func TestNotice_LosesNoWork(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	// Hugging Face's trainer waits 3 s after the signal before it saves; this test waits less.
	r := running(t, assign(t, "train", "TEST_SAVE=50ms"), func(r *rig) { r.config.Metadata.AWS = m.URL + "/" })
	m.notice(2 * time.Minute)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if got := r.server.story(); got != "started, noticed aws, saved, ended drained 0 saved=true" {
		t.Errorf("story %s", got)
	}
	if got, _ := r.keeper.newest("state"); got != lastSaved(t, r) {
		t.Errorf("the store holds step %s, the program saved %s", got, lastSaved(t, r))
	}
	if n := told(r.server, noticed)[0]; time.Until(n.Until) > 2*time.Minute || time.Until(n.Until) < time.Minute {
		t.Errorf("noticed until %v", n.Until)
	}
}

func TestDrain_SavesForEveryReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		stop func(*rig)
		want string
	}{
		{"order, below a shell that dies of the signal", func(r *rig) {
			r.server.order(func() { r.server.orders.Drain = &api.Drain{Why: "a better offer", Grace: time.Minute} })
		}, "started, saved, ended drained 143 saved=true"},
		{"order", func(r *rig) {
			r.server.order(func() { r.server.orders.Drain = &api.Drain{Why: "a better offer", Grace: time.Minute} })
		}, "started, saved, ended drained 0 saved=true"},
		{"the agent is told to end", func(r *rig) { r.stop() }, "started, noticed signal, saved, ended drained 0 saved=true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := assign(t, "train", "TEST_SAVE=30ms")
			if strings.Contains(c.name, "shell") {
				a.Command, a.Args = "'"+a.Args[0]+"'; true", nil
			}
			r := running(t, a, nil)
			c.stop(r)
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			if got := r.server.story(); got != c.want {
				t.Errorf("story %s, want %s", got, c.want)
			}
			if got, _ := r.keeper.newest("state"); got == "" || got != lastSaved(t, r) {
				t.Errorf("the store holds step %q, the program saved %q", got, lastSaved(t, r))
			}
		})
	}
}

func TestDrain_KillsProgramAndDropsTornSave(t *testing.T) {
	t.Parallel()
	r := running(t, assign(t, "deaf"), nil)
	r.server.order(func() { r.server.orders.Drain = &api.Drain{Why: "test", Grace: 50 * time.Millisecond} })
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if got := r.server.story(); got != "started, ended drained 137 saved=false" {
		t.Errorf("story %s", got)
	}
}

func TestDrain_DelaysSignalByLead(t *testing.T) {
	t.Parallel()
	m := newMarket(t)
	a := assign(t, "train")
	a.Signal, a.SignalLead = "USR1", 10*time.Second
	r := running(t, a, func(r *rig) { r.config.Metadata.AWS = m.URL })
	m.notice(10*time.Second + 300*time.Millisecond)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if log := string(r.server.log); !strings.Contains(log, "signal user defined signal 1") {
		t.Errorf("the program did not see USR1: …%s", log[max(0, len(log)-200):])
	}
	n, e := told(r.server, noticed)[0], told(r.server, endedIn)[0]
	var at time.Time
	for _, m := range r.server.messages() {
		if m.Ended != nil {
			at = m.At
		}
	}
	if at.Before(n.Until.Add(-10 * time.Second)) {
		t.Errorf("ended %+v at %v, before the lead began (until %v)", e, at, n.Until)
	}
}

func TestReport_ResumesAfterServerReturns(t *testing.T) {
	t.Parallel()
	a := assign(t, "train", "TEST_EVERY=100")
	r := running(t, a, nil)
	r.server.order(func() { r.server.down = true })
	r.server.wait("checkpoints meanwhile", func() bool { r.keeper.mu.Lock(); defer r.keeper.mu.Unlock(); return len(r.keeper.versions) >= 1 })
	r.server.order(func() { r.server.down = false })
	r.server.waitFor("the checkpoint's message", func(m api.Message) bool { return m.Saved != nil })
	if strings.Contains(r.server.story(), "ended") {
		t.Errorf("story %s: the program should still run", r.server.story())
	}
	r.server.order(func() { r.server.orders.Off = true })
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
}

func TestSilence_IgnoresSleepOfLaptop(t *testing.T) {
	t.Parallel()
	r := running(t, assign(t, "train"), nil)
	r.server.order(func() { r.server.down = true }) // the network returns some seconds after the machine wakes
	r.ahead.Store(int64(3 * time.Hour))
	refused := 0
	r.server.order(func() { refused = r.server.refused })
	r.server.wait("some more tries", func() bool { return r.server.refused >= refused+2 })
	r.server.order(func() { r.server.down = false })
	reports := 0
	r.server.order(func() { reports = r.server.reports })
	r.server.wait("some more reports", func() bool { return r.server.reports >= reports+5 })
	if got := r.server.story(); got != "started" {
		t.Errorf("story %s: the program should still run", got)
	}
	r.server.order(func() { r.server.orders.Off = true })
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
}

func TestSilence_SavesAndSwitchesOff(t *testing.T) {
	t.Parallel()
	a := assign(t, "train")
	a.Silence = silenceOfJump
	r := running(t, a, nil)
	r.server.goAway()
	r.jump()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if got, _ := r.keeper.newest("state"); got == "" || got != lastSaved(t, r) {
		t.Errorf("the store holds step %q, the program saved %q", got, lastSaved(t, r))
	}
	// The disk keeps the unsent messages.
	box, err := outbox.Open(filepath.Join(place.Tasks(r.config.MachineDir), a.Attempt), a.Attempt)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = box.Close() }()
	var kinds []string
	for _, m := range box.Next() {
		switch {
		case m.Saved != nil:
			kinds = append(kinds, "saved")
		case m.Ended != nil:
			kinds = append(kinds, "ended "+string(m.Ended.Reason))
		}
	}
	if got := strings.Join(kinds, ", "); got != "saved, ended drained" {
		t.Errorf("the outbox holds %s", got)
	}
}

// A shutdown may signal every process of a machine, the program before its agent. The program has
// not failed then.
func TestDrain_CountsSignalBeforeAgentAsDrained(t *testing.T) {
	t.Parallel()
	a := assign(t, "train")
	gone := filepath.Join(t.TempDir(), "gone")
	a.Command, a.Args = "echo begun; touch "+gone+"; kill -TERM $$", nil
	r := newRig(t, a)
	r.config.pace.Also = time.Minute
	r.start()
	eventually.True(t, "the program ends", func() bool { _, err := os.Stat(gone); return err == nil })
	r.stop()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if story := r.server.story(); !strings.Contains(story, "noticed signal") || !strings.Contains(story, "ended drained 143") {
		t.Errorf("story %s", story)
	}
}

func TestRun_SecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	r := running(t, assign(t, "deaf"), nil)
	r.stop()
	r.server.waitFor("the notice", func(m api.Message) bool { return m.Noticed != nil })
	r.hard()
	if err := r.end(); !errors.Is(err, errHard) {
		t.Fatalf("error %v, want %v", err, errHard)
	}
	if len(r.keeper.versions) != 0 {
		t.Errorf("%d checkpoints of a program in the middle of a save", len(r.keeper.versions))
	}
	if r.server.story() != "started, noticed signal" {
		t.Errorf("story %s", r.server.story())
	}
}

func TestRun_LeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	r := newRig(t, assign(t, "train", "TEST_STEPS=20"))
	r.config.Metadata.AWS = newMarket(t).URL
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	r.server.CloseClientConnections()
	// four belong to the two servers of the test
	eventually.True(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before+4 }, func() string {
		buf := make([]byte, 1<<20)
		return fmt.Sprintf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
	})
}

func TestDrain_EndsSetup(t *testing.T) {
	t.Parallel()
	a := assign(t, "train")
	a.Setup = "echo begun; sleep 1000"
	r := newRig(t, a)
	r.start()
	r.server.wait("the set-up's output", func() bool { return len(r.server.log) > 0 })
	r.stop()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if got := r.server.story(); got != "noticed signal, ended drained 0 saved=false" {
		t.Errorf("story %s", got)
	}
}

func TestUpload_RetriesAndReports(t *testing.T) {
	t.Parallel()
	r := newRig(t, assign(t, "train", "TEST_STEPS=5"))
	r.keeper.fail = func(n int) error {
		if n < 3 {
			return errors.New("the store is away")
		}
		return nil
	}
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if got := r.server.story(); got != "started, saved, ended completed 0 saved=true" || r.keeper.tries != 3 {
		t.Errorf("story %s after %d tries", got, r.keeper.tries)
	}
}

func TestRestore_ResumesProgram(t *testing.T) {
	t.Parallel()
	r := newRig(t, assign(t, "train", "TEST_STEPS=30"))
	r.keeper.versions = []map[string]string{{"state": "25"}}
	r.keeper.metas = []save.Meta{{Step: 25}}
	r.keeper.refused = []api.Refused{{Manifest: "000001-000002", Why: "part 3 has another hash"}}
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if log := string(r.server.log); !strings.HasPrefix(log, "begin at 25 restored 000001-000001\n") {
		t.Errorf("log %.60q", log)
	}
	if got := r.server.story(); got != "refused, started, saved, ended completed 0 saved=true" {
		t.Errorf("story %s", got)
	}
	if s := told(r.server, started)[0]; s.Restored != "000001-000001" || s.Step != 25 {
		t.Errorf("started %+v", s)
	}
}

func TestRun_DoesNotRunAttemptTwice(t *testing.T) {
	t.Parallel()
	a := assign(t, "train")
	a.Silence = silenceOfJump
	r := running(t, a, nil)
	r.server.goAway() // the server does not receive the last messages
	r.jump()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	r.server.order(func() { r.server.down = false })
	if err := Run(context.Background(), r.config); err != nil {
		t.Fatal(err)
	}
	if got := r.server.story(); got != "started, saved, ended drained 0 saved=true, ended drained 137 saved=false" {
		t.Errorf("story %s", got)
	}
	if n := strings.Count(string(r.server.log), "begin at"); n != 1 {
		t.Errorf("the program ran %d times", n)
	}
}

func TestNotice_OfAmazonsMetadataMock(t *testing.T) {
	lane.Component(t, "aws")
	mock, err := exec.LookPath(cmp.Or(os.Getenv("SCRIMP_EC2_METADATA_MOCK"), "ec2-metadata-mock"))
	if err != nil {
		t.Skip("ec2-metadata-mock is not installed: install it, or name it in SCRIMP_EC2_METADATA_MOCK")
	}
	at := port.Reserve(t)
	until := time.Now().Add(50 * time.Second).UTC().Format(time.RFC3339)
	cmd := exec.Command(mock, "spot", "--action", "terminate", "--imdsv2", "-n", "127.0.0.1", "-p", fmt.Sprint(at), "--mock-delay-sec", "4", "--rebalance-delay-sec", "1", "-t", until)
	proc.Start(t, cmd)
	r := running(t, assign(t, "train"), func(r *rig) { r.config.Metadata.AWS = fmt.Sprintf("http://127.0.0.1:%d/", at) })
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if got := r.server.story(); got != "started, noticed aws, saved, ended drained 0 saved=true" {
		t.Errorf("story %s", got)
	}
	if n := told(r.server, noticed)[0]; n.Until.Format(time.RFC3339) != until {
		t.Errorf("noticed until %v, the mock says %s", n.Until, until)
	}
}

// A program that its wrapper runs in its own group or session is asked to save like any other, and
// has the rest of the grace for it, even if the wrapper stays alive and does not forward the
// signal.
func TestDrain_ReachesProgramThatLeftItsGroup(t *testing.T) {
	t.Parallel()
	const save = `trap "sleep 0.2; echo 7 > $SCRIMP_CHECKPOINT_DIR/state; exit 143" TERM; echo ready; while :; do sleep 0.05; done`
	for wrapper, deaf := range map[string]string{"timeout 1000": "", "setsid -w": "", "setsid -w env": "trap : TERM; "} {
		a := assign(t, "")
		a.Args, a.Command, a.Grace = nil, deaf+wrapper+` sh -c '`+save+`'; true`, 20*time.Second
		if deaf != "" {
			a.Grace = 4 * time.Second // half of it passes before the signal
		}
		r := running(t, a, nil)
		r.server.order(func() { r.server.orders.Drain = &api.Drain{Why: "enough"} })
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		if state, _ := r.keeper.newest("state"); state != "7\n" {
			t.Errorf("%s%s: kept is %q; %s", deaf, wrapper, state, r.server.story())
		}
	}
}
