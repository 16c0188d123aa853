//go:build !local

// Package deploy holds the manifests by which a server runs in a Kubernetes cluster: kustomizations and a chart. Its
// tests hold that both make the same objects, and that servers which they make serve.
package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"scrimp/internal/engine"
	"scrimp/internal/engine/kube"
	"scrimp/internal/engine/kube/pool"
	"scrimp/internal/test/kubetest"
	"scrimp/internal/test/must"
)

// namespace is where the tests deploy to.
const namespace = "ml"

type object = map[string]any

// tool runs kubectl or helm, with folders of its own, and returns what it prints.
func tool(t testing.TB, name string, args ...string) (string, error) {
	t.Helper()
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), kubetest.Installed(t, name), args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String() + errs.String(), err
	}
	return out.String(), nil
}

// kustomized are the objects of a variant and components, from a kustomization like a user's.
func kustomized(t testing.TB, more, variant string, components ...string) string {
	t.Helper()
	here, err := filepath.Abs("kubernetes")
	must.Do(t, err)
	dir := t.TempDir()
	path := func(name string) string {
		rel, err := filepath.Rel(dir, filepath.Join(here, name))
		must.Do(t, err)
		return rel
	}
	text := "namespace: " + namespace + "\nresources: [" + path(variant) + "]\n"
	if len(components) > 0 {
		text += "components:\n"
	}
	for _, c := range components {
		text += "  - " + path(c) + "\n"
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text+more), 0o600))
	out, err := tool(t, "kubectl", "kustomize", "--load-restrictor=LoadRestrictionsNone", dir)
	if err != nil {
		t.Fatalf("kubectl kustomize: %v\n%s", err, out)
	}
	return out
}

// charted are the objects of the chart.
func charted(t testing.TB, args ...string) string {
	t.Helper()
	out, err := tool(t, "helm", append([]string{"template", "scrimp", "helm/scrimp", "--namespace", namespace,
		"--kube-version", "v1.34.0"}, args...)...)
	if err != nil {
		t.Fatalf("helm template: %v\n%s", err, out)
	}
	return out
}

// objects are those of a rendered text by kind and name, without what the two ways of deploying have of their own.
func objects(t testing.TB, text string) map[string]object {
	t.Helper()
	all := map[string]object{}
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var o object
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if o == nil {
			continue
		}
		head := at[object](o, "metadata")
		name, kind := at[string](head, "name"), at[string](o, "kind")
		if kind == "ConfigMap" { // one has a sum in its name, the other an annotation
			name = "scrimp-engines"
			o["data"] = engines(t, o)
		}
		o["metadata"] = name
		plain(o)
		if kind == "Service" && at[string](o, "spec", "type") == "ClusterIP" {
			delete(at[object](o, "spec"), "type")
		}
		all[kind+" "+name] = o
	}
}

// engines are those of a ConfigMap, with the image that kustomize does not name there.
func engines(t testing.TB, o object) any {
	t.Helper()
	var file struct{ Engines []object }
	must.Do(t, yaml.Unmarshal([]byte(at[string](o, "data", "engines.yaml")), &file))
	for _, e := range file.Engines {
		delete(at[object](e, "with"), "agent_image")
	}
	return file.Engines
}

// plain takes out labels of the chart, annotations, and sums in names.
func plain(v any) {
	switch v := v.(type) {
	case object:
		delete(v, "app.kubernetes.io/instance")
		delete(v, "annotations")
		if name, ok := v["name"].(string); ok && strings.HasPrefix(name, "scrimp-engines-") {
			v["name"] = "scrimp-engines"
		}
		for _, part := range v {
			plain(part)
		}
	case []any:
		for _, part := range v {
			plain(part)
		}
	}
}

// at is what lies at a path of an object.
func at[T any](o object, path ...string) T {
	var none T
	for n, key := range path {
		if n == len(path)-1 {
			v, _ := o[key].(T)
			return v
		}
		next, ok := o[key].(object)
		if !ok {
			return none
		}
		o = next
	}
	return none
}

// secured are engines whose agents speak TLS.
const secured = `
configMapGenerator:
  - name: scrimp-engines
    behavior: merge
    literals:
      - |
        engines.yaml=engines:
          - name: cluster
            kind: kubernetes
            agents: https://scrimp:7077
            with:
              image: python:3.12-slim
              agent_image: localhost/scrimp:1
              ca: /etc/scrimp/tls/ca.crt
              pools: [{name: cpu, cpus: 4, memory: 16GiB, rate: "0.20", selector: {kubernetes.io/os: linux}}]
`

const tagged = "images: [{name: scrimp, newTag: latest}]\n"

