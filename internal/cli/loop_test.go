package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"scrimp/client"
	"scrimp/internal/test/must"
)

const loopFile = `metric: {name: loss, goal: minimize}
parameters:
  x: {min: 0.0, max: 10.0}
fidelity: {name: epoch, min: 1, max: 3}
searcher: asha-stop
budget: {usd: 5, trials: 5}
usd_per_hour: $3600
`

// killServer kills the server of the folder as kill -9 does.
func (h *home) killServer() {
	h.t.Helper()
	var s client.Server
	must.Do(h.t, json.Unmarshal([]byte(h.out("server", "status", "--json")), &s))
	must.Do(h.t, syscall.Kill(s.PID, syscall.SIGKILL))
}

// asked runs scrimp tune ask, and returns its answer and status.
func (h *home) asked(args ...string) (v client.SearchAnswer, status int) {
	h.t.Helper()
	out, err := h.command(append([]string{"tune", "ask", "--json"}, args...)...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status = exit.ExitCode()
	}
	if err := json.Unmarshal(out, &v); err != nil {
		h.t.Fatalf("status %d: %v in %s", status, err, out)
	}
	return v, status
}

// A loop that is told what to train by a server that is killed again and again does the same as one whose server lives.
func TestAskAndTell_SameSearchWhenTheServerIsKilled(t *testing.T) {
	t.Parallel()
	said := [2]string{}
	for i, name := range []string{"lives", "killed"} {
		h := newHome(t)
		h.write(name+".yaml", loopFile)
		spent, values := 0.0, 0
		for {
			v, status := h.asked(name + ".yaml")
			if status == 3 && v.Do == "end" {
				break
			}
			if name == "killed" && values%4 == 1 {
				h.killServer()
				again, _ := h.asked(name)
				if again.Trial == nil || again.Trial.Number != v.Trial.Number {
					t.Fatalf("after a kill it trains %+v, and not trial %d", again.Trial, v.Trial.Number)
				}
			}
			at := v.Trial.At + 1
			tell := []string{"tune", "tell", name, fmt.Sprint(v.Trial.Number),
				fmt.Sprint(float64(10-v.Trial.Number) / at), "--at", fmt.Sprint(at), "--seconds", "0.25"}
			did := h.do(tell...)
			if values%5 == 3 { // a program that was killed before it heard the answer
				if again := h.do(tell...); again != did {
					t.Errorf("the same value is answered with %s and then %s", did, again)
				}
			}
			said[i] += fmt.Sprintf("%d@%g %s", v.Trial.Number, at, did)
			spent, values = spent+0.25, values+1
		}
		var best client.SearchTrial
		if err := json.Unmarshal([]byte(h.out("tune", "best", name, "--json")), &best); err != nil || best.Best == nil {
			t.Fatalf("%v: %+v", err, best)
		}
		if text := h.do("tune", "best", name); !strings.Contains(text, fmt.Sprintf("$%.2f of $5.00", spent)) {
			t.Errorf("%d values cost $%.2f, and it says\n%s", values, spent, text)
		}
	}
	if said[0] != said[1] {
		t.Errorf("a server that lives does\n%s\nand one that is killed\n%s", said[0], said[1])
	}
}

// Without a value there is no best trial: the command says so and ends with status 3, and JSON has null.
func TestTuneBest_WithoutAValueEndsWithItsOwnStatus(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("mine.yaml", loopFile)
	h.asked("mine.yaml")
	for flag, printed := range map[string]string{"": "", "--json": "null\n"} {
		c := h.command(append([]string{"tune", "best", "mine"}, strings.Fields(flag)...)...)
		var said strings.Builder
		c.Stderr = &said
		out, err := c.Output()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 3 || string(out) != printed ||
			!strings.Contains(said.String(), "mine: no trial has a value yet: scrimp ") {
			t.Errorf("tune best %s: %v, prints %q and says %q", flag, err, out, said.String())
		}
	}
}

func TestAskAndTell_RefuseWhatCannotBe(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("mine.yaml", loopFile)
	h.write("job.yaml", "job: job.yaml\n"+loopFile)
	h.write("hours.yaml", strings.Replace(loopFile, "trials: 5", "gpu_hours: 5", 1))
	h.asked("mine.yaml")
	for _, c := range []struct{ args, says string }{
		{"ask job.yaml", "your own program trains the trials"},
		{"ask hours.yaml", "counts machines"},
		{"ask nothing", "there is no search"},
		{"ask mine --worker 1", "worker is 1"},
		{"tell mine one 2", "TRIAL"},
		{"tell mine 0 much", "VALUE"},
		{"tell mine 0 2 --at -1", "--at"},
		{"tell mine 0 2 --at 1 --seconds -3", "--seconds"},
		{"tell mine 0 2 --at 1 --usd -3", "--usd"},
		{"tell mine 0 2 --at 1", "no cost"},
		{"tell mine 0 2 --seconds 1", "(--at) is missing"},
		{"tell mine 0 2 --at 1.5 --seconds 1", "decides at 1"},
		{"tell mine 0 -3 --at 1 --seconds 1", "write --value -3"},
		{"tell mine 0 -.5e-3 --at 1 --seconds 1", "write --value -.5e-3"},
		{"tell mine 0 2 --value -3 --at 1 --seconds 1", "give one value"},
		{"tell mine 0 --at 1 --seconds 1", "VALUE is missing"},
		{"status mine", "scrimp tune best mine"},
		{"export mine", "scrimp tune best mine"},
		{"trials nothing", "scrimp tune searches"},
		{"status nothing", "scrimp tune searches"},
		{"plan mine.yaml", "scrimp tune ask mine.yaml"},
		{"tell mine 7 2 --at 1 --seconds 1", "no such trial"},
		{"remove nothing", "there is no search"},
		{"best nothing", "scrimp tune searches"},
	} {
		if out, err := h.try(append([]string{"tune"}, strings.Fields(c.args)...)...); err == nil || !strings.Contains(out, c.says) {
			t.Errorf("%s: %v, %s", c.args, err, out)
		}
	}
	if out := h.do("tune", "searches"); !strings.Contains(out, "mine  open, 1 trial, 0 values") {
		t.Errorf("it lists %s", out)
	}
}

func TestTuneTrials_ListsTheBestOfAnOwnLoopFirst(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("mine.yaml", strings.Replace(loopFile, "asha-stop", "random", 1))
	for _, value := range []string{"2", "-3", "nan", "-1"} {
		v, _ := h.asked("mine.yaml")
		for at := range 3 {
			out := h.do("tune", "tell", "mine", fmt.Sprint(v.Trial.Number), "--value", value, "--at", fmt.Sprint(at+1), "--usd", "0.00002")
			if out == "stop\n" {
				break
			}
		}
	}
	var order []int
	for line := range strings.Lines(h.do("tune", "trials", "mine")) {
		var n int
		_, _ = fmt.Sscanf(line, "trial %d", &n)
		order = append(order, n)
	}
	if fmt.Sprint(order) != "[1 3 0 2 4]" { // a value of the fourth brings the fifth
		t.Errorf("trials with the values 2, -3, none, -1 and none are listed as %v", order)
	}
	var first client.SearchTrial
	if err := json.NewDecoder(strings.NewReader(h.do("tune", "trials", "mine", "--json"))).Decode(&first); err != nil ||
		*first.Best != -3 || first.Cost.String() != "0.00006" || first.Seconds != nil {
		t.Errorf("%v: the first trial is %+v", err, first)
	}
}
