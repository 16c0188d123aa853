package cli_test

import (
	"strings"
	"testing"
)

// Jobs with the same name from two data folders are two runs at Weights & Biases, where many users share a project. A
// job file may name the run or disable it.
func TestWandbRun_DiffersByDataFolder(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for range 2 {
		h := newHome(t)
		h.write("job.yaml", "name: train\ncommand: 'echo id=${WANDB_RUN_ID-none} ${WANDB_RESUME-none}'\n")
		h.do("run", "-y", "job.yaml")
		out := h.do("logs", "train")
		id, _, ok := strings.Cut(strings.TrimSpace(out), " ")
		if ids[id] = true; !ok || !strings.HasPrefix(id, "id=train-") || !strings.HasSuffix(out, " allow\n") {
			t.Errorf("the program has %q", out)
		}
		for value, want := range map[string]string{"": "id=none none\n", "mine": "id=mine allow\n"} {
			h.do("run", "-y", "job.yaml", "--name", "of"+value, "--env", "WANDB_RUN_ID="+value)
			if out := h.do("logs", "of"+value); out != want {
				t.Errorf("with WANDB_RUN_ID=%s the program has %q, want %q", value, out, want)
			}
		}
	}
	if len(ids) != 2 {
		t.Errorf("two data folders have the run %v", ids)
	}
}
