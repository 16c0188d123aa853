package kubetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
)

// Node is a simulated node, on which pods behave as their annotations say; see test/kube-stages.yaml.
type Node struct {
	Name        string
	CPU, Memory string // defaults 8 and 32Gi
	GPUs        int
	Labels      map[string]string
	Taints      []string // key=value:Effect
}

// simulated is the label of nodes with kwok as kubelet.
const simulated = "kwok.x-k8s.io/node"

// Nodes adds simulated nodes, and waits until they are ready. They are removed with the test, because each sends a
// heartbeat every two seconds.
func (c *Cluster) Nodes(t testing.TB, nodes ...Node) {
	t.Helper()
	type object = map[string]any
	for _, n := range nodes {
		has := object{"cpu": either(n.CPU, "8"), "memory": either(n.Memory, "32Gi"), "pods": "110",
			"ephemeral-storage": "100Gi"}
		if n.GPUs > 0 {
			has["nvidia.com/gpu"] = fmt.Sprint(n.GPUs)
		}
		labels := map[string]string{"kubernetes.io/hostname": n.Name, "kubernetes.io/os": "linux",
			"kubernetes.io/arch": "amd64", simulated: "fake"}
		maps.Copy(labels, n.Labels)
		var taints []any
		for _, s := range n.Taints {
			pair, effect, ok := strings.Cut(s, ":")
			if !ok {
				t.Fatalf("taint %q has no effect", s)
			}
			key, value, _ := strings.Cut(pair, "=")
			taints = append(taints, object{"key": key, "value": value, "effect": effect})
		}
		text, err := json.Marshal(object{"apiVersion": "v1", "kind": "Node",
			"metadata": object{"name": n.Name, "labels": labels}, "spec": object{"taints": taints},
			"status": object{"capacity": has, "allocatable": has}})
		if err != nil {
			t.Fatal(err)
		}
		c.Create(t, "/api/v1/nodes", string(text))
		t.Cleanup(func() { _, _, _ = c.call(http.MethodDelete, "/api/v1/nodes/"+n.Name, "") }) // the cluster may be gone
	}
	for _, n := range nodes {
		c.ready(t, n.Name)
	}
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// Silence stops the simulation of a node's kubelet: the node is not ready NODEDOWN seconds later, and its pods stay
// unchanged, even if they are deleted.
func (c *Cluster) Silence(t testing.TB, node string) {
	t.Helper()
	c.Do(t, "label", "node", node, simulated+"-")
}

// Wake resumes the simulation of a node's kubelet.
func (c *Cluster) Wake(t testing.TB, node string) {
	t.Helper()
	c.Do(t, "label", "node", node, simulated+"=fake")
}
