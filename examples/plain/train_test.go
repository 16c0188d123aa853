// Package plain tests the shell example with real processes and real kills. It contains no other Go code.
package plain

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"scrimp/internal/test/must"
	"scrimp/internal/test/proc"
)

// train runs the script in its own process group, as the agent does, and sends the group sig at the first line that
// begins with at.
func train(t *testing.T, dir string, steps int, sig syscall.Signal, at string) (lines []string, code int) {
	t.Helper()
	script, err := filepath.Abs("train.sh")
	must.Do(t, err)
	c := exec.Command("sh", script, strconv.Itoa(steps), "0.001")
	c.Dir = dir
	c.Env = append(os.Environ(), "SCRIMP_CHECKPOINT_DIR="+filepath.Join(dir, "saved"))
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	must.Do(t, err)
	p := proc.Start(t, c)
	for s := bufio.NewScanner(out); s.Scan(); {
		lines = append(lines, s.Text())
		if at != "" && strings.HasPrefix(s.Text(), at) {
			at = ""
			if err := syscall.Kill(-p.Process.Pid, sig); err != nil {
				t.Logf("signal: %v", err)
			}
		}
	}
	_ = p.Wait() // only the status counts
	return lines, c.ProcessState.ExitCode()
}

// After a kill, a request to stop and another kill, the script ends with the result of an undisturbed run.
func TestScript_EndsWithTheSameResultAfterKills(t *testing.T) {
	if _, err := os.ReadFile("train.sh"); err != nil { // go test's cache tracks what the test itself reads
		t.Fatal(err)
	}
	for steps := 100; !killedIsTheSame(t, steps); steps *= 2 {
		if steps > 10_000 {
			t.Fatal("the signals come too late")
		}
	}
}

// killedIsTheSame compares a run that is killed three times with an undisturbed one. It returns false if a signal
// came after the end.
func killedIsTheSame(t *testing.T, steps int) bool {
	t.Helper()
	whole, dir := t.TempDir(), t.TempDir()
	if lines, code := train(t, whole, steps, 0, ""); code != 0 {
		t.Fatalf("the whole run ended with %d: %v", code, lines)
	}
	for i, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} {
		want := map[syscall.Signal]int{syscall.SIGKILL: -1, syscall.SIGTERM: 143}[sig]
		at := "step " + strconv.Itoa((i+1)*steps/4) + "/"
		lines, code := train(t, dir, steps, sig, at)
		if code == 0 {
			t.Logf("%v at %s came after the end", sig, at)
			return false
		}
		if code != want || i > 0 && !strings.HasPrefix(lines[0], "resumed from step ") {
			t.Fatalf("%v at %s: exit status %d, want %d: %v", sig, at, code, want, lines)
		}
		if end := lines[len(lines)-1]; sig == syscall.SIGTERM && !strings.HasPrefix(end, "saved step ") {
			t.Fatalf("SIGTERM: the last line is %q", end)
		}
	}
	lines, code := train(t, dir, steps, 0, "")
	if code != 0 || !strings.HasPrefix(lines[0], "resumed from step ") {
		t.Fatalf("the last run ended with %d: %v", code, lines)
	}
	got, err := os.ReadFile(filepath.Join(dir, "out", "result"))
	must.Do(t, err)
	want, err := os.ReadFile(filepath.Join(whole, "out", "result"))
	must.Do(t, err)
	if !bytes.Equal(got, want) || !strings.HasPrefix(string(want), strconv.Itoa(steps)+" 2") {
		t.Fatalf("after three kills %q, want %q", got, want)
	}
	return true
}
