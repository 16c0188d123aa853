package agent

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/agent/host"
	"scrimp/internal/agent/place"
	"scrimp/internal/test/lane"
	"scrimp/internal/wire/api"
)

// shell returns a task of its own job that runs a command.
func shell(t testing.TB, job, command string) api.Assignment {
	t.Helper()
	a := assign(t, "")
	a.Job, a.Attempt, a.AttemptToken, a.Args, a.Command = job, job+".1", "token-of-"+job, nil, command
	return a
}

// inLine returns a rig whose server assigns one task after the other to a clean machine.
func inLine(t testing.TB, first api.Assignment, more ...api.Assignment) *rig {
	t.Helper()
	r := newRig(t, first)
	r.config.keep = false
	r.server.waiting = true
	for _, a := range more {
		r.server.line = append(r.server.line, given{task: a})
	}
	return r
}

// played runs the rig to its end and returns the logs of its tasks.
func (r *rig) played(t *testing.T) []string {
	t.Helper()
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	return r.server.logs
}

// An agent reports a clean machine while no task runs, and at once after one has ended: this server
// answers a waiting pull only when the agent cancels it.
func TestPull_ReportsCleanMachineAtOnce(t *testing.T) {
	t.Parallel()
	r := inLine(t, shell(t, "job-1", "echo one"), shell(t, "job-2", "echo two"), shell(t, "job-3", "echo three"))
	if logs := r.played(t); !slices.Equal(logs, []string{"one\n", "two\n", "three\n"}) {
		t.Errorf("the tasks say %q", logs)
	}
	for i, p := range r.server.said {
		if p.Clean == (len(p.Running) > 0) {
			t.Errorf("pull %d: running %v, clean %v", i, p.Running, p.Clean)
		}
	}
}

// Files stay while the server lacks something of an attempt, and the machine is not clean for that
// long. If the server does not assign the attempt again, it has everything, and the agent removes
// the rest.
func TestClean_WaitsUntilServerHasEverything(t *testing.T) {
	t.Parallel()
	a := shell(t, "job-1", "echo one")
	a.Silence = time.Second // how long the agent waits for the server
	r := inLine(t, a, shell(t, "job-2", `find "$PWD/../../.." -name '*job-1*'; echo two`))
	r.server.held = true
	r.server.line[0].first = func() { r.server.held = false }
	if logs := r.played(t); !slices.Equal(logs, []string{"one\n", "two\n"}) {
		t.Errorf("the tasks say %q", logs)
	}
	dirty := slices.ContainsFunc(r.server.said[1:], func(p api.Pull) bool { return len(p.Running) == 0 && !p.Clean })
	if !dirty {
		t.Error("it was clean while its outbox held what the server may want again")
	}
}

// An attempt whose files were removed does not run a second time.
func TestDrop_PreventsSecondRun(t *testing.T) {
	t.Parallel()
	a := shell(t, "job-1", "echo one")
	a.Silence = time.Second
	r := inLine(t, a, a)
	r.server.held = true
	r.server.line[0].first = func() { r.server.held = false }
	if logs := r.played(t); !slices.Equal(logs, []string{"one\n", ""}) {
		t.Errorf("the tasks say %q", logs)
	}
}

// unclean expects that the machine does not report itself clean after its task.
func (r *rig) unclean(t *testing.T, what string) {
	t.Helper()
	r.start()
	r.server.wait("pulls after the end", func() bool {
		n := len(r.server.said)
		return n > 2 && len(r.server.applied) > 0 && len(r.server.said[n-1].Running) == 0
	})
	r.server.order(func() {
		if r.server.said[len(r.server.said)-1].Clean {
			t.Errorf("%s: the machine says that it is clean", what)
		}
		r.server.orders.Off, r.server.waiting = true, false
	})
	r.hard()
	<-r.done
}

// A machine with a folder that the agent does not remove is never clean.
func TestClean_FailsWithCheckpointsOutsideTask(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "mine")
	a := shell(t, "job-1", `echo 7 > "$SCRIMP_CHECKPOINT_DIR/state"`)
	a.Checkpoint.Dir = outside
	r := inLine(t, a)
	r.unclean(t, "checkpoints of the first task are in "+outside)
	if _, err := os.Stat(filepath.Join(outside, "state")); err != nil {
		t.Errorf("the user's own folder: %v", err)
	}
	again := &daemon{Config: r.config}
	if err := again.checkClean(t.Context()); err == nil || !strings.Contains(err.Error(), outside) {
		t.Errorf("after a restart of the agent: %v", err)
	}
}

