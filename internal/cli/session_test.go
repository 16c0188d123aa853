package cli_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	api "scrimp/client"
	"scrimp/internal/test/must"
	"scrimp/internal/test/proc"
)

// newOwnHome is newHome with a home folder of its own: shells must not run what the user's starts.
func newOwnHome(t testing.TB) *home {
	t.Helper()
	h := newHome(t)
	own := filepath.Join(h.dir, "home")
	must.Do(t, os.Mkdir(own, 0o700))
	h.env = append(h.env, "HOME="+own, "PYENV_ROOT="+cmp.Or(os.Getenv("PYENV_ROOT"), filepath.Join(os.Getenv("HOME"), ".pyenv")))
	return h
}

// screen is a terminal with a command in it.
type screen struct {
	h    *home
	own  *os.File
	text text
	cmd  *proc.Process
}

// onScreen starts the program in a terminal of its own.
func (h *home) onScreen(args ...string) *screen {
	h.t.Helper()
	own, theirs, err := pty.Open()
	must.Do(h.t, err)
	h.t.Cleanup(func() { _, _ = own.Close(), theirs.Close() })
	must.Do(h.t, pty.Setsize(own, &pty.Winsize{Rows: 40, Cols: 200}))
	s := &screen{h: h, own: own}
	go func() { _, _ = io.Copy(&s.text, own) }()
	cmd := h.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	s.cmd = proc.Start(h.t, cmd)
	return s
}

// sees waits until the screen has shown a text so often.
func (s *screen) sees(want string, times int) {
	s.h.t.Helper()
	s.h.until(fmt.Sprintf("the screen shows %q %d times", want, times), func() bool {
		return strings.Count(s.text.String(), want) >= times
	})
}

func (s *screen) types(keys string) {
	s.h.t.Helper()
	if _, err := s.own.WriteString(keys); err != nil {
		s.h.t.Fatal(err)
	}
}

// until types keys again until the screen shows a text: a terminal that connects again may lose some.
func (s *screen) until(keys, want string) {
	s.h.t.Helper()
	next := time.Now()
	s.h.until("the screen shows "+want, func() bool {
		if now := time.Now(); !now.Before(next) {
			s.types(keys)
			next = now.Add(time.Second)
		}
		return strings.Contains(s.text.String(), want)
	})
}

// ends waits for the command, which must end with a status and show a text.
func (s *screen) ends(status int, want string) {
	s.h.t.Helper()
	_ = s.cmd.Wait() // the status below tells
	if got := s.cmd.ProcessState.ExitCode(); got != status {
		s.h.t.Errorf("status %d, want %d:\n%s", got, status, s.text.String())
	}
	s.h.until("its last line", func() bool {
		return strings.Contains(strings.Join(strings.Fields(s.text.String()), " "), want)
	})
}

// sessions returns what scrimp sessions --json lists.
func (h *home) sessions(args ...string) (list []listedSession) {
	h.t.Helper()
	for line := range strings.Lines(h.do(append([]string{"sessions", "--json"}, args...)...)) {
		var s listedSession
		must.Do(h.t, json.Unmarshal([]byte(line), &s))
		list = append(list, s)
	}
	return list
}

type listedSession struct {
	api.Job
	EndsAt *time.Time `json:"ends_at"`
}

