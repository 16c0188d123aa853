package ab

import (
	"io"
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/job/spec"
	"scrimp/internal/test/must"
)

// The commands that scrimp diagnose names (diagnose.TestTry_NamesACommandWhereAFieldTriesTheChange) exist, and the
// fields that they set are valid.
func TestAB_AcceptsCommandsOfDiagnose(t *testing.T) {
	for _, line := range []string{
		"scrimp ab train --set env.OMP_NUM_THREADS=16 --set env.MKL_NUM_THREADS=16",
		"scrimp ab train --set resources.cpus=4", "scrimp ab train --set resources.memory=13GiB",
		"scrimp ab train --set resources.accelerator=L4:2", "scrimp ab train --set idle=10m",
	} {
		words := strings.Fields(line)
		a := &app{&command.App{Out: io.Discard, Err: io.Discard, Now: time.Now}}
		cmd := a.cmd()
		if err := cmd.ParseFlags(words[2:]); err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if err := cmd.Args(cmd, cmd.Flags().Args()); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		set, _ := cmd.Flags().GetStringArray("set")
		f := flags{set: set}
		b := baseline{job: "train", text: []byte("command: python train.py\nresources: {accelerator: A100:2, cpus: 8}\n")}
		if _, _, err := b.arms(f, time.Now()); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// A change that no run would see, or that replaces another, is refused in every spelling.
func TestAB_RefusesChangeThatNoRunSees(t *testing.T) {
	for _, c := range []struct {
		file, set, want string
	}{
		{"", "env.SCRIMP_SEED=4", "scrimp sets it for each pair"},
		{"", "env={SCRIMP_SEED: 4}", "scrimp sets it for each pair"},
		{"", "env.B=1|env.SCRIMP_SEED=4", "scrimp sets it for each pair"},
		{"env: {SCRIMP_SEED: 4}\n", "env={}", "scrimp sets it for each pair"},
		{"env: {SCRIMP_SEED: 4}\n", "env.B=1|env.SCRIMP_SEED=4", "scrimp sets it for each pair"},
		{"", "any_of=[{name: a, env: {SCRIMP_SEED: '4'}, resources: {cpus: 2}}, {name: b, env: {A: c}}]", "`any_of` sets SCRIMP_SEED"},
		{"", "env.B=1|env.B=2", "--set env.B is given twice"},
		{"", "env.B=1|env={C: 2}", "--set env.B and --set env set the same field"},
		{"", "env={C: 2}|env.C=1", "--set env and --set env.C set the same field"},
		{"", "env.B=1|env.BC=2", ""},
		{"env: {SCRIMP_SEED: 4}\n", "env.B=1", ""},
	} {
		b := baseline{job: "train", text: []byte("command: python train.py\n" + c.file)}
		_, _, err := b.arms(flags{set: strings.Split(c.set, "|")}, time.Now())
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s with %s: %v, which does not say %q", c.file, c.set, err, c.want)
		}
	}
}

// A run whose last value is NaN has no value, even if an earlier value was a number.
func TestNoNumber_ConsidersLastValue(t *testing.T) {
	one, nan := api.MetricValue{Value: new(0.5)}, api.MetricValue{}
	for _, c := range []struct {
		metric string
		values []api.MetricValue
		want   bool
	}{{"accuracy", []api.MetricValue{one, nan}, true}, {"accuracy", []api.MetricValue{nan, one}, false}, {"accuracy", nil, false},
		{"loss", []api.MetricValue{nan}, false}} {
		if got := noNumber(api.MetricValues{Metric: "accuracy", Values: c.values}, c.metric); got != c.want {
			t.Errorf("%s of %v: %v", c.metric, c.values, got)
		}
	}
}

func TestStageOf_OmitsFieldsOfComparison(t *testing.T) {
	j, _, err := spec.Parse(spec.Run, "job.yaml", []byte("name: a\ncommand: b\nteam: c\ntags: {d: e}\nsecrets: [F]\n"+
		"inherit: [G]\noutputs: [h]\nworkdir: i\ndeadline: in 6h\nbudget: $3\nenv: {J: k}\n"), "a", time.Now())
	must.Do(t, err)
	text, err := stageOf(j).Encode()
	if err != nil || string(text) != `{"command":"b","env":{"J":"k"}}` {
		t.Errorf("a run has %s, %v", text, err)
	}
}
