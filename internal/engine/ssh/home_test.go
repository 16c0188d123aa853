package ssh

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"scrimp/client"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/engine"
	"scrimp/internal/test/await"
	"scrimp/internal/test/enginetest"
	"scrimp/internal/test/must"
	"scrimp/internal/test/sshtest"
	"scrimp/internal/test/testbin"
)

// home is a data folder with a real server whose machines each have a real sshd.
type home struct {
	testing.TB
	*sshtest.Machines
	n                          int // number of machines
	program, dir, data, folder string
	began                      map[string]string // machine by key, from the machines' folders
}

// newHome returns a home with n machines from 10.NET.1.2 on. timing is a part of engines.yaml;
// empty means the defaults.
func newHome(t *testing.T, n, net int, timing string) *home {
	t.Helper()
	if enginetest.Raced {
		t.Skip("skipped: what runs are other programs, of which the race detector sees nothing")
	}
	machines := sshtest.Start(t, n, net)
	program := testbin.Local.Path(t)
	dir, err := os.MkdirTemp("", "sh") // short, because socket paths are limited
	must.Do(t, err)
	h := &home{t, machines, n, program, dir, filepath.Join(dir, "d"), filepath.Join(dir, "own"), map[string]string{}}
	t.Cleanup(func() {
		if out, err := h.scrimp("server", "stop", "--now"); err != nil {
			t.Errorf("stop: %v\n%s", err, out)
		}
		_ = os.RemoveAll(dir)
	})
	var hosts []string
	for k := range n {
		hosts = append(hosts, fmt.Sprintf("m%d", k+1))
	}
	h.file("w/none", "")
	h.file("d/engines.yaml", fmt.Sprintf(`engines:
  - name: lab
    kind: ssh
    timing: {%s}
    with: {config: %s, folder: %s, rate: 0.80, marginal: 0.10, hosts: [%s]}
`, timing, machines.Config, h.folder, strings.Join(hosts, ", ")))
	return h
}

func (h *home) file(name, text string) {
	h.Helper()
	path := filepath.Join(h.dir, name)
	must.Do(h, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(h, os.WriteFile(path, []byte(text), 0o600))
}

func (h *home) scrimp(args ...string) (string, error) {
	cmd := exec.Command(h.program, append([]string{"--data", h.data}, args...)...) //nolint:noctx // the end of the test ends it
	cmd.Dir = filepath.Join(h.dir, "w")                                            // the folder that is sent to machines
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (h *home) does(args ...string) string {
	h.Helper()
	out, err := h.scrimp(args...)
	if err != nil {
		h.Fatalf("scrimp %s: %v\n%s\n%s", strings.Join(args, " "), err, out, h.log())
	}
	return out
}

func (h *home) log() string {
	text, _ := os.ReadFile(filepath.Join(h.data, "server.log"))
	return string(text[max(0, len(text)-6000):])
}

// job returns a job; ok is false if it is unknown or no server responds.
func (h *home) job(id string) (j client.Job, ok bool) {
	out, err := h.scrimp("status", id, "--json")
	return j, err == nil && json.Unmarshal([]byte(out), &j) == nil
}

// on returns the number of the machine that a job runs on; 0: none.
func (h *home) on(id string) (k int) {
	if j, ok := h.job(id); ok && j.Phase == "running" {
		_, _ = fmt.Sscanf(j.Machine, "lab-m%d-", &k)
	}
	return k
}

// receipt returns a job's receipt and checks its sums.
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
		for k := range h.n {
			for _, i := range h.records(k + 1)[engine.Running] {
				out += fmt.Sprintf("m%d has %+v\n", k+1, i)
			}
			for _, pid := range h.Pids(h, k+1) {
				line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				out += fmt.Sprintf("m%d runs %d %q\n", k+1, pid, line)
			}
		}
		return out + "\n" + h.log()
	})
}

// counts submits a job that counts to n in steps of a quarter of a second and saves every fourth.
// Its saves record the machine of each step, and it prints the record at the end.
func (h *home) counts(name string, n int) (string, error) {
	h.Helper()
	h.file("w/"+name+".yaml", fmt.Sprintf(`name: %s
checkpoint: {dir: ck, interval: 1s}
progress: 'step=(?P<step>\d+)'
grace: 3s
command: |
  n=$(cat ck/steps 2>/dev/null | wc -l)
  cp ck/steps steps 2>/dev/null || : > steps
  save() { cp steps ck/steps.new && mv ck/steps.new ck/steps; }
  trap 'save; exit 143' TERM
  echo "began at $n"
  while [ $n -lt %d ]; do
    n=$((n+1)); echo "$n $SCRIMP_INSTANCE" >> steps; echo "step=$n"; sleep 0.25 & wait $!
    [ $((n%%4)) = 0 ] && save
  done
  save
  sed 's/^/made /' steps
`, name, n))
	return h.scrimp("run", "-y", "-d", "--force", name+".yaml")
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