// A session goes on when its terminal leaves, two terminals share it, and after each of its ends (a killed agent, a
// killed server, exit) it has its files again, hidden and removed ones too.
func TestShell_KeepsFilesOverEveryEnd(t *testing.T) {
	t.Parallel()
	h := newOwnHome(t)
	h.write("p/old", "old\n")
	s := h.onScreen("shell", "-y", "--name", "s", "--workdir", "p", "--budget", "$2", "--idle", "10m")
	s.sees("exit saves its files", 1)
	s.types("echo up$((40+2)); stty size; rm old; echo kept > new; echo hidden > .dot; (sleep 1000; echo never) &\n")
	s.sees("up42", 1)
	s.sees("40 200", 1)
	s.types("\x1d")
	s.ends(0, "scrimp shell s comes back to it, scrimp stop s saves its files and ends it.")
	list := h.sessions()
	if len(list) != 1 || list[0].Session != "shell" || list[0].User == "" && list[0].State != "running" {
		t.Fatalf("sessions: %+v", list)
	}
	j := list[0]
	left := (j.Budget.Float() - j.Spent.Float()) / j.Rate.Float() // hours
	by := time.Now().Add(time.Duration(left * float64(time.Hour)))
	since := time.Now() // in use
	if j.IdleSince != nil {
		since = *j.IdleSince
	}
	if idle := since.Add(10 * time.Minute); idle.Before(by) {
		by = idle
	}
	if j.EndsAt == nil || j.EndsAt.Sub(by).Abs() > time.Minute || *j.IdleLimit != 600 {
		t.Errorf("it ends at %v, want about %v", j.EndsAt, by)
	}

	one, two := h.onScreen("shell", "s"), h.onScreen("shell", "s")
	one.sees("up42", 1) // a new terminal shows the newest output
	two.sees("up42", 1)
	one.types("echo both$((1+1))\n")
	two.sees("both2", 1)
	two.types("\x1d")
	two.ends(0, "Detached")

	h.until("the files are saved", func() bool { return strings.Contains(h.do("checkpoints", "s"), " 12B ") }) // new and .dot
	attempt := h.job("s").Attempts
	h.kills(h.job("s").Machine)
	h.until("another attempt runs", func() bool {
		j := h.job("s")
		return j.Attempts > attempt && j.Phase == "running"
	})
	one.until("echo again; ls -A | tr '\\n' ' '; cat new .dot\n", "again\r\n.dot new kept\r\nhidden")

	must.Do(t, syscall.Kill(h.serverPID(), syscall.SIGKILL))
	one.sees("reconnecting", 1)
	one.until("echo back$((3*3))\n", "back9\r\n")
	one.types("echo last > end; false; exit\n")
	one.ends(0, "s is over: its program has exited.")
	if j := h.job("s"); j.State != "stopped" || j.Why != "session_left" || !j.Closed {
		t.Errorf("after exit the job is %s: %s", j.State, j.Why)
	}
	if out, err := h.try("shell", "-d", "s"); err == nil || !strings.Contains(out, "scrimp shell --resume s") {
		t.Errorf("a session that is over is entered: %v\n%s", err, out)
	}
	s = h.onScreen("shell", "--resume", "s")
	s.sees("exit saves its files", 1)
	s.types("ls -A | tr '\\n' ' '; cat end; exit\n")
	s.sees(".dot end new last", 1)
	s.ends(0, "s is over")
	h.adds("s")
}

// A program that prints without end neither blocks nor grows anything, and the budget of a session ends it with a
// save, after a warning.
func TestShell_BudgetEndsEndlessOutput(t *testing.T) {
	t.Parallel()
	h := newOwnHome(t)
	h.write("market.yaml", "name: fast\nspeed: 360\noffers:\n"+
		"  - {zone: a, region: r, machine: m, cpus: 1, memory: 1GiB, capacity: on-demand, price: 1}\n")
	h.write("p/f", "")
	s := h.onScreen("shell", "-y", "--market", "market.yaml", "--workdir", "p", "--budget", "3")
	s.sees("exit saves its files", 1)
	s.types("echo kept > kept; while :; do echo line; done\n")
	s.sees("the budget of $3.00 is spent in about", 1)
	s.ends(0, "--budget with a larger amount goes on with its files.")
	j := h.job("shell")
	if j.State != "stopped" || !strings.HasPrefix(j.Why, "budget_") || j.Spent.Cmp(*j.Budget) > 0 {
		t.Errorf("%s: %s after %v of %v", j.State, j.Why, j.Spent, j.Budget)
	}
	if out, err := h.try("shell", "-d", "--resume", "shell"); err == nil || !strings.Contains(out, "its budget has stopped it") {
		t.Errorf("it goes on without money: %v %s", err, out)
	}
	h.do("get", "--checkpoint", "shell")
	if b, err := os.ReadFile(filepath.Join(h.dir, "shell-checkpoint", "kept")); string(b) != "kept\n" {
		t.Errorf("its last file: %q, %v", b, err)
	}
}

