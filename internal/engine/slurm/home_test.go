package slurm

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/test/await"
	"scrimp/internal/test/enginetest"
	"scrimp/internal/test/must"
	"scrimp/internal/test/testbin"
)

// home is a data folder whose server, the real program, rents from a real cluster.
type home struct {
	*realCluster
	data string
}

func newHome(t *testing.T, env ...string) *home {
	t.Helper()
	if enginetest.Raced {
		t.Skip("skipped: what runs are other programs, of which the race detector sees nothing")
	}
	c := newCluster(t, env...)
	h := &home{c, filepath.Join(c.dir, "d")}
	must.Do(t, os.Mkdir(filepath.Join(c.dir, "w"), 0o700))
	t.Cleanup(func() {
		if out, err := h.scrimp("server", "stop", "--now"); err != nil {
			t.Errorf("stop: %v\n%s", err, out)
		}
	})
	return h
}

// engines writes engines.yaml; CONF in it represents the cluster's configuration.
func (h *home) engines(text string) {
	h.Helper()
	conf := "conf: " + h.conf()
	if h.rest != nil {
		conf = "rest: {url: " + h.rest.URL + "}"
	}
	h.file("d/engines.yaml", strings.NewReplacer("NAME", h.name, "CONF", conf, "SCRATCH",
		"scratch: "+filepath.Join(h.dir, "scratch")).Replace(text))
}

func (h *home) file(name, text string) {
	h.Helper()
	path := filepath.Join(h.dir, name)
	must.Do(h, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(h, os.WriteFile(path, []byte(text), 0o600))
}

func (h *home) scrimp(args ...string) (string, error) {
	cmd := exec.Command(testbin.Local.Path(h), append([]string{"--data", h.data}, args...)...) //nolint:noctx // the end of the test ends it
	cmd.Dir = filepath.Join(h.dir, "w")                                                        // the folder sent to machines
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
		log, _ := os.ReadFile(filepath.Join(h.data, "server.log"))
		out, _ := h.scrimp("jobs")
		queue, _ := h.try("squeue", "--all", "--states=all")
		return out + queue + "\n" + string(log)
	})
}

// counter runs a job that counts to n in steps of half a second, saves at every fourth and at a drain, and continues
// from what it saved.
func (h *home) counter(name, n, rest string) {
	h.Helper()
	h.counts(name, n, rest)
	h.does("run", "-y", "-d", "--force", name+".yaml")
}

// counts writes the job's file.
func (h *home) counts(name, n, rest string) {
	h.Helper()
	h.file("w/"+name+".yaml", "name: "+name+"\n"+rest+`
checkpoint: {dir: ck, interval: 2s}
progress: 'step=(?P<step>\d+)'
grace: 5s
command: |
  n=$(cat ck/n 2>/dev/null || echo 0)
  save() { echo $n > ck/n.tmp; mv ck/n.tmp ck/n; echo "saved=$n"; }
  trap 'save; exit 143' TERM
  echo "began at $n on $SCRIMP_INSTANCE"
  while [ $n -lt `+n+` ]; do
    n=$((n+1)); echo "step=$n"; sleep 0.5 & wait $!
    [ $((n%4)) = 0 ] && save
  done
  save
`)
}

// submit submits a job file without a plan, because planning a job that a time limit interrupts every minute takes
// long.
func (h *home) submit(name string) {
	h.Helper()
	h.does("jobs") // starts the server
	token, err := os.ReadFile(filepath.Join(h.data, "token"))
	must.Do(h, err)
	text, err := os.ReadFile(filepath.Join(h.dir, "w", name+".yaml"))
	must.Do(h, err)
	spec, err := json.Marshal(string(text))
	must.Do(h, err)
	body, err := json.Marshal(map[string]any{"key": name, "spec": json.RawMessage(spec), "accept_unproven": true})
	must.Do(h, err)
	c := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(h.data, "server.sock"))
	}}}
	req, err := http.NewRequestWithContext(h.Context(), http.MethodPost, "http://server/v1/jobs", bytes.NewReader(body))
	must.Do(h, err)
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Content-Type", "application/json")
	a, err := c.Do(req)
	must.Do(h, err)
	defer func() { _ = a.Body.Close() }()
	if said, _ := io.ReadAll(a.Body); a.StatusCode >= http.StatusMultipleChoices {
		h.Fatalf("submit: %s: %s", a.Status, said)
	}
}

// finished waits for the end of a job, which must have succeeded with at least that many attempts.
func (h *home) finished(name string, attempts int) client.Job {
	h.Helper()
	h.until(name+" is over", func() bool { return h.job(name).Closed })
	j := h.job(name)
	if j.State != "succeeded" || j.Attempts < attempts {
		h.Fatalf("%s: %s (%s) after %d attempts, want it succeeded after "+
			"%d\n%s", name, j.State, j.Why, j.Attempts, attempts,
			h.does("logs", name))
	}
	return j
}

// slurmJob returns the Slurm job of a machine.
func slurmJob(machine string) string {
	f := strings.Split(machine, "-")
	return f[len(f)-2]
}
