//go:build !local

package kube

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"scrimp/client"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/test/await"
	"scrimp/internal/test/image"
	"scrimp/internal/test/kubetest"
	"scrimp/internal/test/must"
	"scrimp/internal/test/proc"
	"scrimp/internal/test/testbin"
)

// home is a data folder whose server, the real program, rents pods on real nodes.
type home struct {
	*site
	dir, data string
	host      string // address of this machine that pods can reach
	listen    string // where the server listens; empty: not started yet
	pools     string // prefix of the names of its nodes' pools
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
	h := &home{site: s, dir: t.TempDir(), host: host, pools: pools}
	h.data = filepath.Join(h.dir, "d")
	for _, sub := range []string{"w", "d"} {
		must.Do(t, os.Mkdir(filepath.Join(h.dir, sub), 0o700))
	}
	return h
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
`+strings.ReplaceAll(pools, "POOL ", "pool: "+h.pools+"-"))
		if h.serves() {
			return
		}
		if log := h.log(); !strings.Contains(log, "address already in use") {
			h.Fatalf("the server ended:\n%s", log)
		}
	}
}

// serve starts the server again.
func (h *home) serve() {
	h.Helper()
	if !h.serves() {
		h.Fatalf("the server ended:\n%s", h.log())
	}
}

// serves starts the server, and reports whether it answers; false means that it ended.
func (h *home) serves() (listens bool) {
	h.Helper()
	log, err := os.OpenFile(filepath.Join(h.data, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must.Do(h, err)
	defer func() { _ = log.Close() }()
	cmd := exec.Command(testbin.Full.Path(h), "--data", h.data, "serve", "--listen", h.listen, "--insecure") //nolint:noctx // scrimp server stop ends it
	cmd.Stdout, cmd.Stderr = log, log
	server := proc.Start(h, cmd)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Wait() }()
	h.Cleanup(func() { // terminates the rented machines; only the last server still runs
		select {
		case <-ended:
		default:
			if out, err := h.scrimp("server", "stop", "--now"); err != nil {
				h.Errorf("stop: %v\n%s", err, out)
			}
		}
	})
	await.True(h, "the server listens", func() bool { // a command would start a server that does not listen
		select {
		case <-ended:
			return true
		default:
		}
		c, err := (&net.Dialer{}).DialContext(h.Context(), "tcp", h.listen)
		if err == nil {
			_ = c.Close()
			listens = true
		}
		return listens
	}, h.log)
	return listens
}

func (h *home) log() string {
	text, _ := os.ReadFile(filepath.Join(h.data, "server.log"))
	return string(text)
}

func (h *home) file(name, text string) {
	h.Helper()
	must.Do(h, os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600))
}

func (h *home) scrimp(args ...string) (string, error) {
	cmd := exec.Command(testbin.Full.Path(h), append([]string{"--data", h.data}, args...)...) //nolint:noctx // the end of the test ends it
	cmd.Dir = filepath.Join(h.dir, "w")                                                       // the folder sent to machines
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
	must.Do(h, json.Unmarshal([]byte(h.does("status", id, "--json")), &j))
	return j
}

func (h *home) receipt(id string) (r receipt.Receipt) {
	h.Helper()
	must.Do(h, json.Unmarshal([]byte(h.does("receipt", id, "--json")), &r))
	if err := r.Check(); err != nil || !r.Ledger.Agrees {
		h.Errorf("the receipt of %s does not add up: %v, %v", id, err, r.Ledger.Agrees)
	}
	return r
}

func (h *home) until(what string, ok func() bool) {
	h.Helper()
	await.True(h, what, ok, func() string {
		out, _ := h.scrimp("jobs")
		pods, _ := h.Try("get", "pods,jobs,configmaps", "-n", h.namespace, "-o", "wide")
		said, _ := h.Try("describe", "pods", "-n", h.namespace)
		return out + pods + "\n" + said + "\n" + h.log()
	})
}

// counter runs a job that counts.
func (h *home) counter(name, n, rest string) {
	h.Helper()
	h.file("w/"+name+".yaml", counting(name, n, rest))
	h.does("run", "-y", "-d", "--force", name+".yaml")
}

// counting is a job that counts to n in steps of half a second, saves at every fourth and at a drain, and continues
// from what it saved.
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

// finished waits for the end of a job, which must have succeeded with at least that many attempts.
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

// podOf returns the pod of a machine.
func (h *home) podOf(machine string) string {
	h.Helper()
	n := strings.LastIndexByte(machine, '-')
	name, index := strings.TrimPrefix(machine[:n], "k8s-"), machine[n+1:]
	out := h.Do(h, "get", "pods", "-n", h.namespace, "-l", "job-name="+name+",batch.kubernetes.io/job-completion-index="+index,
		"-o", "jsonpath={.items[*].metadata.name}")
	return out
}
