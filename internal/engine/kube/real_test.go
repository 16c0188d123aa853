//go:build !local

package kube

import (
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/image"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/testbin"
)

// The machines of a gang are pods of one Job on several nodes, which reach each other by their addresses.
func TestGang_IsOneJob(t *testing.T) {
	t.Parallel()
	h := newSharedHome(t, 0)
	h.engines(onePool)
	h.File("w/gang.yaml", `name: gang
nodes: 2
command: |
  if [ $SCRIMP_NODE = 0 ]; then
    echo "rank 0 hears $(nc -l -p $MASTER_PORT)"
  else
    until echo "rank $SCRIMP_NODE of $SCRIMP_NODES" | nc $MASTER_ADDR $MASTER_PORT; do sleep 0.2; done
    echo "rank 1 has spoken to another address than $(hostname -i)"
  fi
`)
	h.Does("run", "-y", "--force", "gang.yaml")
	out := h.Does("logs", "gang", "--node", "all")
	if !strings.Contains(out, "[0] rank 0 hears rank 1 of 2") {
		t.Errorf("they did not meet:\n%s", out)
	}
	h.until("it is billed", func() bool { return h.Job("gang").Closed })
	h.Receipt("gang")
	h.until("nothing is left", func() bool { return len(h.left()) == 0 })
}

// On a node whose kubelet is killed, the old program continues, because nobody can end it there. The job continues
// elsewhere, and what the old program saves from then on does not count.
func TestLostKubelet_IsFenced(t *testing.T) {
	lane.Nightly(t, "Kubernetes takes half a minute to give up a node that is silent")
	h, nodes := newHome(t, "spot-1", "spot-2")
	h.engines(strings.Replace(onePool, "grace: 20s", "grace: 5s", 1))
	h.Counter("train", "400", "")
	h.until("it has saved", func() bool { return h.Job("train").SavedStep >= 4 })
	pod := h.podOf(h.Job("train").Machine)
	node := h.nodeOf(pod)
	on := nodes[0]
	if nodes[1].Name == node {
		on = nodes[1]
	}
	old := agentOn(t, on.Enter)
	h.Kill(t, "kubelet."+node)
	began := time.Now()
	h.until("its second attempt works", func() bool { j := h.Job("train"); return j.Attempts == 2 && j.Phase == "running" })
	t.Logf("from the death of a kubelet to the next attempt: %v", time.Since(began).Round(100*time.Millisecond))
	if h.nodeOf(h.podOf(h.Job("train").Machine)) == node {
		t.Error("the second attempt is on the node that does not answer")
	}
	h.until("the old agent is told to end", func() bool { return agentOn(t, on.Enter) != old })
	h.Does("stop", "train")
	h.until("it is billed", func() bool { return h.Job("train").Closed })
	if r := h.Receipt("train"); r.Attempts != 2 || r.Interrupted != 1 {
		t.Errorf("%d attempts, %d interruptions", r.Attempts, r.Interrupted)
	}
}

// agentOn returns the process of an agent on a node; empty if none runs.
func agentOn(t *testing.T, enter func(testing.TB, ...string) string) string {
	t.Helper()
	return enter(t, "sh", "-c", `for p in /proc/[0-9]*; do tr '\0' ' ' < $p/cmdline 2>/dev/null | grep -q '^/run/scrimp/bin/scrimp agent' && echo $p; done; true`)
}

// Unusable images are reported with the reason and the fix, and cost nothing.
func TestImages_AreNamedWhenUnusable(t *testing.T) {
	lane.Nightly(t, "the kubelet tries an image again and again before the job fails")
	h, _ := newHome(t, "std-1")
	foreign, err := image.Foreign("localhost/foreign:1")
	must.Do(t, err)
	bare, err := image.Bare("localhost/bare:1", testbin.Full.Path(t))
	must.Do(t, err)
	h.Import(t, foreign, bare)
	h.engines(`        - {name: std, rate: 1.20, cpus: 1, memory: 128MiB, grace: 2s, selector: {POOL std}}
        - {name: large, rate: 1.20, cpus: 4000, memory: 128MiB, selector: {POOL std}}
`)
	wants := map[string][]string{
		"none":    {"localhost/none:1", "check the name of the image and its tag"},
		"foreign": {"exec format error: the image or the program has another architecture"},
		"bare":    {"/bin/sh: no such file or directory: the image has no shell"},
		"large":   {"Insufficient cpu"},
	}
	for name := range wants {
		rest := "image: localhost/" + name + ":1\nany_of: [k8s/std]\n"
		if name == "large" {
			rest = "any_of: [k8s/large]\n"
		}
		h.File("w/"+name+".yaml", "name: "+name+"\n"+rest+"command: 'echo hello'\n")
		h.Does("run", "-y", "-d", "--force", name+".yaml")
	}
	for name, want := range wants {
		h.until(name+" is explained", func() bool {
			out := strings.Join(strings.Fields(h.Does("status", name)), " ")
			return !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(out, w) })
		})
		t.Logf("%s", h.Does("status", name))
	}
	h.Does("cancel", "large")
	h.until("a missing image fails its job", func() bool { return h.Job("none").Closed })
	if j := h.Job("none"); j.State != "failed" || j.Why != "image_refused" || j.Spent.Sign() != 0 {
		t.Errorf("it is %s (%s) and cost %v", j.State, j.Why, j.Spent)
	}
}
