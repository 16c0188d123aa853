package agent

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/port"
	"scrimp/internal/wire/api"
)

// makeSetup is a set-up that writes its own path into its result, as a virtual environment does.
const makeSetup = `echo ran; mkdir -p env/bin; echo "$PWD/env" > env/where; printf '#!/bin/sh\necho tool\n' > env/bin/tool; ` +
	`chmod 755 env/bin/tool; ln -s bin/tool env/link; rm -f gone; mkdir -m 500 shut; touch -d 2020-01-01 env/where`

// useSetup prints the result of a set-up and then spoils it.
const useSetup = `test "$(cat env/where)" = "$PWD/env" && env/link; ls -d gone 2>/dev/null; stat -c %y env/where | cut -c1-10; stat -c %a shut; ` +
	`echo spoiled | tee env/where env/bin/tool >/dev/null; chmod 700 shut; rm -r shut; touch gone`

// made is what useSetup prints for a complete result.
const made = "tool\n2020-01-01\n500\n"

// setUp returns a task whose work folder is on the server.
func setUp(t testing.TB, job string, change func(*api.Assignment)) api.Assignment {
	a := shell(t, job, useSetup)
	a.Setup, a.Workdir, a.Checkpoint = makeSetup, api.ServerWork, api.Checkpoints{}
	if a.Env == nil {
		a.Env = map[string]string{}
	}
	a.Env["WANDB_RUN_ID"] = job // as the server sets it
	if change != nil {
		change(&a)
	}
	return a
}

