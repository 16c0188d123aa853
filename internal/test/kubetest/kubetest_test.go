package kubetest_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"scrimp/internal/test/eventually"
	"scrimp/internal/test/image"
	"scrimp/internal/test/kubetest"
	"scrimp/internal/test/must"
)

// within bounds kubectl's wait for a condition.
var within = fmt.Sprint("--timeout=", eventually.Limit)

const twoPods = `
apiVersion: batch/v1
kind: Job
metadata: {name: pair}
spec:
  parallelism: 2
  completions: 2
  completionMode: Indexed
  backoffLimit: 0
  podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 4}}}]
`

// TestCluster_RunsAndLeavesNothing checks that a cluster has simulated nodes, users and real nodes, and leaves nothing behind.
func TestCluster_RunsAndLeavesNothing(t *testing.T) {
	var c *kubetest.Cluster
	t.Run("runs", func(t *testing.T) {
		c = kubetest.Start(t)
		t.Run("at once", func(t *testing.T) {
			t.Run("a job of two pods outlives an eviction", func(t *testing.T) { t.Parallel(); outlivesEviction(t, c) })
			t.Run("a real node runs a pod", func(t *testing.T) { t.Parallel(); runsPod(t, c) })
		})
		t.Run("a user has the rights of its role", func(t *testing.T) { hasRights(t, c) })
	})
	if c == nil {
		return // nothing was started
	}
	rest := ""
	eventually.True(t, "nothing is left behind", func() bool { rest = left(t, c); return rest == "" }, func() string { return rest })
}

func outlivesEviction(t *testing.T, c *kubetest.Cluster) {
	c.Nodes(t, kubetest.Node{Name: "spot-1", GPUs: 8, Labels: map[string]string{"karpenter.sh/capacity-type": "spot"}},
		kubetest.Node{Name: "closed-1", GPUs: 8, Taints: []string{"closed=yes:NoSchedule"}})
	c.Apply(t, twoPods)
	eventually.True(t, "the pods are made", func() bool {
		return len(strings.Fields(c.Do(t, "get", "pods", "-l", "job-name=pair", "-o", "jsonpath={.items[*].metadata.name}"))) == 2
	})
	c.Do(t, "wait", "--for=condition=Ready", within, "pod", "-l", "job-name=pair")
	pod := strings.Fields(c.Do(t, "get", "pods", "-l", "job-name=pair", "-o", "jsonpath={.items[*].metadata.name}"))[0]
	c.Evict(t, "default", pod)
	eventually.True(t, "another pod in the place of the evicted", func() bool {
		now := c.Do(t, "get", "pods", "-l", "job-name=pair", "-o", "jsonpath={.items[*].metadata.name}")
		return len(strings.Fields(now)) == 2 && !strings.Contains(now, pod)
	})
	c.Do(t, "wait", "--for=condition=Ready", within, "pod", "-l", "job-name=pair")
	if nodes := c.Do(t, "get", "pods", "-l", "job-name=pair", "-o", "jsonpath={.items[*].spec.nodeName}"); nodes != "spot-1 spot-1" {
		t.Errorf("the pods are on %q", nodes)
	}
}

const reader = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]
`

func hasRights(t *testing.T, c *kubetest.Cluster) {
	config := c.User(t, "team", reader)
	c.Do(t, "--kubeconfig", config, "get", "pods")
	out, err := c.Try("--kubeconfig", config, "delete", "pod", "any")
	if err == nil || !strings.Contains(out, "Forbidden") {
		t.Errorf("deleting pods: %v: %s", err, out)
	}
	out, err = c.Try("-n", "team", "run", "x", "--image=none")
	if err == nil || !strings.Contains(out, "violates PodSecurity") {
		t.Errorf("a pod of a restricted namespace: %v: %s", err, out)
	}
	c.Kill(t, "kube-apiserver")
	if out, err := c.Try("get", "pods"); err == nil {
		t.Errorf("a server that was killed answers: %s", out)
	}
	c.Begin(t, "kube-apiserver")
	eventually.True(t, fmt.Sprint("an answer on port ", c.Port), func() bool {
		_, err := c.Try("--kubeconfig", config, "get", "pods")
		return err == nil
	})
}

const shellPod = `
apiVersion: v1
kind: Pod
metadata: {name: shell}
spec:
  nodeName: real-1 # the cluster has simulated nodes too
  restartPolicy: Never
  containers:
  - name: main
    image: localhost/shell:1
    command: [sh, -c, "trap 'echo told; exit 3' TERM; echo begun; while :; do sleep 0.1; done"]
    resources: {limits: {nvidia.com/gpu: 1}}
`

func runsPod(t *testing.T, c *kubetest.Cluster) {
	n := c.Real(t, kubetest.Node{Name: "real-1", GPUs: 2})
	shell, err := image.Shell("localhost/shell:1")
	must.Do(t, err)
	c.Import(t, shell)
	c.Apply(t, shellPod)
	c.Do(t, "wait", "--for=condition=Ready", within, "pod/shell")
	eventually.True(t, "what the pod says", func() bool { out, _ := c.Try("logs", "shell"); return out == "begun" })
	c.Kill(t, "kubelet.real-1")
	if tasks := n.Enter(t, "sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null; true"); !strings.Contains(tasks, "echo begun") {
		t.Errorf("the container ended with the kubelet:\n%s", tasks)
	}
	c.Begin(t, "kubelet.real-1")
	eventually.True(t, "logs of the new kubelet", func() bool { out, _ := c.Try("logs", "shell"); return out == "begun" })
	c.Do(t, "delete", "pod", "shell", "--wait=false")
	eventually.True(t, "the pod receives the signal to end", func() bool {
		out, _ := c.Try("get", "events", "--field-selector=reason=Killing")
		return strings.Contains(out, "shell")
	})
	c.Apply(t, strings.NewReplacer("name: shell", "name: last").Replace(shellPod)) // it runs until the end
	c.Do(t, "wait", "--for=condition=Ready", within, "pod/last")
}

// left returns what a cluster leaves behind on this host: its folder, mounts, links, process groups and processes.
func left(t *testing.T, c *kubetest.Cluster) string {
	t.Helper()
	const script = `ls -d "$DIR" 2>/dev/null; grep -F "$DIR" /proc/mounts; ip -br link | grep "^kn$PORT-"
		find /sys/fs/cgroup -name "scrimp-kube-$PORT-*"
		grep -lFf <(echo "$DIR") /proc/[0-9]*/cmdline 2>/dev/null; true`
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Env = append(os.Environ(), "DIR="+c.Dir, fmt.Sprint("PORT=", c.Port))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}
