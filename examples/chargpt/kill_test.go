package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/proc"
)

// asProgram makes the test binary behave as the program if the variable is set, so that tests can kill real
// processes.
const asProgram = "CHARGPT_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type killed struct {
	lines []string // what the process printed
	code  int      // exit status; -1 if a signal ended it
}

// start runs the program in dir and sends it sig once it has printed after lines of progress; with after 0 it runs to
// its end.
func start(t *testing.T, dir string, sig syscall.Signal, after int, args ...string) killed {
	t.Helper()
	c := exec.Command(os.Args[0], append([]string{"--corpus", filepath.Join(dir, "text"), "--checkpoint", filepath.Join(dir, "saved"),
		"--out", filepath.Join(dir, "out", "weights.bin"), "--log-every", "1", "--save-every", "0s"}, args...)...)
	c.Env = append(os.Environ(), asProgram+"=1")
	var errors bytes.Buffer
	c.Stderr = &errors
	out, err := c.StdoutPipe()
	must.Do(t, err)
	p := proc.Start(t, c)
	var k killed
	progress := 0
	for s := bufio.NewScanner(out); s.Scan(); {
		k.lines = append(k.lines, s.Text())
		if strings.HasPrefix(s.Text(), "step ") {
			if progress++; progress == after {
				if err := p.Signal(sig); err != nil {
					t.Logf("signal: %v", err)
				}
			}
		}
	}
	_ = p.Wait() // only the status counts
	k.code = c.ProcessState.ExitCode()
	if errors.Len() > 0 {
		t.Errorf("stderr: %s", errors.String())
	}
	return k
}

// workplace creates a folder with a small text.
func workplace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(dir, "text"), 0o755))
	var text strings.Builder
	for i := range 800 {
		fmt.Fprintf(&text, "func f%d(x int) error {\n\treturn nil\n}\n", i*i)
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "text", "a.txt"), []byte(text.String()), 0o600))
	return dir
}

func weights(t *testing.T, dir string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "out", "weights.bin"))
	must.Do(t, err)
	return b
}

func number(t *testing.T, line, pattern string) int64 {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("%q does not match %q", line, pattern)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	must.Do(t, err)
	return n
}

// However often and in whichever way it is killed, a run ends with the same bytes.
func TestRun_EndsWithTheSameWeightsAfterKills(t *testing.T) {
	t.Parallel()
	for steps := lane.Pick(20, 40); killOften(t, steps) < lane.Pick(3, 6); steps *= 2 { // each signal once, or twice
		if steps > 1000 {
			t.Fatal("the signals come too late")
		}
	}
}

// killOften compares a run that is killed again and again with one that is not, and returns how often a signal came
// before the end.
func killOften(t *testing.T, steps int) (kills int) {
	t.Helper()
	n := strconv.Itoa(steps)
	whole := workplace(t)
	if k := start(t, whole, 0, 0, "--steps", n); k.code != 0 {
		t.Fatalf("the whole run ended with %d: %v", k.code, k.lines)
	}
	r := splitmix(2)
	dir := workplace(t)
	signals := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT}
	resumed, last := int64(0), killed{}
	for run := 0; ; run++ {
		if run > 2*steps {
			t.Fatalf("no end after %d runs", run)
		}
		sig := signals[run%len(signals)]
		last = start(t, dir, sig, 1+r.below(7), "--steps", n)
		if resumed > 0 || strings.HasPrefix(last.lines[1], "resumed") {
			from := number(t, last.lines[1], `^resumed from step (\d+)$`)
			if from < resumed {
				t.Fatalf("run %d resumed from step %d, an earlier one had saved %d", run, from, resumed)
			}
			resumed = from
		}
		for _, line := range last.lines { // the next run starts from what was reported as saved, or later
			if strings.HasPrefix(line, "saved") {
				resumed = number(t, line, `^saved step (\d+)$`)
			}
		}
		if last.code == 0 {
			break
		}
		kills++
		end := last.lines[len(last.lines)-1]
		switch sig {
		case syscall.SIGTERM, syscall.SIGINT:
			if last.code != 128+int(sig) {
				t.Fatalf("exit status %d after %v, want %d: %v", last.code, sig, 128+int(sig), last.lines)
			}
			saved := number(t, end, `^saved step (\d+)$`)
			if names, err := checkpoints(filepath.Join(dir, "saved")); err != nil || len(names) == 0 ||
				!strings.HasSuffix(names[len(names)-1], fmt.Sprintf("step-%012d.ckpt", saved)) {
				t.Fatalf("it said %q and left %v, %v", end, names, err)
			}
		default:
			if last.code != -1 {
				t.Fatalf("exit status %d after %v: %v", last.code, sig, last.lines)
			}
		}
	}
	if !bytes.Equal(weights(t, dir), weights(t, whole)) {
		t.Fatalf("after %d kills the weights differ", kills)
	}
	t.Logf("%d kills, %d bytes of weights are equal", kills, len(weights(t, whole)))

	again := start(t, dir, 0, 0, "--steps", n)
	if again.code != 0 || again.lines[1] != "resumed from step "+n || again.lines[len(again.lines)-1] != last.lines[len(last.lines)-1] {
		t.Fatalf("run again after its end: %d, %v", again.code, again.lines)
	}
	return kills
}

// The learning rate does not depend on the number of requested steps.
func TestRun_CanBeExtended(t *testing.T) {
	t.Parallel()
	one, two := workplace(t), workplace(t)
	for _, k := range []killed{start(t, one, 0, 0, "--steps", "8"), start(t, two, 0, 0, "--steps", "5"), start(t, two, 0, 0, "--steps", "8")} {
		if k.code != 0 {
			t.Fatalf("ended with %d: %v", k.code, k.lines)
		}
	}
	if !bytes.Equal(weights(t, one), weights(t, two)) {
		t.Fatal("5 steps and then 3 more differ from 8")
	}
}

// The progress lines match job.yaml's patterns, and the loss falls.
func TestRun_PrintsAFallingLossForTheJobFile(t *testing.T) {
	t.Parallel()
	job, err := os.ReadFile("job.yaml")
	must.Do(t, err)
	find := func(field string) *regexp.Regexp {
		m := regexp.MustCompile(`(?m)^ +` + field + `: '(.*)'$`).FindSubmatch(job)
		if m == nil {
			t.Fatalf("job.yaml has no %s in single quotes", field)
		}
		return regexp.MustCompile(string(m[1]))
	}
	pattern, saved := find("pattern"), find("saved")
	k := start(t, workplace(t), 0, 0, "--steps", "40")
	var losses []float64
	saves := 0
	for _, line := range k.lines {
		if m := pattern.FindStringSubmatch(line); m != nil {
			loss, err := strconv.ParseFloat(m[pattern.SubexpIndex("loss")], 64)
			must.Do(t, err)
			losses = append(losses, loss)
		}
		if saved.MatchString(line) {
			saves++
		}
	}
	if k.code != 0 || len(losses) != 40 || saves != 40 {
		t.Fatalf("status %d, %d progress lines, %d saves; want 0, 40, 40", k.code, len(losses), saves)
	}
	if first, end := losses[0], losses[len(losses)-1]; !(first > 4.3 && first < 5 && end < first-0.7) {
		t.Fatalf("the loss went from %g to %g", first, end)
	}
}
