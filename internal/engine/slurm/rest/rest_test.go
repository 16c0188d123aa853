package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/slurm/scheduler"
	"scrimp/internal/test/must"
)

// stub is a slurmrestd that calls a function.
func stub(t *testing.T, token string, answer http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	path := filepath.Join(t.TempDir(), "token")
	must.Do(t, os.WriteFile(path, []byte(token), 0o600))
	return New(&Setting{URL: s.URL, User: "ada", TokenFile: path})
}

// The token is sent to slurmrestd only, in a header, and appears in no error; an endless answer is not read.
func TestToken_GoesToSlurmrestdOnly(t *testing.T) {
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
	if c.most != maxAnswer {
		t.Errorf("answers of %d bytes are read", c.most)
	}
	c.most = 2 << 20 // must transfer within a request's time limit on a busy machine
	if _, err := c.Cluster(t.Context(), nil); err == nil || strings.Contains(err.Error(), "secret") || told != "" {
		t.Errorf("redirected: %v, told %q", err, told)
	}
	if _, err := c.Jobs(t.Context()); err == nil || !strings.Contains(err.Error(), "longer than 2 MiB") {
		t.Errorf("without end: %v", err)
	}
}

// A request without an answer is given up after eight seconds, and leaves open whether the job exists.
func TestAsk_GivesUpWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(&Setting{URL: "unix:///s", Version: Tried})
		c.HTTP.Transport = silent{}
		began := time.Now()
		_, err := c.hand(t.Context(), submission{})
		if took := time.Since(began); engine.Refused(scheduler.Refusal(err)) || took != scheduler.AnswerTime ||
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

// Of a cluster's versions the client uses the tested one, or otherwise the newest that it knows.
func TestVersions_AreNegotiated(t *testing.T) {
	t.Parallel()
	for has, want := range map[string]string{"v0.0.36 v0.0.37 v0.0.38": Tried, "v0.0.38 v0.0.39 v0.0.40": Tried,
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

// The documented forms of each version decode to the same cluster, jobs and accounts.
func TestForms_DecodeTheSameInEachVersion(t *testing.T) {
	t.Parallel()
	for _, v := range []string{"v0.0.38", "v0.0.39", "v0.0.40", "v0.0.41"} {
		c := stub(t, "x", func(w http.ResponseWriter, q *http.Request) {
			name := strings.ReplaceAll(strings.TrimPrefix(q.URL.Path, "/"), "/", "-")
			http.ServeFile(w, q, filepath.Join("testdata", name+".json"))
		})
		c.version = v
		got, err := c.Cluster(t.Context(), []string{"gpu", "spot"})
		if err != nil {
			t.Errorf("%s: %v", v, err)
			continue
		}
		want := map[string]scheduler.Partition{"gpu": {State: "UP", Limit: 24 * time.Hour, Nodes: 8, Defaults: true}, "spot": {State: "UP", Grace: 30 * time.Second},
			"old": {State: "DOWN"}}
		if v == "v0.0.38" { // later versions do not say what is preempted
			want["spot"] = scheduler.Partition{State: "UP", Preempted: true, Grace: 30 * time.Second}
		}
		if v == "v0.0.39" { // it contains no state
			want["old"] = scheduler.Partition{State: "UP"}
		}
		of := func(name, part string, usable bool) scheduler.Node {
			return scheduler.Node{Name: name, Partition: part, Address: "10.0.0.1", Host: name, CPUs: 64, Memory: 515000 << 20,
				Accelerator: "a100", Accelerators: 8, Features: []string{"nvlink", "a100"}, Usable: usable}
		}
		nodes := []scheduler.Node{of("n1", "gpu", true), of("n1", "spot", true), of("n2", "gpu", false)}
		if !reflect.DeepEqual(got.Partitions, want) || !reflect.DeepEqual(got.Nodes, nodes) {
			t.Errorf("%s: %+v\n%+v", v, got.Partitions, got.Nodes)
		}
		formsOfJobs(t, c, v)
	}
}

func formsOfJobs(t *testing.T, c *Client, v string) {
	t.Helper()
	jobs, err := c.Jobs(t.Context())
	at := func(s int64) time.Time { return time.Unix(s, 0).UTC() }
	want := []*scheduler.Job{
		{ID: "7", State: "PENDING", Reason: "Resources", Start: at(1700000600), Name: "scrimp-a", Comment: "scrimp:key=a&tag.b=c|d"},
		{ID: "8", State: "COMPLETING", Reason: "None", Start: at(1700000000), End: at(1700000500), Nodes: "n[1-2]", Name: "scrimp-b"},
	}
	if err != nil || !reflect.DeepEqual(jobs, want) {
		t.Errorf("%s: %v, %v", v, jobs, err)
		for _, j := range jobs {
			t.Logf("%+v", j)
		}
	}
	accounts, err := c.Accounts(t.Context(), []string{"5"})
	if err != nil || len(accounts) != 1 || !reflect.DeepEqual(accounts["5"], &scheduler.Job{ID: "5", State: "PREEMPTED", Start: at(1700000000),
		End: at(1700000100), Nodes: "n1"}) {
		t.Errorf("%s: %+v, %v", v, accounts["5"], err)
	}
	if _, err := c.Accounts(t.Context(), []string{"6"}); !errors.Is(err, scheduler.ErrNoAccounts) {
		t.Errorf("%s without slurmdbd: %v", v, err)
	}
}

// A job is encoded in the form of each version.
func TestDescribe_EncodesEachVersion(t *testing.T) {
	t.Parallel()
	o := &scheduler.Order{Name: "scrimp-a", Comment: "scrimp:key=a", Folder: "/f", Partition: "gpu", Nodes: 2, CPUs: 8, Exclusive: true,
		Memory: 1 << 30, Accelerator: "a100", Accelerators: 4, Lead: time.Minute, Limit: 90 * time.Second, Account: "ml",
		Options: []string{"--nice=5", "--exclude=n1,n2", "--reservation=r"}}
	for v, want := range map[string]string{
		"v0.0.38": `[true] null "TERM@60" null [2,2] null 1024 "exclusive" null "gpu:a100:4" null 1 5 "n1,n2" null "append"`,
		"v0.0.39": `[null] false null "TERM" null 2 {"set":true,"infinite":false,"number":1024} null ["none"] null ` +
			`"gres:gpu:a100:4" {"set":true,"infinite":false,"number":1} 5 null ["n1","n2"] ["APPEND"]`,
		"v0.0.41": `[null] false null "TERM" null 2 {"set":true,"infinite":false,"number":1024} null ["none"] null ` +
			`"gres/gpu:a100:4" {"set":true,"infinite":false,"number":1} 5 null ["n1","n2"] ["APPEND"]`,
	} {
		job := describe(o, v)
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
