package spec_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"scrimp/internal/job/spec"
	"scrimp/internal/test/must"
)

func TestYAML_IsShortAndReadsAsTheSameJob(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, text := range []string{
		"command: \"true\"\n",
		"name: lm\ncommand: |\n  pip install x\n  python3 train.py\nbudget: $25.00\ndeadline: in 6h\nwork: {steps: 6000, time: 2h}\n" +
			"resources: {accelerator: \"A100:1..8\", capacity: [spot, on-demand], memory: 8GiB+, cpus: 2..8}\n" +
			"checkpoint: {dir: ckpt, keep: 5}\nenv: {YES: \"yes\", N: \"01\", time: 1h0m0s}\nnodes: 2..4\nkind: production\nretry: {max: 3, codes: [1, 17]}\n",
		"args: [python3, train.py, --lr, \"1e-4\"]\nmax_price: $2.50\nsecrets: [HF_TOKEN]\ntags: {ticket: \"42\"}\npriority: low\n" +
			"promise: 0.9\nmetric: {name: loss, target: 0}\nany_of: [{name: a, resources: {accelerator: H100}}, lab]\n",
	} {
		j, _, err := spec.Parse(spec.Run, "job.yaml", []byte(text), "x", now)
		must.Do(t, err)
		out, err := j.YAML()
		must.Do(t, err)
		again, _, err := spec.Parse(spec.Run, "job.yaml", out, "x", now)
		if err != nil {
			t.Fatalf("%v in\n%s", err, out)
		}
		if !reflect.DeepEqual(j, again) {
			t.Errorf("%+v becomes %+v by\n%s", j, again, out)
		}
		for _, usual := range []string{"TERM", "minimize", "{}", "null", "workdir"} {
			if strings.Contains(string(out), usual) {
				t.Errorf("it has %s, which is the default:\n%s", usual, out)
			}
		}
	}
}
