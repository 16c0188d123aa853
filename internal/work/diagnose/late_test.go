package diagnose

import (
	"strings"
	"testing"

	"scrimp/internal/wire/telemetry"
	"scrimp/internal/work/diagnose/class"
)

// loads returns a job that has run without a first step for the given number of ten-second measurements, on CPUs alone.
func loads(buckets int) Input {
	n := Node{Head: telemetry.Head{Cores: 4, Memory: 16 << 30}}
	for i := range buckets {
		b := telemetry.Bucket{Start: 1_700_000_000 + int64(i)*telemetry.Least, Width: telemetry.Least, Covered: 10}
		b.Set(telemetry.TaskCPU, 0.3)
		b.Set(telemetry.CPU, 0.1)
		n.Buckets = append(n.Buckets, b)
	}
	return Input{Job: "a", Live: true, Nodes: []Node{n}, Account: Account{HourlyUSD: new(2.0), Reports: true},
		Lines: []Line{{At: 1_700_000_060, Text: "downloading shard 3 of 90"}}}
}

// If a running job has reported no step for five minutes, the diagnosis names set_up as the cause and shows what the
// program does. It names no such cause earlier, for a program that never reports steps, or for a job that is over.
func TestDiagnose_NamesSetUpOfJobWithoutFirstStep(t *testing.T) {
	r := Diagnose(loads(30))
	if len(r.Causes) == 0 || r.Causes[0].Class != class.SetUp || r.Phases != (Phases{SetUp: 300}) ||
		!strings.HasPrefix(r.Causes[0].Evidence, `no step yet after 5m 00s; it printed "downloading shard 3 of 90"; 0.3 cores`) ||
		*r.Causes[0].SavingUSD != 2*0.95 { // of an hour that is all set-up, at most 95 % is avoidable
		t.Errorf("after five minutes: %+v", r)
	}
	if r := Diagnose(loads(29)); len(r.Causes) != 0 || !strings.HasPrefix(r.Note, "The program has not reached its first step yet, 4m 50s") {
		t.Errorf("before that: %+v", r)
	}
	for name, in := range map[string]Input{"before that": loads(29), "it reports no steps": quiet(loads(30)), "it is over": over(loads(30))} {
		for _, c := range Diagnose(in).Causes {
			if c.Class == class.SetUp {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
}

func quiet(in Input) Input { in.Account.Reports = false; return in }

func over(in Input) Input { in.Live = false; return in }

// If a job has had its machines for four minutes and its program has not started, the diagnosis names set_up as the
// cause, although nothing was measured yet. It does not do so earlier, or for a job that is over.
func TestDiagnose_NamesSetUpOfProgramThatHasNotStarted(t *testing.T) {
	in := Input{Job: "a", Live: true, Account: Account{NotBegun: 720}, Lines: []Line{{Text: "pip install torch"}}}
	r := Diagnose(in)
	if len(r.Causes) != 1 || r.Causes[0].Class != class.SetUp || r.Note != "" || r.Causes[0].SavingUSD != nil ||
		!strings.Contains(r.Causes[0].Evidence, `machines for 12m 00s, and its program has not begun`) ||
		!strings.HasSuffix(r.Causes[0].Evidence, `"pip install torch"`) {
		t.Errorf("after twelve minutes: %+v", r)
	}
	if in.Account.NotBegun = lateBegin - 1; len(Diagnose(in).Causes) != 0 {
		t.Error("it is named too early")
	}
	if in = over(in); len(Diagnose(in).Causes) != 0 {
		t.Error("it is named for a job that is over")
	}
}