// A forwarded port carries many requests at once, and a port on which nothing listens answers nothing.
func TestForward_ReachesPortOfMachine(t *testing.T) {
	t.Parallel()
	h := newOwnHome(t)
	big := strings.Repeat("0123456789", 200_000)
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %d %s", r.URL.Path, len(b), big)
	}))
	defer remote.Close()
	at, _ := url.Parse(remote.URL)
	h.write("job.yaml", endless)
	h.do("run", "-y", "-d", "job.yaml")
	if list := h.sessions("--all"); len(list) > 0 {
		t.Errorf("a job that is not a session is listed: %+v", list)
	}
	local := freePort(t)
	run, _, errs := h.start("forward", "endless", at.Port()+":"+local)
	h.until("it is forwarded", func() bool { return strings.Contains(errs.String(), "goes to port "+at.Port()) })
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	failed := make(chan error, 5)
	for n := range cap(failed) {
		go func() {
			path := fmt.Sprintf("/%d", n)
			r, err := client.Post("http://127.0.0.1:"+local+path, "text/plain", strings.NewReader(big))
			if err == nil {
				var b []byte
				b, err = io.ReadAll(r.Body)
				_ = r.Body.Close()
				if want := fmt.Sprintf("%s %d %s", path, len(big), big); err == nil && string(b) != want {
					err = fmt.Errorf("%d bytes, want %d", len(b), len(want))
				}
			}
			failed <- err
		}()
	}
	for range cap(failed) {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	must.Do(t, run.Process.Signal(os.Interrupt))
	if err := run.Wait(); err != nil || !strings.Contains(errs.String(), "endless goes on") {
		t.Errorf("Ctrl-C: %v, %s", err, errs)
	}
	for args, want := range map[string]string{"endless 0": "is not PORT", "endless 80:99999": "is not PORT", "nobody 80": "is not known",
		"endless 80:" + at.Port(): "give another one"} {
		if out, err := h.try(append([]string{"forward"}, strings.Fields(args)...)...); err == nil || !strings.Contains(out, want) {
			t.Errorf("forward %s: %v %s", args, err, out)
		}
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	at, err := url.Parse(s.URL)
	must.Do(t, err)
	return at.Port()
}

// fakeJupyter serves what scrimp asks of Jupyter: its token, its port and its kernels.
func fakeJupyter() int {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" && r.URL.Query().Get("token") == os.Getenv("JUPYTER_TOKEN") {
			_, _ = io.WriteString(w, "the notebook")
			return
		}
		_, _ = io.WriteString(w, "[]")
	})
	_ = http.ListenAndServe("127.0.0.1:"+os.Getenv("SCRIMP_NOTEBOOK_PORT"), handler)
	return 1
}

// scrimp notebook starts Jupyter on the machine, and its link opens it through the server. Without Jupyter nothing is
// rented.
func TestNotebook_LinksToJupyter(t *testing.T) {
	t.Parallel()
	h := newOwnHome(t)
	if !slices.ContainsFunc([]string{"jupyter-lab", "jupyter-notebook", "jupyter-server"}, func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	}) {
		if out, err := h.try("notebook", "-y", "-d", "--workdir", "none"); err == nil || !strings.Contains(out, "pip install jupyterlab") {
			t.Errorf("without Jupyter: %v %s", err, out)
		}
		if list := h.sessions("--all"); len(list) > 0 {
			t.Errorf("something is rented: %+v", list)
		}
	}
	self, err := os.Executable()
	must.Do(t, err)
	h.write("bin/jupyter-lab", "#!/bin/sh\nTEST_JUPYTER=1 exec "+self+"\n")
	if err := os.Chmod(filepath.Join(h.dir, "bin/jupyter-lab"), 0o755); err != nil {
		t.Fatal(err)
	}
	h.env = append(h.env, "PATH="+filepath.Join(h.dir, "bin")+":"+os.Getenv("PATH"))
	run, out, errs := h.start("notebook", "-y", "--workdir", "none", "--json", "--port", freePort(t))
	h.until("the link is there", func() bool { return strings.Contains(out.String(), "\n") })
	var link struct{ Job, URL string }
	if err := json.Unmarshal([]byte(out.String()), &link); err != nil || link.Job != "notebook" {
		t.Fatalf("%v in %s", err, out)
	}
	r, err := http.Get(link.URL)
	must.Do(t, err)
	b, _ := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if string(b) != "the notebook" {
		t.Errorf("the link opens %q", b)
	}
	if err := run.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := run.Wait(); err != nil || !strings.Contains(strings.Join(strings.Fields(errs.String()), " "), "scrimp notebook notebook comes back") {
		t.Errorf("left: %v %s", err, errs)
	}
	h.do("stop", "notebook")
	h.until("it is over", func() bool { return h.job("notebook").Closed })
	h.adds("notebook")
}

