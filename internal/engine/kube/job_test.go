//go:build !local

package kube

import (
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/realserver"
)

const onePool = `        - {name: spot, capacity: spot, rate: 1.20, cpus: 1, memory: 256MiB, grace: 20s, selector: {POOL spot}}
`

// A job whose pod is evicted saves within its grace and continues on another node, with a real kubelet, containerd
// and the agent in the user's image. No completed step runs twice.
func TestEviction_LetsTheJobSaveAndFinish(t *testing.T) {
	t.Parallel()
	h := newSharedHome(t, 1)
	h.engines(onePool)
	submitted := time.Now()
	h.Counter("train", "40", "")
	h.until("its first line", func() bool { out, _ := h.Scrimp("logs", "train"); return strings.Contains(out, "began at") })
	t.Logf("from the submission to the first line: %v", time.Since(submitted))
	h.until("it works", func() bool { return h.Job("train").Step >= 6 })
	began := time.Now()
	h.Evict(t, h.namespace, h.podOf(h.Job("train").Machine))
	h.until("it goes on", func() bool { out, _ := h.Scrimp("logs", "train"); return strings.Count(out, "began at") == 2 })
	t.Logf("from the eviction to the first step elsewhere: %v", time.Since(began))
	h.finished("train", 2)
	r := h.Receipt("train")
	if r.Interrupted != 1 || len(r.Interruptions) != 1 || r.Interruptions[0].Notice == 0 {
		t.Errorf("interruptions: %+v", r.Interruptions)
	}
	log := h.Does("logs", "train")
	if again := realserver.Repeated(log); again > 1 {
		t.Errorf("%d steps were done twice:\n%s", again, log)
	}
}