// upload returns the server's copy of the work folder.
func (r *rig) upload(t testing.TB) string {
	t.Helper()
	withStore(r)
	r.server.work = t.TempDir()
	write(t, filepath.Join(r.server.work, "gone"), "x")
	write(t, filepath.Join(r.server.work, "data"), "one")
	return r.server.work
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// skipped removes the agent's line from the start of a log.
func skipped(log string) (rest string, ok bool) {
	first, rest, _ := strings.Cut(log, "\n")
	if !strings.HasPrefix(first, "scrimp: set-up skipped: the same one ran on this machine at 20") {
		return log, false
	}
	return rest, true
}

// The second task with the same set-up finds its result at the same path, whatever the first
// program did to it. So do the third and one of another job.
func TestSetups_ReusesSameSetup(t *testing.T) {
	t.Parallel()
	r := inLine(t, setUp(t, "job-1", nil), setUp(t, "job-2", nil), setUp(t, "job-2", func(a *api.Assignment) {
		a.Attempt, a.Epoch = "job-2.2", 2
	}))
	r.upload(t)
	logs := r.played(t)
	if len(logs) != 3 || logs[0] != "ran\n"+made {
		t.Fatalf("the tasks say %q", logs)
	}
	for _, log := range logs[1:] {
		if rest, ok := skipped(log); !ok || rest != made {
			t.Errorf("a later task says %q", log)
		}
	}
}

// The next gang finds the set-up of the previous one, whatever its other machines are.
func TestSetups_ReusesSetupForGang(t *testing.T) {
	t.Parallel()
	gang := func(other string) func(*api.Assignment) {
		return func(a *api.Assignment) {
			a.Nodes, a.Addresses, a.MasterPort = 2, []string{other, "127.0.0.1"}, port.Reserve(t)
		}
	}
	r := inLine(t, setUp(t, "job-1", gang("127.0.0.2")), setUp(t, "job-2", gang("127.0.0.3")))
	r.upload(t)
	logs := r.played(t)
	if len(logs) != 2 {
		t.Fatalf("the tasks say %q", logs)
	}
	if rest, ok := skipped(logs[1]); !ok || rest != made {
		t.Errorf("the second gang says %q", logs[1])
	}
}

// The same holds if programs run as separate users, each with a home folder.
func TestSetups_ReusesSetupForOtherUsers(t *testing.T) {
	lane.Component(t, "host")
	t.Parallel()
	r := separated(t, "")
	home := func(a *api.Assignment) {
		a.Setup += `; echo mine > ~/config`
		a.Command = `cat ~/config; touch ~/config; ` + a.Command + `; echo $(stat -c %u env) | grep -c "^$(id -u)$"; echo spoiled > ~/config`
	}
	r.server.assignment, r.server.waiting = setUp(t, "job-1", home), true
	r.server.line = []given{{task: setUp(t, "job-2", home)}}
	r.upload(t)
	logs := r.played(t)
	want := "mine\n" + made + "1\n"
	if len(logs) != 2 || logs[0] != "ran\n"+want {
		t.Fatalf("the tasks say %q", logs)
	}
	if rest, ok := skipped(logs[1]); !ok || rest != want {
		t.Errorf("the second says %q", logs[1])
	}
}

// Any difference makes the set-up run: another command, file, mode or variable. It also runs for a
// task with secrets, and if it can see whose attempt it is.
func TestSetups_RunsDifferentSetup(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		change func(*api.Assignment)
		first  func(work string)
	}{
		"another command":  {change: func(a *api.Assignment) { a.Setup += "; true" }},
		"another variable": {change: func(a *api.Assignment) { a.Env["MORE"] = "1" }},
		"another rank":     {change: func(a *api.Assignment) { a.Nodes, a.Node = 2, 1 }},
		"secrets":          {change: func(a *api.Assignment) { a.Secrets = map[string]string{"KEY": "s3cr3t-value"} }},
		"its own attempt":  {change: func(a *api.Assignment) { a.Setup += `; : "$SCRIMP_ATTEMPT"` }},
		"another file":     {first: func(work string) { write(t, filepath.Join(work, "data"), "two") }},
		"another name":     {first: func(work string) { write(t, filepath.Join(work, "more"), "") }},
		"another mode": {first: func(work string) {
			if err := os.Chmod(filepath.Join(work, "data"), 0o755); err != nil {
				t.Error(err)
			}
		}},
		"a kept copy that was changed": {first: func(work string) {
			found, _ := filepath.Glob(filepath.Join(filepath.Dir(work), "*/setups/*/work/env/where"))
			for _, path := range found {
				st, err := os.Stat(path)
				if err == nil {
					err = errors.Join(os.WriteFile(path, make([]byte, st.Size()), 0o600), os.Chtimes(path, st.ModTime(), st.ModTime()))
				}
				if err != nil {
					t.Error(err)
				}
			}
			if len(found) != 1 {
				t.Errorf("kept are %v", found)
			}
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			twice := func(change func(*api.Assignment)) api.Assignment { return setUp(t, "job-2", change) }
			r := inLine(t, setUp(t, "job-1", nil), twice(c.change))
			work := r.upload(t)
			r.config.MachineDir = t.TempDir()
			if c.first != nil {
				r.server.line[0].first = func() { c.first(work) }
			}
			logs := r.played(t)
			if len(logs) != 2 || logs[0] != "ran\n"+made || logs[1] != "ran\n"+made {
				t.Errorf("the tasks say %q", logs)
			}
		})
	}
}

// The agent does not keep the result of a set-up with secrets, one that failed, or one that changed
// more than its folders. It keeps nothing after the machine is switched off.
func TestSetups_DoesNotKeepUnsafeResults(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*api.Assignment){
		"nothing":                nil,
		"secrets":                func(a *api.Assignment) { a.Secrets = map[string]string{"KEY": "s3cr3t-value"} },
		"failed":                 func(a *api.Assignment) { a.Setup += "; exit 3" },
		"the checkpoint folder":  func(a *api.Assignment) { a.Setup += `; touch "$SCRIMP_CHECKPOINT_DIR/x"` },
		"beside the work folder": func(a *api.Assignment) { a.Setup += "; touch ../x" },
		"a pipe":                 func(a *api.Assignment) { a.Setup += "; mkfifo pipe" },
		"a program with a user":  func(a *api.Assignment) { a.Setup += "; touch suid; chmod 4755 suid" },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := inLine(t, setUp(t, "job-1", change), setUp(t, "job-2", func(a *api.Assignment) {
				a.Setup, a.Command = "", "echo two"
			}))
			var kept []string
			r.server.line[0].first = func() { kept, _ = filepath.Glob(filepath.Join(r.config.MachineDir, "setups", "*")) }
			r.upload(t)
			if logs := r.played(t); len(logs) != 2 || !strings.HasPrefix(logs[0], "ran\n") || logs[1] != "two\n" {
				t.Fatalf("the tasks say %q", logs)
			}
			if len(kept) > 0 != (what == "nothing") {
				t.Errorf("kept are %v", kept)
			}
			if _, err := os.Stat(filepath.Join(r.config.MachineDir, "setups")); !os.IsNotExist(err) {
				t.Errorf("the machine is gone, and what it kept is there: %v", err)
			}
		})
	}
}

