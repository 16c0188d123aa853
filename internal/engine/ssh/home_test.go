package ssh

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/engine"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
	"scrimp/internal/test/realserver"
	"scrimp/internal/test/sshtest"
	"scrimp/internal/test/testbin"
)

// home is a data folder with a real server whose machines each have a real sshd.
type home struct {
	testing.TB
	*sshtest.Machines
	*realserver.Server
	n      int               // number of machines
	folder string            // of the machines
	began  map[string]string // machine by key, from the machines' folders
}

// newHome returns a home with n machines from 10.NET.1.2 on. timing is a part of engines.yaml;
// empty means the defaults.
func newHome(t *testing.T, n, net int, timing string) *home {
	t.Helper()
	machines := sshtest.Start(t, n, net)
	dir, err := os.MkdirTemp("", "sh") // short, because socket paths are limited
	must.Do(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &home{t, machines, realserver.New(t, dir, testbin.Local.Path(t)), n, filepath.Join(dir, "own"), map[string]string{}}
	t.Cleanup(h.StopServer)
	var hosts []string
	for k := range n {
		hosts = append(hosts, fmt.Sprintf("m%d", k+1))
	}
	h.File("w/none", "")
	h.File("d/engines.yaml", fmt.Sprintf(`engines:
  - name: lab
    kind: ssh
    timing: {%s}
    with: {config: %s, folder: %s, rate: 0.80, marginal: 0.10, hosts: [%s]}
`, timing, machines.Config, h.folder, strings.Join(hosts, ", ")))
	return h
}

// on returns the number of the machine that a job runs on; 0: none.
func (h *home) on(id string) (k int) {
	if j, ok := h.TryJob(id); ok && j.Phase == "running" {
		_, _ = fmt.Sscanf(j.Machine, "lab-m%d-", &k)
	}
	return k
}

func (h *home) until(what string, ok func() bool) {
	h.Helper()
	eventually.True(h, what, ok, func() string {
		out, _ := h.Scrimp("jobs")
		for k := range h.n {
			for _, i := range h.records(k + 1)[engine.Running] {
				out += fmt.Sprintf("m%d has %+v\n", k+1, i)
			}
			for _, pid := range h.Pids(h, k+1) {
				line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				out += fmt.Sprintf("m%d runs %d %q\n", k+1, pid, line)
			}
		}
		return out + "\n" + h.ServerLog()
	})
}

// counts submits a job that counts to n in steps of a quarter of a second and saves every fourth.
// Its saves record the machine of each step, and it prints the record at the end.
func (h *home) counts(name string, n int) (string, error) {
	h.Helper()
	h.File("w/"+name+".yaml", fmt.Sprintf(`name: %s
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
	return h.Scrimp("run", "-y", "-d", "--force", name+".yaml")
}