func TestChartAndKustomizationsMakeTheSame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		kustomized func() string
		args       []string
	}{
		{"volume", func() string { return kustomized(t, tagged, "volume") }, nil},
		{"postgres", func() string { return kustomized(t, tagged, "postgres") }, []string{"--set", "storage.kind=postgres"}},
		{"postgres with a budget", func() string { return kustomized(t, tagged, "postgres", "budget") },
			[]string{"--set", "storage.kind=postgres,podDisruptionBudget.enabled=true"}},
		{"prices by nodes", func() string { return kustomized(t, tagged, "volume", "nodes") },
			[]string{"--set", "nodePrices.enabled=true"}},
		{"volume with TLS", func() string {
			return kustomized(t, tagged+secured, "volume", "tls")
		}, []string{"--set", "tls.secret=scrimp-tls"}},
	} {
		ours, theirs := objects(t, c.kustomized()), objects(t, charted(t, c.args...))
		if len(ours) < 8 {
			t.Errorf("%s: only %d objects", c.name, len(ours))
		}
		for name, o := range ours {
			if !reflect.DeepEqual(o, theirs[name]) {
				t.Errorf("%s: %s:\n%s\nof the chart:\n%s", c.name, name, shown(o), shown(theirs[name]))
			}
			delete(theirs, name)
		}
		for name := range theirs {
			t.Errorf("%s: the chart alone has %s", c.name, name)
		}
	}
}

func shown(v any) string {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

const queued = `engines[0].name=q,engines[0].kind=kubernetes,engines[0].with.image=x,engines[0].with.pools[0].name=a,` +
	`engines[0].with.pools[0].cpus=1,engines[0].with.pools[0].memory=1GiB,engines[0].with.pools[0].queue=team`

// The server may do what its engine needs, and nothing else; the example's engines are read by the engine itself.
func TestTheServersRoleIsTheEnginesLeast(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"volume": kustomized(t, "", "volume"), "postgres": kustomized(t, "", "postgres"),
		"chart": charted(t), "chart with a queue": charted(t, "--set", queued)} {
		dir := t.TempDir()
		var role, given object
		for d := yaml.NewDecoder(strings.NewReader(text)); ; {
			var o object
			if err := d.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			switch at[string](o, "kind") {
			case "Role":
				role = o
			case "ConfigMap":
				file := filepath.Join(dir, engine.SettingsName)
				must.Do(t, os.WriteFile(file, []byte(at[string](o, "data", "engines.yaml")), 0o600))
			}
		}
		settings, err := engine.Settings(dir)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := kube.Open(t.Context(), settings[0], engine.Host{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var with pool.With
		must.Do(t, settings[0].With.Into(&with, ""))
		must.Do(t, yaml.Unmarshal([]byte(kube.Role(&with, namespace)), &given))
		if !reflect.DeepEqual(role["rules"], given["rules"]) {
			t.Errorf("%s: the role is\n%s\nand the engine needs\n%s", name, shown(role["rules"]), shown(given["rules"]))
		}
	}
}

func TestValuesAreChecked(t *testing.T) {
	t.Parallel()
	if out, err := tool(t, "helm", "lint", "--strict", "--quiet", "helm/scrimp"); err != nil || strings.Contains(out, "WARN") {
		t.Errorf("helm lint: %v\n%s", err, out)
	}
	everything := charted(t, "--set", "ingress.enabled=true,ingress.host=scrimp.example.com,ingress.tlsSecret=x,"+
		"serviceMonitor.enabled=true,tls.secret=y,storage.existingClaim=mine,imagePullSecrets={a,b},extraArgs={--retain=30d},"+
		"adminToken.secret=,networkPolicy.from[0].namespaceSelector.matchLabels.kubernetes\\.io/metadata\\.name=ingress")
	have := objects(t, everything)
	for _, name := range []string{"Ingress scrimp", "ServiceMonitor scrimp", "StatefulSet scrimp"} {
		if have[name] == nil {
			t.Errorf("there is no %s:\n%s", name, everything)
		}
	}
	for _, text := range []string{"claimName: mine", "--retain=30d", "kubernetes.io/metadata.name: ingress"} {
		if !strings.Contains(everything, text) {
			t.Errorf("%s is not there:\n%s", text, everything)
		}
	}
	for _, wrong := range []string{"storage.kind=sqlite", "replicas=2", "engines=null", "image.repository=", "tls=x",
		"engines[0].kind=local", "extraArgs={retain}", "storage.size=lots", "ingress.enabled=true"} {
		out, err := tool(t, "helm", "template", "scrimp", "helm/scrimp", "--kube-version", "v1.34.0", "--set", wrong)
		if err == nil {
			t.Errorf("%s is taken:\n%.300s", wrong, out)
		}
	}
}
