package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	api "scrimp/client"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/server"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
	"scrimp/internal/test/testbin"
)

func TestMain(m *testing.M) {
	if signal.Ignored(os.Interrupt) { // shells do that for background commands, and programs would inherit it
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	_ = os.Setenv("SCRIMP_FREE_DISK", "0") // the disk of the test may be nearly full
	_ = os.Unsetenv("GOOGLE_API_KEY")      // with it, scrimp catalog would ask Google
	if os.Getenv("TEST_JUPYTER") != "" {   // the program of a notebook in a test
		os.Exit(fakeJupyter())
	}
	os.Exit(m.Run())
}

// home is a data folder whose server, market and machines end with the test.
type home struct {
	t    testing.TB
	dir  string
	data string
	bin  string   // the program
	env  []string // added to the test's environment
	once sync.Once
	http *http.Client // uses the folder's socket
}

func newHome(t testing.TB) *home {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") // short, because socket paths have a limit
	must.Do(t, err)
	h := &home{t: t, dir: dir, data: filepath.Join(dir, "d"), bin: testbin.Local.Path(t)}
	t.Cleanup(func() {
		defer func() { _ = os.RemoveAll(dir) }()
		if _, err := os.Stat(h.data); err != nil { // no command has used it
			return
		}
		said := ""
		eventually.True(t, "the server stops", func() bool { // on a crowded machine its log may be too slow for one request
			out, err := h.try("server", "stop", "--now")
			said = out
			return err == nil
		}, func() string { return said })
		var left []string
		eventually.True(t, "no process is left", func() bool { // the market ends just after its answer
			left = commandLines(h.data)
			return len(left) == 0
		}, func() string { return strings.Join(left, "\n") })
	})
	return h
}

// commandLines returns the command lines that contain a folder.
func commandLines(folder string) (list []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		line, _ := os.ReadFile(f) // a zombie has none
		if bytes.Contains(line, []byte(folder)) {
			list = append(list, f+": "+string(bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		}
	}
	return list
}

// command returns the program with the given arguments, not started yet. The data folder comes from the environment, so
// that recommended commands are as those of a user with one folder.
func (h *home) command(args ...string) *exec.Cmd {
	cmd := exec.Command(h.bin, args...)
	cmd.Dir = h.dir
	cmd.Env = append(append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(h.dir, "cache"), "SCRIMP_DATA="+h.data), h.env...)
	return cmd
}

func (h *home) try(args ...string) (string, error) {
	out, err := h.command(args...).CombinedOutput()
	return string(out), err
}

func (h *home) do(args ...string) string {
	h.t.Helper()
	out, err := h.try(args...)
	if err != nil {
		h.t.Fatalf("scrimp %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// stops creates the file stop in a job's work folder, which makes the job's program end. It reports whether that was
// possible. A program that ends at once takes the command with it, which then has the status 137.
func (h *home) stops(job string) bool {
	h.t.Helper()
	_, err := h.try("exec", job, "--", "touch", "stop")
	e, ended := errors.AsType[*exec.ExitError](err)
	return err == nil || ended && e.ExitCode() == 137
}

// mustStop is stops, and ends the test if that is not possible.
func (h *home) mustStop(job string) {
	h.t.Helper()
	if !h.stops(job) {
		h.t.Fatalf("cannot make the program of %s end", job)
	}
}

func (h *home) write(name, text string) {
	h.t.Helper()
	must.Do(h.t, os.MkdirAll(filepath.Dir(filepath.Join(h.dir, name)), 0o755))
	must.Do(h.t, os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o644))
}

// until waits for a condition of the live program; the limit only ends a hang.
func (h *home) until(what string, ok func() bool) {
	h.t.Helper()
	eventually.True(h.t, what, ok, func() string {
		log, _ := os.ReadFile(filepath.Join(h.data, "server.log"))
		market, _ := filepath.Glob(filepath.Join(h.data, "*", "market.log"))
		consoles, _ := filepath.Glob(filepath.Join(h.data, "*", "machines", "*", "console.log"))
		for _, path := range append(market, consoles...) {
			text, _ := os.ReadFile(path)
			log = fmt.Appendf(log, "\n%s:\n%s", path, text)
		}
		return h.do("jobs") + h.unfinished() + "\n" + string(log)
	})
}

// unfinished returns the last output of the unfinished jobs' programs.
func (h *home) unfinished() (text string) {
	list, _ := h.try("jobs", "--json")
	for line := range strings.Lines(list) {
		var j api.Job
		if json.Unmarshal([]byte(line), &j) == nil && !j.Closed {
			out, _ := h.try("logs", j.ID, "--node", "all")
			text += "\n" + j.ID + " printed:\n" + out[max(0, len(out)-4000):]
		}
	}
	return text
}

// job returns the server's job. Tests poll it until something has happened, so it calls the API directly, which takes a
// hundredth of the time of a command. It starts a server if none runs, like scrimp status. An unknown job is the zero
// Job, so a test can wait for it.
func (h *home) job(id string) (j api.Job) {
	h.t.Helper()
	j, err := h.server().Job(h.t.Context(), id)
	if refused := (*api.Problem)(nil); err == nil || errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return j
	}
	must.Do(h.t, json.Unmarshal([]byte(h.out("status", id, "--json")), &j))
	return j
}

// server returns a client for the folder's socket.
func (h *home) server() *api.Client {
	h.once.Do(func() {
		h.http = &http.Client{Transport: &http.Transport{
			DisableKeepAlives: true, // another server may answer next
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "unix", filepath.Join(h.data, server.SocketName))
			},
		}}
	})
	token, _ := os.ReadFile(filepath.Join(h.data, server.TokenName))
	return api.New("http://scrimp", strings.TrimSpace(string(token)), h.http)
}

