package command

import (
	"testing"
	"time"

	"scrimp/internal/lib/size"
)

func TestClient_ParsesSlurmsOutput(t *testing.T) {
	for text, want := range map[string]time.Duration{"UNLIMITED": 0, "1:00": time.Minute, "01:00:00": time.Hour, "2-00:30:00": 48*time.Hour + 30*time.Minute,
		"NONE": 0, "": 0} {
		if got := limit(text); got != want {
			t.Errorf("limit %q is %v, want %v", text, got, want)
		}
	}
	n, ok := readNode("n1|gpu*|64|515000|gpu:a100:8(S:0-1)|mixed|nvlink,a100|10.0.0.1|n1")
	if !ok || n.Partition != "gpu" || n.CPUs != 64 || n.Memory != 515000*size.MiB || n.Accelerators != 8 || !n.Usable || n.Accelerator != "a100" ||
		len(n.Features) != 2 {
		t.Errorf("%+v, %v", n, ok)
	}
}
