package slurm

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"scrimp/internal/engine"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// The machine's token appears in no argument, environment, script or record, and only its user can read it. Variables
// of the allocation and of the server's shell do not reach the agent.
func TestToken_IsHidden(t *testing.T) {
	lane.Component(t, "slurm")
	t.Setenv("PGPASSWORD", "hunter2")
	t.Setenv("SBATCH_PARTITION", "closed")
	c := newCluster(t, "GRACE=2")
	must.Do(t, os.Mkdir(filepath.Join(c.dir, "d"), 0o700))
	d := c.driver(t)
	a := &again{Driver: d}
	list, err := a.Launch(t.Context(), engine.Request{Key: "k", Nodes: 1, Offer: c.offer("ondemand/a100x4-8c-3g/on-demand")})
	must.Do(t, err)
	machine := filepath.Join(c.dir, "scratch", "scrimp-"+strconv.Itoa(os.Getuid()), list[0].ID)
	var environ []byte
	eventually.True(t, "the agent begins", func() bool {
		pid, _ := os.ReadFile(filepath.Join(machine, "pid"))
		environ, _ = os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/environ")
		return bytes.Contains(environ, []byte("SCRIMP_INSTANCE_ID="+list[0].ID))
	})
	for _, secret := range []string{"bootstrap.secret", "hunter2", "SLURM_JOB", "SBATCH_"} {
		if bytes.Contains(environ, []byte(secret)) {
			t.Errorf("the agent's environment has %s", secret)
		}
	}
	if !bytes.Contains(environ, []byte("CUDA_VISIBLE_DEVICES=0,1,2,3\x00")) {
		t.Error("the agent does not know its accelerators")
	}
	token := filepath.Join(machine, "agent", "bootstrap.token")
	if text, err := os.ReadFile(token); err != nil || string(text) != "bootstrap.secret" {
		t.Errorf("the token: %q, %v", text, err)
	}
	holds := func(top string) {
		_ = filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				if err == nil && path != top && e.IsDir() && strings.HasPrefix(path, filepath.Join(c.dir, "data", "engines", c.name)) {
					if st, err := e.Info(); err != nil || st.Mode().Perm()&0o077 != 0 {
						t.Errorf("others read %s: %v, %v", path, st.Mode(), err)
					}
				}
				return nil
			}
			st, err := e.Info()
			if err != nil || !st.Mode().IsRegular() || path == token {
				return nil
			}
			if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte("bootstrap.secret")) {
				t.Errorf("%s has the token", path)
			}
			return nil
		})
	}
	holds(filepath.Join(c.dir, "data"))
	holds(filepath.Join(c.cluster.Dir, "spool"))
	holds(filepath.Join(c.cluster.Dir, "state"))
	if st, err := os.Stat(token); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the token's file: %v, %v", st.Mode(), err)
	}
}
