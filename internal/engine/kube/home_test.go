//go:build !local

package kube

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/await"
	"scrimp/internal/engine/enginetest"
	"scrimp/internal/engine/kube/image"
	"scrimp/internal/engine/kube/kubetest"
	"scrimp/internal/receipt"
	"scrimp/internal/test/testbin"
)

// home is a data folder whose server, the real program, rents pods on real nodes.
type home struct {
	*site
	dir, data string
	listen    string // where pods reach the server
}

// newHome starts a cluster with real nodes: each is of the pool before the hyphen of its name.
func newHome(t *testing.T, nodes ...string) (*home, []*kubetest.RealNode) {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	if enginetest.Raced {
		t.Skip("skipped: what runs are other programs, of which the race detector sees nothing")
	}
	c := cluster(t)
	s := newSite(t, c)
	var added []*kubetest.RealNode
	for _, name := range nodes {
		pool, _, _ := strings.Cut(name, "-")
		labels := []string{}
		for k, v := range s.pool(pool) {
			labels = append(labels, k+"="+v)
		}
		added = append(added, c.RealNode(t, name, labels...))
	}
	user, err := image.Shell("localhost/user:1")
	if err != nil {
		t.Fatal(err)
	}
	agent, err := image.Agent("localhost/scrimp:1", testbin.Full.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	c.Import(t, user, agent)
	h := &home{site: s, dir: t.TempDir()}
	h.data = filepath.Join(h.dir, "d")
	for _, sub := range []string{"w", "d"} {
		if err := os.Mkdir(filepath.Join(h.dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h.listen = net.JoinHostPort(added[0].Host, fmt.Sprint(freePort(t, added[0].Host)))
	t.Cleanup(func() {
		if out, err := h.scrimp("server", "stop", "--now"); err != nil {
			t.Errorf("stop: %v\n%s", err, out)
		}
	})
	return h, added
}

func freePort(t testing.TB, host string) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	a, _ := l.Addr().(*net.TCPAddr)
	return a.Port
}

// engines writes the engine with these pools, and starts the server.
func (h *home) engines(pools string) {
	h.Helper()
	h.file("d/engines.yaml", `engines:
  - name: k8s
    kind: kubernetes
    agents: http://`+h.listen+`
    with:
      kubeconfig: `+h.config+`
      image: localhost/user:1
      agent_image: localhost/scrimp:1
      user: 1000
      pools:
`+strings.ReplaceAll(pools, "POOL ", "pool: "+h.namespace+"-"))
	h.serve()
}

// serve starts the server, and waits until it answers.
func (h *home) serve() {
	h.Helper()
	log, err := os.OpenFile(filepath.Join(h.data, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		h.Fatal(err)
	}
	cmd := exec.Command(testbin.Full.Path(h), "--data", h.data, "serve", "--listen", h.listen, "--insecure") //nolint:noctx // scrimp server stop ends it
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		h.Fatal(err)
	}
	go func() { _ = cmd.Wait(); _ = log.Close() }()
	await.True(h, "the server listens", func() bool { // a command would start one that does not
		c, err := (&net.Dialer{}).DialContext(h.Context(), "tcp", h.listen)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, func() string { text, _ := os.ReadFile(log.Name()); return string(text) })
}

func (h *home) file(name, text string) {
	h.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
		h.Fatal(err)
	}
}

func (h *home) scrimp(args ...string) (string, error) {
	cmd := exec.Command(testbin.Full.Path(h), append([]string{"--data", h.data}, args...)...) //nolint:noctx // the end of the test ends it
	cmd.Dir = filepath.Join(h.dir, "w")                                                       // which is sent to machines
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (h *home) does(args ...string) string {
	h.Helper()
	out, err := h.scrimp(args...)
	if err != nil {
		h.Fatalf("scrimp %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (h *home) job(id string) (j client.Job) {
	h.Helper()
	if err := json.Unmarshal([]byte(h.does("status", id, "--json")), &j); err != nil {
		h.Fatal(err)
	}
	return j
}

func (h *home) receipt(id string) (r receipt.Receipt) {
	h.Helper()
	if err := json.Unmarshal([]byte(h.does("receipt", id, "--json")), &r); err != nil {
		h.Fatal(err)
	}
	if err := r.Check(); err != nil || !r.Ledger.Agrees {
		h.Errorf("the receipt of %s does not add up: %v, %v", id, err, r.Ledger.Agrees)
	}
	return r
}

func (h *home) until(what string, ok func() bool) {
	h.Helper()
	await.True(h, what, ok, func() string {
		log, _ := os.ReadFile(filepath.Join(h.data, "server.log"))
		out, _ := h.scrimp("jobs")
		pods, _ := h.Try("get", "pods,jobs,configmaps", "-n", h.namespace, "-o", "wide")
		said, _ := h.Try("describe", "pods", "-n", h.namespace)
		return out + pods + "\n" + said + "\n" + string(log)
	})
}

// counter runs a job that counts.
func (h *home) counter(name, n, rest string) {
	h.Helper()
	h.file("w/"+name+".yaml", counting(name, n, rest))
	h.does("run", "-y", "-d", "--force", name+".yaml")
}

// counting is a job that counts to n in steps of half a second, saves every fourth and when it is told to end,
// and goes on from what it saved.
func counting(name, n, rest string) string {
	return "name: " + name + "\n" + rest + `
checkpoint: {dir: ck, interval: 2s}
progress: 'step=(?P<step>\d+)'
grace: 5s
command: |
  n=$(cat ck/n 2>/dev/null || echo 0)
  save() { echo $n > ck/n.tmp; mv ck/n.tmp ck/n; echo "saved=$n"; }
  trap 'save; exit 143' TERM
  echo "began at $n on $SCRIMP_INSTANCE"
  while [ $n -lt ` + n + ` ]; do
    n=$((n+1)); echo "step=$n"; sleep 0.5 & wait $!
    [ $((n%4)) = 0 ] && save
  done
  save
`
}

// finished waits for the end of a job, which must have succeeded with that many attempts at least.
func (h *home) finished(name string, attempts int) client.Job {
	h.Helper()
	h.until(name+" is over", func() bool { return h.job(name).Closed })
	j := h.job(name)
	if j.State != "succeeded" || j.Attempts < attempts {
		h.Fatalf("%s: %s (%s) after %d attempts, want it succeeded after %d\n%s", name, j.State, j.Why, j.Attempts, attempts,
			h.does("logs", name))
	}
	return j
}

// podOf is the pod of a machine.
func (h *home) podOf(machine string) string {
	h.Helper()
	n := strings.LastIndexByte(machine, '-')
	name, index := strings.TrimPrefix(machine[:n], "k8s-"), machine[n+1:]
	out := h.Do(h, "get", "pods", "-n", h.namespace, "-l", "job-name="+name+",batch.kubernetes.io/job-completion-index="+index,
		"-o", "jsonpath={.items[*].metadata.name}")
	return out
}
