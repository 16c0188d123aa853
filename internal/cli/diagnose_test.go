package cli_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"scrimp/internal/test/await"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/work/diagnose"
	"scrimp/internal/work/diagnose/class"
)

// ran lists the programs of testdata/diagnose/train.py with their causes; empty for none.
var ran = []struct {
	fault string
	class class.Class
}{
	{"set-up", class.SetUp}, {"sleep", class.Blocked}, {"save", class.Checkpointing}, {"healthy", ""},
	{"worker", class.DataLoading}, {"small-reads", class.SmallReads}, {"evaluate", class.Evaluation},
	{"healthy-too", ""},
}

// Real PyTorch programs on processors, each with one planted fault, run through server and agent, four at a time. With
// processors of their own, 90 % of the faults are found and 85 % are the first cause. If the programs compete, which
// resembles other faults, two thirds are. Healthy programs have no cause. The test prints the difference between each
// predicted saving and the program's own clock without judging it, because other programs affect it.
func TestDiagnose_FindsPlantedFaultsOfRealPrograms(t *testing.T) {
	lane.Component(t, "pytorch")
	t.Parallel()
	python := hasTorch(t)
	train, err := os.ReadFile(filepath.Join("testdata", "diagnose", "train.py"))
	must.Do(t, err)
	h := newHome(t)
	h.do("run", "-y", "--market", "calm", "--", "true") // the server must run before several commands need it
	reports, lost := make([]diagnose.Report, len(ran)), make([]float64, len(ran))
	var wait sync.WaitGroup
	room := make(chan struct{}, 4)
	for i, x := range ran {
		wait.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			reports[i], lost[i] = diagnosedRun(h, python, x.fault, string(train))
		})
	}
	wait.Wait()
	found, first, planted := 0, 0, 0
	var off []float64
	for i, x := range ran {
		causes := reports[i].Causes
		t.Logf("%-12s measured %.0f s, lost %.0f %%: %s; %+v %v", x.fault, reports[i].Measured, 100*lost[i], said(causes), reports[i].Phases,
			reports[i].Use)
		if x.class == "" {
			if len(causes) > 0 {
				t.Errorf("%s got the causes %s", x.fault, said(causes))
			}
			continue
		}
		planted++
		at := slices.IndexFunc(causes, func(c diagnose.Cause) bool { return c.Class == x.class })
		if at < 0 {
			continue
		}
		found++
		if at == 0 {
			first++
		}
		off = append(off, math.Abs(causes[at].Share.Value-lost[i])/lost[i])
	}
	leastFound, leastFirst := 90, 85
	if runtime.NumCPU() < 2*cap(room) {
		leastFound, leastFirst = 66, 66
	}
	if slices.Sort(off); 100*found < leastFound*planted || 100*first < leastFirst*planted {
		t.Errorf("of %d faults %d are found, %d as the first cause; savings are off by %.2f", planted, found, first, off)
	}
	t.Logf("of %d faults %d are found, %d as the first cause; savings are off by %.2f", planted, found, first, off)
}

// said formats causes with their predicted savings.
func said(list []diagnose.Cause) (s string) {
	for _, c := range list {
		s += fmt.Sprintf("%s (%s)", c.Class, c.Evidence)
		if c.Share != nil {
			s += fmt.Sprintf(" saves %.0f %%; ", 100*c.Share.Value)
		}
	}
	return s
}

// diagnosedRun runs the program in its own folder until enough is measured, and diagnoses it. It also returns the share
// of the time that the fault took.
func diagnosedRun(h *home, python, fault, train string) (r diagnose.Report, lost float64) {
	dir := filepath.Join(h.dir, fault)
	write := func(name, text string) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			h.t.Error(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			h.t.Error(err)
		}
	}
	scrimp := func(args ...string) []byte {
		cmd := h.command(args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			h.t.Errorf("%s: %v: %v\n%s", fault, args, err, out)
		}
		return out
	}
	ask := func() (r diagnose.Report) {
		out := scrimp("diagnose", fault, "--json")
		if err := json.Unmarshal(out, &r); err != nil {
			h.t.Errorf("diagnose %s: %v\n%s", fault, err, out)
		}
		return r
	}
	// The program looks in the test's folder, because its own is a copy.
	write("train.py", train)
	write("job.yaml", fmt.Sprintf("name: %s\ncommand: exec %s train.py %s %s\nprogress: {pattern: 'step=(?P<step>\\d+)'}\n",
		fault, python, fault, dir))
	scrimp("run", "-y", "--detach", "job.yaml")
	reached := func(what string, ok func(diagnose.Report) bool) {
		await.True(h.t, fault+" "+what, func() bool { return ok(ask()) })
	}
	await.True(h.t, fault+" has run for long", func() bool { // a cheap check, because the programs need the processors
		_, err := os.Stat(filepath.Join(dir, "enough"))
		return err == nil
	})
	if fault == "set-up" {
		reached("was measured while it set up", func(r diagnose.Report) bool { return r.Measured > diagnose.Enough })
		write("begin", "")
	}
	reached("was measured at work", func(r diagnose.Report) bool {
		if fault == "set-up" {
			return r.Phases.SetUp > diagnose.Enough && r.Phases.Work > 0
		}
		return r.Measured > diagnose.Enough && r.Phases.Work >= diagnose.Enough
	})
	write("stop", "")
	scrimp("wait", fault)
	for line := range strings.Lines(string(scrimp("logs", fault))) {
		_, _ = fmt.Sscanf(line, "lost=%f", &lost)
	}
	return ask(), lost
}

// The command explains why it cannot diagnose a job, and refuses other tools' files before it contacts a server.
func TestDiagnose_RefusesUnreadableProfiles(t *testing.T) {
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
		{[]string{"diagnose", "x", "--profile", "report.sqlite"}, "incomplete: write it with nsys export --type sqlite"},
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
	if err := json.Unmarshal([]byte(h.out("diagnose", "short", "--profile", "trace.json", "--json")), &r); err != nil ||
		len(r.Causes) != 1 || r.Causes[0].Class != class.DataLoading || len(r.Operators) != 2 || r.Causes[0].AB != nil ||
		!strings.Contains(r.Causes[0].Change, "num_workers") {
		t.Errorf("%+v, %v", r, err)
	}
	if out := h.do("diagnose", "--team", "vision"); !strings.Contains(out, "1 job of team vision") {
		t.Errorf("of the team it says\n%s", out)
	}
}
