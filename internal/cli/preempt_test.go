package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

// One machine of the user's own is for sale, and a low job has it. A critical job arrives: the low one saves, leaves and
// waits, the critical one runs, and the low one goes on from its checkpoint. Status, explain and the receipt say who
// preempted whom, and what that cost.
func TestPreempt_LowJobLeavesOnlyMachineToCriticalJob(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("market.yaml", `name: own
offers:
  - {zone: a, region: r, machine: m, cpus: 4, memory: 4GiB, capacity: reserved, reserved: {count: 1, from: 0h, until: 240h, paid: $864.00}}
`)
	gate := filepath.Join(t.TempDir(), "go")
	// The program handles the signal, so that what it leaves is a whole save even if it was about to announce it.
	program := strings.ReplaceAll("trap 'exit 143' TERM\n"+counting, "\n", "\n  ")
	h.write("low.yaml", "name: low\ncommand: |\n  "+program+
		"\ncheckpoint: {dir: checkpoints, interval: 1s}\npriority: low\n"+counted+"\n")
	h.write("urgent.yaml", "name: urgent\ncommand: 'until [ -e "+gate+" ]; do sleep 0.05; done'\npriority: critical\n")
	h.serve("--preempt-after", "1s", "--market", "market.yaml")
	h.do("run", "-y", "-d", "low.yaml")
	h.until("the low job has saved", func() bool { return h.job("low").SavedStep > 5 })
	h.do("run", "-y", "-d", "urgent.yaml")
	h.until("the critical job runs", func() bool { return h.job("urgent").Phase == "running" })

	low := h.job("low")
	if low.State != "queued" || low.Preempted == nil || low.Preempted.By != "urgent" || low.Preempted.Times != 1 {
		t.Errorf("the low job is %s, preempted %+v", low.State, low.Preempted)
	}
	if j := h.job("urgent"); !slices.Equal(j.Preempts, []string{"low"}) {
		t.Errorf("the critical job preempted %v", j.Preempts)
	}
	// a second critical job preempts nobody: the first is critical too, and the low one holds no machine
	h.write("second.yaml", "name: second\ncommand: 'true'\npriority: critical\n")
	h.do("run", "-y", "-d", "second.yaml")
	must.Do(t, os.WriteFile(gate, nil, 0o600))
	h.until("the critical jobs are done", func() bool {
		return h.job("urgent").State == "succeeded" && h.job("second").State == "succeeded"
	})
	if n := h.job("urgent").Attempts; n != 1 {
		t.Errorf("the critical job had %d attempts", n)
	}
	h.until("the low job goes on", func() bool { return h.job("low").SavedStep > low.SavedStep })
	h.do("stop", "low")
	h.until("it is stopped", func() bool { return h.job("low").Closed })

	last, from, changes := 0, "", 0
	for line := range strings.Lines(h.do("logs", "low")) {
		m := countedStep.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		n, _ := strconv.Atoi(m[1])
		most := last + 1
		if from != "" && from != m[3] {
			changes, most = changes+1, most+1 // the program may end between saving a step and reporting it
		}
		if n <= last || n > most {
			t.Errorf("after step %d comes %d: work was lost or repeated", last, n)
		}
		last, from = n, m[3]
	}
	if changes != 1 {
		t.Errorf("the low job started again %d times", changes)
	}
	h.saysPreemption()
}

// A server that a command starts after scrimp serve was killed keeps its settings, and the command says so.
func TestServe_CommandTakesOverSettingsOfKilledServe(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	cmd, _, _ := h.start("serve", "--json", "--listen", "127.0.0.1:0", "--running", "2", "--preempt-after", "5s", "--retain", "5h")
	h.until("it serves", func() bool {
		_, err := os.Stat(filepath.Join(h.data, "serve.json"))
		return err == nil
	})
	h.until("it answers", func() bool { _, err := h.try("server", "status", "--json"); return err == nil })
	must.Do(t, cmd.Process.Kill())
	_ = cmd.Wait()
	_, errs, code := h.status("jobs")
	if code != 0 || !strings.Contains(errs, "scrimp serve is not running") {
		t.Errorf("exit status %d, stderr %q", code, errs)
	}
	var v api.Server
	if err := json.Unmarshal([]byte(h.out("server", "status", "--json")), &v); err != nil || v.RetainS != 5*3600 {
		t.Errorf("it keeps files for %v s, %v", v.RetainS, err)
	}
	if _, errs, code := h.status("serve --running 0"); code != 1 || !strings.Contains(errs, "give 1 or more") {
		t.Errorf("--running 0: exit status %d, %q", code, errs)
	}
}

// saysPreemption checks what the commands say about the preemption of low by urgent, and adds its cost up by hand.
func (h *home) saysPreemption() {
	h.t.Helper()
	for _, c := range [][]string{{"status", "low"}, {"explain", "low"}, {"receipt", "low"}} {
		if out := h.do(c...); !strings.Contains(out, "urgent") {
			h.t.Errorf("%v does not say who preempted it:\n%s", c, out)
		}
	}
	r, err := h.server().Receipt(h.t.Context(), "low")
	must.Do(h.t, err)
	if r.Preempted != 1 || r.Interrupted != 0 || len(r.Tries) != 2 || r.Tries[0].End != "preempted" ||
		r.Tries[0].Preemption == nil || r.Tries[0].Preemption.StartUp == nil {
		h.t.Fatalf("the receipt says %d preempted, %d interrupted, %+v", r.Preempted, r.Interrupted, r.Tries)
	}
	p, sum := r.Tries[0].Preemption, money.Amount{}
	if p.By != "urgent" || p.Lost != r.Tries[0].Uses[api.Lost] || *p.StartUp != r.Tries[1].Uses[api.StartUp] {
		h.t.Errorf("the preemption is %+v, the attempts are %+v", p, r.Tries)
	}
	for _, try := range r.Tries {
		sum = sum.Add(try.Cost)
	}
	if sum != r.Cost {
		h.t.Errorf("the attempts cost %v, the job %v", sum, r.Cost)
	}
	h.do("ledger", "verify")
}
