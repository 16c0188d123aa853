package jobimport_test

import (
	"testing"

	"scrimp/internal/job/jobimport"
	"scrimp/internal/job/spec"
)

// If the other system runs the commands on each machine, so does scrimp. A batch script runs only on the first one, so
// its number of machines is reported as lost.
func TestConvert_KeepsNumberOfMachines(t *testing.T) {
	four := spec.Range{Min: 4, Max: 4}
	for name, c := range map[string]struct {
		text  string
		nodes spec.Range
		lost  int
	}{
		"job.sbatch":   {"#!/bin/bash\n#SBATCH --nodes=4\npython3 train.py\n", spec.Range{}, 1},
		"sky.yaml":     {"num_nodes: 4\nrun: python3 train.py\n", four, 0},
		"one.yaml":     {"num_nodes: 1\nrun: python3 train.py\n", spec.Range{}, 0},
		"a.dstack.yml": {"type: task\nnodes: 4\ncommands: [python3 train.py]\n", four, 0},
	} {
		got, err := jobimport.Convert(name, []byte(c.text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Job.Nodes != c.nodes || len(got.Lost) != c.lost {
			t.Errorf("%s: %+v machines, lost %+v, in\n%s", name, got.Job.Nodes, got.Lost, got.YAML)
		}
	}
}
