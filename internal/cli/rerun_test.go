package cli_test

import (
	"strings"
	"testing"
)

func TestRerun_KeepsTheIndexOfAMember(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("job.yaml", "name: arr\ncommand: 'echo I am $SCRIMP_ARRAY_INDEX of $SCRIMP_ARRAY_COUNT, task $SLURM_ARRAY_TASK_ID'\n")
	h.do("run", "-y", "job.yaml", "--array", "3-5:2")
	out := h.do("rerun", "arr.5", "--json")
	id, _, _ := strings.Cut(out[strings.Index(out, `"id":"`)+6:], `"`)
	if log := h.do("logs", id); id == "arr.5" || !strings.Contains(log, "I am 5 of 2, task 5") {
		t.Errorf("%s, which runs arr.5 again, writes %q", id, log)
	}
}

// The audit trail has no refused request where a command that takes a job takes a group.
func TestCancel_OfGroupLeavesNoRefusal(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("job.yaml", "name: arr\ncommand: sleep 600\n")
	h.do("run", "-y", "-d", "job.yaml", "--array", "0-1")
	h.do("cancel", "arr")
	if out := h.do("audit", "--json"); strings.Contains(out, "refused") || !strings.Contains(out, `"object":"arr"`) {
		t.Error(out)
	}
	if out, err := h.try("cancel", "ar"); err == nil || !strings.Contains(out, "job ar is not known") {
		t.Errorf("an unknown name: %v, %s", err, out)
	}
}
