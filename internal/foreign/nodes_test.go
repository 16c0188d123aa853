package foreign_test

import (
	"strings"
	"testing"

	"scrimp/internal/foreign"
)

// A job of several machines is not run yet: what would bring it is named as lost, and not written
// into a job file that would be refused.
func TestSeveralMachinesAreNamedAsLost(t *testing.T) {
	for name, text := range map[string]string{
		"job.sbatch":   "#!/bin/bash\n#SBATCH --nodes=4\npython3 train.py\n",
		"sky.yaml":     "num_nodes: 4\nrun: python3 train.py\n",
		"a.dstack.yml": "type: task\nnodes: 4\ncommands: [python3 train.py]\n",
	} {
		got, err := foreign.Convert(name, []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Job.Nodes > 1 || strings.Contains(string(got.YAML), "nodes:") {
			t.Errorf("%s: the job file is\n%s", name, got.YAML)
		}
		if len(got.Lost) != 1 || !strings.Contains(got.Lost[0].Why, "one machine") {
			t.Errorf("%s: lost %+v", name, got.Lost)
		}
	}
}