// A job that resumes on its machine finds its set-up and its checkpoint, although one folder
// contains the other.
func TestSetups_ResumedJobFindsSetupAndCheckpoint(t *testing.T) {
	t.Parallel()
	task := func(epoch int) api.Assignment {
		a := servedBy(t, epoch, `cat ckpt/state 2>/dev/null; cat made ckpt/note; echo spoiled > made; printf 7 > ckpt/state`)
		a.Setup, a.Outputs = "echo ran; echo made > made", nil
		return a
	}
	r := inLine(t, task(1), task(2))
	work := r.upload(t)
	if err := os.Mkdir(filepath.Join(work, "ckpt"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(work, "ckpt", "note"), "note\n")
	logs := r.played(t)
	if len(logs) != 2 || logs[0] != "ran\nmade\nnote\n" {
		t.Fatalf("the attempts say %q", logs)
	}
	if rest, ok := skipped(logs[1]); !ok || rest != "7made\nnote\n" {
		t.Errorf("the second says %q", logs[1])
	}
}

// An agent that is killed while it copies the result of a set-up leaves no copy that is used.
func TestSetups_IgnoresInterruptedCopy(t *testing.T) {
	lane.Nightly(t, "kills agents in the middle of a copy")
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	many := func(a *api.Assignment) {
		a.Setup = `echo ran; i=0; while [ $i -lt 6 ]; do mkdir d$i; (cd d$i && seq 200 | xargs touch); i=$((i+1)); done`
		a.Command = `ls -d d* | wc -l; find d* -type f | wc -l`
	}
	server := newServer(t, setUp(t, "job-1", many))
	work, next := t.TempDir(), []given{{task: setUp(t, "job-2", many)}}
	server.order(func() { server.waiting, server.work, server.line = true, work, next })
	dir := t.TempDir()
	var out bytes.Buffer
	agent := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), exe)
		cmd.Stdout, cmd.Stderr = &out, &out
		cmd.Env = append(os.Environ(), "TEST_PROGRAM=agent", "SCRIMP_SERVER="+server.URL, "SCRIMP_TOKEN=bootstrap-token",
			"SCRIMP_INSTANCE_ID=i-1", "SCRIMP_MACHINE_DIR="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	cmd := agent()
	eventually.True(t, "a copy under way", func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, "setups", "partial-*", "work", "d*"))
		return len(found) > 1
	})
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if whole, _ := filepath.Glob(filepath.Join(dir, "setups", "*", "kept.json")); len(whole) > 0 {
		t.Fatal("the copy was through: the test has shown nothing")
	}
	server.order(func() { server.log = nil })
	cmd = agent()
	server.waitFor("the end", func(m api.Message) bool { return m.Ended != nil })
	server.order(func() {
		if got := string(server.log); !strings.HasPrefix(got, "ran\n6\n1200\n") && got != "ran\nran\n6\n1200\n" {
			t.Errorf("after the restart the task says %q\n%s", got, &out)
		}
		server.orders.Off, server.waiting = true, false
	})
	if left, _ := filepath.Glob(filepath.Join(dir, "setups", "partial-*")); len(left) > 0 {
		t.Errorf("left is %v", left)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was told to end
}
