//go:build !local

package kube

import (
	"net"
	"strings"
	"sync"
	"testing"

	"scrimp/client"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/image"
	"scrimp/internal/test/kubetest"
	"scrimp/internal/test/must"
	"scrimp/internal/test/realserver"
	"scrimp/internal/test/testbin"
)

// home is a data folder whose server, the real program, rents pods on real nodes.
type home struct {
	*site
	*realserver.Server
	host   string // address of this machine that pods can reach
	listen string // where the server listens; empty: not started yet
	pools  string // prefix of the names of its nodes' pools
}

// newHome starts a cluster with real nodes. Each belongs to the pool before the hyphen in its name.
func newHome(t *testing.T, nodes ...string) (*home, []*kubetest.RealNode) {
	t.Helper()
	c := kubetest.Start(t)
	s := newSite(t, c)
	var added []*kubetest.RealNode
	for _, name := range nodes {
		pool, _, _ := strings.Cut(name, "-")
		added = append(added, c.RealNode(t, name, "pool="+s.namespace+"-"+pool))
	}
	imports(t, c)
	return homeOf(t, s, added[0].Host, s.namespace), added
}

// realNodes holds the real nodes of the shared cluster, both in the pool spot.
var realNodes struct {
	sync.Mutex
	nodes []*kubetest.RealNode
}

// newSharedHome creates a namespace in the shared cluster, whose two real nodes are in the pool spot. node is the
// index of the node through whose network pods reach the server.
func newSharedHome(t *testing.T, node int) *home {
	t.Helper()
	c := kubetest.Shared(t)
	realNodes.Lock()
	defer realNodes.Unlock()
	if len(realNodes.nodes) == 0 {
		list := []*kubetest.RealNode{c.RealNode(t, "real-1", "pool=real-spot"), c.RealNode(t, "real-2", "pool=real-spot")}
		imports(t, c)
		realNodes.nodes = list
	}
	return homeOf(t, newSite(t, c), realNodes.nodes[node].Host, "real")
}

// imports loads the images of users and of the agent onto real nodes.
func imports(t *testing.T, c *kubetest.Cluster) {
	t.Helper()
	user, err := image.Shell("localhost/user:1")
	must.Do(t, err)
	agent, err := image.Agent("localhost/scrimp:1", testbin.Full.Path(t))
	must.Do(t, err)
	c.Import(t, user, agent)
}

func homeOf(t *testing.T, s *site, host, pools string) *home {
	t.Helper()
	return &home{site: s, Server: realserver.New(t, t.TempDir(), testbin.Full.Path(t)), host: host, pools: pools}
}

// engines configures the engine with these pools and starts the server. It retries with another port if the kernel's
// choice has been taken meanwhile.
func (h *home) engines(pools string) {
	h.Helper()
	for {
		l, err := (&net.ListenConfig{}).Listen(h.Context(), "tcp", net.JoinHostPort(h.host, "0"))
		must.Do(h, err)
		h.listen = l.Addr().String()
		_ = l.Close()
		h.File("d/engines.yaml", `engines:
  - name: k8s
    kind: kubernetes
    agents: http://`+h.listen+`
    with:
      kubeconfig: `+h.config+`
      image: localhost/user:1
      agent_image: localhost/scrimp:1
      user: 1000
      pools:
`+strings.ReplaceAll(pools, "POOL ", "pool: "+h.pools+"-"))
		if h.Serve(h.listen) {
			return
		}
		if log := h.ServerLog(); !strings.Contains(log, "address already in use") {
			h.Fatalf("the server ended:\n%s", log)
		}
	}
}

// serve starts the server again.
func (h *home) serve() {
	h.Helper()
	if !h.Serve(h.listen) {
		h.Fatalf("the server ended:\n%s", h.ServerLog())
	}
}

func (h *home) until(what string, ok func() bool) {
	h.Helper()
	eventually.True(h, what, ok, func() string {
		out, _ := h.Scrimp("jobs")
		pods, _ := h.Try("get", "pods,jobs,configmaps", "-n", h.namespace, "-o", "wide")
		said, _ := h.Try("describe", "pods", "-n", h.namespace)
		return out + pods + "\n" + said + "\n" + h.ServerLog()
	})
}

// finished waits for the end of a job, which must have succeeded with at least that many attempts.
func (h *home) finished(name string, attempts int) client.Job {
	h.Helper()
	return h.Finished(name, attempts, h.until)
}

// podOf returns the pod of a machine.
func (h *home) podOf(machine string) string {
	h.Helper()
	n := strings.LastIndexByte(machine, '-')
	name, index := strings.TrimPrefix(machine[:n], "k8s-"), machine[n+1:]
	out := h.Do(h, "get", "pods", "-n", h.namespace, "-l", "job-name="+name+",batch.kubernetes.io/job-completion-index="+index,
		"-o", "jsonpath={.items[*].metadata.name}")
	return out
}
