//go:build !local

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/cli/show"
	"scrimp/internal/engine/kube"
	"scrimp/internal/engine/kube/pool"
	"scrimp/internal/lib/draw"
	"scrimp/internal/test/kubetest"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// pools is a complete configuration except for an image of jobs.
const pools = `
agent_image: localhost/scrimp:1
pools:
- {name: std, rate: 3.60, cpus: 1, memory: 1GiB, selector: {pool: std}}
`

// addKube adds an engine and returns the output.
func addKube(t *testing.T, dir, name, agents, with string) (said string, code int) {
	t.Helper()
	out, errs, code := call(t, dir, "engine", "add", name, "--kind", "kubernetes", "--agents", agents, "--with", with)
	return strings.Join(strings.Fields(out+errs), " "), code
}

// An invalid configuration is refused with file, field and fix, and the engine is not added.
func TestEngineAdd_RefusesInvalidKubernetesEngine(t *testing.T) {
	lane.Component(t, "whole")
	t.Parallel()
	dir := t.TempDir()
	const url = "http://10.0.0.9:7077"
	for _, c := range []struct{ agents, with, want string }{
		{url, pools, `engines.yaml: engine k8s: with: pool "std": no image: write image, which jobs that name none run in, ` +
			"under with or for the pool"},
		{url, "image: user:1\npools: [{name: std, cpus: 1, memory: 1GiB}]", "engines.yaml: engine k8s: with: no agent_image: write " +
			"agent_image, an image that has /usr/bin/scrimp"},
		{url, "image: user:1\nagent_image: scrimp:1", "engines.yaml: engine k8s: with: no pool: write pools: [{name: NAME, cpus: 4"},
		{url, "image: user:1\nnamespace: My Team" + pools, `with: namespace is "My Team": write it as kubectl get namespaces has it`},
		{url, "image: user:1\npods: 3" + pools, "pods is not known"},
		{url, "image: user:1\nagent_image: a\npools: [{name: gpu, cpus: 4, memory: 8GiB, accelerator: A100}]",
			`with: pool "gpu": accelerator is A100 without a number: add accelerators: 1`},
		{"socket", "image: user:1" + pools, "agents: pods do not reach the server's socket: write agents: listen, or the URL"},
	} {
		said, code := addKube(t, dir, "k8s", c.agents, c.with)
		if code != 1 || !strings.Contains(said, c.want) {
			t.Errorf("%s with %s ends with %d: %s", c.agents, c.with, code, said)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "engines.yaml")); err == nil && strings.Contains(string(text), "k8s") {
			t.Errorf("%s: it is made known: %s", c.with, text)
		}
	}
}

// If a cluster is not found, the configuration stays, and the output says what to correct and where.
func TestEngineAdd_ReportsMissingCluster(t *testing.T) {
	lane.Component(t, "whole")
	t.Parallel()
	dir := t.TempDir()
	config := write(t, dir, "config", `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: east, context: {cluster: c, user: u}}, {name: west, context: {cluster: c, user: u}}]
current-context: east
`)
	for name, c := range map[string]struct{ with, want string }{
		"missing": {"kubeconfig: " + dir + "/none", "FAIL credentials read kubeconfig: stat " + dir + "/none: no such file or " +
			"directory: set kubeconfig under with in engines.yaml to a file that is there"},
		"context": {"kubeconfig: " + config + "\ncontext: north", `FAIL credentials there is no context "north" in ` + config + ": set " +
			"context under with in engines.yaml to one of east, west (kubectl config get-contexts)"},
		"closed": {"kubeconfig: " + config, "FAIL API server https://127.0.0.1:1 does not answer: "},
	} {
		said, code := addKube(t, dir, name, "http://10.0.0.9:7077", c.with+"\nimage: user:1"+pools)
		if code != 1 || !strings.Contains(said, c.want) || !strings.Contains(said, "Try again with: scrimp --data "+dir+" engine test "+name) {
			t.Errorf("%s ends with %d: %s", name, code, said)
		}
	}
}

// The first look at a real cluster lists what exists and what is forbidden, in 80 columns; text to copy is not broken.
func TestEngineAdd_FirstLookAtCluster(t *testing.T) {
	lane.Component(t, "kubernetes")
	t.Parallel()
	c := kubetest.Start(t)
	c.Nodes(t, kubetest.Node{Name: "std-1", Labels: map[string]string{"pool": "std"}})
	dir := t.TempDir()
	role := kube.Role(&pool.With{}, "team")
	team := c.User(t, "team", role)
	weak := c.User(t, "weak", "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: scrimp}\n"+
		"rules: [{apiGroups: [batch], resources: [jobs], verbs: [get]}]\n")
	for name, c := range map[string]struct {
		with string
		code int
		want string
	}{
		"good": {"kubeconfig: " + team, 0, "ok pool std good/std/1c-1g/on-demand, 3.6 USD an hour"},
		"none": {"kubeconfig: " + c.Kubeconfig() + "\nnamespace: nowhere", 1, `FAIL namespace bad request: namespaces "nowhere" ` +
			"not found: kubectl create namespace nowhere, or set namespace in engines.yaml"},
		"weak": {"kubeconfig: " + weak, 1, "FAIL rights not allowed in namespace weak: get configmaps, list configmaps, "},
	} {
		said, code := addKube(t, dir, name, "http://10.0.0.9:7077", c.with+"\nimage: localhost/user:1"+pools)
		if code != c.code || !strings.Contains(said, c.want) {
			t.Errorf("%s ends with %d: %s", name, code, said)
		}
		out, _, _ := call(t, dir, "engine", "test", name, "--json")
		var page strings.Builder
		for line := range strings.Lines(out) {
			var check show.Check
			must.Do(t, json.Unmarshal([]byte(line), &check))
			page.WriteString(show.Doctor([]show.Check{check}, show.Place{Width: 80}))
		}
		copied := strings.ReplaceAll(role, "team", name)
		if name == "weak" && !strings.Contains(page.String(), "\n\n"+copied) {
			t.Errorf("the Role is not there to be copied:\n%s", page.String())
		}
		for line := range strings.Lines(strings.Replace(page.String(), copied, "", 1)) {
			if draw.Width(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("%s: a line is %d wide: %s", name, draw.Width(line), line)
			}
		}
		t.Logf("\n%s", page.String())
	}
}
