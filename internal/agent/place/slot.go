package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/lib/durable"
	"scrimp/internal/wire/api"
)

// OfOneAttempt lists the variables that differ between attempts. The key of a set-up leaves them
// out, so scrimp never skips a set-up whose command names one of them.
var OfOneAttempt = []string{
	"SCRIMP_JOB", "SCRIMP_ATTEMPT", "SCRIMP_EPOCH", "SCRIMP_RESTORED", "SCRIMP_CHECKPOINT_INTERVAL_S",
	"SCRIMP_AGENT_URL", "SCRIMP_AGENT_TOKEN", "KUBEFLOW_TRAINER_SERVER_URL", "KUBEFLOW_TRAINER_SERVER_TOKEN",
	"MASTER_ADDR", "MASTER_PORT", "SCRIMP_NODE_ADDRESSES", "SLURM_JOB_NODELIST", "WANDB_RUN_ID",
}

// Repeats reports whether the result of this task's set-up can serve another task. It cannot if the
// task has secrets, since the set-up may write them to any file, or if its command reads an input.
func Repeats(a api.Assignment) bool {
	names := func(name string) bool { return strings.Contains(a.Setup, name) }
	return a.Setup != "" && len(a.Secrets) == 0 && !slices.ContainsFunc(OfOneAttempt, names) &&
		!slices.ContainsFunc(a.Data, func(in api.Input) bool { return names(in.Variable) })
}

// placeFile is the name of a file in the agent's own folder of a task. It contains the number of
// the task's slot.
const placeFile = "slot"

// Slots returns the parent of the folders of tasks whose set-up may serve another task. These paths
// stay the same from task to task, because the result of a set-up may contain its own path.
func Slots(machine string) string { return filepath.Join(machine, "slots") }

// TopOf returns the folder of a task that is or was on the machine.
func TopOf(machine, attempt string) string {
	if b, err := os.ReadFile(filepath.Join(Tasks(machine), attempt, placeFile)); err == nil {
		if n, err := strconv.Atoi(string(b)); err == nil {
			return filepath.Join(Slots(machine), strconv.Itoa(n))
		}
	}
	return filepath.Join(machine, "tasks", attempt)
}

// TakeSlot assigns the first free slot to a task permanently. It skips slots with files of another task.
func TakeSlot(machine string, a api.Assignment) error {
	own := filepath.Join(Tasks(machine), a.Attempt)
	file := filepath.Join(own, placeFile)
	if _, err := os.Stat(file); !Repeats(a) || err == nil {
		return nil
	}
	all, err := os.ReadDir(filepath.Dir(own))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	taken := map[string]bool{}
	for _, e := range all {
		taken[TopOf(machine, e.Name())] = true
	}
	for n := 1; ; n++ {
		slot := filepath.Join(Slots(machine), strconv.Itoa(n))
		if _, err := os.Lstat(slot); taken[slot] || err == nil {
			continue
		}
		return errors.Join(os.MkdirAll(own, 0o700), durable.Replace(file, []byte(strconv.Itoa(n))))
	}
}
