package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/money"
)

// machines are what scrimp machines lists.
func (h *home) machines() (list []api.Machine) {
	h.t.Helper()
	for line := range strings.Lines(h.do("machines", "--json")) {
		var m api.Machine
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			h.t.Fatal(err)
		}
		list = append(list, m)
	}
	return list
}

// costs are the lines of scrimp costs.
func (h *home) costs(args ...string) (spent money.Amount, lines map[string]api.CostLine) {
	h.t.Helper()
	lines = map[string]api.CostLine{}
	for line := range strings.Lines(h.do(append([]string{"costs", "--json"}, args...)...)) {
		var l api.CostLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			h.t.Fatal(err)
		}
		lines[l.Name] = l
		spent = spent.Add(l.Spent)
	}
	return spent, lines
}

// The next job takes the machine that the last one left, without its set-up, where its engine
// says that machines wait. A limit that is spent ends one that waits; then its bill comes, and
// what the jobs and the time between them cost is the bill to the last unit.
func TestTheNextJobTakesTheMachineThatWaits(t *testing.T) {
	h := newHome(t)
	h.write("d/engines.yaml", "engines: [{name: local, kind: local, timing: {idle: 20m}, with: {market: hour.yaml}}]\n")
	h.write("d/hour.yaml", `name: hour
offers:
  - {zone: a, region: r, machine: m, cpus: 2, memory: 1GiB, capacity: on-demand, price: 3.6, billing: {minimum: 1h}}
`)
	for _, name := range []string{"one", "two"} { // both are in what each uploads
		h.write(name+".yaml", "name: "+name+"\nsetup: 'echo made > tool'\ncommand: 'cat tool; echo spoiled > tool'\n")
	}
	if out := h.do("run", "-y", "one.yaml"); !strings.Contains(out, "succeeded") {
		t.Fatal(out)
	}
	h.until("its machine waits", func() bool { m := h.machines(); return len(m) == 1 && m[0].State == api.MachineIdle })
	first := h.machines()[0]
	if first.Job != "" || first.User != "owner" || first.Served != 1 || first.IdleCost == nil || !first.IdleUntil.After(first.IdleSince) {
		t.Errorf("%+v", first)
	}
	if out := h.do("run", "-y", "two.yaml"); !strings.Contains(out, "succeeded") {
		t.Fatal(out)
	}
	if m := h.machines(); len(m) != 1 || m[0].Instance != first.Instance || m[0].Served != 2 || h.job("two").Attempts != 1 {
		t.Errorf("the second job took %d attempts, %s waited for it, and there are %+v", h.job("two").Attempts, first.Instance, m)
	}
	if out := h.do("explain", "two"); !strings.Contains(out, "warm, a machine of the same user waits there") {
		t.Errorf("it is not said why:\n%s", out)
	}
	if log := h.do("logs", "two"); !strings.Contains(log, "set-up skipped") || !strings.HasSuffix(log, "made\n") {
		t.Errorf("its log is %q", log)
	}
	if out := h.do("receipt", "one"); !strings.Contains(out, "idle after") {
		t.Errorf("what its machine cost after it is not beside its receipt:\n%s", out)
	}

	h.do("budgets", "set", "--scope", "all", "--month", "--dollars", "0.000001")
	h.until("it is given back", func() bool { return len(h.machines()) == 0 })
	h.until("its bill is booked", func() bool { all, _ := h.costs(); return all == money.Picos(3.6e12) })
	all, lines := h.costs("--by", "job")
	if all != money.Picos(3.6e12) || len(lines) != 3 || lines["(idle machines)"].Spent.Sign() <= 0 {
		t.Errorf("by job it cost %v: %+v", all, lines)
	}
	for _, name := range []string{"one", "two"} {
		h.adds(name)
		if lines[name].Spent.Sign() <= 0 {
			t.Errorf("%s cost %v", name, lines[name].Spent)
		}
	}
	h.do("ledger", "verify")
}
