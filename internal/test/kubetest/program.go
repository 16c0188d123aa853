package kubetest

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
)

// Signal sends a signal to a program: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok, or
// kubelet.NAME and containerd.NAME of a real node.
func (c *Cluster) Signal(t testing.TB, program string, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(c.pid(t, program), signal); err != nil {
		t.Fatalf("signal %s: %v", program, err)
	}
}

// Kill kills a program.
func (c *Cluster) Kill(t testing.TB, program string) {
	t.Helper()
	pid := c.pid(t, program)
	c.Signal(t, program, syscall.SIGKILL)
	eventually.True(t, program+" ends", func() bool { return ended(pid) })
}

// Begin restarts a killed program without waiting until it is ready. If its port is not free yet, because the
// threads of the old process end one by one, it retries.
func (c *Cluster) Begin(t testing.TB, program string) {
	t.Helper()
	for range 20 {
		out, err := exec.CommandContext(t.Context(), "bash", filepath.Join(c.Dir, "etc", program+".sh")).CombinedOutput()
		if err != nil {
			t.Fatalf("begin %s: %v\n%s", program, err, out)
		}
		lives := true
		for n := 0; n < 40 && lives; n++ {
			time.Sleep(20 * time.Millisecond)
			lives = !ended(c.pid(t, program))
		}
		if lives {
			return
		}
	}
	t.Fatalf("%s ends as soon as it is begun", program)
}

// ended reports whether a process has ended.
func ended(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(text), ") Z ")
}

func (c *Cluster) pid(t testing.TB, program string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.Dir, "pids", program+".pid"))
	must.Do(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must.Do(t, err)
	return pid
}

// Evict asks the API server to evict a pod, as drains and autoscalers do. A missing pod is no error.
func (c *Cluster) Evict(t testing.TB, namespace, pod string) {
	t.Helper()
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/eviction", namespace, pod)
	body := fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q,"namespace":%q}}`,
		pod, namespace)
	status, answer, err := c.call(http.MethodPost, path, body)
	if err != nil || status/100 != 2 && status != http.StatusNotFound {
		t.Fatalf("evict %s: %d, %v\n%s", pod, status, err, answer)
	}
}
