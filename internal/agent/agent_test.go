package agent

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"scrimp/internal/agent/progress"
	"scrimp/internal/test/lane"
	"scrimp/internal/wire/api"
)

func TestAgent_RunsProgramAndReportsEverything(t *testing.T) {
	t.Parallel()
	a := assign(t, "train", "TEST_STEPS=60", "TEST_EVERY=20")
	a.Progress.Pattern = `step=(?P<step>\d+) loss=(?P<loss>\S+)`
	a.Outputs, a.OutputsURL = []string{"out"}, "mem://outputs"
	r := newRig(t, a)
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if got := r.server.story(); !strings.HasPrefix(got, "started") || !strings.HasSuffix(got, "saved, ended completed 0 saved=true") {
		t.Errorf("story: %s", got)
	}
	if got, m := r.keeper.newest("state"); got != "60" || m.Step != 60 {
		t.Errorf("the newest checkpoint holds step %s and says %d, want 60", got, m.Step)
	}
	steps := told(r.server, stepped)
	if n := len(steps); n == 0 || steps[n-1].Step != 60 || steps[n-1].Metrics["loss"] == 0 {
		t.Errorf("progress %+v", steps)
	}
	e := told(r.server, endedIn)[0]
	if e.Outputs != "mem://outputs" || e.Step != 60 || len(r.keeper.kept) != 1 {
		t.Errorf("ended %+v, outputs %v", e, r.keeper.kept)
	}
	if r.server.logAtEnd == 0 || r.server.logAtEnd != len(r.server.log) {
		t.Errorf("when the end was told, the server had %d bytes of %d of the log: whoever hears of the end reads the log then", r.server.logAtEnd, len(r.server.log))
	}
	if !r.keeper.closed {
		t.Error("the store was not closed")
	}
}

func TestAgent_DeliversLogsAndMessagesOnceOverBadNetwork(t *testing.T) {
	t.Parallel()
	kinds := map[string]int{}
	for seed := range uint64(lane.Pick(3, 30)) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			a := assign(t, "print", "TEST_LINES=8000", "TEST_TAIL=no newline at the end", "TEST_EXIT=0")
			a.Report = 5 * time.Millisecond
			a.Progress.Pattern = `line (?P<step>\d+)`
			r := newRig(t, a)
			r.server.chance, r.server.faults = rand.New(rand.NewPCG(seed, 1)), 0.3
			r.server.nextFault = 2 * int(seed)
			r.start()
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(r.task("log"))
			if err != nil {
				t.Fatal(err)
			}
			r.server.mu.Lock()
			defer r.server.mu.Unlock()
			if got := string(r.server.log); got != string(want) || len(want) < 300000 {
				t.Errorf("the server has %d bytes of the log, the program wrote %d", len(got), len(want))
			}
			last := r.server.applied[len(r.server.applied)-1]
			if last.Ended == nil || last.Ended.Reason != api.EndCompleted {
				t.Errorf("last message %+v", last)
			}
			for i, m := range r.server.applied { // the server itself checks that none arrived early
				if m.Seq != int64(i)+1 {
					t.Errorf("message %d is number %d", i, m.Seq)
				}
			}
			for k, n := range r.server.kinds {
				kinds[k] += n
			}
		})
	}
	if len(kinds) < 5 {
		t.Errorf("faults %v: not every kind occurred", kinds)
	}
}

func TestAgent_ReportsExits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, command string
		want          string
	}{
		{"failure", "exit 3", "started, ended failed 3 saved=false"},
		{"requeue", "exit 75", "started, ended failed 75 saved=false"},
		{"killed", "kill -KILL $$", "started, ended failed 137 saved=false"},
		{"missing program", "no-such-program", "started, ended failed 127 saved=false"},
		{"a save that a crash tore is not published", `echo 1 > "$SCRIMP_CHECKPOINT_DIR/state"; exit 1`, "started, ended failed 1 saved=false"},
		{"a save before success is", `echo 1 > "$SCRIMP_CHECKPOINT_DIR/state"`, "started, saved, ended completed 0 saved=true"},
		{"what it leaves in the background is ended", "sleep 1000 & exit 0", "started, ended completed 0 saved=false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := assign(t, "")
			a.Args, a.Command = nil, c.command
			r := newRig(t, a)
			r.config.Quiet = time.Minute // a slow agent must not find the folder at rest
			r.start()
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			if got := r.server.story(); got != c.want {
				t.Errorf("story %q, want %q", got, c.want)
			}
		})
	}
}

