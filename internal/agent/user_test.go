package agent

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"scrimp/internal/agent/place"
	"scrimp/internal/agent/program"
	"scrimp/internal/test/lane"
	"scrimp/internal/wire/api"
)

// separated returns a rig whose programs run as separate users.
func separated(t *testing.T, command string) *rig {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("programs run as another user where the agent is root, and these tests are not")
	}
	a := assign(t, "")
	a.Args, a.Command = nil, command
	r := newRig(t, a)
	top, err := os.MkdirTemp("", "scrimp-machine-") // other users cannot enter the test's own folder
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	if err := os.Chmod(top, 0o755); err != nil {
		t.Fatal(err)
	}
	r.config.MachineDir, r.config.TaskUser, r.config.keep = filepath.Join(top, "m"), UserAuto, false
	if ok, why := r.config.separate(); !ok {
		t.Fatal(why)
	}
	return r
}

// A program with its own user cannot do to its agent what a program of the agent's user could, and
// its own work is unaffected.
func TestSeparateUser_CannotActAsAgent(t *testing.T) {
	lane.Component(t, "host")
	t.Parallel()
	const tries = `
fails() { what=$1; shift; if "$@" >/dev/null 2>&1; then echo "$what: it can"; fi; }
agent=$PPID
fails "the agent's environment" cat /proc/$agent/environ
fails "the agent's memory" head -c 1 /proc/$agent/mem
fails "the agent's files" ls /proc/$agent/fd
fails "a signal to the agent" kill -0 $agent
fails "the agent's folder" ls "$PWD/../../../agent"
fails "the machine's key" cat "$PWD/../../../agent/machine.key"
fails "the tasks of others" ls "$PWD/../.."
fails "a file beside its own" touch "$PWD/../../x"
fails "root's files" cat /etc/shadow
fails "the test's own binary's folder" touch /usr/x
test "$(id -u)" -ge 480000 || echo "it runs as $(id -u)"
test "$(id -G)" = "$(id -u)" || echo "it is of the groups $(id -G)"
touch "$PWD/x" "$HOME/x" && id -u > "$SCRIMP_CHECKPOINT_DIR/user" && echo 7 > "$SCRIMP_CHECKPOINT_DIR/state" && echo out > /dev/stderr
(setsid env -i sleep 1000 &)
echo tried`
	r := separated(t, tries)
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if got := string(r.server.log); got != "out\ntried\n" {
		t.Errorf("the program says\n%s", got)
	}
	if got, _ := r.keeper.newest("state"); got != "7\n" {
		t.Errorf("its checkpoint holds %q", got)
	}
	text, _ := r.keeper.newest("user")
	user, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || user < 480_000 || user >= 520_000 {
		t.Fatalf("it ran as %q, %v", text, err)
	}
	for _, p := range ofUser(t, user) {
		t.Errorf("a process of the task is left: %s", p)
	}
	if _, err := os.Stat(filepath.Join(r.config.MachineDir, "tasks", r.server.assignment.Attempt)); !os.IsNotExist(err) {
		t.Errorf("its folder is left: %v", err)
	}
}

// ofUser returns the names of a user's living processes.
func ofUser(t *testing.T, user int) (list []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		b, _ := os.ReadFile(path) // empty if it has ended
		if strings.Contains(string(b), "State:\tZ") {
			continue // nobody reaps it here
		}
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "Uid:" && f[1] == strconv.Itoa(user) {
				list = append(list, strings.SplitN(string(b), "\n", 2)[0])
			}
		}
	}
	return list
}

// The agent, which is root, neither restores into nor keeps a folder that leads out of the task's folder.
func TestSeparateUser_AgentFollowsNoLink(t *testing.T) {
	lane.Component(t, "host")
	t.Parallel()
	r := separated(t, `echo 7 > "$SCRIMP_CHECKPOINT_DIR/state"; rm -r "$SCRIMP_CHECKPOINT_DIR"; `+
		`ln -s "$PWD/../../../agent" "$SCRIMP_CHECKPOINT_DIR"`)
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	for _, v := range r.keeper.versions { // the file may have been kept before the folder became a link
		if len(v) != 1 || v["state"] != "7\n" {
			t.Errorf("kept is %v", v)
		}
	}
	outside := separated(t, "true")
	outside.server.assignment.Checkpoint.Dir = "/etc/scrimp-test"
	outside.start()
	if err := outside.end(); err != nil {
		t.Fatal(err)
	}
	if e := told(outside.server, endedIn); len(e) != 1 || e[0].Reason != api.EndSetup || !strings.Contains(e[0].Error, "checkpoint.dir") {
		t.Errorf("ended %+v", e)
	}
	if _, err := os.Stat("/etc/scrimp-test"); !os.IsNotExist(err) {
		t.Errorf("the agent made a folder outside: %v", err)
	}
}

