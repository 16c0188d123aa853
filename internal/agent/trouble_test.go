package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"scrimp/internal/wire/api"
)

func TestTrouble_ReportsFullStoreAndLosesNothing(t *testing.T) {
	t.Parallel()
	a := assign(t, "train", "TEST_EVERY=150")
	a.Secrets = map[string]string{"KEY": "hush-hush"}
	var full atomic.Bool
	full.Store(true)
	r := running(t, a, func(r *rig) {
		r.keeper.fail = func(int) error {
			if full.Load() {
				return fmt.Errorf("write s3://b?key=hush-hush: %w", syscall.ENOSPC)
			}
			return nil
		}
	})
	r.server.wait("the trouble", func() bool {
		return strings.Contains(r.server.trouble, "checkpoints are not kept") && strings.Contains(r.server.trouble, "no space left on device")
	})
	r.server.order(func() {
		if strings.Contains(r.server.trouble, "hush-hush") {
			t.Errorf("a secret in %q", r.server.trouble)
		}
	})
	if got := r.server.story(); got != "started" {
		t.Errorf("story %s: the program should run on", got)
	}
	full.Store(false)
	r.server.waitFor("the checkpoint", func(m api.Message) bool { return m.Saved != nil })
	r.server.wait("the end of the trouble", func() bool { return r.server.trouble == "" })
	r.server.order(func() { r.server.orders.Drain = &api.Drain{Why: "enough"} })
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if state, _ := r.keeper.newest("state"); state == "" || state != lastSaved(t, r) {
		t.Errorf("kept is %q, the program's last save was %q", state, lastSaved(t, r))
	}
}

func TestTrouble_ReportsUnwritableCheckpointFolderBeforeStart(t *testing.T) {
	t.Parallel()
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := assign(t, "train")
	a.Checkpoint.Dir = filepath.Join(blocked, "checkpoints")
	r := newRig(t, a)
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	ends := told(r.server, endedIn)
	if len(ends) != 1 || ends[0].Reason != api.EndSetup || !strings.Contains(ends[0].Error, "checkpoint folder") || !strings.Contains(ends[0].Error, "not a directory") {
		t.Errorf("ended as %+v", ends)
	}
	if len(told(r.server, started)) > 0 {
		t.Error("the program ran")
	}
}
