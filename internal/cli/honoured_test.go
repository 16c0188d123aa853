package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/cli/show/planning"
	"scrimp/internal/test/must"
)

// The cheaper machine exceeds the upper bound, so the plan and the run use the dearer one, and explain gives the
// reason. A job with an unavailable accelerator is refused with the field, and waits if forced.
func TestRun_HonoursUpperBoundsAndAccelerators(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("market.yaml", `name: two
currency: USD
offers:
  - {zone: a, region: a, machine: small, cpus: 2, memory: 1GiB, capacity: on-demand, price: 0.80}
  - {zone: a, region: a, machine: large, cpus: 8, memory: 1GiB, capacity: on-demand, price: 0.20}
`)
	h.write("job.yaml", "name: ranged\ncommand: 'true'\nresources: {cpus: 1..4}\nwork: {time: 1s}\n")
	var p planning.Plan
	must.Do(t, json.Unmarshal([]byte(h.out("plan", "--json", "--market", "market.yaml", "job.yaml")), &p))
	if !strings.Contains(p.Take, "small") || len(p.Rejected) != 1 || p.Rejected[0].Why != "too_large" {
		t.Errorf("planned is %q, rejected %+v", p.Take, p.Rejected)
	}
	h.do("run", "-y", "job.yaml")
	var first api.Decision
	must.Do(t, json.Unmarshal([]byte(strings.SplitN(h.do("explain", "--json", "ranged"), "\n", 2)[0]), &first))
	if !strings.Contains(string(first.Take), "small") || len(first.Rejected) != 1 || string(first.Rejected[0].Why) != "too_large" {
		t.Errorf("taken is %q, rejected %+v", first.Take, first.Rejected)
	}

	h.write("gpu.yaml", "name: gpu\ncommand: 'true'\nresources: {accelerator: 'H100:8'}\n")
	out, err := h.try("run", "-y", "gpu.yaml")
	if said := strings.Join(strings.Fields(out), " "); err == nil || !strings.Contains(said, "gpu.yaml: `resources.accelerator` is H100:8, and nothing on this market has it: leave it out") {
		t.Errorf("%v: %s", err, out)
	}
	h.do("run", "-y", "-d", "--force", "gpu.yaml")
	if v := h.job("gpu"); v.State != "queued" {
		t.Errorf("it is %s (%s)", v.State, v.Why)
	}
	if out := h.do("explain", "gpu"); !strings.Contains(out, "accelerator") {
		t.Errorf("nothing says what it waits for: %s", out)
	}
}