// A program's own token opens nothing on the server, whatever user the program runs as.
func TestToken_OfProgramOpensNothingOnServer(t *testing.T) {
	t.Parallel()
	r := newRig(t, assign(t, "knock"))
	r.server.assignment.Env["TEST_SERVER"] = r.server.URL
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if got := string(r.server.log); got != "false\n401\n401\n" {
		t.Errorf("the program says\n%s", got)
	}
}

// Before anything is written, the agent removes what a set-up of a previous agent left: its
// processes and its links.
func TestSeparateUser_RestartedTaskStartsFromNothing(t *testing.T) {
	lane.Component(t, "host")
	t.Parallel()
	r := separated(t, "")
	a := r.server.assignment
	vault := filepath.Join(filepath.Dir(r.config.MachineDir), "vault")
	f := place.LayOut(r.config.MachineDir, a)
	err := errors.Join(os.MkdirAll(f.Own, 0o700), os.MkdirAll(f.Top, 0o711), os.Mkdir(vault, 0o755), os.Symlink(vault, f.Work),
		os.Symlink(vault, f.Checkpoint), os.WriteFile(filepath.Join(f.Own, "setup.done"), []byte(a.Setup), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	user, err := place.ClaimUser(filepath.Dir(f.Own), a.Attempt)
	if err != nil {
		t.Fatal(err)
	}
	stray := exec.Command("sleep", "1000")
	stray.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: program.As(user)}
	if err := stray.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- stray.Wait() }()
	r.server.assignment.Command = "kill -0 " + strconv.Itoa(stray.Process.Pid) + " && echo a stray lives; echo clean"
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if <-ended == nil {
		t.Error("a process of the set-up before lived on")
	}
	if got := string(r.server.log); !strings.HasSuffix(got, "clean\n") || strings.Contains(got, "stray") {
		t.Errorf("the program says %q", got)
	}
	if left, err := os.ReadDir(vault); err != nil || len(left) > 0 {
		t.Errorf("written through the link: %v, %v", left, err)
	}
}

// A machine that registered as one with separate users stops if it can no longer separate them.
func TestIdentity_RefusesToLoseSeparation(t *testing.T) {
	lane.Component(t, "host")
	t.Parallel()
	r := separated(t, "true")
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if !r.server.registered.Isolated {
		t.Errorf("registered is %+v", r.server.registered)
	}
	r.config.TaskUser = UserSame
	r.start()
	if err := r.end(); err == nil || !strings.Contains(err.Error(), "SCRIMP_TASK_USER") {
		t.Errorf("it went on: %v", err)
	}
}

// A program that is not root cannot use a folder of the machine as its store.
func TestSeparateUser_RefusesLocalStore(t *testing.T) {
	lane.Component(t, "host")
	t.Parallel()
	for _, set := range []func(*api.Assignment){
		func(a *api.Assignment) { a.Workdir = "file:///etc" },
		func(a *api.Assignment) { a.Checkpoint.URL = "FILE:///etc" },
		func(a *api.Assignment) { a.OutputsURL = "file:///etc" },
	} {
		r := separated(t, "true")
		set(&r.server.assignment)
		r.start()
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		if e := told(r.server, endedIn); len(e) != 1 || e[0].Reason != api.EndSetup || !strings.Contains(e[0].Error, "users: same") {
			t.Errorf("ended %+v", e)
		}
	}
}

func TestApart(t *testing.T) {
	t.Parallel()
	closed, open := t.TempDir(), filepath.Join(t.TempDir(), "open")
	if err := errors.Join(os.Chmod(closed, 0o700), os.Mkdir(open, 0o777), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ user, dir, want string }{
		{"", "/srv/m", "SCRIMP_TASK_USER"}, {UserSame, "/srv/m", "SCRIMP_TASK_USER"}, {UserAuto, closed + "/m", ""}, {UserAuto, open + "/m", ""},
	} {
		ok, why := (&Config{TaskUser: c.user, MachineDir: c.dir}).separate()
		if ok || why == "" || !strings.Contains(why, c.want) {
			t.Errorf("%+v: %v %q", c, ok, why)
		}
	}
}
