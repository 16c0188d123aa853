package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// The real program measures a job's machine with a fake GPU: live, after a restart of the server, and after its end,
// also on its receipt.
func TestTop_ShowsTelemetryLiveAndAfterwards(t *testing.T) {
	lane.Nightly(t, "measurements come every ten seconds")
	t.Parallel()
	bin := t.TempDir()
	script := "#!/bin/sh\ncase $1 in *utilization*) echo '0, NVIDIA L4, 550.54.15, 40, 11517, 23034, 36.00, 72.00, 51';;\n" +
		"*memory*) echo 'GPU-1, 0';; esac\n"
	must.Do(t, os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte(script), 0o700))
	h := newHome(t)
	h.env = []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
	if out := h.do("top"); out != "No job runs.\n" {
		t.Errorf("without a job: %q", out)
	}
	h.write("job.yaml", "name: burn\ncommand: 'while :; do sleep 0.1; done'\n")
	h.do("run", "-y", "-d", "--market", "calm", "job.yaml")
	h.until("its GPU is measured", func() bool { return strings.Contains(h.do("top", "burn"), "GPU 0 used") })
	h.do("server", "stop")
	text := strings.Join(strings.Fields(h.do("top", "burn")), " ")
	for _, line := range []string{"burn: running, burn.1 ", "GPU 0: NVIDIA L4", "GPU 0 used 40 % 40 % 40 %", "GPU 0 temperature 51 °C",
		"GPU 0 power 36 W", "CPU used ", "program: cores ", "page cache "} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	h.until("all jobs are shown", func() bool { return strings.Contains(h.do("top"), "40 %") })
	var one api.Telemetry
	if err := json.Unmarshal([]byte(h.out("top", "burn", "--json")), &one); err != nil || !one.Live ||
		one.Figures["gpu_utilization_ratio"].Average != 0.4 || one.Figures["gpu_memory_used_bytes"].Peak < 11<<30 {
		t.Errorf("%+v, %v", one, err)
	}
	if out := h.do("status", "burn"); !strings.Contains(out, "40 % now, 40 % on average, memory 11.2GiB, 36 W, 51 °C") {
		t.Errorf("status says\n%s", out)
	}
	h.do("stop", "burn")
	h.until("it is over", func() bool { return h.job("burn").Closed })
	if out := h.do("top", "burn", "--last", "all"); !strings.Contains(out, "over: these are its last measurements") ||
		!strings.Contains(out, "GPU 0 used") {
		t.Errorf("of the job that is over\n%s", out)
	}
	if out := h.do("receipt", "burn"); !strings.Contains(out, "GPU 40 % used (peak 40 %), memory 11.2GiB of 22.5GiB, 36 W, at most 51 °C") {
		t.Errorf("the receipt says\n%s", out)
	}
	for _, bad := range [][]string{{"top", "burn", "--last", "soon"}, {"top", "burn", "--attempt", "-1"}, {"top", "burn", "--attempt", "9"},
		{"top", "none"}} {
		if out, err := h.try(bad...); err == nil || !strings.Contains(out, "scrimp: ") {
			t.Errorf("%v: %v\n%s", bad, err, out)
		}
	}
}
