//go:build unix

package interactive

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/proc"
	"scrimp/internal/wire/api"
)

// cell runs a cell in the kernel of a connection file. The cell runs until there is a file stop. The client calls a
// kernel dead whose heartbeat is a second late, which says how busy the machine is, so cell asks again.
const cell = `import sys
from jupyter_client import BlockingKernelClient
c = BlockingKernelClient(connection_file=sys.argv[1])
c.load_connection_file()
c.start_channels()
while True:
    try:
        c.wait_for_ready()
        break
    except RuntimeError:
        pass
c.execute("import os, time\nopen('started', 'w').close()\nwhile not os.path.exists('stop'): time.sleep(0.02)")
c.stop_channels()
`

// With a real Jupyter the link opens the first page with the token and without it only the login, and the session is
// in use exactly while a cell runs.
func TestSeat_RealJupyterIsBusyWhileACellRuns(t *testing.T) {
	lane.Component(t, "python")
	const python = "/usr/bin/python3" // the one that Debian's Jupyter uses
	if err := exec.Command(python, "-c", "import jupyter_client, ipykernel").Run(); err != nil {
		t.Skip("jupyter-notebook is not installed")
	}
	dir := t.TempDir()
	s := New(&api.Assignment{Job: "s", Session: Notebook, Idle: time.Hour}, time.Now)
	args, env, _, err := s.Program([]string{"PATH=/usr/bin:/bin", "HOME=" + dir, "JUPYTER_RUNTIME_DIR=" + filepath.Join(dir, "run")}, 0)
	if err != nil {
		t.Fatal(err)
	}
	jupyter := exec.Command(args[0], args[1:]...)
	jupyter.Dir, jupyter.Env = dir, env
	p := proc.Start(t, jupyter)
	page := func(url string) string { // the path of the page that the link leads to; empty: none
		answer, err := http.Get("http://" + s.address + url)
		if err != nil {
			return ""
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return ""
		}
		return answer.Request.URL.Path
	}
	eventually.True(t, "the notebook opens with its token", func() bool { return page("/?token="+s.token) == "/tree" })
	if got := page("/?token=wrong"); got == "/tree" {
		t.Error("it opens with another token")
	}
	var kernel struct{ ID string }
	s.asks(t, http.MethodPost, "/api/kernels", &kernel)
	if s.kernelBusy(t.Context()) {
		eventually.True(t, "the kernel has started", func() bool { return !s.kernelBusy(t.Context()) })
	}
	run := exec.Command(python, "-c", cell, filepath.Join(dir, "run", "kernel-"+kernel.ID+".json"))
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	eventually.True(t, "the cell runs, and its user has left", func() bool {
		_, err := os.Stat(filepath.Join(dir, "started"))
		return err == nil && s.kernelBusy(t.Context())
	})
	if err := os.WriteFile(filepath.Join(dir, "stop"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the cell is over", func() bool { return !s.kernelBusy(t.Context()) })
	s.asks(t, http.MethodPost, "/api/shutdown", nil) // it ends its kernels
	_ = p.Wait()
}

// asks sends a request to the notebook and reads the answer, if it has a place for it.
func (s *Seat) asks(t *testing.T, method, path string, into any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.address+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "token "+s.token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if into != nil && json.NewDecoder(answer.Body).Decode(into) != nil {
		t.Fatalf("%s %s: %s", method, path, answer.Status)
	}
}
