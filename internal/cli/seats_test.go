package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

// If the engine allows several tasks on a machine, a job takes the part that another job of its user leaves free, and
// knows its part. A cancelled job frees its part and not the machine. The costs of both add up exactly to the bill.
func TestSeats_JobsOfUserShareMachine(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("d/engines.yaml", "engines: [{name: local, kind: local, seats: 3, with: {market: hour.yaml}}]\n")
	h.write("d/hour.yaml", `name: hour
offers:
  - {zone: a, region: r, machine: m, cpus: 4, memory: 4GiB, capacity: on-demand, price: 3.6, billing: {minimum: 1h}}
`)
	go1 := filepath.Join(t.TempDir(), "go")
	h.write("one.yaml", "name: one\nresources: {cpus: 2}\ncommand: 'echo has $SCRIMP_CPUS of $SCRIMP_MEMORY_BYTES, $OMP_NUM_THREADS threads; until [ -e "+go1+" ]; do sleep 0.05; done'\n")
	h.write("two.yaml", "name: two\nresources: {cpus: 1}\ncommand: 'echo has $SCRIMP_CPUS; until [ -e "+go1+" ]; do sleep 0.05; done'\n")
	h.write("three.yaml", "name: three\nresources: {cpus: 1}\ncommand: 'sleep 1000'\n")
	h.do("run", "-y", "--detach", "one.yaml")
	h.until("its machine runs", func() bool { m := h.machines(); return len(m) == 1 && m[0].State == api.MachineRunning })
	first := h.machines()[0]
	h.do("run", "-y", "--detach", "two.yaml")
	h.do("run", "-y", "--detach", "three.yaml")
	h.until("all three run there", func() bool {
		m := h.machines()
		return len(m) == 1 && m[0].Instance == first.Instance && len(m[0].Beside) == 2 && strings.Contains(h.do("logs", "two"), "has 1")
	})
	h.until("its output has arrived", func() bool { return h.do("logs", "one") == "has 2 of 2147483648, 2 threads\n" })
	if out := h.do("explain", "two"); !strings.Contains(out, "a machine of the same user or team has room") {
		t.Errorf("it is not said why:\n%s", out)
	}
	if out := h.do("machines"); !strings.Contains(out, "one +2") {
		t.Errorf("it is not said that three jobs have it:\n%s", out)
	}
	h.do("cancel", "three")
	h.until("it has left its part", func() bool { m := h.machines(); return len(m) == 1 && len(m[0].Beside) == 1 })
	if s := h.job("one").State; s != "running" {
		t.Errorf("job one is %s", s)
	}
	must.Do(t, os.WriteFile(go1, nil, 0o600))
	h.until("both are done", func() bool { return h.job("one").State == "succeeded" && h.job("two").State == "succeeded" })
	h.until("the machine's bill is booked", func() bool { all, _ := h.costs(); return all == money.Picos(3.6e12) })
	_, lines := h.costs("--by", "job")
	for _, name := range []string{"one", "two", "three"} {
		h.adds(name)
		if lines[name].Spent.Sign() <= 0 {
			t.Errorf("%s cost %v", name, lines[name].Spent)
		}
	}
	h.do("ledger", "verify")
}

// The setting that members of a team may use each other's machines can be set, listed and reset. A team without members
// is refused if teams exist.
func TestTeams_ShareMachines(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	const says = "The members of team vision may use each other's machines."
	if out := h.do("budgets", "share", "vision"); !strings.Contains(out, says) {
		t.Error(out)
	}
	h.do("budgets", "tag", "env") // it keeps the setting
	if out := h.do("budgets"); !strings.Contains(out, says) {
		t.Error(out)
	}
	h.do("budgets", "share", "vision", "--off")
	if out := h.do("budgets"); strings.Contains(out, says) {
		t.Error(out)
	}
	h.do("teams", "set", "speech")
	if out, err := h.try("budgets", "share", "vision"); err == nil || !strings.Contains(out, `team "vision" is not known`) {
		t.Errorf("%v: %s", err, out)
	}
}