// adds compares the receipt of a live or ended job with itself and with the ledger.
func (h *home) adds(job string) {
	h.t.Helper()
	var r receipt.Receipt
	must.Do(h.t, json.Unmarshal([]byte(h.out("receipt", job, "--json")), &r))
	if err := r.Check(); err != nil || r.Cost.Sign() <= 0 || !r.Ledger.Agrees {
		h.t.Errorf("receipt: %v, cost %v, agrees %v", err, r.Cost, r.Ledger.Agrees)
	}
}

func TestRun_CommandReceiptAddsUp(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	if out := h.do("run", "-y", "--", "sh", "-c", "echo hello from the machine"); !strings.Contains(out, "succeeded") {
		t.Errorf("no success in\n%s", out)
	}
	if out := h.do("logs", "sh"); out != "hello from the machine\n" {
		t.Errorf("log %q", out)
	}
	if out := h.do("logs", "sh", "--node", "all"); out != "[0] hello from the machine\n" {
		t.Errorf("log of all machines %q", out)
	}
	if out := h.do("logs", "sh", "--node", "all", "--json"); !strings.HasPrefix(out, `{"job":"sh","line":"hello from the machine","attempt":1,"at":"`) || strings.Count(out, "\n") != 1 {
		t.Errorf("log of all machines as objects %q", out)
	}
	if out, err := h.try("logs", "sh", "--node", "1"); err == nil || !strings.Contains(out, "one machine") {
		t.Errorf("of a machine that is not there: %q, %v", out, err)
	}
	h.adds("sh")
	h.do("ledger", "verify")
}

// A program may print faster than the server reads: its last lines arrive all the same.
func TestRun_PrintsEndOfLongOutput(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("job.yaml", "name: chatty\ncommand: 'yes a line of a chatty trainer | head -c 40000000; echo; echo the last line; exit 3'\n")
	if out, err := h.try("run", "-y", "job.yaml"); err == nil || !strings.Contains(out, "the last line") {
		t.Errorf("%v\n%.2000s", err, out)
	}
	if out := h.do("logs", "chatty"); len(out) != 40_000_000+len("\nthe last line\n") || !strings.HasSuffix(out, "the last line\n") {
		t.Errorf("%d bytes are kept, the end is %q", len(out), out[max(0, len(out)-40):])
	}
}

func TestRun_FailedJobStatesReason(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("blocked", "a file where a folder should be")
	for _, c := range []struct{ name, file, cause string }{
		{"gone", "name: gone\ncommand: no-such-trainer --fast\n", "failed: exit code 127: the command was not found"},
		{"gone", "name: gone\ncommand: no-such-trainer --fast\n", "no-such-trainer: not found"},
		{"typo", "name: typo\nargs: [pyhton3, train.py]\n", "typo failed: start pyhton3: "},
		{"shut", "name: shut\nargs: [./blocked]\n", "shut failed: start ./blocked: "},
		{"loud", "name: loud\ncommand: 'seq 100; exit 9'\n", "failed: exit code 9\nThe end of its output; scrimp logs loud has all of it:\n  96\n  97\n  98\n  99\n  100\n"},
		{"ck", "name: ck\ncommand: 'true'\ncheckpoint: {dir: " + filepath.Join(h.dir, "blocked", "ck") + "}\n", "failed: make checkpoint folder (checkpoint.dir): mkdir"},
	} {
		h.write(c.name+".yaml", c.file)
		if out, err := h.try("run", "-y", c.name+".yaml"); err == nil || !strings.Contains(out, c.cause) {
			t.Errorf("%s: %v, want %q in\n%s", c.name, err, c.cause, out)
		}
	}
	if out := h.do("status", "gone"); !strings.Contains(out, "127: the command was not found") {
		t.Errorf("the page of the job does not say why:\n%s", out)
	}
	for id, exit := range map[string]int{"gone": 127, "typo": 127, "shut": 126} {
		if j := h.job(id); j.Attempts != 1 || j.Exit != exit {
			t.Errorf("%s ended with %v after %d attempts, want %d after one machine", id, j.Exit, j.Attempts, exit)
		}
	}
}

