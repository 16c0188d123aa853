package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/test/must"
)

// A counting program is paused, resumed, stopped and resumed again: it continues where it was, as one job with one
// receipt. A copy of its checkpoint starts another job.
func TestPause_JobContinuesWhereItWasPaused(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("market.yaml", "name: one\noffers:\n  - {zone: a, region: r, machine: m, cpus: 1, memory: 1GiB, capacity: spot, price: 1}\n")
	h.write("job.yaml", "name: counter\ncommand: |\n  "+strings.ReplaceAll(counting, "\n", "\n  ")+
		"\ncheckpoint: {dir: checkpoints, interval: 1s}\n"+counted+"\nbudget: $1\ndeadline: in 6h\n")
	h.do("run", "-y", "-d", "job.yaml", "--market", "market.yaml")
	saved := func(least int64) {
		t.Helper()
		h.until("it has saved", func() bool { return h.job("counter").SavedStep > least })
	}
	is := func(state string) (j api.Job) {
		t.Helper()
		h.until("it is "+state, func() bool { j = h.job("counter"); return j.State == state && j.Machine == "" })
		return j
	}
	saved(5)
	h.do("pause", "counter")
	paused := is("paused")
	if out := h.do("queue"); !strings.Contains(out, "paused") {
		t.Errorf("the queue does not show it:\n%s", out)
	}
	h.do("resume", "counter", "-d")
	saved(paused.SavedStep)
	h.do("update", "counter", "--priority", "low", "--deadline", "none", "--budget", "$2")
	if j := h.job("counter"); j.Deadline != nil || j.Budget.String() != "2" {
		t.Errorf("after the update: deadline %v, budget %v", j.Deadline, j.Budget)
	}
	h.do("stop", "counter")
	h.until("it is stopped", func() bool { return h.job("counter").Closed })
	stopped := h.job("counter")
	h.do("resume", "counter", "-d", "--env", "AGAIN=1")
	saved(stopped.SavedStep)
	h.do("cancel", "counter")
	h.until("it is cancelled", func() bool { return h.job("counter").Closed })
	if j := h.job("counter"); j.Attempts != 3 || j.Interruptions != 0 {
		t.Errorf("%d attempts, %d interruptions", j.Attempts, j.Interruptions)
	}
	last, from, kept := 0, "", []int64{paused.SavedStep, stopped.SavedStep}
	for line := range strings.Lines(h.do("logs", "counter")) {
		if m := countedStep.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1])
			most := last + 1
			least := last
			if from != "" && from != m[3] && len(kept) > 0 {
				most++ // the previous one may have ended between saving a step and reporting it
				least, kept = int(kept[0]), kept[1:]
			}
			if n <= least || n > most {
				t.Errorf("after step %d of process %s comes %d of %s: work was lost or made up", last, from, n, m[3])
			}
			last, from = n, m[3]
		}
	}

	var list []api.Checkpoint
	for line := range strings.Lines(h.do("checkpoints", "counter", "--json")) {
		var c api.Checkpoint
		must.Do(t, json.Unmarshal([]byte(line), &c))
		list = append(list, c)
	}
	if len(list) == 0 || !list[0].Newest || list[0].Step < stopped.SavedStep {
		t.Fatalf("its checkpoints are %+v", list)
	}
	h.do("checkpoints", "get", "counter", "-o", filepath.Join(h.dir, "last"))
	text, err := os.ReadFile(filepath.Join(h.dir, "last", "n"))
	if n, _ := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || int64(n) < list[0].Step {
		t.Errorf("the newest checkpoint, of step %d, holds %q: %v", list[0].Step, text, err)
	}
	if text, err := h.try("rerun", "--from", "counter@9", "-d"); err == nil || !strings.Contains(text, "job counter has no checkpoint 9, and so the new job was not submitted") {
		t.Errorf("%v %s", err, text)
	}
	h.do("rerun", "--from", "counter@"+list[0].Name, "-d")
	h.until("the copy goes on", func() bool { return h.job("counter-2").SavedStep > list[0].Step })
	h.do("checkpoints", "rm", "counter@"+list[0].Name)
	if out, err := h.try("checkpoints", "get", "counter@"+list[0].Name); err == nil {
		t.Errorf("what is removed is there:\n%s", out)
	}
	h.do("stop", "counter-2")
	h.until("the copy is stopped", func() bool { return h.job("counter-2").Closed })
	h.do("ledger", "verify")
}
