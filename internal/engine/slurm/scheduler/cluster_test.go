package scheduler

import (
	"testing"
)

func TestCluster_ParsesResourcesAndStates(t *testing.T) {
	for text, want := range map[string]struct {
		kind string
		n    int
	}{"(null)": {}, "gpu:a100:4": {"a100", 4}, "gpu:2": {"gpu", 2}, "gpu:a100:8(S:0-1),shard:4": {"a100", 8}, "craynetwork:4,gpu:h100:1": {"h100", 1}} {
		if kind, n := GPUs(text); kind != want.kind || n != want.n {
			t.Errorf("gres %q is %d of %s", text, n, kind)
		}
	}
	for state, want := range map[string]bool{"idle": true, "allocated": true, "mixed": true, "idle~": true, "unknown*": true, "down*": false,
		"drained": false, "draining": false, "maint": false} {
		if Usable(state) != want {
			t.Errorf("%s: %v", state, Usable(state))
		}
	}
}
