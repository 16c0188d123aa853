package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/test/must"
)

// serverPID returns the process of the folder's server.
func (h *home) serverPID() int {
	h.t.Helper()
	var v api.Server
	must.Do(h.t, json.Unmarshal([]byte(h.out("server", "status", "--json")), &v))
	return v.PID
}

// status runs the program, and returns both outputs and the exit status.
func (h *home) status(line string) (out, errs string, code int) {
	h.t.Helper()
	cmd := h.command(strings.Fields(line)...)
	var o, e text
	cmd.Stdout, cmd.Stderr = &o, &e
	_ = cmd.Run()
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// Given several jobs, a command handles each, reports each failure, and has an exit status for failures. wait reports
// how all of them ended, and leaves them running at its timeout.
func TestEach_HandlesSeveralJobs(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("endless.yaml", "name: e\noutputs: [out]\ncommand: 'mkdir out; touch out/$SCRIMP_JOB; while :; do sleep 0.2; done'\n")
	h.write("quick.yaml", "name: quick\noutputs: [out]\ncommand: 'mkdir out; touch out/q'\n")
	h.do("run", "-y", "quick.yaml")
	h.do("run", "-y", "quick.yaml")
	for _, name := range []string{"e1", "e2", "e3", "e4"} {
		h.do("run", "-y", "-d", "endless.yaml", "--name", name)
	}
	for _, c := range []struct {
		line, out, errs string
		code            int
	}{
		{"wait quick quick-2", "quick succeeded after", "", 0},
		{"wait quick nobody", "", "job nobody is not known", 1},
		{"wait e1 e2 --timeout 300ms", "", "2 jobs are not over (e1, e2): the jobs go on", 124},
		{"wait e1 --timeout soon", "", "is not a span above zero", 1},
		{"pause quick e1", "", "job quick has succeeded", 1},
		{"update quick --budget 3", "", "job quick has succeeded (scrimp rerun quick runs it again", 1},
		{"stop e2 nobody", "e2", "scrimp: job nobody is not known", 1},
		{"cancel e3 e4", "e4 is cancelled.", "", 0},
		{"wait e2 e3 e4 quick", "e3 cancelled (cancelled by user) after", "", 3},
		{"--json cancel nobody e1", `"id":"e1"`, `"job":"nobody"`, 1},
		{"get -o got quick quick-2 nobody", "got/quick-2 holds the outputs", "job nobody is not known", 1},
		{"resume quick e3", "e3 is queued", "quick", 1},
		{"cancel e3", "cancelled", "", 0},
	} {
		out, errs, code := h.status(c.line)
		if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(errs, c.errs) {
			t.Errorf("scrimp %s ends with %d, want %d, %q and %q:\n%s%s", c.line, code, c.code, c.out, c.errs, out, errs)
		}
	}
	for _, job := range []string{"quick", "quick-2"} {
		if _, err := os.Stat(filepath.Join(h.dir, "got", job, "out", "q")); err != nil {
			t.Error(err)
		}
	}
	if out := h.do("status", "quick"); !strings.Contains(out, "  cost  ") || !strings.Contains(out, "  finished  ") || !strings.Contains(out, "scrimp receipt quick") {
		t.Errorf("of a job that is over it says\n%s", out)
	}
}

// While the server dies and restarts, wait prints nothing but the jobs' ends. Ctrl-C leaves the jobs running.
func TestWait_SurvivesServerRestart(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("job.yaml", endless)
	h.do("run", "-y", "-d", "job.yaml")
	h.until("it works", func() bool { return h.job("endless").Phase == "running" })
	waits, out, errs := h.start("wait", "endless")
	broken, _, said := h.start("wait", "endless")
	h.until("both wait", func() bool {
		return strings.Contains(errs.String()+said.String(), "endless") && said.String() != "" && errs.String() != ""
	})
	must.Do(t, broken.Process.Signal(os.Interrupt))
	if _ = broken.Wait(); broken.ProcessState.ExitCode() != 1 || !strings.Contains(said.String(), "the jobs go on") {
		t.Errorf("interrupted: %v, %s", broken.ProcessState, said)
	}
	p, err := os.FindProcess(h.serverPID())
	if err == nil {
		err = p.Kill()
	}
	must.Do(t, err)
	h.until("its command runs", func() bool { return h.stops("endless") })
	if err := waits.Wait(); err != nil || !strings.Contains(out.String(), "endless succeeded") {
		t.Errorf("it ends with %v: %s%s", err, out, errs)
	}
}

// Flags override the job file, also for a command. Without a terminal, an infeasible plan does not run unless forced.
func TestRun_FlagsOverrideJobFile(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("job.yaml", "name: job\ndeadline: 2020-01-01T00:00:00Z\nbudget: $9\nresources: {capacity: spot}\ncommand: 'true'\nwork: {time: 5s}\n")
	if out, _, code := h.status("run -y -d job.yaml"); code != 1 {
		t.Fatalf("a deadline that has passed: %d %s", code, out)
	}
	cmd := []string{"run", "-y", "-d", "--name", "mine", "--deadline", "in 2h", "--budget", "$1.50", "--on-demand", "--priority", "low", "--retry", "2"}
	h.do(append(cmd, "job.yaml")...)
	cmd[4] = "yours"
	h.do(append(cmd, "--", "sh", "-c", "true")...)
	for _, id := range []string{"mine", "yours"} {
		j := h.job(id)
		if j.Budget == nil || j.Budget.Float() != 1.5 || j.DeadlineMarket == nil || *j.TimeLeft > 7200 || *j.TimeLeft < 7000 {
			t.Errorf("%s has %v by %v", id, j.Budget, j.Deadline)
		}
		h.do("wait", id)
		if out := h.do("receipt", id); !strings.Contains(out, "/on-demand") {
			t.Errorf("%s ran on\n%s", id, out)
		}
	}
	late := "run -y job.yaml --deadline none --budget $0.000001"
	if _, errs, code := h.status(late); code != 2 || !strings.Contains(errs, "not run: the plan is not feasible") || !strings.Contains(errs, "--force") {
		t.Errorf("%s: %d %s", late, code, errs)
	}
	if _, errs, code := h.status("--json " + late); code != 2 || !strings.Contains(errs, `"error":"not run: the plan is not feasible`) {
		t.Errorf("for a program: %d %s", code, errs)
	}
	if _, errs, code := h.status(late + " -d --force"); code != 0 {
		t.Errorf("forced: %d %s", code, errs)
	}
	for line, want := range map[string]string{
		"run -y job.yaml --name Not-This": "`--name` is", "run -y --deadline soon -- true": "`--deadline` is wrong",
		"run -y job.yaml --spot --on-demand": "none of the others can be", "plan job.yaml --deadline none --retry x": "`--retry` is wrong",
	} {
		if _, errs, code := h.status(line); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s", line, code, errs)
		}
	}
	if out, errs, code := h.status("plan job.yaml --deadline none --name other"); code != 0 || !strings.Contains(out, "other on market") {
		t.Errorf("plan: %d %s%s", code, out, errs)
	}
}

