package slurm

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/slurm/rest"
	"scrimp/internal/engine/slurm/scheduler"
	"scrimp/internal/test/enginetest"
	"scrimp/internal/test/lane"
)

// needs skips the test if a file is missing, and names the package that provides it.
func needs(t testing.TB, file, pack string) {
	t.Helper()
	if _, err := exec.LookPath(filepath.Base(file)); err == nil {
		return
	}
	if found, _ := filepath.Glob(file); len(found) > 0 {
		return
	}
	t.Skipf("%s is not installed: apt-get install %s", pack, pack)
}

// A driver that uses slurmrestd passes the same contract as one that runs commands.
func TestDriver_ConformsOverREST(t *testing.T) {
	lane.Component(t, "slurm")
	t.Parallel()
	enginetest.Run(t, func(t testing.TB) enginetest.Rig { return newCluster(t, "GRACE=2", "REST=1").rig(t) })
}

// Doctor asks slurmrestd how it would answer a job, and leaves nothing in the queue. Impossible requests are refused
// with the same text as by the commands.
func TestExamine_NamesWhatIsMissingOverREST(t *testing.T) {
	lane.Component(t, "slurm")
	t.Parallel()
	c := newCluster(t, "GRACE=2", "REST=1")
	d := c.driver(t)
	all := findings(t, d)
	for _, name := range []string{"slurmrestd", "controller", "partition ondemand", "account for ondemand a100x4-8c-3g"} {
		if all[name] == "" || strings.HasPrefix(all[name], "*") {
			t.Errorf("%s: %q", name, all[name])
		}
	}
	if queue := c.do("squeue", "-h"); queue != "" {
		t.Errorf("left in the queue: %s", queue)
	}
	for name, wrong := range map[string]func(*scheduler.Order){
		"Invalid partition": func(o *scheduler.Order) { o.Partition = "nope" },
		"not available":     func(o *scheduler.Order) { o.Accelerator = "h100" },
		"Invalid feature":   func(o *scheduler.Order) { o.Constraint = "x" },
		"reservation":       func(o *scheduler.Order) { o.Options = []string{"--reservation=x"} },
		"not allow":         func(o *scheduler.Order) { o.Partition, o.Limit = "short", time.Hour },
		"does not know":     func(o *scheduler.Order) { o.Options = []string{"--cpu-freq=never"} },
	} {
		o := &scheduler.Order{Name: scheduler.TrialName, Partition: "ondemand", Nodes: 1, CPUs: 8, Accelerators: 4, Lead: time.Minute}
		wrong(o)
		if err := d.slurm.Try(t.Context(), o); !engine.Refused(err) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := &scheduler.Order{Name: scheduler.TrialName, Partition: "short", Nodes: 1, CPUs: 8, Lead: time.Minute, Unlimited: true}
	if err := d.slurm.Try(t.Context(), o); !engine.Refused(err) || !strings.Contains(err.Error(), "not allow") {
		t.Errorf("without a limit: %v", err)
	}
	o.Partition = "ondemand"
	if err := d.slurm.Try(t.Context(), o); err != nil {
		t.Errorf("without a limit: %v", err)
	}
	c.kill("slurmrestd")
	if all := findings(t, d); !strings.Contains(all["slurmrestd"]+all["controller"], "start slurmrestd") {
		t.Errorf("without slurmrestd: %q", all)
	}
}

// A token identifies the caller on a port, too. The file is read again for each request: a renewed token is used from
// then on, and a token that has expired, that the cluster does not accept or that others can read is reported with
// the fix.
func TestToken_IsReadAgain(t *testing.T) {
	lane.Component(t, "slurm")
	t.Parallel()
	needs(t, "/usr/lib/*/slurm*/auth_jwt.so", "slurm-wlm-jwt-plugin")
	c := newCluster(t, "REST=1", "JWT=1") // one more daemon, with its own settings
	path := filepath.Join(c.dir, "token")
	c.rest = &rest.Setting{URL: "http://127.0.0.1:" + strconv.Itoa(c.cluster.Port+8), TokenFile: path}
	d := c.driver(t)
	write := func(token string, mode os.FileMode) {
		_ = os.Remove(path)
		if err := os.WriteFile(path, []byte(token), mode); err != nil {
			t.Fatal(err)
		}
	}
	good := c.do("scontrol", "token", "lifespan=600") + "\n"
	fails := func(what string) {
		t.Helper()
		_, err := d.List(t.Context())
		if err == nil || !strings.Contains(err.Error(), what) || strings.Contains(err.Error(), strings.TrimSpace(good[10:])) {
			t.Errorf("want %q: %v", what, err)
		}
		if all := findings(t, d); !strings.Contains(all["credentials"], what) {
			t.Errorf("doctor: %q", all)
		}
	}
	fails("lifespan=86400")
	write(good, 0o644)
	fails("chmod 600")
	write(good[:len(good)-9]+"AAAAAAAA\n", 0o600)
	fails("rejects the token")
	write(expired(good), 0o600)
	fails("it expired at")
	write(good, 0o600)
	a := &again{Driver: d}
	list, err := a.Launch(t.Context(), engine.Request{Key: "k", Nodes: 1, Offer: c.offer("ondemand/a100x4-8c-3g/on-demand")})
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	if err := a.Terminate(t.Context(), list[0].ID); err != nil {
		t.Error(err)
	}
}

// expired returns a token that says it has expired.
func expired(token string) string {
	parts := strings.Split(token, ".")
	parts[1] = base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1000000000,"iat":999999999,"sun":"root"}`))
	return strings.Join(parts, ".")
}