func TestRun_RefusesJobThatNothingFitsUnlessForced(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("huge.yaml", "name: huge\ncommand: 'true'\nresources: {cpus: 100000+}\n")
	if out, err := h.try("run", "-y", "-d", "huge.yaml"); err == nil || !strings.Contains(out, "not run: nothing on this market fits") {
		t.Errorf("%v, want it refused:\n%s", err, out)
	}
	if out := h.do("jobs"); strings.Contains(out, "huge") {
		t.Errorf("it was submitted all the same:\n%s", out)
	}
	h.do("run", "-y", "-d", "--force", "huge.yaml")
	if j := h.job("huge"); j.State != "queued" || j.Why != "no_offer" {
		t.Errorf("forced, it is %s (%s), want queued (no_offer)", j.State, j.Why)
	}
	h.do("cancel", "huge")
	h.write("thrifty.yaml", "name: thrifty\ncommand: 'true'\nmax_price: $0.001\n") // the price may fall
	if out, err := h.try("run", "-y", "-d", "thrifty.yaml"); err == nil || !strings.Contains(out, "not run: the plan is not feasible") {
		t.Errorf("%v, want it refused:\n%s", err, out)
	}
	h.do("run", "-y", "-d", "--force", "thrifty.yaml")
	h.do("cancel", "thrifty")
}

func TestPlan_NamesFailingLimit(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("late.yaml", "name: late\ncommand: 'true'\nwork: {steps: 100, time: 10h}\ndeadline: in 1h\n") // no budget
	if out, err := h.try("plan", "late.yaml"); err == nil || !strings.Contains(out, "done in time in 0 % of the runs") || strings.Contains(out, "within budget") {
		t.Errorf("%v, want the deadline named and no budget:\n%s", err, out)
	}
}

func TestRun_KilledServerLosesNothing(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("job.yaml", "name: counter\ncommand: 'echo one; while [ ! -e stop ]; do sleep 0.1; done; mkdir out; echo done > out/result'\noutputs: [out]\n")
	h.do("run", "-y", "-d", "job.yaml")
	h.until("the program runs", func() bool { return h.job("counter").Phase == "running" })
	var s api.Server
	if err := json.Unmarshal([]byte(h.out("server", "status", "--json")), &s); err != nil {
		t.Fatal(err)
	}
	machine := h.job("counter").Machine
	h.adds("counter") // while it runs
	must.Do(t, syscall.Kill(s.PID, syscall.SIGKILL))
	h.until("another server answers", func() bool {
		out, err := h.try("status", "counter")
		return err == nil && strings.Contains(out, "running")
	})
	if got := h.job("counter").Machine; got != machine {
		t.Errorf("after the kill the job is on %s, it was on %s", got, machine)
	}
	h.adds("counter")
	h.mustStop("counter")
	h.until("it is done", func() bool { return h.job("counter").Closed })
	h.adds("counter")
	if j := h.job("counter"); j.State != "succeeded" || j.Attempts != 1 {
		t.Errorf("%s after %d attempts, want succeeded after 1", j.State, j.Attempts)
	}
	h.do("get", "counter", "-o", "got")
	if b, err := os.ReadFile(filepath.Join(h.dir, "got", "out", "result")); err != nil || string(b) != "done\n" {
		t.Errorf("outputs: %q, %v", b, err)
	}
	h.do("ledger", "verify")
	if out := h.do("adopt"); !strings.Contains(out, "No machine waits") {
		t.Error(out)
	}
	if out := h.do("release", "--all", "--json"); out != "" {
		t.Error(out)
	}
	if out, err := h.try("release", ""); err == nil || !strings.Contains(out, "INSTANCE is empty") {
		t.Errorf("release of an empty name: %v %s", err, out)
	}
}

func TestRun_BudgetStopsAfterSave(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("market.yaml", "name: fast\nspeed: 3600\noffers:\n  - {zone: a, region: r, machine: m, cpus: 1, memory: 1GiB, capacity: on-demand, price: 1}\n")
	h.write("job.yaml", "name: endless\ncommand: 'trap \"echo saved > checkpoints/state; exit 0\" TERM; while :; do sleep 0.05; done'\ncheckpoint: {dir: checkpoints}\nbudget: $4\ngrace: 1s\n")
	out, err := h.try("run", "-y", "job.yaml", "--market", "market.yaml")
	if err == nil {
		t.Errorf("a job that was stopped exits 0:\n%s", out)
	}
	j := h.job("endless")
	limit := 4 + 1 + 0.5 // budget + burn rate × grace + what the wall clock needs at this speed
	if j.Why != "budget_spent" || j.Spent.Float() > limit || j.Spent.Float() < 2 {
		t.Errorf("stopped for %q after %v, want budget_spent near 4", j.Why, j.Spent)
	}
}

func TestRun_NamesEveryProblemOfJobFileWithFix(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("bad.yaml", "comand: x\nbuget: $4\npriority: urgent\n")
	out, err := h.try("plan", "bad.yaml")
	if err == nil {
		t.Error("a bad job file is planned")
	}
	for _, want := range []string{"did you mean `command`", "did you mean `budget`", "bad.yaml:3", "critical, normal, low"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if n := strconv.Itoa(bytes.Count([]byte(out), []byte("\n"))); n == "0" {
		t.Error("the problems share a line")
	}
}
