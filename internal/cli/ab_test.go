package cli_test

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"scrimp/internal/cli/show/comparison"
	"scrimp/internal/work/ab"
)

// seeded prints an accuracy that depends on the seed and on the variant's GAIN. From seed BAD on it is much worse, and
// from seed HANG on it does not end.
const seeded = `name: seeded
command: |
  [ "$SCRIMP_SEED" -lt "$HANG" ] || exec sleep 100000
  awk -v s="$SCRIMP_SEED" -v g="$GAIN" -v bad="$BAD" 'BEGIN { print "step 1/1 accuracy " 0.9 + s * 0.001 + g * (1 + s / 10) - (s >= bad) * 0.5 }'
progress: {pattern: 'step (?P<step>\d+)/(?P<total>\d+) accuracy (?P<accuracy>\S+)'}
env: {GAIN: "0", BAD: "99", HANG: "99"}
budget: $1
`

// compare runs a comparison and verifies its exit status, code.
func (h *home) compare(code int, args ...string) (v comparison.Comparison, text string) {
	h.t.Helper()
	cmd := h.command(append([]string{"ab", "-y", "--json"}, args...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	is := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		is, err = e.ExitCode(), nil
	}
	if err != nil || is != code {
		h.t.Fatalf("ab %v ends with %d, %v, want %d:\n%s\n%s", args, is, err, code, out, &errs)
	}
	if len(out) > 0 {
		if err := json.Unmarshal(out, &v); err != nil {
			h.t.Fatalf("ab %v: %v\n%s", args, err, out)
		}
	}
	return v, string(out) + errs.String()
}

func TestAB_JudgesAChangeByPairs(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("job.yaml", seeded)
	v, _ := h.compare(0, "job.yaml", "--set", "env.GAIN=-0.0001", "--tolerance", "accuracy=0.1%")
	if v.Verdict == nil || *v.Verdict != ab.NoWorse || v.Complete != 6 || v.Difference == nil || *v.Difference > -0.0001 ||
		*v.Difference < -0.0002 || v.Low == nil || v.High == nil || *v.Low > *v.Difference || *v.High < *v.Difference {
		t.Errorf("a change that costs a tenth of the tolerance: %+v", v)
	}
	var spent, saving = v.Spent, v.Spent.Sub(v.Spent)
	for i, x := range v.Arms {
		if len(x.Runs) != 6 || x.Mean == nil || x.Cost == nil || x.Time == nil {
			t.Fatalf("%s: %+v", x.Name, x)
		}
		sum := 0.0
		for _, r := range x.Runs {
			spent, sum = spent.Sub(r.Cost), sum+*r.Value/6
			if i == 0 {
				saving = saving.Add(r.Cost)
			} else {
				saving = saving.Sub(r.Cost)
			}
		}
		if sum-*x.Mean > 1e-12 || *x.Mean-sum > 1e-12 {
			t.Errorf("%s: the mean is %g, and of its runs %g", x.Name, *x.Mean, sum)
		}
	}
	if !spent.IsZero() || v.Saving1000 == nil || *v.Saving1000 != saving.Times(1000).Over(6) {
		t.Errorf("runs do not add up: %s is left of what was spent, and the saving is %v of %s", spent, v.Saving1000, saving)
	}
	text := h.do("ab", "status", "seeded-ab")
	for _, want := range []string{"ACCURACY", "no worse", "baseline", "6 of 6 complete", "in 1,000"} {
		if !strings.Contains(text, want) {
			t.Errorf("status has no %q:\n%s", want, text)
		}
	}
	if again := h.do("ab", "seeded-ab"); again != text {
		t.Errorf("ab NAME shows\n%s\nand ab status NAME\n%s", again, text)
	}
	// An earlier job can be the baseline, and two pairs that differ end the comparison early: the last two pairs would
	// never end by themselves.
	job := v.Arms[0].Runs[0].Job
	v, _ = h.compare(3, job, "--set", "env.GAIN=0.01", "--set", "env.BAD=2", "--set", "env.HANG=5", "--tolerance", "accuracy=0.1%", "--budget", "$5", "--name", "early")
	if *v.Verdict != ab.CannotTell || v.Complete < 2 || v.Complete > 4 || !strings.Contains(v.Why, "whatever the last") {
		t.Errorf("two pairs that differ: %+v", v)
	}
	// A name belongs to one comparison, so each can be shown again.
	before := h.do("groups")
	out, err := h.try("ab", "-y", "job.yaml", "--set", "env.GAIN=1", "--seeds", "1", "--name", "early")
	if err == nil || !strings.Contains(out, "--name early: early has that name already: give another, such as --name early-2") {
		t.Errorf("a name twice: %v, %s", err, out)
	}
	if after := h.do("groups"); after != before {
		t.Errorf("the comparison that was refused was submitted:\n%s", after)
	}
	if v, _ = h.compare(0, "job.yaml", "--set", "env.GAIN=1", "--seeds", "1"); v.Group != "seeded-ab-2" {
		t.Errorf("the second comparison without a name is %s", v.Group)
	}
	if again := h.do("ab", "status", "seeded-ab"); again != text {
		t.Errorf("the first comparison is not shown any more:\n%s", again)
	}
}

func TestAB_NamesUselessRun(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("job.yaml", seeded)
	v, _ := h.compare(3, "job.yaml", "--set", "command=exit 7", "--tolerance", "accuracy=1%")
	if !v.Failed || *v.Verdict != ab.CannotTell || !strings.Contains(v.Why, "change with seed 1 has failed") || v.MorePairs != nil {
		t.Errorf("an arm that fails: %+v", v)
	}
	v, _ = h.compare(3, "job.yaml", "--set", "env.GAIN=1", "--tolerance", "f1=1%")
	if !v.Failed || !strings.Contains(v.Why, "has reported no f1 that is a number: it has reported accuracy") {
		t.Errorf("a metric that nobody reports: %+v", v)
	}
	v, _ = h.compare(3, "job.yaml", "--set", "command=echo step 1/1 accuracy nan", "--tolerance", "accuracy=1%")
	if !v.Failed || !strings.Contains(v.Why, "has reported no accuracy that is a number: none at all, or nan") {
		t.Errorf("a metric that is nan: %+v", v)
	}
	v, _ = h.compare(0, "job.yaml", "--set", "env.GAIN=1", "--seeds", "1")
	if v.Verdict != nil || v.Complete != 1 || v.Arms[0].Mean != nil || v.Saving == nil || v.Arms[0].Memory != nil {
		t.Errorf("a comparison without a tolerance: %+v", v)
	}
}

// scrimp ab refuses an invalid comparison before it spends money, and mostly before it starts a server.
func TestAB_RefusesInvalidComparison(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("job.yaml", seeded)
	h.write("free.yaml", "name: free\ncommand: echo\nmetric: {name: accuracy}\n")
	for args, want := range map[string]string{
		"job.yaml":                                                 "say what changes",
		"none.yaml --set env.A=b":                                  "read the job file",
		"job.yaml --set env.GAIN":                                  "write FIELD=VALUE",
		"job.yaml --set enviroment.A=b":                            "`enviroment`",
		"job.yaml --set env.GAIN=0":                                "changes nothing",
		"job.yaml --set env.SCRIMP_SEED=4":                         "scrimp sets it for each pair",
		"job.yaml --set env.A=b --set env.A=c":                     "--set env.A is given twice",
		"job.yaml --set env.A=b --seeds 0":                         "0 seeds: give 1 to 50",
		"job.yaml --set env.A=b --tolerance accuracy=0":            "say how much worse",
		"job.yaml --set env.A=b --tolerance accuracy=1e300%":       "at most 100%",
		"job.yaml --set deadline=none":                             "`deadline`",
		"job.yaml --set name=other":                                "changes nothing",
		"job.yaml --set resources.cpus=many":                       "`resources.cpus`",
		"job.yaml --set budget.dollars=1":                          "is not a map",
		"job.yaml --set env.A=b --tolerance 1%":                    "is of no metric",
		"job.yaml --set env.A=b --tolerance throughput=1%":         "--goal minimize or --goal maximize",
		"free.yaml --set env.A=b --tolerance 1%":                   "the job file says minimize",
		"job.yaml --set env.A=b --tolerance accuracy=1% --goal up": "write minimize or maximize",
		"job.yaml --set env.A=b --tolerance accuracy=-1%":          "is not a tolerance",
		"job.yaml --set env.A=b --goal minimize":                   "there is no metric",
		"job.yaml --set env.A=b --seeds 51":                        "51 seeds",
	} {
		if out, err := h.try(append([]string{"ab", "-y"}, strings.Fields(args)...)...); err == nil || !strings.Contains(out, want) {
			t.Errorf("ab %s: %v, %s, which does not say %q", args, err, out, want)
		}
	}
	if h.answers() {
		t.Error("a server was started for what cannot be compared")
	}
	for args, want := range map[string]string{
		"job.yaml --set resources.accelerator=H100:9999": "change: no offer of this market ",
		"free.yaml --set env.A=b":                        "need a budget",
		"nobody --set env.A=b":                           "nobody",
		"job.yaml --set env.A=b --budget free":           "is not an amount above zero",
	} {
		if out, err := h.try(append([]string{"ab", "-y"}, strings.Fields(args)...)...); err == nil || !strings.Contains(out, want) {
			t.Errorf("ab %s: %v, %s, which does not say %q", args, err, out, want)
		}
	}
	out := h.do("ab", "job.yaml", "--set", "env.A=b", "--tolerance", "accuracy=0.2%", "--seeds", "3", "--plan")
	for _, want := range []string{"no verdict: 3 pairs never tell with an error of at most 5 %. 6 can: --seeds 6", "nobody knows what a run costs"} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("the plan of three pairs does not say %q:\n%s", want, out)
		}
	}
	if groups := h.do("groups"); !strings.Contains(groups, "No groups") {
		t.Errorf("something was submitted:\n%s", groups)
	}
}