// What a new session cannot be is refused before a server is asked, and each error names the flag.
func TestShell_RefusesWrongFlags(t *testing.T) {
	t.Parallel()
	h := newOwnHome(t)
	for args, want := range map[string]string{
		"shell":                            "needs one, or --detach",
		"shell --json":                     "a terminal has no --json",
		"shell -d --budget much":           "--budget",
		"shell -d --idle 0s":               "--idle",
		"shell -d --gpu T4:0":              "--gpu",
		"shell -d --name No":               "--name",
		"shell -d --workdir /":             "all of /",
		"shell -d --workdir nowhere":       "is not a folder",
		"shell -d a --resume b":            "names the session already",
		"notebook -d --on x/y/z":           "any_of[0].engine",
		"notebook -y --port 70000 --on no": "is not a port",
	} {
		if out, err := h.try(strings.Fields(args)...); err == nil || !strings.Contains(out, want) ||
			strings.Contains(out, "--force") { // shell has no such flag
			t.Errorf("scrimp %s: %v %s", args, err, out)
		}
	}
	h.write("job.yaml", endless)
	h.do("run", "-y", "-d", "job.yaml")
	h.until("the server knows the offers", func() bool { return h.job("endless").State == "running" })
	for args, want := range map[string]string{"shell -y -d --cpus 400 --workdir none": "as many processors",
		"shell -y -d --memory 900TiB --workdir none": "as much memory", "shell -d endless": "scrimp exec -it endless", "notebook -d endless": "is not a notebook",
		"shell -d --gpu T4 endless": "--gpu is for a new session", "shell -d nobody": "is not known"} {
		if out, err := h.try(strings.Fields(args)...); err == nil || !strings.Contains(out, want) {
			t.Errorf("scrimp %s: %v %s", args, err, out)
		}
	}
	h.do("cancel", "endless")
}

// A session that nobody uses and that changes no file ends with its start folder as its checkpoint, and none of its time
// is lost. --resume may give it another idle limit. One that its budget cannot start says why.
func TestShell_UnusedSessionKeepsStartFolder(t *testing.T) {
	t.Parallel()
	h := newOwnHome(t)
	h.write("p/f", "start\n")
	if out := h.do("shell", "-y", "-d", "--name", "s", "--workdir", "p", "--idle", "1s"); strings.Contains(out, "s is running") {
		t.Errorf("it runs before it has a machine: %s", out)
	}
	h.until("it is over", func() bool { return h.job("s").Closed })
	h.do("get", "--checkpoint", "s")
	if b, err := os.ReadFile(filepath.Join(h.dir, "s-checkpoint", "f")); string(b) != "start\n" {
		t.Errorf("its start folder: %q, %v", b, err)
	}
	if out := h.do("receipt", "s"); !strings.Contains(out, "no paid work was lost, 1 checkpoint") {
		t.Errorf("its receipt: %s", out)
	}
	if out := h.do("status", "s"); !strings.Contains(strings.Join(strings.Fields(out), " "), "scrimp get --checkpoint s copies its files") {
		t.Errorf("its status: %s", out)
	}
	for _, wrong := range []string{"0s", "much", "-1s", "200000h"} {
		if out, err := h.try("shell", "-d", "--resume", "s", "--idle="+wrong); err == nil || !strings.Contains(out, "idle") {
			t.Errorf("--resume --idle %s: %v %s", wrong, err, out)
		}
	}
	h.do("shell", "-d", "--resume", "s", "--idle", "5m")
	list := h.sessions()
	if len(list) != 1 || list[0].IdleLimit == nil || *list[0].IdleLimit != 300 {
		t.Errorf("after --resume --idle 5m: %+v", list)
	}
	h.do("cancel", "s")
	if out, err := h.try("shell", "-y", "-d", "--name", "tiny", "--workdir", "none", "--budget", "$0.0000001"); err == nil ||
		!strings.Contains(strings.Join(strings.Fields(out), " "), "tiny is stopped: budget spent: a machine that starts") {
		t.Errorf("a budget that starts nothing: %v %s", err, out)
	}
}