func TestSetup_RunsFirstAndReportsFailure(t *testing.T) {
	t.Parallel()
	a := assign(t, "print", "TEST_TAIL=program\n")
	a.Setup = "echo set-up; exit 4"
	r := newRig(t, a)
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if got := r.server.story(); got != "ended setup 4 saved=false" || string(r.server.log) != "set-up\n" {
		t.Errorf("story %q, log %q", got, r.server.log)
	}
	if e := told(r.server, endedIn)[0]; !strings.Contains(e.Error, "set-up failed") {
		t.Errorf("error %q", e.Error)
	}
}

func TestAgent_SetsProgramEnvironment(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	if err := os.MkdirAll(filepath.Join(source, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(source, "data", "input.txt"), []byte("tokens"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := assign(t, "env", "USER_VARIABLE=1", "SCRIMP_JOB=lie")
	a.Workdir, a.Secrets = api.ServerWork, map[string]string{"API_KEY": "s3cr3t-value"}
	a.Checkpoint = api.Checkpoints{Interval: 90 * time.Second}
	r := newRig(t, a)
	withStore(r)
	r.server.work = source
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	log := string(r.server.log)
	work := r.task("work")
	for _, want := range []string{
		"SCRIMP_JOB=job-1\n", "SCRIMP_ATTEMPT=job-1.1\n", "SCRIMP_EPOCH=1\n", "SCRIMP_INSTANCE=i-1\n", "SCRIMP_RESTORED=\n",
		"SCRIMP_CHECKPOINT_DIR=" + r.task("checkpoint") + "\n", "SCRIMP_CHECKPOINT_INTERVAL_S=90\n",
		"USER_VARIABLE=1\n", "PET_NNODES=1\n", "PET_NODE_RANK=0\n", "MASTER_ADDR=127.0.0.1\n", "KUBEFLOW_TRAINER_SERVER_URL=http://127.0.0.1:",
		"cwd=" + work + "\n", "input=tokens\n", "API_KEY=************\n",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the program does not see %q", want)
		}
	}
	for _, secret := range []string{"bootstrap-token", "attempt-token", "s3cr3t-value"} {
		if strings.Contains(log, secret) {
			t.Errorf("%q is in the log", secret)
		}
	}
}

func TestProgress_ReadsEverySource(t *testing.T) {
	t.Parallel()
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, assign(t, "progress"))
		r.start()
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		var all api.Step
		for _, s := range told(r.server, stepped) {
			all = progress.Merge(all, s)
		}
		if all.Step != 12 || all.Metrics["acc"] != 0.5 || len(all.Broken) != 1 || all.Broken[0] != "loss" {
			t.Errorf("progress %+v", all)
		}
	})
	t.Run("kubeflow", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, assign(t, "hugging"))
		r.start()
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		s := told(r.server, stepped)[0]
		if s.Step != 50 || s.Total != 200 || s.Epoch != 0.75 || s.Metrics["loss"] != 1.5 || s.Metrics["remaining_s"] != 90 || fmt.Sprint(s.Broken) != "[grad_norm]" {
			t.Errorf("progress %+v", s)
		}
	})
}

