//go:build !local

package aws

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"scrimp/internal/lib/wait"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
	"scrimp/internal/test/realserver"
	"scrimp/internal/test/testbin"
)

// home is a data folder whose server, the real program, rents from a cloud whose instances are processes of this
// machine that run their user data and the real agent.
type home struct {
	*site
	*realserver.Server
	listen string // where instances reach the server
}

func newHome(t *testing.T) *home {
	t.Helper()
	h := &home{Server: realserver.New(t, t.TempDir(), testbin.Full.Path(t))}
	// An instance's bill begins when it runs, and its disk's ends when it is terminated: with these delays removed,
	// both are at times that EC2 reports, so that the sums agree to the last unit.
	h.site = newSite(t, awstest.Options{Net: "10.229.0.0/16", Run: &awstest.Run{Dir: filepath.Join(h.Dir, "cloud")},
		Seed: time.Now().UnixNano(), Spans: awstest.Spans{Boot: 100 * time.Millisecond, Failing: time.Second,
			Rebalance: 2 * time.Second, Notice: 5 * time.Second, Listed: 24 * time.Hour}})
	h.File("d/certificate.pem", string(h.Certificate()))
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(h.Host, "0"))
	must.Do(t, err)
	h.listen = l.Addr().String()
	_ = l.Close()
	h.File("d/engines.yaml", `engines:
  - name: aws
    kind: aws
    agents: http://`+h.listen+`
    with:
      region: us-east-1
      endpoint: `+h.URL+`
      certificate: `+filepath.Join(h.Data, "certificate.pem")+`
      types: [c7i.xlarge, m7i.large]
      image: ami-0000000000000a64a
      disk: 20GiB
      disk_rate: 0.08
    timing: {poll: 1s, sweep: 5s, detect: 15s, boot: 90s, idle: 0s}
`)
	h.serve()
	return h
}

// serve starts the server and waits until it answers.
func (h *home) serve() {
	h.Helper()
	if !h.Serve(h.listen) {
		h.Fatalf("the server ended:\n%s", h.ServerLog())
	}
}

// agents returns the processes of this server's agents on all instances.
func (h *home) agents() (pids []int) {
	h.Helper()
	list, err := os.ReadDir("/proc")
	must.Do(h, err)
	for _, f := range list {
		pid, err := strconv.Atoi(f.Name())
		line, _ := os.ReadFile(filepath.Join("/proc", f.Name(), "cmdline"))
		env, _ := os.ReadFile(filepath.Join("/proc", f.Name(), "environ"))
		if err == nil && string(line) == "./scrimp\x00agent\x00" &&
			slices.Contains(strings.Split(string(env), "\x00"), "SCRIMP_SERVER=http://"+h.listen) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// until waits for something that may take several of EC2's consistency delays.
func (h *home) until(what string, ok func() bool) {
	h.Helper()
	for until := time.Now().Add(5 * eventually.Limit); time.Now().Before(until) && !ok(); {
		if wait.For(h.Context(), 200*time.Millisecond) != nil {
			return
		}
	}
	if !ok() {
		out, _ := h.Scrimp("jobs")
		h.Fatalf("not within %v: %s\n%s%v\n%s", 5*eventually.Limit, what, out, h.Left(), h.ServerLog())
	}
}

// submits submits a job that counts for some seconds, saves at every fourth and at a drain, and continues from what
// it saved.
func (h *home) submits(name string, nodes, steps int, more ...string) (string, error) {
	h.File("w/"+name+".yaml", fmt.Sprintf(`name: %s
nodes: %d
checkpoint: {dir: ck, interval: 2s}
progress: 'step=(?P<step>\d+)'
grace: 3s
command: |
  n=$(cat ck/n 2>/dev/null || echo 0)
  save() { echo $n > ck/n.tmp; mv ck/n.tmp ck/n; echo "saved=$n"; }
  trap 'save; exit 143' TERM
  while [ $n -lt %d ]; do
    n=$((n+1)); echo "step=$n"; sleep 0.5 & wait $!
    [ $((n%%4)) = 0 ] && save
  done
  save
`, name, nodes, steps))
	return h.Scrimp(append(append([]string{"run", "-y", "-d", "--force"}, more...), name+".yaml")...)
}
