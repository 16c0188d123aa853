package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/work/diagnose"
)

// ran are the programs of testdata/diagnose/train.py with the cause that each has; "": none.
var ran = []struct {
	fault   string
	class   diagnose.Class
	seconds int
}{
	{"leak", diagnose.Leak, 90},
	{"healthy", "", 50}, {"healthy-again", "", 50}, {"healthy-too", "", 50},
	{"worker", diagnose.DataLoading, 50}, {"main", diagnose.DataLoading, 50}, {"small-reads", diagnose.SmallReads, 50},
	{"set-up", diagnose.SetUp, 60}, {"idle", diagnose.IdleAfter, 60}, {"logging", diagnose.Logging, 50},
	{"evaluate", diagnose.Evaluation, 50}, {"threads", diagnose.Oversubscription, 50}, {"save", diagnose.Checkpointing, 50},
	{"sleep", diagnose.Blocked, 50}, {"remote", diagnose.Blocked, 50},
}

// Real programs of PyTorch on processors, each with one planted fault, run through server and agent. In a minute of
// measurements 90 % of the faults are found and 85 % are the first cause, and healthy programs get none.
func TestDiagnose_NamesThePlantedFaultsOfRealPrograms(t *testing.T) {
	lane.Component(t, "pytorch")
	t.Parallel()
	python := hasTorch(t)
	train, err := os.ReadFile(filepath.Join("testdata", "diagnose", "train.py"))
	if err != nil {
		t.Fatal(err)
	}
	h := newHome(t)
	h.do("run", "-y", "--market", "calm", "--", "true") // the server is there before several need it
	reports := make([]diagnose.Report, len(ran))
	var wait sync.WaitGroup
	room := make(chan struct{}, 4)
	for i, x := range ran {
		wait.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			reports[i] = diagnosedRun(h, python, x.fault, string(train), x.seconds)
		})
	}
	wait.Wait()
	found, first, planted := 0, 0, 0
	for i, x := range ran {
		var list []diagnose.Class
		for _, c := range reports[i].Causes {
			list = append(list, c.Class)
		}
		t.Logf("%-14s measured %.0f s: %v", x.fault, reports[i].Measured, reports[i].Causes)
		if x.class == "" {
			if len(list) > 0 {
				t.Errorf("%s is said to have %v", x.fault, reports[i].Causes)
			}
			continue
		}
		if reports[i].Measured < diagnose.Enough { // the machine was too busy to be measured
			continue
		}
		planted++
		if slices.Contains(list, x.class) {
			found++
		}
		if len(list) > 0 && list[0] == x.class {
			first++
		} else {
			t.Logf("%s is said to have %v: %+v", x.fault, list, reports[i])
		}
	}
	t.Logf("of %d faults %d are found, %d as the first cause", planted, found, first)
	if planted < 9 || 100*found < 90*planted || 100*first < 85*planted {
		t.Errorf("of %d faults %d are found, %d as the first cause", planted, found, first)
	}
}

// diagnosedRun runs the program in a folder of its own, and diagnoses it.
func diagnosedRun(h *home, python, fault, train string, seconds int) (r diagnose.Report) {
	dir := filepath.Join(h.dir, fault)
	job := fmt.Sprintf("name: %s\ncommand: exec %s train.py %s %d\nprogress: {pattern: 'step=(?P<step>\\d+)( total=(?P<total>\\d+))?'}\n",
		fault, python, fault, seconds)
	for name, text := range map[string]string{"train.py": train, "job.yaml": job} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			h.t.Error(err)
			return r
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			h.t.Error(err)
			return r
		}
	}
	in := func(cmd *exec.Cmd) *exec.Cmd { cmd.Dir = dir; return cmd }
	if out, err := in(h.command("run", "-y", "job.yaml")).CombinedOutput(); err != nil {
		h.t.Errorf("%s: %v\n%s", fault, err, out)
		return r
	}
	out, err := in(h.command("diagnose", fault, "--json")).Output()
	if err != nil {
		h.t.Errorf("diagnose %s: %v\n%s", fault, err, out)
		return r
	}
	if err := json.Unmarshal(out, &r); err != nil {
		h.t.Errorf("diagnose %s: %v\n%s", fault, err, out)
	}
	return r
}

// What cannot be diagnosed is said with the reason, and files of other tools are refused before a server is asked.
func TestDiagnose_RefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("report.sqlite", "SQLite format 3\x00")
	h.write("trace.json", `[{"ph":"X","name":"enumerate(DataLoader)#_Next","pid":1,"tid":1,"ts":0,"dur":900},`+
		`{"ph":"X","name":"aten::mm","pid":1,"tid":1,"ts":900,"dur":100}]`)
	for _, x := range []struct {
		args []string
		say  string
	}{
		{[]string{"diagnose"}, "name a JOB"}, {[]string{"diagnose", "x", "--team", "y"}, "not both"},
		{[]string{"diagnose", "x", "--profile", "report.sqlite"}, "nsys stats --format csv"},
		{[]string{"diagnose", "x", "--profile", "none"}, "no such file"},
		{[]string{"diagnose", "--team", "y", "--profile", "trace.json"}, "of one job"},
	} {
		if out, err := h.try(x.args...); err == nil || !strings.Contains(out, x.say) {
			t.Errorf("%v: %v\n%s", x.args, err, out)
		}
	}
	h.write("job.yaml", "name: short\nteam: vision\ncommand: 'true'\n")
	h.do("run", "-y", "--market", "calm", "job.yaml")
	if out := h.do("diagnose", "short"); !strings.Contains(out, "measured") {
		t.Errorf("of a short job it says\n%s", out)
	}
	var r diagnose.Report
	if err := json.Unmarshal([]byte(h.do("diagnose", "short", "--profile", "trace.json", "--json")), &r); err != nil ||
		len(r.Causes) != 1 || r.Causes[0].Class != diagnose.DataLoading || len(r.Operators) != 2 || r.Causes[0].AB != nil ||
		!strings.Contains(r.Causes[0].Change, "num_workers") {
		t.Errorf("%+v, %v", r, err)
	}
	if out := h.do("diagnose", "--team", "vision"); !strings.Contains(out, "1 job of team vision") {
		t.Errorf("of the team it says\n%s", out)
	}
}
