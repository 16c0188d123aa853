package slurm

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
	"scrimp/internal/test/realserver"
	"scrimp/internal/test/testbin"
)

// home is a data folder whose server, the real program, rents from a real cluster.
type home struct {
	*realCluster
	*realserver.Server
}

func newHome(t *testing.T, env ...string) *home {
	t.Helper()
	c := newCluster(t, env...)
	h := &home{c, realserver.New(t, c.dir, testbin.Local.Path(t))}
	t.Cleanup(h.StopServer)
	return h
}

// engines writes engines.yaml; CONF in it represents the cluster's configuration.
func (h *home) engines(text string) {
	h.Helper()
	conf := "conf: " + h.conf()
	if h.rest != nil {
		conf = "rest: {url: " + h.rest.URL + "}"
	}
	h.File("d/engines.yaml", strings.NewReplacer("NAME", h.name, "CONF", conf, "SCRATCH",
		"scratch: "+filepath.Join(h.dir, "scratch")).Replace(text))
}

func (h *home) until(what string, ok func() bool) {
	h.Helper()
	eventually.True(h, what, ok, func() string {
		out, _ := h.Scrimp("jobs")
		queue, _ := h.try("squeue", "--all", "--states=all")
		return out + queue + "\n" + h.ServerLog()
	})
}

// submit submits a job file without a plan, because planning a job that a time limit interrupts every minute takes
// long.
func (h *home) submit(name string) {
	h.Helper()
	h.Does("jobs") // starts the server
	token, err := os.ReadFile(filepath.Join(h.Data, "token"))
	must.Do(h, err)
	text, err := os.ReadFile(filepath.Join(h.dir, "w", name+".yaml"))
	must.Do(h, err)
	spec, err := json.Marshal(string(text))
	must.Do(h, err)
	body, err := json.Marshal(map[string]any{"key": name, "spec": json.RawMessage(spec), "accept_unproven": true})
	must.Do(h, err)
	c := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(h.Data, "server.sock"))
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
	return h.Finished(name, attempts, h.until)
}

// slurmJob returns the Slurm job of a machine.
func slurmJob(machine string) string {
	f := strings.Split(machine, "-")
	return f[len(f)-2]
}
