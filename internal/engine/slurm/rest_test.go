package slurm

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/test/enginetest"
	"scrimp/internal/test/lane"
)

// needs skips a test of what is not installed.
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

// A driver that asks slurmrestd is held to the same contract as one that runs commands.
func TestDriverConformsOverREST(t *testing.T) {
	lane.Component(t, "slurm")
	t.Parallel()
	enginetest.Run(t, func(t testing.TB) enginetest.Rig { return newCluster(t, "GRACE=2", "REST=1").rig(t) })
}

// Doctor asks slurmrestd what a job would meet, and leaves nothing in the queue; what it cannot have is refused by
// the same word as by the commands.
func TestWhatIsMissingOverREST(t *testing.T) {
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
	for name, wrong := range map[string]func(*order){
		"Invalid partition": func(o *order) { o.partition = "nope" },
		"not available":     func(o *order) { o.accelerator = "h100" },
		"Invalid feature":   func(o *order) { o.constraint = "x" },
		"reservation":       func(o *order) { o.options = []string{"--reservation=x"} },
		"not let":           func(o *order) { o.partition, o.limit = "short", time.Hour },
		"does not know":     func(o *order) { o.options = []string{"--cpu-freq=never"} },
	} {
		o := &order{name: trialName, partition: "ondemand", nodes: 1, cpus: 8, accelerators: 4, lead: time.Minute}
		wrong(o)
		if err := d.slurm.try(t.Context(), o); !engine.Refused(err) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := &order{name: trialName, partition: "short", nodes: 1, cpus: 8, lead: time.Minute, unlimited: true}
	if err := d.slurm.try(t.Context(), o); !engine.Refused(err) || !strings.Contains(err.Error(), "not let") {
		t.Errorf("without a limit: %v", err)
	}
	o.partition = "ondemand"
	if err := d.slurm.try(t.Context(), o); err != nil {
		t.Errorf("without a limit: %v", err)
	}
	c.kill("slurmrestd")
	if all := findings(t, d); !strings.Contains(all["slurmrestd"]+all["controller"], "start slurmrestd") {
		t.Errorf("without slurmrestd: %q", all)
	}
}

// Who has a token is known on a port too. The file is read anew: a token that is renewed is used from then on, and
// one that has expired, that the cluster does not take or that others read is named with what to do.
func TestATokenIsRenewed(t *testing.T) {
	lane.Component(t, "slurm")
	t.Parallel()
	needs(t, "/usr/lib/*/slurm*/auth_jwt.so", "slurm-wlm-jwt-plugin")
	c := newCluster(t, "REST=1", "JWT=1") // a daemon more, and the settings of its own
	path := filepath.Join(c.dir, "token")
	c.rest = &REST{URL: "http://127.0.0.1:" + strconv.Itoa(c.cluster.Port+8), TokenFile: path}
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
	fails("is not taken")
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

// expired is a token whose own word says that it has expired.
func expired(token string) string {
	parts := strings.Split(token, ".")
	parts[1] = base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1000000000,"iat":999999999,"sun":"root"}`))
	return strings.Join(parts, ".")
}

// stub is slurmrestd as a function.
func stub(t *testing.T, token string, answer http.HandlerFunc) *rest {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	return newREST(&REST{URL: s.URL, User: "ada", TokenFile: path})
}

// The token goes to slurmrestd only, in a header, and is in no error; an answer without end is not read.
func TestTheClusterTokenGoesNowhereElse(t *testing.T) {
	t.Parallel()
	told := ""
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		told = q.Header.Get("X-Slurm-User-Token")
	}))
	defer other.Close()
	c := stub(t, "SLURM_JWT=secret\n", func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("X-Slurm-User-Token") != "secret" || q.Header.Get("X-Slurm-User-Name") != "ada" ||
			strings.Contains(q.URL.String(), "secret") {
			t.Errorf("asked %v with %v", q.URL, q.Header)
		}
		switch {
		case strings.HasSuffix(q.URL.Path, "/nodes"):
			http.Redirect(w, q, other.URL, http.StatusTemporaryRedirect)
		case strings.HasSuffix(q.URL.Path, "/jobs"):
			_, _ = w.Write([]byte(`{"jobs": [`))
			for range 3 {
				_, _ = w.Write([]byte(strings.Repeat(" ", 1<<20)))
			}
		default:
			_, _ = w.Write([]byte(`{"paths": {"/slurm/v0.0.38/jobs": {}}, "partitions": []}`))
		}
	})
	if c.most != mostAnswer {
		t.Errorf("answers of %d bytes are read", c.most)
	}
	c.most = 2 << 20 // what is sent must come in the time of a request on a busy machine
	if _, err := c.cluster(t.Context(), nil); err == nil || strings.Contains(err.Error(), "secret") || told != "" {
		t.Errorf("redirected: %v, told %q", err, told)
	}
	if _, err := c.jobs(t.Context()); err == nil || !strings.Contains(err.Error(), "longer than 2 MiB") {
		t.Errorf("without end: %v", err)
	}
}

// A request that is not answered is given up after eight seconds, and leaves open whether there is a job.
func TestARequestIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newREST(&REST{URL: "unix:///s", Version: tried})
		c.client.Transport = silent{}
		began := time.Now()
		_, err := c.hand(t.Context(), restSubmission{})
		if took := time.Since(began); engine.Refused(refusal(err)) || took != commandTime ||
			!strings.Contains(err.Error(), "no answer within 8s") {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

type silent struct{}

func (silent) RoundTrip(q *http.Request) (*http.Response, error) {
	<-q.Context().Done()
	return nil, q.Context().Err()
}

// Of the versions that a cluster has the one that has been tried is taken, and else the newest that is known.
func TestVersionsAreFound(t *testing.T) {
	t.Parallel()
	for has, want := range map[string]string{"v0.0.36 v0.0.37 v0.0.38": tried, "v0.0.38 v0.0.39 v0.0.40": tried,
		"v0.0.39 v0.0.40 v0.0.41": "v0.0.41", "v0.0.40 v0.0.41 v0.0.42": "v0.0.41", "v0.0.43": "", "": ""} {
		c := stub(t, "x", func(w http.ResponseWriter, _ *http.Request) {
			paths := map[string]any{"/openapi": 1}
			for v := range strings.FieldsSeq(has) {
				paths["/slurm/"+v+"/jobs/"] = 1
				paths["/slurmdb/"+v+"/jobs/"] = 1
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"paths": paths})
		})
		got, err := c.speaks(t.Context())
		if got != want || (err != nil) != (want == "") {
			t.Errorf("of %q: %q, %v", has, got, err)
		}
	}
}

// Forms of each version, as their documentation has them, are read as the same cluster, jobs and accounts.
func TestFormsOfEachVersionAreTheSame(t *testing.T) {
	t.Parallel()
	for _, v := range []string{"v0.0.38", "v0.0.39", "v0.0.40", "v0.0.41"} {
		c := stub(t, "x", func(w http.ResponseWriter, q *http.Request) {
			name := strings.ReplaceAll(strings.TrimPrefix(q.URL.Path, "/"), "/", "-")
			http.ServeFile(w, q, filepath.Join("testdata", "rest", name+".json"))
		})
		c.version = v
		got, err := c.cluster(t.Context(), []string{"gpu", "spot"})
		if err != nil {
			t.Errorf("%s: %v", v, err)
			continue
		}
		want := map[string]partition{"gpu": {state: "UP", limit: 24 * time.Hour, nodes: 8, defaults: true}, "spot": {state: "UP", grace: 30 * time.Second},
			"old": {state: "DOWN"}}
		if v == "v0.0.38" { // no later form says what is preempted
			want["spot"] = partition{state: "UP", preempted: true, grace: 30 * time.Second}
		}
		if v == "v0.0.39" { // which says no state
			want["old"] = partition{state: "UP"}
		}
		of := func(name, part string, usable bool) node {
			return node{name: name, partition: part, address: "10.0.0.1", host: name, cpus: 64, memory: 515000 << 20,
				accelerator: "a100", accelerators: 8, features: []string{"nvlink", "a100"}, usable: usable}
		}
		nodes := []node{of("n1", "gpu", true), of("n1", "spot", true), of("n2", "gpu", false)}
		if !reflect.DeepEqual(got.partitions, want) || !reflect.DeepEqual(got.nodes, nodes) {
			t.Errorf("%s: %+v\n%+v", v, got.partitions, got.nodes)
		}
		formsOfJobs(t, c, v)
	}
}

func formsOfJobs(t *testing.T, c *rest, v string) {
	t.Helper()
	jobs, err := c.jobs(t.Context())
	at := func(s int64) time.Time { return time.Unix(s, 0).UTC() }
	want := []*job{
		{id: "7", state: "PENDING", reason: "Resources", start: at(1700000600), name: "scrimp-a", comment: "scrimp:key=a&tag.b=c|d"},
		{id: "8", state: "COMPLETING", reason: "None", start: at(1700000000), end: at(1700000500), nodes: "n[1-2]", name: "scrimp-b"},
	}
	if err != nil || !reflect.DeepEqual(jobs, want) {
		t.Errorf("%s: %v, %v", v, jobs, err)
		for _, j := range jobs {
			t.Logf("%+v", j)
		}
	}
	accounts, err := c.accounts(t.Context(), []string{"5"})
	if err != nil || len(accounts) != 1 || !reflect.DeepEqual(accounts["5"], &job{id: "5", state: "PREEMPTED", start: at(1700000000),
		end: at(1700000100), nodes: "n1"}) {
		t.Errorf("%s: %+v, %v", v, accounts["5"], err)
	}
	if _, err := c.accounts(t.Context(), []string{"6"}); !errors.Is(err, errNoAccounts) {
		t.Errorf("%s without slurmdbd: %v", v, err)
	}
}

// A job is described in the form of each version.
func TestAJobIsDescribedInEachForm(t *testing.T) {
	t.Parallel()
	o := &order{name: "scrimp-a", comment: "scrimp:key=a", folder: "/f", partition: "gpu", nodes: 2, cpus: 8, exclusive: true,
		memory: 1 << 30, accelerator: "a100", accelerators: 4, lead: time.Minute, limit: 90 * time.Second, account: "ml",
		options: []string{"--nice=5", "--exclude=n1,n2", "--reservation=r"}}
	for v, want := range map[string]string{
		"v0.0.38": `[true] null "TERM@60" null [2,2] null 1024 "exclusive" null "gpu:a100:4" null 1 5 "n1,n2" null "append"`,
		"v0.0.39": `[null] false null "TERM" null 2 {"set":true,"infinite":false,"number":1024} null ["none"] null ` +
			`"gres:gpu:a100:4" {"set":true,"infinite":false,"number":1} 5 null ["n1","n2"] ["APPEND"]`,
		"v0.0.41": `[null] false null "TERM" null 2 {"set":true,"infinite":false,"number":1024} null ["none"] null ` +
			`"gres/gpu:a100:4" {"set":true,"infinite":false,"number":1} 5 null ["n1","n2"] ["APPEND"]`,
	} {
		job := o.description(v)
		text := func(name string) string { b, _ := json.Marshal(job[name]); return string(b) }
		got := fmt.Sprint("["+text("no_requeue")+"]", " ", text("requeue"), " ", text("signal"), " ", text("kill_warning_signal"), " ",
			text("nodes"), " ", text("minimum_nodes"), " ", text("memory_per_node"), " ", text("exclusive"), " ", text("shared"), " ",
			text("gres"), " ", text("tres_per_node"), " ", text("time_limit"), " ", text("nice"), " ", text("exclude_nodes"), " ",
			text("excluded_nodes"), " ", text("open_mode"))
		if got != want {
			t.Errorf("%s:\n%s, want\n%s", v, got, want)
		}
		if job["reservation"] != "r" || job["account"] != "ml" || job["dependency"] != "singleton" || job["tasks"] != 2 {
			t.Errorf("%s: %v", v, job)
		}
	}
}