// A restarted agent does not know what earlier programs left behind; only another boot of the
// machine ends it for sure.
func TestClean_FailsAfterAgentRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := &daemon{Config: Config{MachineDir: dir, Instance: "i-1"}}
	d.accelerators.Path = filepath.Join(dir, "a")
	if err := os.MkdirAll(place.OwnFolder(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, boot := range []string{host.BootID(), "another"} {
		if err := os.WriteFile(d.userFile(), []byte(boot+" process 1 of 2"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := d.checkClean(t.Context()); (err == nil) != (boot == "another") {
			t.Errorf("boot %q: %v", boot, err)
		}
	}
	if _, err := os.Stat(d.userFile()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is not noted that the machine is clean: %v", err)
	}
}

// The agent finds a process that left its group, session and environment, because it descends from
// the agent, and ends it before the next task.
func TestClean_EndsDetachedProcess(t *testing.T) {
	t.Parallel()
	mark := "1000." + digits(strings.ToLower(rand.Text()))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(t, shell(t, "job-1", `(setsid env -i sh -c 'env -i sleep `+mark+` & exit' &); `+
		`until grep -qsz '^`+mark+`$' /proc/[0-9]*/cmdline; do sleep 0.01; done; echo left`))
	next := []given{{task: shell(t, "job-2", `grep -lsz '^`+mark+`$' /proc/[0-9]*/cmdline; echo looked`)}}
	cmd := exec.CommandContext(t.Context(), exe)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Env = append(os.Environ(), "TEST_PROGRAM=agent", "SCRIMP_SERVER="+server.URL, "SCRIMP_TOKEN=bootstrap-token",
		"SCRIMP_INSTANCE_ID=i-1", "SCRIMP_MACHINE_DIR="+t.TempDir())
	server.order(func() {
		server.waiting, server.line = true, next
		for i, a := range []*api.Assignment{&server.assignment, &server.line[0].task} {
			a.Checkpoint, a.Epoch = api.Checkpoints{}, i+1
		}
	})
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	server.order(func() {
		if !slices.Equal(server.logs, []string{"left\n", "looked\n"}) {
			t.Errorf("the tasks say %q\n%s", server.logs, &out)
		}
	})
}

// An accelerator is clean if the driver releases its memory within a moment.
func TestClean_WaitsForAcceleratorMemory(t *testing.T) {
	bin := t.TempDir()
	state := filepath.Join(bin, "state")
	script := "#!/bin/sh\ncase $1 in *memory*) echo \"GPU-1, $(cat " + state + ")\";; esac\n"
	set := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	set(filepath.Join(bin, "nvidia-smi"), script)
	set(state, "5")
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	r := inLine(t, shell(t, "job-1", "echo 900 > "+state), shell(t, "job-2", "echo two"))
	r.server.heard = func(m api.Message) { // the driver takes its time
		if m.Ended != nil {
			set(state, "6")
		}
	}
	if logs := r.played(t); len(logs) != 2 || logs[1] != "two\n" {
		t.Errorf("once the memory is released: %q", logs)
	}
}

// If programs run as separate users, the agent removes what such a user wrote to shared folders
// before the next task.
func TestClean_RemovesFilesInSharedFolders(t *testing.T) {
	lane.Component(t, "host")
	t.Parallel()
	mark := "scrimp-shared-" + digits(strings.ToLower(rand.Text()))
	r := separated(t, `for d in /tmp /var/tmp /dev/shm; do mkdir $d/`+mark+` && echo x > $d/`+mark+`/f && chmod 500 $d/`+mark+
		`; done; ln -s /etc/passwd /tmp/`+mark+`.link; echo wrote`)
	r.server.waiting = true
	r.server.line = []given{{task: shell(t, "job-2", `ls -d /tmp/`+mark+`* /var/tmp/`+mark+`* /dev/shm/`+mark+`* 2>/dev/null; echo looked`)}}
	if logs := r.played(t); !slices.Equal(logs, []string{"wrote\n", "looked\n"}) {
		t.Errorf("the tasks say %q", logs)
	}
	if _, err := os.Stat("/etc/passwd"); err != nil {
		t.Fatal(err)
	}
}
