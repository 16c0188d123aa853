package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// scrimp serve checks the market file before it listens, and names the file, the line and the field. Until the file is
// correct, no command opens another market in the folder; then a command opens the one of the file.
func TestServe_RefusesBrokenMarketFileBeforeItListens(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	const market = "name: own\noffers:\n  - {zone: a, region: r, machine: m, cpus: 1, memory: 1GiB, capacity: spot, price: 0.1}\n"
	h.write("job.yaml", "name: j\ncommand: 'true'\n")
	for from, says := range map[string]string{
		"machine: m": "--market: market.yaml: line 3: machin is no field of an offer: did you mean machine?",
		"cpus: 1":    "--market: market.yaml: line 3: the text `one` stands where a whole number belongs",
		"name: own":  "--market: market.yaml: line 1: label is no field of a market file, which has name, currency,",
	} {
		to := map[string]string{"machine: m": "machin: m", "cpus: 1": "cpus: one", "name: own": "label: own"}[from]
		h.write("market.yaml", strings.Replace(market, from, to, 1))
		out, errs, code := h.status("serve --listen 127.0.0.1:0 --market market.yaml")
		if code != 1 || out != "" || !strings.HasPrefix(errs, "scrimp: "+says) || strings.Contains(errs, "marketfile.") {
			t.Errorf("%s: exit status %d, %q, %q", to, code, out, errs)
		}
	}
	for line, says := range map[string]string{
		"run -y -d job.yaml":                      "has no market yet, and the last scrimp serve did not start with --market: /",
		"run -y -d --market market.yaml job.yaml": "--market: market.yaml: line 1: label",
	} {
		if _, errs, code := h.status(line); code != 1 || !strings.Contains(errs, says) {
			t.Errorf("%s: exit status %d, %q", line, code, errs)
		}
	}
	if _, err := os.Stat(filepath.Join(h.data, "market")); err == nil {
		t.Error("a market was opened")
	}
	h.write("market.yaml", market)
	if out, errs, code := h.status("run -y -d job.yaml"); code != 0 || !strings.Contains(out+errs, "market own") {
		t.Errorf("with the correct file: exit status %d, %q, %q", code, out, errs)
	}
	if left, _ := filepath.Glob(filepath.Join(h.data, "market.wanted")); left != nil {
		t.Error("the folder still has the name of the market that was not opened")
	}
}
