//go:build !local

package aws

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/lib/wait"
	"scrimp/internal/test/await"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/enginetest"
	"scrimp/internal/test/must"
	"scrimp/internal/test/proc"
	"scrimp/internal/test/testbin"
)

// home is a data folder whose server, the real program, rents from a cloud whose instances are processes of this
// machine that run their user data and the real agent.
type home struct {
	*site
	dir, data, program string
	listen             string // where instances reach the server
}

func newHome(t *testing.T) *home {
	t.Helper()
	if enginetest.Raced {
		t.Skip("skipped: what runs are other programs, of which the race detector sees nothing")
	}
	h := &home{dir: t.TempDir()}
	h.data, h.program = filepath.Join(h.dir, "d"), testbin.Full.Path(t)
	for _, sub := range []string{"w", "d"} {
		must.Do(t, os.Mkdir(filepath.Join(h.dir, sub), 0o700))
	}
	// An instance's bill begins when it runs, and its disk's ends when it is terminated: with these delays removed,
	// both are at times that EC2 reports, so that the sums agree to the last unit.
	h.site = newSite(t, awstest.Options{Net: "10.229.0.0/16", Run: &awstest.Run{Dir: filepath.Join(h.dir, "cloud")},
		Seed: time.Now().UnixNano(), Spans: awstest.Spans{Boot: 100 * time.Millisecond, Failing: time.Second,
			Rebalance: 2 * time.Second, Notice: 5 * time.Second, Listed: 24 * time.Hour}})
	h.file("d/certificate.pem", string(h.Certificate()))
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(h.Host, "0"))
	must.Do(t, err)
	h.listen = l.Addr().String()
	_ = l.Close()
	h.file("d/engines.yaml", `engines:
  - name: aws
    kind: aws
    agents: http://`+h.listen+`
    with:
      region: us-east-1
      endpoint: `+h.URL+`
      certificate: `+filepath.Join(h.data, "certificate.pem")+`
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
	log, err := os.OpenFile(filepath.Join(h.data, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must.Do(h, err)
	cmd := exec.Command(h.program, "--data", h.data, "serve", "--listen", h.listen, "--insecure") //nolint:noctx // scrimp server stop ends it
	cmd.Stdout, cmd.Stderr = log, log
	defer func() { _ = log.Close() }()
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
		c, err := (&net.Dialer{}).DialContext(h.Context(), "tcp", h.listen)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, h.log)
}

// log returns the end of the server's log.
func (h *home) log() string {
	text, _ := os.ReadFile(filepath.Join(h.data, "server.log"))
	return string(text[max(0, len(text)-64<<10):])
}

// killServer kills the server.
func (h *home) killServer() {
	h.Helper()
	var s struct {
		PID int `json:"pid"`
	}
	out, err := h.scrimp("server", "status", "--json")
	if err == nil && json.Unmarshal([]byte(out), &s) == nil && s.PID > 1 {
		_ = syscall.Kill(s.PID, syscall.SIGKILL)
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

func (h *home) file(name, text string) {
	h.Helper()
	must.Do(h, os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600))
}

func (h *home) scrimp(args ...string) (string, error) {
	cmd := exec.Command(h.program, append([]string{"--data", h.data}, args...)...) //nolint:noctx // the end of the test ends it
	cmd.Dir = filepath.Join(h.dir, "w")                                            // the folder sent to machines
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String() + said.String(), err
	}
	return out.String(), nil
}

func (h *home) does(args ...string) string {
	h.Helper()
	out, err := h.scrimp(args...)
	if err != nil {
		h.Fatalf("scrimp %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (h *home) job(name string) (j client.Job, ok bool) {
	out, err := h.scrimp("status", name, "--json")
	return j, err == nil && json.Unmarshal([]byte(out), &j) == nil
}

func (h *home) receipt(name string) (r receipt.Receipt) {
	h.Helper()
	must.Do(h, json.Unmarshal([]byte(h.does("receipt", name, "--json")), &r))
	if err := r.Check(); err != nil || !r.Ledger.Agrees {
		h.Errorf("the receipt of %s does not add up: %v, %v", name, err, r.Ledger.Agrees)
	}
	return r
}

func (h *home) unfinished() (n int) {
	out, err := h.scrimp("jobs", "--json")
	if err != nil {
		return 3
	}
	for l := range strings.Lines(out) {
		var j client.Job
		if json.Unmarshal([]byte(l), &j) == nil && !j.Closed {
			n++
		}
	}
	return n
}

// until waits for something that may take several of EC2's consistency delays.
func (h *home) until(what string, ok func() bool) {
	h.Helper()
	for until := time.Now().Add(5 * await.Limit); time.Now().Before(until) && !ok(); {
		if wait.For(h.Context(), 200*time.Millisecond) != nil {
			return
		}
	}
	if !ok() {
		out, _ := h.scrimp("jobs")
		h.Fatalf("not within %v: %s\n%s%v\n%s", 5*await.Limit, what, out, h.Left(), h.log())
	}
}

// submits submits a job that counts for some seconds, saves at every fourth and at a drain, and continues from what
// it saved.
func (h *home) submits(name string, nodes, steps int, more ...string) (string, error) {
	h.file("w/"+name+".yaml", fmt.Sprintf(`name: %s
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
	return h.scrimp(append(append([]string{"run", "-y", "-d", "--force"}, more...), name+".yaml")...)
}
