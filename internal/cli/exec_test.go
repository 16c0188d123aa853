package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"scrimp/internal/test/must"
)

// A session on a job's machine has this terminal's size, Ctrl-C interrupts the remote command and not the session, and
// the exit status is passed on. With a pipe it reads until the pipe ends. If the server dies, the session ends and
// restores the terminal.
func TestExec_HasTerminalOnJobsMachine(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("job.yaml", "name: pair\nnodes: 2\ncommand: 'echo up; while :; do sleep 0.2; done'\n")
	h.do("run", "-y", "-d", "job.yaml")
	h.until("both machines work", func() bool { return strings.Count(h.do("logs", "--node", "all", "pair"), "up") == 2 })
	own, theirs, err := pty.Open()
	must.Do(t, err)
	defer func() { _, _ = own.Close(), theirs.Close() }()
	must.Do(t, pty.Setsize(own, &pty.Winsize{Rows: 33, Cols: 101}))
	screen := &text{}
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := own.Read(b)
			if _, _ = screen.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	session := func(args ...string) *exec.Cmd {
		cmd := h.command(append([]string{"exec"}, args...)...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		must.Do(t, cmd.Start())
		return cmd
	}
	sees := func(want string) {
		t.Helper()
		h.until("the screen has "+want, func() bool { return strings.Contains(screen.String(), want) })
	}
	types := func(keys string) {
		if _, err := own.WriteString(keys); err != nil {
			t.Fatal(err)
		}
	}
	shell := session("-it", "--node", "1", "pair", "--", "sh", "-c", "echo here; exec sh")
	sees("here")
	types("stty size; echo node $SCRIMP_NODE\n")
	sees("33 101\r\nnode 1")
	types("sh -c 'echo be\"\"gun; exec sleep 1000'\n") // the process that a Ctrl-C must end says that it has begun
	sees("begun")
	types("\x03")
	types("echo ended with $?\n")
	sees("ended with 130")
	must.Do(t, pty.Setsize(own, &pty.Winsize{Rows: 20, Cols: 66}))
	h.until("it has the new size", func() bool { types("stty size\n"); return strings.Contains(screen.String(), "20 66") })
	types("exit 7\n")
	if _ = shell.Wait(); shell.ProcessState.ExitCode() != 7 {
		t.Errorf("it ends with %v", shell.ProcessState)
	}

	pipe := h.command("exec", "-i", "pair", "--", "sh", "-c", "sleep 1; wc -c; exit 5") // more than the buffers hold
	pipe.Stdin = bytes.NewReader(make([]byte, 3_000_000))
	if out, _ := pipe.CombinedOutput(); strings.TrimSpace(string(out)) != "3000000" || pipe.ProcessState.ExitCode() != 5 {
		t.Errorf("through a pipe: %q, %v", out, pipe.ProcessState)
	}
	if out, err := h.try("exec", "pair", "--", "head", "-c", "2000000", "/dev/zero"); err == nil || !strings.Contains(out, "cut at 1048576 bytes") {
		t.Errorf("more than is kept: %v, %d bytes", err, len(out))
	}
	for want, args := range map[string][]string{"no node \"2\"": {"--node", "2", "pair", "--", "true"}, "needs a terminal": {"-it", "pair", "--", "sh"},
		"has no --json": {"-i", "--json", "pair", "--", "sh"}} {
		if out, err := h.try(append([]string{"exec"}, args...)...); err == nil || !strings.Contains(out, want) {
			t.Errorf("exec %v: %v %s", args, err, out)
		}
	}

	before := modes(t, theirs)
	shell = session("-it", "pair", "--", "sh", "-c", "echo re''ady; sleep 1000")
	sees("ready")
	if modes(t, theirs) == before {
		t.Error("the terminal is not raw while the session lasts")
	}
	pid := h.serverPID()
	must.Do(t, syscall.Kill(pid, syscall.SIGKILL))
	if _ = shell.Wait(); shell.ProcessState.ExitCode() != 1 || modes(t, theirs) != before {
		t.Errorf("without a server it ends with %v", shell.ProcessState)
	}
	sees("the session was closed")
}

// modes returns the settings of a terminal.
func modes(t *testing.T, f *os.File) string {
	t.Helper()
	cmd := exec.Command("stty", "-g")
	cmd.Stdin = f
	out, err := cmd.Output()
	must.Do(t, err)
	return string(out)
}
