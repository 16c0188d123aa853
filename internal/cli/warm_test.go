package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

// machines returns the output of scrimp machines.
func (h *home) machines() (list []api.Machine) {
	h.t.Helper()
	for line := range strings.Lines(h.do("machines", "--json")) {
		var m api.Machine
		must.Do(h.t, json.Unmarshal([]byte(line), &m))
		list = append(list, m)
	}
	return list
}

// costs returns the lines of scrimp costs.
func (h *home) costs(args ...string) (spent money.Amount, lines map[string]api.CostLine) {
	h.t.Helper()
	lines = map[string]api.CostLine{}
	for line := range strings.Lines(h.do(append([]string{"costs", "--json"}, args...)...)) {
		var l api.CostLine
		must.Do(h.t, json.Unmarshal([]byte(line), &l))
		lines[l.Name] = l
		spent = spent.Add(l.Spent)
	}
	return spent, lines
}

// If the engine allows idle machines, the next job takes the machine of the previous one, without its setup. A spent
// limit terminates an idle machine; then its bill arrives, and the costs of the jobs and the idle time between them add
// up exactly to it.
func TestWarm_NextJobTakesIdleMachine(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("d/engines.yaml", "engines: [{name: local, kind: local, timing: {idle: 20m}, with: {market: hour.yaml}}]\n")
	h.write("d/hour.yaml", `name: hour
offers:
  - {zone: a, region: r, machine: m, cpus: 2, memory: 1GiB, capacity: on-demand, price: 3.6, billing: {minimum: 1h}}
`)
	for _, name := range []string{"one", "two"} { // part of what each uploads
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
	if out := h.do("explain", "two"); !strings.Contains(out, "warm: an idle machine of the same user is ready") {
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

// firstLine returns the time from a job's submission to its program's first line.
func (h *home) firstLine(name string) time.Duration {
	h.t.Helper()
	h.write("now.yaml", "name: "+name+"\ncommand: 'date +%s%N'\n")
	h.do("run", "-y", "now.yaml")
	ns, err := strconv.ParseInt(strings.TrimSpace(h.do("logs", name)), 10, 64)
	must.Do(h.t, err)
	return time.Unix(0, ns).Sub(h.job(name).Submitted)
}

// BenchmarkFirstLine measures the time from a submission to the program's first line, alternating between a warm
// machine and a new one. It reports the medians.
//
//	go test ./internal/cli -run - -bench FirstLine -benchtime 20x
func BenchmarkFirstLine(b *testing.B) {
	market := "offers:\n  - {zone: a, region: r, machine: m, cpus: 2, memory: 1GiB, capacity: on-demand, price: 1, billing: {minimum: 1h}}\n"
	warm, cold := newHome(b), newHome(b)
	warm.write("d/m.yaml", "name: m\n"+market)
	cold.write("d/m.yaml", "name: m\n"+market)
	warm.write("d/engines.yaml", "engines: [{name: local, kind: local, timing: {idle: 1h}, with: {market: m.yaml}}]\n")
	cold.write("d/engines.yaml", "engines: [{name: local, kind: local, with: {market: m.yaml}}]\n")
	warm.firstLine("first")
	var on, off []time.Duration
	for n := 0; b.Loop(); n++ {
		warm.until("the machine waits", func() bool { m := warm.machines(); return len(m) == 1 && m[0].State == api.MachineIdle })
		on, off = append(on, warm.firstLine(fmt.Sprint("job", n))), append(off, cold.firstLine(fmt.Sprint("job", n)))
	}
	if m := warm.machines(); len(m) != 1 || m[0].Served != len(on)+1 {
		b.Fatalf("the machine did not serve all: %+v", m)
	}
	middle := func(list []time.Duration) float64 {
		return slices.Sorted(slices.Values(list))[len(list)/2].Seconds() * 1e3
	}
	b.ReportMetric(middle(on), "warm-ms")
	b.ReportMetric(slices.Max(on).Seconds()*1e3, "warm-worst-ms")
	b.ReportMetric(middle(off), "cold-ms")
	b.ReportMetric(0, "ns/op")
}
