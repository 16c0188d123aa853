//go:build !local

package kube

import (
	"flag"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/wait"
	"scrimp/internal/test/kubetest"
	"scrimp/internal/test/lane"
)

var chaosFor = flag.Duration("chaos", time.Minute, "how long a cluster and its server are hurt (make chaos-kube)")

const chaosPools = `        - {name: spot, capacity: spot, rate: 1.20, cpus: 1, memory: 256MiB, grace: 10s, selector: {POOL spot}}
        - {name: std, rate: 3.60, cpus: 1, memory: 256MiB, grace: 10s, selector: {POOL std}}
`

// A server and a cluster with every fault injected for a while lose no job: each ends as it should, its costs add up,
// and no pod is left.
func TestChaos_LosesNothing(t *testing.T) {
	lane.Nightly(t, "it hurts a cluster and its server for a minute, or for as long as make chaos-kube says")
	h, nodes := newHome(t, "spot-1", "std-2", "std-3")
	h.engines(chaosPools)
	rng, began := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano()))), time.Now()
	names, hurts := h.Chaos(*chaosFor, func(name string) (string, error) {
		h.Counts(name, "20", "")
		return h.Scrimp("run", "-y", "-d", "--force", name+".yaml")
	}, func() time.Duration { return time.Duration(3+rng.IntN(6)) * time.Second },
		func() string { return h.hurt(rng, nodes) })
	h.heal(nodes)
	attempts := h.Outcomes(names, h.until, func(j client.Job) { h.Receipt(j.ID) })
	h.until("nothing is left but records", func() bool { return len(h.left()) == 0 })
	h.Does("ledger", "verify")
	t.Logf("%v: %d jobs, %d attempts, hurt as %v", time.Since(began).Round(time.Second), len(names), attempts, hurts)
}

// hurt injects one random fault into the cluster or server, and names it.
func (h *home) hurt(rng *rand.Rand, nodes []*kubetest.RealNode) string {
	h.Helper()
	node := nodes[rng.IntN(len(nodes))]
	pause := func() { _ = wait.For(h.Context(), time.Duration(2+rng.IntN(12))*time.Second) }
	one := func(kind string) string {
		out, _ := h.Try("get", kind, "-n", h.namespace, "-l", "scrimp.dev/engine=k8s", "-o", "jsonpath={.items[*].metadata.name}")
		list := strings.Fields(out)
		if len(list) == 0 {
			return "none"
		}
		return list[rng.IntN(len(list))]
	}
	switch rng.IntN(11) {
	case 0:
		if pod := one("pods"); pod != "none" {
			h.Evict(h, h.namespace, pod)
		}
		return "evicted"
	case 1:
		_, _ = h.Try("taint", "node", node.Name, "chaos=yes:NoExecute")
		pause()
		_, _ = h.Try("taint", "node", node.Name, "chaos-")
		return "node tainted"
	case 2:
		node.Cut(h)
		pause()
		pause()
		node.Join(h)
		return "node cut"
	case 3:
		node.PowerOff(h)
		pause()
		node.PowerOn(h)
		return "node without power"
	case 4:
		h.Kill(h, "kubelet."+node.Name)
		pause()
		h.Begin(h, "kubelet."+node.Name)
		return "kubelet killed"
	case 5:
		program := []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}[rng.IntN(3)]
		h.Kill(h, program)
		pause()
		h.Begin(h, program)
		h.answers()
		return program + " killed"
	case 6:
		h.Signal(h, "kube-apiserver", syscall.SIGSTOP)
		pause()
		pause()
		h.Signal(h, "kube-apiserver", syscall.SIGCONT)
		h.answers()
		return "API server frozen"
	case 7:
		_, _ = h.Try("delete", "configmap", one("configmaps"), "-n", h.namespace, "--wait=false")
		return "record deleted"
	case 8:
		_, _ = h.Try("delete", "job", one("jobs"), "-n", h.namespace, "--wait=false")
		return "Job deleted"
	case 9:
		_, _ = h.Try("delete", "pod", one("pods"), "-n", h.namespace, "--wait=false", "--grace-period=0", "--force")
		return "pod deleted by force"
	}
	if h.KillServer() {
		pause()
		h.serve()
	}
	return "server killed"
}

// heal repairs the cluster and its server.
func (h *home) heal(nodes []*kubetest.RealNode) {
	h.Helper()
	h.answers()
	for _, n := range nodes {
		h.until(n.Name+" is ready", func() bool {
			out, _ := h.Try("get", "node", n.Name, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
			return out == "True"
		})
	}
}
