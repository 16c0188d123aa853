//go:build !local

package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"scrimp/internal/cli/show/planning"
	"scrimp/internal/engine/kube"
	"scrimp/internal/engine/kube/pool"
	"scrimp/internal/test/kubetest"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/testbin"
)

// A job without machine requirements gets the cheapest pod that holds its model by the estimate, and requests exactly
// that from Kubernetes. The plan shows it beforehand. A model that nothing holds is refused with its size, and the job
// file's own requirements override the estimate.
func TestRun_EstimateChoosesPod(t *testing.T) {
	lane.Component(t, "kubernetes")
	t.Parallel()
	bin := testbin.Full.Path(t)
	h := newHome(t)
	h.bin = bin
	c := kubetest.Start(t)
	h.write("d/engines.yaml", `engines:
  - name: k8s
    kind: kubernetes
    agents: http://10.0.0.9:7077
    timing: {poll: 1s, sweep: 1s}
    with:
      kubeconfig: `+c.User(t, namespace, kube.Role(&pool.With{}, namespace))+`
      image: localhost/user:1
      agent_image: localhost/scrimp:1
      pools:
        - {name: gpu, cpus: 96, memory: 1000GiB, accelerator: A100-SXM-80GB, accelerators: 8, split: [1, 2, 4, 8], rate: 32}
        - {name: cpu, cpus: 64, memory: 256GiB, split: [1, 4, 16], rate: 3.20}
`)
	server, _, _ := h.start("serve", "--listen", freeOn(t, "127.0.0.1"))
	t.Cleanup(func() { _ = server.Process.Signal(syscall.SIGTERM); _ = server.Wait() })
	h.until("the cluster's pods are for sale", func() bool { return h.answers() && h.forSale("k8s") })

	const llama = "model: {config: llama-3-8b, sequence: 2048"
	for _, job := range []struct{ name, file, takes, asks string }{
		{"lora", llama + ", tuning: lora}\nresources: {accelerator: 'A100:1..8'}", "-1of8/on-demand", "12 1"},
		{"shared", llama + ", sharding: fsdp, activation_checkpointing: full}\nresources: {accelerator: 'any:1+'}", "-1of4/on-demand", "24 2"},
		{"stated", llama + "}\nresources: {accelerator: 'A100:1'}", "-1of8/on-demand", "12 1"},
		{"table", "model: {shape: trees, features: 28}\nwork: {steps: 100, samples: 50M}", "-1of16/on-demand", "4"},
		{"wide", "model: {shape: trees, features: 28}\nwork: {steps: 100, samples: 400M}", "-1of4/on-demand", "16"},
	} {
		name, file := job.name, job.name+".yaml"
		h.write(file, "name: "+name+"\ncommand: python3 t.py\n"+job.file+"\n")
		var p planning.Plan
		if err := json.Unmarshal([]byte(h.out("plan", file, "--json")), &p); err != nil || !strings.HasPrefix(p.Take, "k8s/") ||
			!strings.HasSuffix(p.Take, job.takes) {
			t.Errorf("%s is planned on %s (%v)", name, p.Take, err)
		}
		h.do("run", "-y", "--detach", file)
		if name == "wide" { // the fifth; by default a server runs four jobs
			const full = "It waits: the server lets 4 jobs hold machines at once, and 4 do (scrimp serve --running)."
			if said := h.do("explain", name); !strings.Contains(said, full) || h.job(name).Why != "server_full" {
				t.Errorf("it waits, and says %q, %q", said, h.job(name).Why)
			}
			h.do("cancel", "lora")
		}
		h.until(name+" has its pod", func() bool { return requests(c, t, name) != "" })
		if got := requests(c, t, name); got != job.asks {
			t.Errorf("the pod of %s asks for %s (processors, GPUs), want %s", name, got, job.asks)
		}
	}

	h.write("full.yaml", "name: full\ncommand: python3 t.py\n"+llama+"}\nresources: {accelerator: 'A100:1..8'}\n")
	out, err := h.try("run", "-y", "--detach", "full.yaml")
	if want := "no offer of this market holds the model, which takes "; err == nil || !strings.Contains(out, want) {
		t.Errorf("what nothing holds is run: %v: %s", err, out)
	}
	if out, err := h.try("run", "-y", "--detach", "--json", "full.yaml"); err == nil || !strings.Contains(out, "not run: no offer of this market holds the model") {
		t.Errorf("what nothing holds is run: %v: %s", err, out)
	}
	for _, name := range []string{"shared", "stated", "table", "wide"} {
		h.do("stop", name)
	}
}

// requests returns the processors and GPUs that a job's only pod requests.
func requests(c *kubetest.Cluster, t testing.TB, job string) string {
	t.Helper()
	const of = "{.spec.containers[0].resources.requests."
	return strings.TrimSpace(c.Do(t, "get", "pods", "-n", namespace, "-l", "scrimp.dev/job="+job, "--no-headers", "-o",
		fmt.Sprintf("jsonpath={range .items[*]}%scpu} %snvidia\\.com/gpu}{end}", of, of)))
}
