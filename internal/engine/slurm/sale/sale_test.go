package sale

import (
	"testing"

	"scrimp/internal/engine/slurm/scheduler"
	"scrimp/internal/engine/slurm/setting"
	"scrimp/internal/lib/size"
)

// A node fits only if it has the features in its partition's constraint.
func TestFits_ChecksThePartitionsConstraint(t *testing.T) {
	n := scheduler.Node{CPUs: 64, Memory: 515000 * size.MiB, Accelerator: "a100", Accelerators: 8,
		Features: []string{"nvlink", "a100"}}
	if !fits(&n, &setting.Partition{Constraint: "nvlink&a100"}) || fits(&n, &setting.Partition{Constraint: "v100"}) ||
		shape(&n) != "a100x8-64c-502g" {
		t.Errorf("%+v, %s", n, shape(&n))
	}
}
