package groups

import (
	"slices"
	"strings"
	"testing"
)

func TestAgain_GivesTheVariablesOfAMemberAndRefusesOtherParts(t *testing.T) {
	t.Parallel()
	got, err := Again(Array, "arr", "arr.5", Indexes{From: 3, Step: 2, Members: 2}, 5)
	want := []string{"SCRIMP_ARRAY_COUNT=2", "SCRIMP_ARRAY_ID=arr", "SCRIMP_ARRAY_INDEX=5", "SCRIMP_ARRAY_MAX=5",
		"SCRIMP_ARRAY_MIN=3", "SCRIMP_ARRAY_STEP=2", "SLURM_ARRAY_JOB_ID=arr", "SLURM_ARRAY_TASK_COUNT=2",
		"SLURM_ARRAY_TASK_ID=5", "SLURM_ARRAY_TASK_MAX=5", "SLURM_ARRAY_TASK_MIN=3", "SLURM_ARRAY_TASK_STEP=2"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Again gives %q, %v, want %q", got, err, want)
	}
	for kind, says := range map[Kind]string{Study: "scrimp tune trials g", Pipeline: "scrimp pipeline run"} {
		if _, err := Again(kind, "g", "g.1", Indexes{}, 1); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Again of a part of a %s says %v, want %q", kind, err, says)
		}
	}
}
