package cli_test

import (
	"strings"
	"testing"
)

func TestRun_RefusesLongSpotRunWithoutProvenCheckpoints(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.write("market.yaml", `name: real
currency: USD
offers:
  - {zone: a, region: a, machine: c, cpus: 1, memory: 1GiB, capacity: spot, price: 0.05}
  - {zone: a, region: a, machine: c, cpus: 1, memory: 1GiB, capacity: on-demand, price: 0.20}
`)
	h.write("job.yaml", "name: long\ncommand: sleep 60\nwork: {time: 3h}\ncheckpoint: {dir: ck}\n")
	out, err := h.try("run", "-y", "-d", "job.yaml", "--market", "market.yaml")
	if err == nil || !strings.Contains(out, "not run: it takes 3h 00m") || !strings.Contains(out, "--force") {
		t.Errorf("%v %s", err, out)
	}
	if list := h.do("jobs", "--json"); list != "" {
		t.Errorf("it was submitted: %s", list)
	}
	if out := h.do("run", "-y", "-d", "job.yaml", "--force"); !strings.Contains(out, "long is queued") {
		t.Errorf("forced: %s", out)
	}
	h.do("cancel", "long")
	h.write("safe.yaml", "name: safe\ncommand: sleep 60\nwork: {time: 3h}\nresources: {capacity: [on-demand]}\n")
	h.do("run", "-y", "-d", "safe.yaml")
	h.do("cancel", "safe")
}
