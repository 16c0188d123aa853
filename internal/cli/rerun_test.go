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
