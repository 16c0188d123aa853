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

	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/work/diagnose"
	"scrimp/internal/work/diagnose/class"
)

// program is one program of testdata/diagnose/train.py with its cause; empty for none. A profiled one runs for a few
// seconds, and leaves a profile.
type program struct {
	fault    string
	class    class.Class
	profiled bool
}

// few lists the programs of the component lane: as many as run at once are measured. more lists those that the nightly
// lane adds, the longest first.
var few = []program{
	{"set-up", class.SetUp, false}, {"sleep", class.Blocked, false}, {"healthy", "", false},
	{"small-reads", class.SmallReads, false}, {"evaluate", class.Evaluation, false}, {"after", class.IdleAfter, false},
	{"decode", class.DataLoading, true}, {"convert", class.DataLoading, true}, {"remote", class.RemoteRead, true},
	{"recompute", class.Recompute, true}, {"tiny-batch", class.SmallBatch, true}, {"healthy-trace", "", true},
	{"healthy-stacks", "", true},
}

var more = []program{
	{"leak", class.Leak, false}, {"save", class.Checkpointing, false}, {"worker", class.DataLoading, false},
	{"healthy-too", "", false}, {"compile", class.SetUp, false}, {"tiny-files", class.SmallReads, false},
	{"log", class.Logging, false}, {"straggler", class.Straggler, false},
}

// Real PyTorch programs on processors, each with one planted fault, run through server and agent, six at a time. With
// processors of their own, 90 % of the faults are found and 85 % are the first cause. If the programs compete, which
// resembles other faults, two thirds are. Healthy programs have no cause. The test prints the difference between each
// predicted saving and what the program itself measures without judging it, because other programs affect it.
func TestDiagnose_FindsPlantedFaultsOfRealPrograms(t *testing.T) {
	lane.Component(t, "pytorch")
	t.Parallel()
	diagnosePrograms(t, few)
}

func TestDiagnose_FindsAllPlantedFaultsOfRealPrograms(t *testing.T) {
	lane.Nightly(t, "eight more programs are measured for minutes")
	t.Parallel()
	diagnosePrograms(t, slices.Concat(more, few))
}

func diagnosePrograms(t *testing.T, ran []program) {
	t.Helper()
	python := hasTorch(t)
	train, err := os.ReadFile(filepath.Join("testdata", "diagnose", "train.py"))
	must.Do(t, err)
	h := newHome(t)
	h.do("run", "-y", "--market", "calm", "--", "true") // the server must run before several commands need it
	reports, lost := make([]diagnose.Report, len(ran)), make([]float64, len(ran))
	var wait sync.WaitGroup
	room := make(chan struct{}, 6)
	for i, x := range ran {
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			p := realProgram{h: h, fault: x.fault, dir: filepath.Join(h.dir, x.fault)}
			if p.start(python, string(train), x.profiled); x.profiled {
				reports[i], lost[i] = p.diagnose("--profile", "profile"), p.lost()
				return
			}
			reports[i], lost[i] = p.measured()
		})
	}
	wait.Wait()
	found, first, planted := 0, 0, 0
	var off []float64
	for i, x := range ran {
		causes := reports[i].Causes
		t.Logf("%-14s measured %.0f s, lost %.0f %%: %s; %+v %v", x.fault, reports[i].Measured, 100*lost[i], said(causes),
			reports[i].Phases, reports[i].Use)
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
		if causes[at].Share != nil {
			off = append(off, math.Abs(causes[at].Share.Value-lost[i])/lost[i])
		}
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

// realProgram is a run of train.py with a fault, in a folder of its own.
type realProgram struct {
	h          *home
	fault, dir string
}

func (p *realProgram) write(name, text string) {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		p.h.t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		p.h.t.Error(err)
	}
}

func (p *realProgram) scrimp(args ...string) []byte {
	cmd := p.h.command(args...)
	cmd.Dir = p.dir
	out, err := cmd.Output()
	if err != nil {
		p.h.t.Errorf("%s: %v: %v\n%s", p.fault, args, err, out)
	}
	return out
}

// start runs the program, to its end if it is profiled. The program looks in the test's folder, because its own is a
// copy.
func (p *realProgram) start(python, train string, whole bool) {
	p.write("train.py", train)
	job := fmt.Sprintf("name: %s\ncommand: exec %s train.py %s %s\nprogress: {pattern: 'step=(?P<step>\\d+)'}\n",
		p.fault, python, p.fault, p.dir)
	if p.fault == "straggler" {
		job += "nodes: 2\n"
	}
	p.write("job.yaml", job)
	if whole {
		p.scrimp("run", "-y", "job.yaml")
		return
	}
	p.scrimp("run", "-y", "--detach", "job.yaml")
}

func (p *realProgram) diagnose(more ...string) (r diagnose.Report) {
	out := p.scrimp(append([]string{"diagnose", p.fault, "--json"}, more...)...)
	if err := json.Unmarshal(out, &r); err != nil {
		p.h.t.Errorf("diagnose %s: %v\n%s", p.fault, err, out)
	}
	return r
}

// lost returns the share of the time that the fault took, as the program prints it at its end.
func (p *realProgram) lost() (share float64) {
	for line := range strings.Lines(string(p.scrimp("logs", p.fault))) {
		_, _ = fmt.Sscanf(line, "lost=%f", &share)
	}
	return share
}

// measured lets the program run until enough is measured, and diagnoses it.
func (p *realProgram) measured() (r diagnose.Report, lost float64) {
	reached := func(what string, ok func(diagnose.Report) bool) {
		eventually.True(p.h.t, p.fault+" "+what, func() bool { return ok(p.diagnose()) })
	}
	flag := "enough"
	if p.fault == "leak" {
		flag = "enough-for-leak"
	}
	eventually.True(p.h.t, p.fault+" has run for long", func() bool { // a cheap check, because the programs need the processors
		_, err := os.Stat(filepath.Join(p.dir, flag))
		return err == nil
	})
	setUp := p.fault == "set-up" || p.fault == "compile"
	if setUp {
		reached("was measured while it set up", func(r diagnose.Report) bool { return r.Measured > diagnose.Enough })
		p.write("begin", "")
	}
	reached("was measured at work", func(r diagnose.Report) bool {
		switch {
		case setUp:
			return r.Phases.SetUp > diagnose.Enough && r.Phases.Work > 0
		case p.fault == "after":
			return r.Phases.Work > 0 && r.Phases.After > 20
		}
		return r.Measured > diagnose.Enough && r.Phases.Work >= diagnose.Enough
	})
	p.write("stop", "")
	p.scrimp("wait", p.fault)
	return p.diagnose(), p.lost()
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
	for team, want := range map[string]string{"vision": "1 job of team vision", "nosuch": "No job of team nosuch was submitted"} {
		if out := h.do("diagnose", "--team", team); !strings.Contains(out, want) {
			t.Errorf("of the team %s it says\n%s", team, out)
		}
	}
}
