package receipt

import (
	"strings"
	"testing"
)

// Unknown metrics do not appear, not even as zero.
func TestTelemetry_OmitsUnknownMetrics(t *testing.T) {
	t.Parallel()
	r := sample()
	whole := r.Text(100)
	for _, line := range []string{"GPU 23 % used (peak 97 %), memory 17GiB of 22.5GiB, 41 W, at most 61 °C\n",
		"CPU 2.3 of 8 cores by the program, machine 31 % used (peak 66 %), I/O wait 40 %\n",
		"memory 6GiB of the program (peak 7GiB), 20GiB page cache (peak 24GiB)\n", "disk 352GiB read\n",
		"network 3.52MiB received\n", "hint: GPU 23 % used: data loading waits (I/O wait 40 %)\n"} {
		if !strings.Contains(whole, "\n"+line) {
			t.Errorf("no %q in\n%s", line, whole)
		}
	}
	r.Telemetry = &Telemetry{Machines: 1, Seconds: 60, GPUs: 1, Figures: map[string]Figure{
		"cpu_utilization_ratio": {Average: 0.5, Peak: 0.5}}}
	text := r.Text(100)
	if !strings.Contains(text, "\nCPU machine 50 % used (peak 50 %)\n") || strings.Contains(text, "GPU") || strings.Contains(text, "disk") ||
		strings.Contains(text, "hint") {
		t.Errorf("%s", text)
	}
	page, err := r.HTML()
	if err != nil || strings.Contains(string(page), "GPU") || !strings.Contains(string(page), "50 % used") {
		t.Errorf("%s %v", page, err)
	}
}