func TestHelper_SavesConsistentCopyOnRequest(t *testing.T) {
	t.Parallel()
	a := assign(t, "helper")
	a.Checkpoint.Interval = time.Hour
	r := newRig(t, a)
	r.server.orders.Spent, r.server.orders.BudgetLeft = "0.12", "1.88"
	r.start()
	r.server.waitFor("progress", func(m api.Message) bool { return m.Step != nil && m.Step.Total == 6000 && m.Step.Epoch == 1.5 })
	if n := len(told(r.server, savedIn)); n != 0 {
		t.Fatalf("%d checkpoints before the interval is over", n)
	}
	r.server.order(func() { r.server.once = append(r.server.once, func(o *api.Orders) { o.Save = true }) })
	r.server.waitFor("a checkpoint", func(m api.Message) bool { return m.Saved != nil })
	first, m := r.keeper.newest("a")
	if b, _ := r.keeper.newest("b"); first != b || first != strconv.FormatInt(m.Step, 10) {
		t.Errorf("the checkpoint holds a=%s b=%s for step %d", first, b, m.Step)
	}
	r.server.order(func() { r.server.orders.Interval = time.Millisecond })
	r.server.wait("a second one by the interval", func() bool {
		n := 0
		for _, m := range r.server.applied {
			if m.Saved != nil {
				n++
			}
		}
		return n >= 2
	})
	r.server.order(func() { r.server.orders.Drain = &api.Drain{Why: "test", Grace: 20 * time.Second} })
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if got := r.server.story(); !strings.HasSuffix(got, "ended drained 0 saved=true") && !strings.Contains(got, "ended drained 143") { // the signal may come before the program asks whether to stop
		t.Errorf("story %s", got)
	}
}

func TestAgent_PublishesNothingAfterFence(t *testing.T) {
	t.Parallel()
	for name, fence := range map[string]func(*fakeServer){
		"by order":         func(s *fakeServer) { s.orders.Fenced = true },
		"by refused token": func(s *fakeServer) { s.fenced = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := assign(t, "train")
			r := newRig(t, a)
			r.start()
			r.server.waitFor("the program's start", func(m api.Message) bool { return m.Started != nil })
			r.server.order(func() { fence(r.server) })
			if err := r.end(); !errors.Is(err, ErrFenced) {
				t.Fatalf("error %v, want ErrFenced", err)
			}
			if _, m := r.keeper.newest("state"); m.Step != 0 || strings.Contains(r.server.story(), "ended") {
				t.Errorf("a fenced attempt published %+v; story %s", m, r.server.story())
			}
		})
	}
}

func TestAgent_EndsWhenStoreFences(t *testing.T) {
	t.Parallel()
	r := newRig(t, assign(t, "train", "TEST_EVERY=1000000", "TEST_STEPS=20"))
	r.keeper.fail = func(int) error { return ErrFenced }
	r.start()
	if err := r.end(); !errors.Is(err, ErrFenced) {
		t.Fatalf("error %v, want ErrFenced", err)
	}
	if got := r.server.story(); got != "started" {
		t.Errorf("story %s", got)
	}
}

func TestExec_RunsOnceBesideProgram(t *testing.T) {
	t.Parallel()
	a := assign(t, "train")
	a.Secrets = map[string]string{"API_KEY": "s3cr3t-value"}
	r := newRig(t, a)
	r.start()
	r.server.waitFor("the program's start", func(m api.Message) bool { return m.Started != nil })
	marker := filepath.Join(t.TempDir(), "ran")
	r.server.order(func() {
		r.server.orders.Exec = []api.Exec{{ID: "e1", Command: []string{"/bin/sh", "-c", "echo x >> " + marker + "; pwd; echo $SCRIMP_JOB $API_KEY; exit 5"}}}
	})
	r.server.wait("the result", func() bool { _, ok := r.server.results["e1"]; return ok })
	again := 0
	r.server.order(func() { again = r.server.reports + 2 })
	r.server.wait("two more reports", func() bool { return r.server.reports > again })
	r.server.order(func() { r.server.orders.Off = true })
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	got := r.server.results["e1"]
	if want := r.task("work") + "\njob-1 ************\n"; string(got.Output) != want || got.Exit != 5 {
		t.Errorf("result %q %d %q, want %q", got.Output, got.Exit, got.Error, want)
	}
	if b, _ := os.ReadFile(marker); string(b) != "x\n" {
		t.Errorf("the command ran %d times", len(b)/2)
	}
}
