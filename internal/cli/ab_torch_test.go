package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/work/ab"
)

// A real training in 32 bit on a processor against the same under bf16 autocast: the change is no worse within 3 %, the
// runs did compute in 16 bit, and the output has the time, the cost, and the memory or its absence.
func TestAB_ComparesPrecisionsOfARealProgram(t *testing.T) {
	lane.Component(t, "pytorch")
	t.Parallel()
	python := hasTorch(t)
	train, err := os.ReadFile(filepath.Join("testdata", "ab", "train.py"))
	must.Do(t, err)
	h := newHome(t)
	h.write("train.py", string(train))
	h.write("job.yaml", "name: precision\ncommand: exec "+python+" train.py\nenv: {PRECISION: fp32}\nbudget: $1\n"+
		"metric: {name: accuracy, goal: maximize}\nprogress: {pattern: 'epoch (?P<epoch>\\d+)/(?P<epochs>\\d+) accuracy (?P<accuracy>\\S+)'}\n")
	v, text := h.compare(0, "job.yaml", "--set", "env.PRECISION=bf16", "--tolerance", "3%", "--budget", "$5")
	t.Logf("%s", text)
	if *v.Verdict != ab.NoWorse && *v.Verdict != ab.Better {
		t.Errorf("bf16 is %s: %s", *v.Verdict, v.Why)
	}
	for i, x := range v.Arms {
		if x.Mean == nil || *x.Mean < 0.5 || *x.Mean > 0.99 || x.Time == nil || *x.Time <= 0 || x.TimeUnit != v.Arms[0].TimeUnit || x.Cost == nil || x.Cost.Sign() <= 0 {
			t.Errorf("%s: %+v", x.Name, x)
		}
		half := strings.Contains(h.do("logs", x.Runs[0].Job), "bfloat16")
		if half != (i == 1) {
			t.Errorf("%s computed in 16 bit: %v", x.Name, half)
		}
	}
}
