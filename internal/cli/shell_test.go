package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/proc"
)

// endless runs until a file named stop exists in its work folder.
const endless = "name: endless\ncommand: 'echo one; while [ ! -e stop ]; do sleep 0.1; done; echo two'\n"

// text is a buffer that a process writes and a test reads.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// start starts the program, which runs until the test signals it.
func (h *home) start(args ...string) (p *proc.Process, out, err *text) {
	h.t.Helper()
	cmd := h.command(args...)
	out, err = &text{}, &text{}
	cmd.Stdout, cmd.Stderr = out, err
	return proc.Start(h.t, cmd), out, err
}

// answers reports whether a server of the folder answers. server status succeeds without a server and starts none.
func (h *home) answers() bool {
	h.t.Helper()
	out, err := h.try("server", "status")
	return err == nil && !strings.Contains(out, "No server")
}

func TestRun_CtrlCDetaches(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("job.yaml", endless)
	run, out, errs := h.start("run", "-y", "job.yaml")
	h.until("it works", func() bool { return strings.Contains(errs.String(), "endless") && h.job("endless").Phase == "running" })
	must.Do(t, run.Process.Signal(os.Interrupt))
	if err := run.Wait(); err != nil {
		t.Errorf("scrimp run that was detached: %v, want status 0", err)
	}
	if want := "Detached: endless goes on. scrimp attach endless comes back to it"; !strings.Contains(errs.String(), want) {
		t.Errorf("no %q in\n%s", want, errs)
	}
	if out.String() != "" {
		t.Errorf("progress stands in the output: %q", out)
	}
	logs, out, errs := h.start("logs", "-f", "--json", "endless")
	h.until("a line is followed", func() bool { return strings.Contains(out.String(), `"one"`) })
	must.Do(t, logs.Process.Signal(syscall.SIGTERM))
	if err := logs.Wait(); err != nil {
		t.Errorf("scrimp logs -f that was ended: %v, %s", err, errs)
	}
	attach, out, errs := h.start("attach", "endless")
	h.until("it is attached", func() bool { return strings.Contains(errs.String(), "endless") })
	h.mustStop("endless")
	if err := attach.Wait(); err != nil || !strings.Contains(out.String(), "Receipt for endless: succeeded") {
		t.Errorf("attach to the end: %v\n%s\n%s", err, out, errs)
	}
	if j := h.job("endless"); j.State != "succeeded" || j.Attempts != 1 {
		t.Errorf("the job %s after %d attempts, want succeeded after 1", j.State, j.Attempts)
	}
	var lines []string
	for line := range strings.Lines(h.do("logs", "--json", "endless")) {
		var l struct{ Job, Line string }
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Job != "endless" {
			t.Fatalf("%v in %s", err, line)
		}
		lines = append(lines, l.Line)
	}
	if !slices.Equal(lines, []string{"one", "two"}) {
		t.Errorf("log lines %q", lines)
	}
}

func TestExitStatuses(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("fails.yaml", "name: fails\ncommand: exit 7\n")
	h.write("big.yaml", "name: big\ncommand: x\nresources: {memory: 900TiB}\n")
	h.write("small.yaml", "name: small\ncommand: x\n")
	for line, want := range map[string]int{
		"run -y fails.yaml": 3, "plan small.yaml": 0, "plan big.yaml": 2, "plan nothing.yaml": 1, "status nobody": 1, "exec fails -- true": 1, "jobs": 0, "doctor": 0, "server status": 0,
	} {
		cmd := h.command(strings.Fields(line)...)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("scrimp %s ends with %d, want %d:\n%s", line, got, want, out)
		}
	}
}

// bash completes a job's ID and files. Without a server, completion starts nothing.
func TestComplete_Bash(t *testing.T) {
	lane.Component(t, "host")
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	h := newHome(t)
	complete := func(words ...string) []string {
		script := `source <("$1" completion bash) || exit 1
shift
compopt() { :; } # outside of a shell's own completion it would fail
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
__start_scrimp
printf '%s\n' "${COMPREPLY[@]}"`
		cmd := exec.Command(bash, append([]string{"--norc", "-c", script, "bash", h.bin, "scrimp"}, words...)...)
		cmd.Dir = h.dir
		cmd.Env = append(os.Environ(), "SCRIMP_DATA="+h.data, "PATH="+filepath.Dir(h.bin)+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("complete %q: %v\n%s", words, err, out)
		}
		return strings.Fields(string(out))
	}
	if got := complete("status", ""); len(got) > 0 {
		t.Errorf("without a server the ids are %q", got)
	}
	if _, err := os.Stat(h.data); err == nil {
		t.Error("completing a word has made a data folder")
	}
	h.write("job.yaml", endless)
	h.write("notes.txt", "")
	h.do("run", "-y", "-d", "job.yaml")
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"stat"}, "status"}, {[]string{"status", ""}, "endless"}, {[]string{"logs", "en"}, "endless"}, {[]string{"logs", "endless", ""}, ""},
		{[]string{"run", ""}, "job.yaml"}, {[]string{"run", "--", "cat", ""}, ""}, {[]string{"run", "job.yaml", "--mar"}, "--market"}, {[]string{"ledger", ""}, "verify"},
	} {
		if got := complete(c.words...); strings.Join(got, " ") != c.want && (len(got) == 0 || got[0] != c.want) {
			t.Errorf("scrimp %s offers %q, want %q", strings.Join(c.words, " "), got, c.want)
		}
	}
	h.do("cancel", "endless")
	h.until("it is over", func() bool { return h.job("endless").Closed })
	if got := complete("stop", ""); len(got) > 0 {
		t.Errorf("a job that is over is offered to stop: %q", got)
	}
	if got := complete("receipt", ""); len(got) == 0 || got[0] != "endless" {
		t.Errorf("a job that is over has a receipt; offered are %q", got)
	}
}