// Lists are filtered and sorted.
func TestJobs_FiltersAndSorts(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("huge.yaml", "name: huge\ncommand: 'true'\nresources: {cpus: 100000+}\n")
	h.write("tagged.yaml", "name: tagged\ncommand: 'true'\nresources: {cpus: 100000+}\ntags: {ticket: \"42\"}\n")
	h.do("run", "-y", "-d", "--force", "huge.yaml", "--deadline", "in 90h")
	h.do("run", "-y", "-d", "--force", "huge.yaml", "--deadline", "in 40h", "--name", "alpha")
	h.do("run", "-y", "-d", "--force", "tagged.yaml")
	h.do("cancel", "huge")
	for line, want := range map[string]string{
		"--status cancelled": "huge", "--status queued,cancelled": "huge alpha tagged", "--name h*": "huge", "--tag ticket": "tagged",
		"--tag ticket=42 --mine": "tagged", "--tag ticket=7": "", "--user nobody": "", "--since 1h": "huge alpha tagged", "--since 2999-01-01T00:00:00Z": "",
		"--sort name": "alpha huge tagged", "--sort deadline": "alpha huge tagged", "--sort submitted --limit 1": "tagged", "--sort status": "alpha tagged huge",
	} {
		var ids []string
		for l := range strings.Lines(h.out(append([]string{"jobs", "--json", "--limit", "9"}, strings.Fields(line)...)...)) {
			var j api.Job
			must.Do(t, json.Unmarshal([]byte(l), &j))
			ids = append(ids, j.ID)
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("jobs %s: %q, want %q", line, got, want)
		}
	}
	for _, line := range []string{"jobs --status mad", "jobs --sort x", "jobs --since soon", "jobs --user a --mine"} {
		if out, _, code := h.status(line); code != 1 {
			t.Errorf("%s: %d %s", line, code, out)
		}
	}
}

// A line between two attempts gives the reason for the next one. The last lines and times are the requested ones.
func TestLogs_SeparateAttempts(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("job.yaml", "name: twice\nretry: {max: 1, codes: [9]}\ncommand: 'echo one; echo two; exit 9'\n")
	if _, errs, code := h.status("run -y job.yaml"); code != 3 {
		t.Fatalf("%d %s", code, errs)
	}
	const line = "--- attempt 2 on "
	out := h.do("logs", "twice")
	if strings.Count(out, line) != 1 || !strings.Contains(out, ": the program of attempt 1 failed ---\none\ntwo\n") || !strings.HasPrefix(out, "one\ntwo\n---") {
		t.Errorf("its log is\n%s", out)
	}
	if got := h.do("logs", "--tail", "1", "twice"); got != "two\n" {
		t.Errorf("its last line is %q", got)
	}
	stamped := h.do("logs", "--timestamps", "--since", "1h", "twice")
	if strings.Count(stamped, "Z one\n") != 2 || len(strings.Fields(stamped)[0]) != len("2026-11-01T12:00:00Z") {
		t.Errorf("with times it is\n%s", stamped)
	}
	if got := h.do("logs", "--since", "2999-01-01T00:00:00Z", "-f", "twice"); got != "" {
		t.Errorf("since a time to come it has %q", got)
	}
	if got := h.do("logs", "--json", "--tail", "1", "twice"); !strings.HasPrefix(got, `{"job":"twice","line":"two","attempt":2,"at":"20`) {
		t.Errorf("for a program: %s", got)
	}
}
