// Package kubetest starts real Kubernetes clusters on this host for tests: a control plane, simulated nodes, and
// real ones with a kubelet and containers.
package kubetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
	"scrimp/internal/test/testbin"

	"go.yaml.in/yaml/v3"
)

// Cluster is a cluster in a folder of its own.
type Cluster struct {
	Dir  string
	Port int // of the API server

	lock   *os.File // on its ports
	real   []*RealNode
	images []string // archives for real nodes
}

// Start starts a cluster until the test ends, with what test/kube-up.sh reads from the environment. It skips the
// test if the programs are missing.
func Start(t testing.TB, env ...string) *Cluster {
	t.Helper()
	installed(t)
	c, err := begin(env...)
	must.Do(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			c.tell(t)
		}
		if err := c.end(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// shared is the cluster that the tests of a package share.
var shared struct {
	once sync.Once
	*Cluster
	err error
}

// Shared returns the cluster that the tests of a package share: each has its own namespace and nodes there, and
// leaves the control plane alone. The first test starts it, and TestMain calls End.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	installed(t)
	shared.once.Do(func() { shared.Cluster, shared.err = begin() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			shared.tell(t)
		}
	})
	return shared.Cluster
}

// End stops the shared cluster, if there is one.
func End() error {
	if shared.Cluster == nil {
		return nil
	}
	return shared.end()
}

func begin(env ...string) (c *Cluster, err error) {
	if err := sweep(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "kt") // short, because paths of sockets must be
	if err != nil {
		return nil, err
	}
	c = &Cluster{Dir: dir}
	if c.Port, c.lock, err = takePorts(dir); err == nil {
		err = c.script("kube-up.sh", append([]string{"PORT=" + strconv.Itoa(c.Port), "KUBE_BIN=" + bin()}, env...)...)
	}
	if err != nil {
		return nil, errors.Join(err, c.end())
	}
	return c, nil
}

func (c *Cluster) end() error {
	err := c.script("kube-down.sh")
	_ = os.RemoveAll(c.Dir)
	if c.lock != nil {
		_ = c.lock.Close()
	}
	return err
}

// installed skips the test if a program of the control plane is missing.
func installed(t testing.TB) {
	t.Helper()
	for _, name := range strings.Fields("etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok") {
		Installed(t, name)
	}
}

// Installed returns the path of a program that test/kube-build.sh builds. It skips the test if the program is
// missing.
func Installed(t testing.TB, name string) string {
	t.Helper()
	path := Program(name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not installed; test/kube-build.sh %s builds it", name, filepath.Dir(path))
	}
	return path
}

// Program returns the path of a program that test/kube-build.sh builds: helm, kubectl, and those of the control
// plane.
func Program(name string) string { return filepath.Join(bin(), name) }

func bin() string {
	if dir := os.Getenv("KUBE_BIN"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "scrimp-ci", "kube")
}

// tell logs the last output of the programs.
func (c *Cluster) tell(t testing.TB) {
	logs, _ := filepath.Glob(filepath.Join(c.Dir, "log", "*.log"))
	for _, path := range logs {
		text, _ := os.ReadFile(path)
		var said []string
		for line := range strings.Lines(string(text)) {
			if !usual(line) {
				said = append(said, line[:min(len(line), 400)])
			}
		}
		t.Logf("%s:\n%s", filepath.Base(path), strings.Join(said[max(0, len(said)-10):], ""))
	}
}

// usual reports whether a line of a Kubernetes program reports no problem.
func usual(line string) bool {
	return line == "" || line[0] == 'I' || strings.Contains(strings.ToLower(line), `"level":"info"`)
}

func (c *Cluster) script(name string, env ...string) error {
	if out, err := c.run(name, []string{c.Dir}, env...); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

func (c *Cluster) run(name string, args []string, env ...string) (string, error) {
	path := filepath.Join(testbin.Root(), "test", name)
	cmd := exec.Command(path, args...) //nolint:noctx // it ends with the test
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.Dir, "kubeconfig") }

// Do runs kubectl as the administrator.
func (c *Cluster) Do(t testing.TB, args ...string) string {
	t.Helper()
	out, err := c.Try(args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// Try runs kubectl and returns its error.
func (c *Cluster) Try(args ...string) (string, error) { return c.kubectl("", args...) }

// Apply applies manifests.
func (c *Cluster) Apply(t testing.TB, yaml string) {
	t.Helper()
	if out, err := c.kubectl(yaml, "apply", "-f", "-"); err != nil {
		t.Fatalf("kubectl apply: %v\n%s\n%s", err, out, yaml)
	}
}

func (c *Cluster) kubectl(stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, Program("kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), "HOME="+c.Dir)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// User creates a ServiceAccount with the Role, given as YAML, in the namespace, and the namespace if it is missing,
// with the restricted pod security profile. It returns the kubeconfig of the account's token, which is valid for a
// day.
func (c *Cluster) User(t testing.TB, namespace, role string) (kubeconfig string) {
	t.Helper()
	var head struct{ Metadata struct{ Name string } }
	if err := yaml.Unmarshal([]byte(role), &head); err != nil || head.Metadata.Name == "" {
		t.Fatalf("a Role without a name: %v\n%s", err, role)
	}
	name := head.Metadata.Name
	of, rights := "/api/v1/namespaces/"+namespace, "/apis/rbac.authorization.k8s.io/v1/namespaces/"+namespace
	c.Create(t, "/api/v1/namespaces", "apiVersion: v1\nkind: Namespace\n"+
		"metadata: {name: "+namespace+", labels: {pod-security.kubernetes.io/enforce: restricted}}\n")
	c.Create(t, of+"/serviceaccounts", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: "+name+"}\n")
	c.Create(t, rights+"/roles", role)
	c.Create(t, rights+"/rolebindings", fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[2]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[2]s}
subjects: [{kind: ServiceAccount, name: %[2]s, namespace: %[1]s}]
`, namespace, name))
	var granted struct{ Status struct{ Token string } }
	answer := c.Create(t, of+"/serviceaccounts/"+name+"/token",
		"apiVersion: authentication.k8s.io/v1\nkind: TokenRequest\nspec: {expirationSeconds: 86400}\n")
	if err := json.Unmarshal(answer, &granted); err != nil || granted.Status.Token == "" {
		t.Fatalf("no token of %s in %s: %v", name, namespace, err)
	}
	token := granted.Status.Token
	admin, err := os.ReadFile(c.Kubeconfig())
	must.Do(t, err)
	path := filepath.Join(c.Dir, "etc", namespace+"."+name+".kubeconfig")
	clusters, _, _ := strings.Cut(string(admin), "users:\n")
	text := fmt.Sprintf("%susers:\n- name: %s\n  user: {token: %s}\n"+
		"contexts:\n- name: test\n  context: {cluster: test, user: %[2]s, namespace: %[4]s}\ncurrent-context: test\n",
		clusters, name, token, namespace)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
